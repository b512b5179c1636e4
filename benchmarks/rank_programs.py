"""What programs of several ranks do that are asked for a checkpoint, and how many of them hang."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.rank_world import STEP_S, Rank, run

RANKS, RUNS, STEPS = 4, 500, 40
_SPEC = importlib.util.find_spec("pliant.program")
Program = Callable[[Rank], None]
Delivery = Callable[[random.Random], Sequence[float]]
"""Draws how long after the first rank each one is told."""


def saves_in_its_handler(rank: Rank) -> None:
    """What Lightning does, and others: the handler itself saves, with all ranks."""

    def save() -> None:
        rank.any_rank("save")
        raise SystemExit(85)

    rank.handler = save
    for _ in range(STEPS):
        rank.compute()
        rank.any_rank("gradients")


def looks_by_itself(rank: Rank) -> None:
    """Each rank asks at the end of its step; what it sees is no other rank's."""
    ours = _its_own_pliant(rank)
    for _ in range(STEPS):
        rank.compute()
        rank.any_rank("gradients")
        if ours.checkpoint_wanted():
            rank.any_rank("save")
            ours.checkpointed()


def agrees(rank: Rank) -> None:
    """All ranks ask together."""
    ours = _its_own_pliant(rank)
    for _ in range(STEPS):
        rank.compute()
        rank.any_rank("gradients")
        if ours.checkpoint_wanted_everywhere(lambda word: rank.any_rank("wanted", word)):
            rank.any_rank("save")
            ours.checkpointed()


def _its_own_pliant(rank: Rank) -> Any:
    """The real module as another process would have it; the wish is seen by a flag of its own."""
    assert _SPEC is not None  # it is imported above
    assert _SPEC.loader is not None
    ours: Any = importlib.util.module_from_spec(_SPEC)
    _SPEC.loader.exec_module(ours)
    seen: list[bool] = []
    rank.handler = lambda: seen.append(True)
    ours.checkpoint_wanted = lambda: bool(seen)
    ours._directory = lambda: "/nonexistent"
    return ours


def apart(seconds: float) -> Delivery:
    """So long between the first and the last rank, the others anywhere between."""

    def drawn(draw: random.Random) -> Sequence[float]:
        return (0.0, seconds, *(draw.uniform(0, seconds) for _ in range(RANKS - 2)))

    return drawn


def hung(what: Program, delivery: Delivery, seed: str, runs: int = RUNS) -> int:
    """How many of so many runs hung; the wish comes at any instant of a step."""
    draw = random.Random(f"{what.__name__} {seed}")  # a draw, no secret
    count = 0
    for number in range(runs):
        at_s = draw.uniform(2, STEPS / 2) * STEP_S
        told_s = [at_s + late_s for late_s in delivery(draw)]
        count += run(what, number, draw.sample(told_s, RANKS)) != ""
    return count
