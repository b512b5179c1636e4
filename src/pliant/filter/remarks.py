"""What an owner is told about the shapes of a submission."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pliant.filter.case import Case
from pliant.model import Shape, shape_text


def remarks(case: Case, own: Shape, shape: Shape) -> list[str]:
    """What the owner should know: totals that no shape has, and an own shape outside the range."""
    lines = _left_out(case, own) if case.all_said else []
    if case.written.own is not None and case.written.own not in case.allowed:
        lines.append(
            f"pliant: it asks for {shape_text(case.written.own)} besides, which is not among the"
            f" shapes that it may have: it is submitted with {shape_text(shape)}"
        )
    return lines


def _left_out(case: Case, own: Shape) -> list[str]:
    lines = []
    nodes = case.request.nodes or (own.nodes,)
    gpus = case.request.gpus
    uneven = [total for total in gpus if not any(_divides(total, n) for n in nodes)]
    if uneven:
        lines.append(f"pliant: gpus={_totals(uneven)}: does not divide over the nodes, left out")
    said = {shape.amount for shape in case.possible}.union(uneven)
    for shapes, why in (
        (case.split, "its tasks would have CPUs that are no whole cores here"),
        (case.small, "not every GPU here is known to have gpu-mem= for it"),
    ):
        theirs = {shape.amount for shape in shapes} - said
        some = [total for total in gpus if total in theirs]
        if some:
            lines.append(f"pliant: gpus={_totals(some)}: {why}, left out")
        said.update(some)
    never = [total for total in gpus if total not in said]
    if any(amount < 1 for amount in said):  # a range of shares is written for those there are
        never = [total for total in never if total >= 1]
    if never:
        lines.append(f"pliant: gpus={_totals(never)}: no node here could ever give it, left out")
    return lines


def _divides(total: Fraction, nodes: int) -> bool:
    return nodes == 1 if total < 1 else total.numerator % nodes == 0


def _totals(some: Sequence[Fraction]) -> str:
    most = 8
    return ":".join(str(total) for total in some[:most]) + (":..." if len(some) > most else "")


def list_text(some: Sequence[Shape]) -> str:
    most = 8
    text = ", ".join(shape_text(shape) for shape in some[:most])
    return text + (", ..." if len(some) > most else "")
