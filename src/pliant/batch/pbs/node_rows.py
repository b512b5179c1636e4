"""What ``pbsnodes -a -v -F json`` says, as rows of text and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.batch.pbs.values import Table, lowered, number, real, size_mib, table, text, texts
from pliant.filter.pbs.schedulers import own_partition

UP = frozenset({"free", "job-busy", "job-exclusive", "resv-exclusive", "busy"})
"""The states of a node that would take a job, now or when what is on it has gone."""
ALONE = frozenset({"job-exclusive", "resv-exclusive", "busy"})
"""Those in which it takes none now, whatever is free."""
OF_JOBS = ("max_running", "max_user_run", "max_group_run")
"""A node's own limits: how many jobs may run there, of all, of a user, of a group."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One vnode; ``states``: all words of its state; ``reserved``: a reservation is to have it.

    ``full``: it may be at its limit of jobs. ``partition``: "" is that of the default scheduler.
    """

    name: str
    states: frozenset[str]
    queue: str
    has: Mapping[str, str]
    given: Mapping[str, str]
    reserved: bool = False
    full: bool = False
    partition: str = ""

    @property
    def up(self) -> bool:
        """Whether PBS would start a job there once there is room."""
        return bool(self.states) and self.states <= UP

    @property
    def takes_none(self) -> bool:
        """Whether it takes no job now, whatever is free."""
        return self.full or not self.states.isdisjoint(ALONE)

    def left(self, name: str) -> int:
        """Return how much of a counted resource is free."""
        if self.takes_none:
            return 0
        return max(0, number(self.has.get(name)) - max(0, number(self.given.get(name))))

    def part_left(self, name: str) -> float:
        """Return how much of a resource with decimals is free."""
        if self.takes_none:
            return 0.0
        return max(0.0, real(self.has.get(name)) - max(0.0, real(self.given.get(name))))

    @property
    def mem_mib(self) -> tuple[int, int]:
        """Return its memory, and what is free of it."""
        total = size_mib(self.has.get("mem"))
        taken = size_mib(self.given.get("mem"))
        return total, 0 if self.takes_none else max(0, total - taken)


def parse_nodes(out: str) -> list[NodeRow]:
    """Read ``pbsnodes -a -v -F json``.

    Raises BadAnswer.
    """
    return [
        NodeRow(
            name,
            frozenset(state.strip() for state in text(one.get("state")).split(",") if state),
            text(one.get("queue")),
            lowered(one.get("resources_available")),
            texts(one.get("resources_assigned")),
            bool(one.get("resv")),
            _is_full(one),
            own_partition(text(one.get("partition"))),
        )
        for name, one in table(out, "nodes").items()
    ]


def _is_full(one: Table) -> bool:
    """Whether another job may be beyond a node's limits of jobs: whose it is is not known here."""
    most = [number(one[name]) for name in OF_JOBS if name in one]
    return bool(most) and len({*map(text, one.get("jobs") or ())}) >= min(most)
