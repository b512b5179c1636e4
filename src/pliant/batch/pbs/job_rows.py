"""What ``qstat -t -f -F json`` says of jobs, as rows of text and numbers.

PBS guesses types in its JSON: everything is read through :mod:`.values`. Times are printed in the
client's own zone, which is UTC here (see :mod:`.commands`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.batch.pbs.values import (
    Table,
    chunk_of,
    instant_s,
    job_id,
    lowered,
    number,
    table,
    tasks_in,
    text,
    texts,
    true,
)
from pliant.filter.pbs.names import BACK, RESTARTS, read_back, restarts

RUNNING, ENDING = "R", "E"
WAITING = frozenset("QHWT")
SUSPENDED = frozenset("SU")
TOO_MANY = "job held, too many failed attempts to run"
"""PBS's comment on a job that it holds because a start has failed and its run_count is above 20."""
DELETES = " and terminated by "
"""In its comment on one that runs, before whom, once somebody has deleted it."""


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
    begin_s: float  # Execution_Time; 0.0: none, or it has come
    eligible_s: float  # etime, since when it may start; 0.0: it may not, or it never could
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
    def array(self) -> str:
        """The number of a subjob's array, or of the array itself."""
        return self.id.partition("[")[0]

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
    def is_suspended(self) -> bool:
        """Whether it has its place and stands still: an operator, PBS or a user at its node."""
        return self.state in SUSPENDED

    @property
    def is_deleted(self) -> bool:
        """Whether somebody has deleted it while it ran: PBS shows it running until it has ended."""
        return self.state == RUNNING and DELETES in self.comment

    @property
    def begins_by_hook(self) -> bool:
        """Whether its time to begin is the one that our epilogue hook gave it."""
        back = read_back(self.variables.get(BACK, ""))
        return back is not None and 0.0 < self.begin_s == back.begins_s

    @property
    def is_held_for_returns(self) -> bool:
        """Whether PBS holds it for its run_count and our hooks alone, by going back, made that so.

        The epilogue hooks up to 0.1.0 did not let it begin anew.
        """
        back = read_back(self.variables.get(BACK, ""))
        ours = back is not None and self.run_count - back.runs in (0, 1)
        return ours and self.holds == "s" and self.comment.startswith(TOO_MANY)


def parse_jobs(out: str) -> list[JobRow]:
    """Read ``qstat -t -f -F json``.

    Raises BadAnswer.
    """
    rows = (job_row(name, one) for name, one in table(out, "Jobs").items())
    return [row for row in rows if row.id]


def job_row(name: str, one: Table) -> JobRow:
    """Return one job as PBS's JSON has it."""
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
        resources=lowered(one.get("Resource_List")),
        variables={n: v for n, v in variables.items() if n.startswith("PLIANT_")},
        holds="" if holds == "n" else holds,
        submit_s=instant_s(text(one.get("ctime"))),
        start_s=_start_s(one),
        begin_s=instant_s(text(one.get("Execution_Time"))),
        eligible_s=instant_s(text(one.get("etime"))),
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
