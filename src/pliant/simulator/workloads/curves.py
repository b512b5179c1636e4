"""Measured speeds by shape, as they are: f may fall with more GPUs and depends on where they lie.

:func:`read_sia` reads the tables of Sia and AdaptDL: one row for each placement and local batch
size, with the time of a step and of the synchronisation in it. A placement is written by its GPUs
on each node (``44``: four on each of two) or as numbers of nodes and of replicas. Placements with
different numbers of GPUs on their nodes are no shapes here, and left out.

Between what was measured, f is interpolated as policies do it (see :mod:`pliant.speedup`).

Source: siasosp23/artifacts and petuum/adaptdl (Apache-2.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from pliant.errors import BadInput
from pliant.grammar import quoted
from pliant.model import Request, Shape
from pliant.simulator.traces.lines import number_in, trace_lines, wrong
from pliant.speedup import Rates, given_speed


@dataclass(frozen=True, slots=True)
class Table:
    """f of one program: what was measured by shape, in steps per second."""

    name: str
    rates: Rates

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """What was measured, fewest GPUs first."""
        return tuple(shape for shape, _ in self.rates)

    def rate(self, shape: Shape) -> float:
        """Return steps per second as a shape; 0.0 where nothing tells of it."""
        return given_speed(Request(throughput=self.rates), shape) or 0.0

    def within(self, gpus: int, nodes: int = 1) -> Table:
        """Return the part of it that so many GPUs on so many nodes hold."""
        some = (one for one in self.rates if one[0].gpus <= gpus and one[0].nodes <= nodes)
        return Table(self.name, tuple(some))


@dataclass(frozen=True, slots=True)
class Measured:
    """The speed of a program, relative to its own shape."""

    table: Table
    own: Shape
    _known: dict[Shape, float] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse an own shape that makes no progress: raises BadInput."""
        if not self.table.rate(self.own) > 0:
            raise BadInput(f"{self.table.name}: nothing was measured that tells of {self.own}")

    def __call__(self, shape: Shape) -> float:
        """Return the speed as a shape."""
        speed = self._known.get(shape)
        if speed is None:
            speed = self._known[shape] = self.table.rate(shape) / self.table.rate(self.own)
        return speed


def table(name: str, rates: Mapping[Shape, float]) -> Table:
    """Return a table with its shapes in order."""
    return Table(name, tuple(sorted(rates.items(), key=lambda one: (one[0].amount, one[0]))))


_COLUMNS = ("local_bsz", "step_time", "sync_time")
_WHERE = (("placement",), ("num_nodes", "num_replicas"))
_PLACEMENT = re.compile("[1-9]{1,64}")


def read_sia(path: Path, batch: int = 0) -> Table:
    """Return the speeds of one file at one local batch size, in local batches per second.

    All GPUs together: a step of n replicas is n. Where a shape was measured more than once, the
    mean time of a step counts. ``batch`` 0: the largest of those that were measured for the most
    shapes. Raises BadInput for a line that cannot be right, and for a batch
    size that was not measured.
    """
    found: dict[int, dict[Shape, list[float]]] = {}
    for size, shape, step_s in _rows(path):
        times = found.setdefault(size, {})
        if shape is not None:
            times.setdefault(shape, []).append(step_s)
    if not found or (batch and batch not in found):
        sizes = ", ".join(map(str, sorted(found))) or "none"
        raise BadInput(f"{path}: local_bsz {batch or 'of any size'}: measured are {sizes}")
    chosen = batch or max(found, key=lambda size: (len(found[size]), size))
    rates = {shape: shape.whole_gpus / fmean(times) for shape, times in found[chosen].items()}
    return table(f"{path.parent.name} ({path.stem}, local batch {chosen})", rates)


def _rows(path: Path) -> Iterator[tuple[int, Shape | None, float]]:
    """Yield batch size, shape and seconds of each row."""
    names: list[str] = []
    for number, line in trace_lines(path):
        words = line.strip().split(",")
        if not names:
            names = _header(words, path, number)
        elif words != [""]:
            if len(words) != len(names):
                raise wrong(path, number, f"{len(words)} fields: {len(names)} are expected")
            said = dict(zip(names, words, strict=True))
            shape = _where(said, path, number)
            size = _count(said["local_bsz"], "local_bsz", path, number)
            step_s, sync_s = (
                number_in(said[what], what, path, number) for what in ("step_time", "sync_time")
            )
            if not 0 <= sync_s <= step_s or not step_s:
                raise wrong(path, number, f"a step of {step_s} s, {sync_s} s of it to synchronise")
            yield size, shape, step_s


def _header(names: list[str], path: Path, number: int) -> list[str]:
    lacking = [name for name in _COLUMNS if name not in names]
    if lacking or not any(set(where) <= set(names) for where in _WHERE):
        what = lacking[0] if lacking else "placement (or num_nodes and num_replicas)"
        raise wrong(path, number, f"no column {what}")
    return names


def _where(said: Mapping[str, str], path: Path, number: int) -> Shape | None:
    """The shape of a row; None where nodes have different numbers of GPUs."""
    if "placement" in said:
        text = said["placement"]
        if not _PLACEMENT.fullmatch(text):
            raise wrong(path, number, f"placement: {quoted(text)}: the GPUs on each node, like 44")
        gpus = [int(digit) for digit in text]
        return Shape(len(gpus), gpus[0]) if len(set(gpus)) == 1 else None
    nodes = _count(said["num_nodes"], "num_nodes", path, number)
    replicas = _count(said["num_replicas"], "num_replicas", path, number)
    if replicas < nodes:
        raise wrong(path, number, f"{replicas} replicas on {nodes} nodes")
    return Shape(nodes, replicas // nodes) if replicas % nodes == 0 else None


def _count(text: str, what: str, path: Path, number: int) -> int:
    value = number_in(text, what, path, number)
    if value < 1 or not value.is_integer():
        raise wrong(path, number, f"{what}: {quoted(text)}: a whole number is expected")
    return int(value)
