"""No order of events, with any one fault in it, leads to what may never be."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pliant import handover
from pliant.batch.slurm import handing
from pliant.handover import Do, Step
from prove.explore import Explorer
from prove.faults import single
from prove.sameness import same_by
from prove.world import Machine

MOST = 60_000
"""There are some 15,000 states; a mutant may have others."""


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def explored(*, to_the_end: bool) -> Explorer:
    machine = Machine(same_by)
    found = Explorer(machine, single)
    found.run(replace(machine.begin(), faults=1), MOST, to_the_end=to_the_end)
    return found


def test_whatever_goes_wrong_once_nothing_is_lost_left_or_overruled() -> None:
    found = explored(to_the_end=True)
    print(f"{found.states} states, {found.moves} moves")
    assert found.wrong == []
    assert found.restless() == []
    assert found.states > 10_000


_MUTANTS: dict[str, tuple[object, str, object]] = {
    "no fence": (handover, "_fenced", lambda _scene: None),
    "no pin": (
        handover,
        "_before_requeue",
        lambda _over, scene: handover._fenced(scene) or Step(Do.REQUEUE),
    ),
    "the fence falls before it may begin": (handover, "SOON_S", 0.0),
    "an owner's update is not seen": (handing, "stands", lambda *_: True),
    "a begin time of others is not seen": (handing, "begins_by_others", lambda *_: False),
    "nothing is released": (handing.Handing, "_release", lambda *_: None),
    "it is never given up": (handover, "_given_up", lambda _over, _scene: None),
}


@pytest.mark.parametrize("name", _MUTANTS)
def test_a_rule_that_is_missing_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, what, instead = _MUTANTS[name]
    monkeypatch.setattr(place, what, instead)
    found = explored(to_the_end=False)
    assert found.wrong or found.restless()
