"""What the example for PyTorch prints: a line for each run, and one for each step."""

from __future__ import annotations

import re
from typing import TypedDict


class Within(TypedDict):
    """How far two losses may be apart, as pytest.approx takes it."""

    rel: float
    abs: float


AS_IN_ONE_RUN = Within(rel=1e-4, abs=2e-6)
"""Floats are added in another order at another world size. Measured over 1,000 steps at 1 to 4
processes: at most two units of the last of the six decimals that are printed."""


def world_sizes(printed: str) -> list[int]:
    """Return with how many processes each run began."""
    return [int(number) for number in re.findall(r"^world size (\d+), ", printed, re.MULTILINE)]


def losses(printed: str) -> list[float]:
    """Return the losses of all steps; each step must be there once, in order."""
    lines = re.findall(r"^(\d+) (\d+\.\d+)$", printed, re.MULTILINE)
    assert [int(step) for step, _ in lines] == list(range(1, len(lines) + 1))
    return [float(loss) for _, loss in lines]
