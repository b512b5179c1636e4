"""How fast the demonstration's programs are on what they are given: stated, not measured.

A program of exponent a does ``amount ** a`` units of work a second on ``amount`` GPUs (a quarter of
one GPU is 0.25): sublinear, never falling, different for each program, as in paper 000, section
III. Crossing nodes costs a tenth; on CPU cores alone it has a quarter of one GPU's speed. The
job script computes the same with awk (see :mod:`pliant.demo.script`).
"""

from __future__ import annotations

import math

from pliant.model import Kind, Shape

ACROSS_NODES = 0.9
ON_CPU = 0.25

PROGRAMS = {"vision": 0.9, "language": 0.8, "search": 0.65}
"""The exponent of each program."""


def speed(shape: Shape, exponent: float) -> float:
    """Return the units of work done in one second at ``shape``; one GPU of one node does 1."""
    if shape.kind is Kind.CPU:
        return ON_CPU
    return math.pow(shape.amount, exponent) * (ACROSS_NODES if shape.nodes > 1 else 1.0)
