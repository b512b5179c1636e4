"""Where a recorded job goes: the shape that it had, and those that it may be taken to allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import ceil

from pliant.model import Kind, Node, Shape


class Room:
    """The nodes of one partition, as far as shapes ask for them."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        everything = [(sum(pool.total for pool in node.pools), node.cpus) for node in nodes]
        self._sizes = sorted(everything, reverse=True)
        self._kinds = Counter(everything)  # of thousands of nodes most are alike
        self._with_gpus = [size for size in self._sizes if size[0]]
        self._cpus = sorted((cpus for _, cpus in everything), reverse=True)

    def fits(self, nodes: int, gpus: int, cpus: int) -> bool:
        """Whether so many nodes have so many GPUs and CPUs each."""
        kinds = self._kinds.items()
        return nodes <= sum(count for (g, c), count in kinds if g >= gpus and c >= cpus)

    def own(self, gpus: int, nodes: int) -> Shape:
        """Return the shape of a job that had so many GPUs on so many nodes.

        As many on each; on other numbers of nodes, the fewest, where that does not go; and where
        there is no room for it at all, on all nodes with GPUs.
        """
        counts = range(1, len(self._with_gpus) + 1)
        for count in (*((nodes,) if nodes else ()), *counts):
            if gpus % count == 0 and self.fits(count, gpus // count, 0):
                return Shape(count, gpus // count)
        for count in counts:
            if self.fits(count, ceil(gpus / count), 0):
                return Shape(count, ceil(gpus / count))
        least = self._with_gpus[-1][0] if self._with_gpus else gpus
        return Shape(max(1, len(self._with_gpus)), least)

    def other(self, gpus: int, cpus_per_gpu: int) -> Shape | None:
        """Return so many GPUs on the fewest nodes, as many on each; None: it fits nowhere."""
        for count in range(1, len(self._with_gpus) + 1):
            each = gpus // count
            if gpus % count == 0 and self.fits(count, each, each * cpus_per_gpu):
                return Shape(count, each)
        return None

    def cpus_per_gpu(self, shape: Shape, cpus: int) -> int:
        """Return how many CPUs a job of ``cpus`` in all takes for each GPU of its shape."""
        total = shape.nodes * shape.gpus
        beside = sorted((c for g, c in self._sizes if g >= shape.gpus), reverse=True)
        most = beside[min(shape.nodes, len(beside)) - 1] // shape.gpus if beside else cpus
        return max(1, min(ceil(cpus / total), most))

    def on_cpus(self, cpus: int, nodes: int) -> tuple[Shape, int]:
        """Return the shape of a job on CPUs alone, and how many it takes on each node."""
        for count in range(max(1, nodes), len(self._cpus) + 1):
            each = ceil(cpus / count)
            if self._cpus[count - 1] >= each:
                return Shape(count, 0, kind=Kind.CPU), each
        return Shape(len(self._cpus), 0, kind=Kind.CPU), self._cpus[-1]
