"""What ``qstat -Q`` and ``qstat -B`` say of queues and the server, as rows of text and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pliant.batch.pbs.values import Table, duration_s, lowered, number, table, text, texts, true
from pliant.filter.fields import Fixed
from pliant.filter.pbs.limits import OF_RUNNING, OF_SEVERAL, SHAPED
from pliant.filter.pbs.schedulers import own_partition
from pliant.filter.pbs.select import read_mem_mib
from pliant.model import Cap
from pliant.model.caps import JOBS, USER

_OF_RESERVATION = re.compile(r"[RSM][0-9]+")
"""The name of a reservation's queue."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One execution queue, and what it lets a job have at most and at least.

    ``limited``: by what it bounds several jobs together. ``chunk``: what a chunk has that does not
    say it. ``group_keys``: the resources whose values make placement sets, where it names some.
    ``place``: that of jobs that say none.
    """

    name: str
    priority: int
    up: bool
    most: Mapping[str, str] = field(default_factory=dict)
    least: Mapping[str, str] = field(default_factory=dict)
    default_time_s: int = 0
    limited: tuple[str, ...] = ()
    chunk: Mapping[str, str] = field(default_factory=dict)
    partition: str = ""
    group_keys: tuple[str, ...] = ()
    place: str = ""
    caps: tuple[Cap, ...] = ()

    @property
    def max_time_s(self) -> int:
        """The longest walltime; 0: no limit."""
        return duration_s(self.most.get("walltime"))

    @property
    def is_of_reservation(self) -> bool:
        """Whether it is the queue of a reservation."""
        return _OF_RESERVATION.fullmatch(self.name) is not None


def parse_queues(out: str) -> list[QueueRow]:
    """Read ``qstat -Q -f -F json``: its execution queues.

    Raises BadAnswer.
    """
    return [
        QueueRow(
            name,
            number(one.get("Priority")),
            true(one.get("enabled")) and true(one.get("started")),
            texts(one.get("resources_max")),
            texts(one.get("resources_min")),
            duration_s(texts(one.get("resources_default")).get("walltime")),
            limits(one),
            lowered(one.get("default_chunk")),
            own_partition(text(one.get("partition"))),
            _keys(one),
            _place(one),
            caps(f"queue {name}", one, name),
        )
        for name, one in table(out, "Queue", repeats=True).items()
        if text(one.get("queue_type")).lower().startswith("e")
    ]


def limits(one: Table) -> tuple[str, ...]:
    """Return what of a queue or server bounds what its jobs may have together."""
    together = [name for name in one if name.startswith(OF_SEVERAL)]
    running = lowered(one.get(OF_RUNNING))
    return (*together, *(f"{OF_RUNNING}.{name}" for name in SHAPED if name in running))


def caps(name: str, one: Table, queue: str = "") -> tuple[Cap, ...]:
    """Return how many jobs may run of a queue or the server, and what they may have together.

    Of all, of a user or of each one that is not named. Whose group or project a job is of, where
    that has a limit of its own, is not known here.
    """
    said = [("", text(one.get("max_run"))), *texts(one.get("max_run_res")).items()]
    return tuple(cap for resource, limit in said for cap in _caps(name, queue, resource, limit))


def _caps(name: str, queue: str, resource: str, limit: str) -> Iterator[Cap]:
    """Read ``[o:PBS_ALL=9],[u:PBS_GENERIC=5],[u:ada=3]``."""
    found = [(kind, who.strip('"'), many) for kind, who, many in _FOR.findall(limit)]
    named = frozenset(who.lower() for kind, who, _ in found if kind == "u")
    for kind, who, many in found:
        amount = _amount(resource, many)
        if kind not in "ou" or amount is None:
            continue
        each = who == "PBS_GENERIC"
        yield Cap(
            f"max_run_res.{resource} of {name}" if resource else f"max_run of {name}",
            ((resource or JOBS, amount),),
            user="" if kind == "o" or each else who.lower(),
            partition=queue.lower(),
            each=USER if each else "",
            besides=named if each else frozenset(),
        )


def _amount(resource: str, many: str) -> int | None:
    if resource not in ("", *SHAPED):
        return None
    try:
        return read_mem_mib(many) if resource == "mem" else int(many)
    except (Fixed, ValueError):
        return None


_FOR = re.compile(r"\[([ougp]):([^=\]]+)=([^\]]+)\]")


@dataclass(frozen=True, slots=True)
class ServerRow:
    """The server. ``limited``: as of a queue; ``most``, ``chunk``: for what that does not say.

    ``formula``: its job_sort_formula. ``groups``: whether there are placement sets, by
    ``group_keys`` where a queue names none.
    """

    version: str = ""
    scheduling: bool = True
    default_queue: str = ""
    limited: tuple[str, ...] = ()
    default_time_s: int = 0
    sees_others: bool = True
    most: Mapping[str, str] = field(default_factory=dict)
    chunk: Mapping[str, str] = field(default_factory=dict)
    formula: str = ""
    groups: bool = False
    group_keys: tuple[str, ...] = ()
    place: str = ""
    caps: tuple[Cap, ...] = ()

    @property
    def max_time_s(self) -> int:
        """The longest walltime; 0: no limit."""
        return duration_s(self.most.get("walltime"))


def parse_server(out: str) -> ServerRow:
    """Read ``qstat -B -f -F json``.

    Raises BadAnswer.
    """
    for one in table(out, "Server", repeats=True).values():
        return ServerRow(
            text(one.get("pbs_version")),
            true(one.get("scheduling", True)),
            text(one.get("default_queue")),
            limits(one),
            duration_s(texts(one.get("resources_default")).get("walltime")),
            true(one.get("query_other_jobs", False)),
            texts(one.get("resources_max")),
            lowered(one.get("default_chunk")),
            text(one.get("job_sort_formula")),
            true(one.get("node_group_enable", False)),
            _keys(one),
            _place(one),
            caps("the server", one),
        )
    return ServerRow()


def _place(one: Table) -> str:
    """Return the place of jobs that say none."""
    return texts(one.get("resources_default")).get("place", "")


def _keys(one: Table) -> tuple[str, ...]:
    """Return the resources whose values make placement sets."""
    keys = text(one.get("node_group_key")).split(",")
    return tuple(key.strip().lower() for key in keys if key.strip())
