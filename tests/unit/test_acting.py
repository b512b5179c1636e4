"""Changes of waiting jobs: a few at a time, and no longer than what was seen may be acted on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from pliant.batch import Change
from pliant.daemon.acting import ACT_FOR_S, AT_ONCE, Acting
from pliant.grammar import parse
from pliant.model import Job, Shape, Spec
from pliant.plan import Mark, Mold
from pliant.store import Store

FOUR, TWO = Shape(1, 4), Shape(1, 2)


class Batch:
    """Takes every change, each turn of them in ``took_s``."""

    def __init__(self, took_s: float) -> None:
        self.took_s, self.now_s = took_s, 0.0
        self.turns: list[int] = []

    def change(self, changes: Sequence[Change]) -> list[None]:
        return self._took(len(changes))

    def mark(self, marks: Sequence[Mark]) -> list[None]:
        return self._took(len(marks))

    def _took(self, number: int) -> list[None]:
        self.turns.append(number)
        self.now_s += self.took_s
        return [None] * number


def molds(number: int) -> list[Mold]:
    spec = Spec(parse("gpus=2-4"))
    return [Mold(Job(str(at), shape=FOUR, spec=spec), TWO, "fits") for at in range(number)]


def acting(batch: Batch, directory: Path) -> Acting:
    return Acting(cast("Any", batch), Store(directory), lambda: 1.0, lambda: batch.now_s)


@pytest.mark.parametrize(("took_s", "turns"), [(0.0, 5), (ACT_FOR_S / 2, 3), (ACT_FOR_S + 1, 1)])
def test_a_cycle_acts_no_longer_than_its_snapshot_is_good_for(
    tmp_path: Path, took_s: float, turns: int
) -> None:
    batch = Batch(took_s)
    outcomes = [*acting(batch, tmp_path).act(molds(5 * AT_ONCE))]
    assert batch.turns == [AT_ONCE] * turns
    assert len(outcomes) == turns * AT_ONCE


def test_a_turn_is_a_few_jobs_so_that_the_doors_and_the_clock_have_theirs(tmp_path: Path) -> None:
    """The lock is held, and no time is looked at, for as long as one turn takes."""
    batch = Batch(0.0)
    made = acting(batch, tmp_path)
    assert len([*made.act(molds(25))]) == 25
    assert [*made.mark([Mark(mold.job, "n1", "") for mold in molds(25)])]
    assert batch.turns == [10, 10, 5] * 2


def test_who_is_told_to_stop_finishes_the_turn_in_flight_and_begins_no_other(
    tmp_path: Path,
) -> None:
    batch = Batch(0.0)
    made = acting(batch, tmp_path)
    changes = made.act(molds(3 * AT_ONCE))
    next(changes)
    made.stop()
    assert (len([*changes]), batch.turns) == (AT_ONCE - 1, [AT_ONCE])
    assert [*made.act(molds(1))] == []
    assert [*made.mark([Mark(molds(1)[0].job, "n1", "")])] == []
