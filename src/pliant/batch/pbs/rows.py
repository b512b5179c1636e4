"""What ``qstat -f -F json`` and ``pbsnodes -a -v -F json`` say, as rows of text and numbers.

PBS guesses types in its JSON: everything is read through :mod:`.values`. Times are printed in the
client's own zone, which is UTC here (see :mod:`.commands`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pliant.batch.pbs.values import (
    Table,
    chunk_of,
    duration_s,
    instant_s,
    job_id,
    number,
    real,
    size_mib,
    table,
    tasks_in,
    text,
    texts,
    true,
)
from pliant.filter.pbs.limits import OF_RUNNING, OF_SEVERAL, SHAPED
from pliant.filter.pbs.names import BACK, BY_QHOLD, HELD, RESTARTS, read_back, restarts
from pliant.filter.pbs.schedulers import own_partition

UP = frozenset({"free", "job-busy", "job-exclusive", "resv-exclusive", "busy"})
"""The states of a node that would take a job, now or when what is on it has gone."""
ALONE = frozenset({"job-exclusive", "resv-exclusive", "busy"})
"""Those in which it takes none now, whatever is free."""
OF_JOBS = ("max_running", "max_user_run", "max_group_run")
"""A node's own limits: how many jobs may run there, of all, of a user, of a group."""
EXPRESS = 150
"""The priority from which on a queue is an express queue (preempt_queue_prio, as it is by default):
for its jobs PBS may end others."""
_OF_RESERVATION = re.compile(r"[RSM][0-9]+")
"""The name of a reservation's queue."""
RUNNING, ENDING = "R", "E"
WAITING = frozenset("QHWT")
TOO_MANY = "job held, too many failed attempts to run"
"""PBS's comment on a job that it holds because a start has failed and its run_count is above 20."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job, array (``7[]``) or subjob (``7[3]``) as qstat shows it."""

    id: str
    user: str
    name: str
    state: str
    queue: str
    priority: int
    rank: int
    comment: str
    resources: Mapping[str, str]
    variables: Mapping[str, str]
    holds: str
    submit_s: float
    start_s: float
    begin_s: float  # Execution_Time; 0.0: none
    exec_vnode: str
    rerunable: bool
    run_count: int
    depend: str
    account: str
    project: str
    indices: str  # of an array: which subjobs wait; "-": none
    at_once: int
    added: Mapping[str, str]  # what PBS has added to its one chunk

    @property
    def waits(self) -> bool:
        """Whether it waits for an allocation; an array that has begun does with the rest of it."""
        begun = self.is_array and self.state == "B"
        return self.state in WAITING or (begun and tasks_in(self.indices) > 0)

    @property
    def is_array(self) -> bool:
        """Whether it stands for an array."""
        return self.id.endswith("[]")

    @property
    def is_subjob(self) -> bool:
        """Whether it is one of an array."""
        return self.id.endswith("]") and not self.is_array

    @property
    def restarts(self) -> int:
        """How often it was restarted."""
        before, back = self.variables.get(RESTARTS, ""), self.variables.get(BACK, "")
        return restarts(before, back, self.run_count)

    @property
    def starts_falsely(self) -> bool:
        """Whether it is in the start that our launch hook refuses."""
        back = read_back(self.variables.get(BACK, ""))
        return self.state == RUNNING and back is not None and self.run_count == back.runs + 1

    @property
    def is_between_runs(self) -> bool:
        """Whether it was sent back, and has not come through that start yet."""
        back = read_back(self.variables.get(BACK, ""))
        waits = self.waits and back is not None and self.run_count == back.runs
        return waits or self.starts_falsely

    @property
    def begins_by_hook(self) -> bool:
        """Whether its time to begin is the one that our epilogue hook gave it."""
        back = read_back(self.variables.get(BACK, ""))
        return back is not None and 0.0 < self.begin_s == back.begins_s

    @property
    def is_held_by_us(self) -> bool:
        """Whether our epilogue hook holds it, and nobody else: a qhold says so in the comment."""
        is_marked = self.variables.get(HELD, "") == str(self.run_count)
        return self.holds == "s" and is_marked and not self.comment.startswith(BY_QHOLD)

    @property
    def is_held_for_returns(self) -> bool:
        """Whether PBS holds it for its run_count and our hooks alone, by going back, made that so.

        The epilogue hooks up to 0.1.0 did not let it begin anew.
        """
        back = read_back(self.variables.get(BACK, ""))
        ours = back is not None and self.run_count - back.runs in (0, 1)
        by_pbs = self.holds == "s" and self.comment.startswith(TOO_MANY)
        return ours and by_pbs and not self.is_held_by_us


def parse_jobs(out: str) -> list[JobRow]:
    """Read ``qstat -t -f -F json``.

    Raises BadAnswer.
    """
    rows = (_job(name, one) for name, one in table(out, "Jobs").items())
    return [row for row in rows if row.id]


def _job(name: str, one: Table) -> JobRow:
    variables = texts(one.get("Variable_List"))
    holds = text(one.get("Hold_Types"))
    return JobRow(
        id=job_id(name),
        user=text(one.get("Job_Owner")).partition("@")[0],
        name=text(one.get("Job_Name")),
        state=text(one.get("job_state")),
        queue=text(one.get("queue")),
        priority=number(one.get("Priority")),
        rank=number(one.get("queue_rank")),
        comment=text(one.get("comment")),
        resources=_small(one.get("Resource_List")),
        variables={n: v for n, v in variables.items() if n.startswith("PLIANT_")},
        holds="" if holds == "n" else holds,
        submit_s=instant_s(text(one.get("ctime"))),
        start_s=_start_s(one),
        begin_s=instant_s(text(one.get("Execution_Time"))),
        exec_vnode=text(one.get("exec_vnode")),
        rerunable=true(one.get("Rerunable", True)),
        run_count=number(one.get("run_count")),
        depend=text(one.get("depend")),
        account=text(one.get("Account_Name")),
        project=text(one.get("project")),
        indices=text(one.get("array_indices_remaining")),
        at_once=number(one.get("max_run_subjobs")),
        added=_added(one),
    )


def _added(one: Table) -> dict[str, str]:
    """Return what a job's chunk has that its select does not say, as PBS looks at it."""
    said = chunk_of(texts(one.get("Resource_List")).get("select", ""))
    has = chunk_of(text(one.get("schedselect")))
    return {name: value for name, value in has.items() if name not in said}


def _start_s(one: Table) -> float:
    """Return when a job started: in its first moment (substate 41) PBS has changed it, no more."""
    waits = text(one.get("job_state")) in WAITING
    names = ("stime",) if waits else ("stime", "mtime", "etime", "ctime")
    return next(filter(None, (instant_s(text(one.get(name))) for name in names)), 0.0)


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
            _small(one.get("resources_available")),
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

    @property
    def max_time_s(self) -> int:
        """The longest walltime; 0: no limit."""
        return duration_s(self.most.get("walltime"))

    @property
    def may_be_kept_out(self) -> bool:
        """Whether a fence is for its jobs: not for those that PBS would end others for."""
        return self.priority < EXPRESS and not _OF_RESERVATION.fullmatch(self.name)


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
            _small(one.get("default_chunk")),
            own_partition(text(one.get("partition"))),
            _keys(one),
            _place(one),
        )
        for name, one in table(out, "Queue").items()
        if text(one.get("queue_type")).lower().startswith("e")
    ]


def limits(one: Table) -> tuple[str, ...]:
    """Return what of a queue or server bounds what its jobs may have together."""
    together = [name for name in one if name.startswith(OF_SEVERAL)]
    running = _small(one.get(OF_RUNNING))
    return (*together, *(f"{OF_RUNNING}.{name}" for name in SHAPED if name in running))


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

    @property
    def max_time_s(self) -> int:
        """The longest walltime; 0: no limit."""
        return duration_s(self.most.get("walltime"))


def parse_server(out: str) -> ServerRow:
    """Read ``qstat -B -f -F json``.

    Raises BadAnswer.
    """
    for one in table(out, "Server").values():
        return ServerRow(
            text(one.get("pbs_version")),
            true(one.get("scheduling", True)),
            text(one.get("default_queue")),
            limits(one),
            duration_s(texts(one.get("resources_default")).get("walltime")),
            true(one.get("query_other_jobs", False)),
            texts(one.get("resources_max")),
            _small(one.get("default_chunk")),
            text(one.get("job_sort_formula")),
            true(one.get("node_group_enable", False)),
            _keys(one),
            _place(one),
        )
    return ServerRow()


def _place(one: Table) -> str:
    """Return the place of jobs that say none."""
    return texts(one.get("resources_default")).get("place", "")


def _keys(one: Table) -> tuple[str, ...]:
    """Return the resources whose values make placement sets."""
    keys = text(one.get("node_group_key")).split(",")
    return tuple(key.strip().lower() for key in keys if key.strip())


def _small(values: object) -> dict[str, str]:
    """Return a table with its names in small letters, by which PBS does not tell them."""
    return {name.lower(): value for name, value in texts(values).items()}
