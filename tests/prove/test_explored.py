"""No order of events, with any one fault in it, leads to what may never be."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pliant import handover
from pliant.batch.pbs import fences, pbs, queries
from pliant.batch.pbs import handing as on_pbs
from pliant.daemon.handing import HandOvers
from pliant.filter.pbs import launched
from prove.__main__ import explored
from prove.missing import ON_SLURM
from prove.on_pbs import OnPbs
from prove.on_slurm import OnSlurm
from prove.world import Machine

MOST = 200_000


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("system", "guest", "least"),
    [
        (OnSlurm, False, 13_000),
        (OnSlurm, True, 45_000),
        (OnPbs, False, 15_000),
        (OnPbs, True, 20_000),
    ],
)
def test_whatever_goes_wrong_once_nothing_is_lost_left_or_overruled(
    system: type[Machine], guest: bool, least: int
) -> None:
    found = explored(system, faults=1, guest=guest, most=MOST)
    print(f"{found.states} states, {found.moves} moves")
    assert found.wrong == []
    assert found.restless() == []
    assert found.states > least


@pytest.mark.parametrize("name", ON_SLURM)
def test_a_rule_that_is_missing_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, what, instead = ON_SLURM[name]
    monkeypatch.setattr(place, what, instead)
    found = explored(OnSlurm, faults=1, guest=False, most=MOST, to_the_end=False)
    assert found.wrong or found.restless()


_MUTANTS_OF_PBS: dict[str, tuple[object, str, object]] = {
    "no fence": (fences.Fences, "put", lambda *_: None),
    "a fence comes with the next look": (on_pbs.Handing, "before_end", lambda *_: None),
    "nobody is woken": (queries.Queries, "kick", lambda _queries: True),
    "an owner's change is not seen": (on_pbs, "stands", lambda *_: True),
    "the first start is not refused": (launched, "is_false_start", lambda *_: False),
    "nor the one after a lost one": (launched, "refused_next", lambda *_: ""),
    "nobody asks whether it would return": (pbs.Pbs, "must_go_back", lambda *_: None),
    "a time to begin that has come is none": (on_pbs, "_begins_s", lambda row, _over: row.begin_s),
    "nothing is told to PBS": (on_pbs.Handing, "_tell", lambda *_: None),
    "it is never given up": (handover, "_given_up", lambda _over, _scene: None),
    "nobody looks whether PBS sees its end": (OnPbs, "happens", Machine.happens),
    "nobody asks whether its program waits": (
        HandOvers,
        "_heard",
        lambda _overs, _of, step, _: step,
    ),
}


@pytest.mark.parametrize("name", _MUTANTS_OF_PBS)
def test_so_is_one_of_pbs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, what, instead = _MUTANTS_OF_PBS[name]
    monkeypatch.setattr(place, what, instead)
    found = explored(OnPbs, faults=1, guest=False, most=MOST, to_the_end=False)
    assert found.wrong or found.restless()
