"""A fake of PBS: one host of four GPUs, what its commands print and take, when its jobs start.

It speaks the JSON of qstat, pbsnodes and the text of qmgr, takes the arguments that Pliant gives
them, and calls Pliant's own hooks as PBS does. It keeps what was measured on OpenPBS 23.06: a job
whose epilogue hook sends it back waits for a time, its next start is one that is to be refused, or
the mark by which it was sent back stays and it comes back after every run; a cycle of the scheduler
comes with an end, a release, a time to begin or a kick, and with no change of a job; who is refused
by a hook in it waits for the next one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pliant.batch.clients import Answer
from pliant.batch.pbs.job_rows import DELETES
from pliant.batch.pbs.values import duration_s, number
from pliant.filter.pbs.fences import Fence
from pliant.filter.pbs.names import (
    BACK,
    KEEPS_OUT,
    RESTARTS,
    RETURNS,
    SENDS_BACK,
    Back,
    read_back,
    restarts,
)
from prove.changed import changed
from prove.pbs_hooks import Hooks
from prove.world import Rejected

GPUS = 4
CLEANING_S = 1.0
"""How long a run takes to end, with its epilogue."""
FALSE_START_S = 1.0
"""How long the start takes that is refused."""
UNREACHED, UNTAKEN = "unreached", "untaken"
"""How a start fails whose node is not reached, or whose pbs_mom does not take it."""
UNTAKEN_S = 0.5
"""How long that takes."""
RERUN_S = 45.0
"""How long a rerun takes of a run whose pbs_mom was started again: job_requeue_timeout."""
BAD_STATE = "Request invalid for state of job"
WALLTIME_S, SUBMITTED_S = 1800, 1000.0
LISTED = """\
Sched default
    sched_host = head
    partition = pbs-default
    sched_priv = /nowhere
    scheduling = True
    state = idle
"""
HOOK = "Hook {name}\n    enabled = true\n"
QUEUE = {"queue_type": "Execution", "enabled": "True", "started": "True"}
SERVER = {
    "scheduling": "True",
    "default_queue": "workq",
    "query_other_jobs": "True",
    "default_chunk": {"ncpus": 1},
    "pbs_version": "23.06.06",
}
NODE = {
    "state": "free",
    "resources_available": {"host": "n1", "mem": "64gb", "ncpus": 16, "ngpus": 4},
}
OTHERS = "Not Running: Insufficient amount of resource: ngpus"


@dataclass(frozen=True)
class Record:
    """A job as pbs_server has it; instants are seconds since the epoch, 0 for none.

    ``run``: as its program was told. ``returns``, ``restarts``, ``back``: its variables of ours.
    ``marked``: it was sent back by a hook, and PBS has not forgotten that. ``repeats``: it was for
    that alone. ``falsely``: it is in the start that our hook refuses; ``untaken``: in one that its
    node does not take; ``over``: its program has ended. ``ends_s``: until when that is so.
    ``etime_s``: since when it may start. ``then``: what becomes of it where our hook does not send it
    back, a state. ``adopted``: its pbs_mom was started again with -p since it began, and does not
    see how its script ends. ``deleted``: somebody has done so while it ran; a rerun brings it back.
    """

    number: int
    state: str = "Q"
    gpus: int = GPUS
    cpus: int = 8
    walltime_s: int = WALLTIME_S
    queue: str = "workq"
    token: str = ""
    asks: tuple[tuple[str, str], ...] = ()
    holds: str = ""
    run: int = 0
    run_count: int = 0
    returns: str = ""
    restarts: int = 0
    back_runs: int = -1
    back_times: int = 0
    back_begins_s: float = 0.0
    marked: bool = False
    repeats: bool = False
    falsely: bool = False
    untaken: bool = False
    over: bool = False
    adopted: bool = False
    rerunable: bool = True
    begin_s: float = 0.0
    start_s: float = 0.0
    ends_s: float = 0.0
    code: int = 0
    etime_s: float = 0.0
    then: str = ""
    deleted: bool = False

    @property
    def waits(self) -> bool:
        """Whether it has no allocation, and may have one."""
        return self.state in "QHW"

    @property
    def runs(self) -> bool:
        """Whether its program may run."""
        return self.state == "R" and not (self.falsely or self.untaken or self.over)

    @property
    def is_between_runs(self) -> bool:
        """Whether one of its runs is over, and the next one has not begun."""
        return self.waits or self.falsely or self.untaken or self.over

    @property
    def has_failed(self) -> bool:
        """Whether it has ended for good, and was not to."""
        return self.state == "F" and self.code != 0

    @property
    def is_lost(self) -> bool:
        """Whether nothing brings it back."""
        return self.has_failed

    @property
    def has_gpus(self) -> bool:
        """Whether it takes GPUs now."""
        return self.state == "R"

    @property
    def taken(self) -> Mapping[str, int]:
        """How many GPUs of which nodes it has now."""
        return {"n1": self.gpus} if self.has_gpus else {}

    @property
    def submit_s(self) -> float:
        """When it was submitted: long ago."""
        return SUBMITTED_S

    @property
    def is_held(self) -> bool:
        """Whether its owner holds it."""
        return "u" in self.holds

    @property
    def back(self) -> Back | None:
        """How our hook sent it back."""
        if self.back_runs < 0:
            return None
        return Back(self.back_runs, self.back_times, int(self.back_begins_s))

    @property
    def variables(self) -> dict[str, str]:
        """Those of ours."""
        if not self.returns:
            return {}
        back = {BACK: str(self.back)} if self.back else {}
        return {RETURNS: self.returns, RESTARTS: str(self.restarts), **back}

    @property
    def resources(self) -> dict[str, str]:
        """Its Resource_List."""
        token = {"pliant": self.token} if self.token else {}
        select = f"1:ncpus={self.cpus}:ngpus={self.gpus}"
        limit = f"{self.walltime_s // 3600:02}:{self.walltime_s // 60 % 60:02}:00"
        return {"select": select, "place": "free", "walltime": limit, **token, **dict(self.asks)}


@dataclass(frozen=True)
class Jobs:
    """All that PBS knows, and the files that pliantd has written for its hooks.

    ``fences``: by the job that each is around. ``since``: SILENT: when pliantd wrote that it is
    there for the last time, 0 while it does. ``flags``: what else is so.
    """

    jobs: Mapping[int, Record]
    fences: Mapping[str, Fence]
    since: Mapping[str, float]
    flags: Mapping[str, bool]

    def free(self) -> int:
        """How many GPUs no job has."""
        return GPUS - sum(job.gpus for job in self.jobs.values() if job.has_gpus)

    def with_job(self, job: Record) -> Jobs:
        """The same with this job as it is now."""
        return changed(self, jobs={**self.jobs, job.number: job})

    def flagged(self, **flags: bool) -> Jobs:
        """The same with some flags."""
        return changed(self, flags={**self.flags, **flags})


SILENT = "pliantd is silent"
SENT_BACK = -18
"""The Exit_status by which PBS remembers that a hook has sent a job back."""
NOTHING = Jobs({}, {}, {SILENT: 0.0}, {})


class FakePbs:
    """PBS at ``now_s``; ``state`` is all there is of it, and may be put back.

    Flags: ``due``: a cycle of the scheduler is to come. ``deaf``: a site's own hook refuses any new request of a job. ``missed``: a cycle was
    in vain, as no node had answered yet.
    """

    def __init__(self, state: Jobs, now_s: float) -> None:
        self.state, self.now_s = state, now_s
        self.start_fails: dict[int, str] = {}
        self.hooks = Hooks(lambda: self.now_s)

    # --- what is asked ---------------------------------------------------------------------

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer a command of Pliant's."""
        assert not stdin, argv
        assert not env, argv
        try:
            return Answer(self._answer(tuple(argv)), "", 0)
        except Rejected as error:
            return Answer("", f"{argv[0]}: {error} {argv[-1]}.head\n", 1)

    def _answer(self, argv: tuple[str, ...]) -> str:
        if argv[0] == "qstat" and argv[1] == "-t":
            return self._qstat()
        if argv in _HOOKS:
            return _HOOKS[argv]
        return _FIXED.get(argv) or self.told(argv)

    def _qstat(self) -> str:
        return '{"Jobs":{' + ",".join(map(_printed, self.alive())) + "}}"

    def alive(self) -> list[Record]:
        """Return whom qstat prints, in order."""
        return [job for job in self.state.jobs.values() if job.state != "F"]

    # --- what is told ----------------------------------------------------------------------

    def told(self, words: Sequence[str], *, by_owner: bool = False) -> str:
        """Do what a command says. Raises Rejected, having done nothing."""
        match words:
            case ("qmgr", "-c", "set server scheduling = True"):
                self._wakes()
            case ("qalter", *changes, number):
                self._alter(self._job(number), changes, by_owner=by_owner)
            case ("qrerun", number):
                self._rerun(self._job(number))
            case ("qrls", "-h", kind, number):
                job = self._job(number)
                self._waits(changed(job, holds=job.holds.replace(kind, "")))
                self._wakes()
            case ("qhold", "-h", kind, number):
                job = self._job(number)
                holds = "".join(sorted({*job.holds, kind}))
                self._waits(changed(job, holds=holds))
            case ("qdel", number):
                self._delete(self._job(number))
            case ("qmove", queue, number):
                job = self._job(number)
                self._not(job, "R")
                self._keep(changed(job, queue=queue))
            case _:
                raise AssertionError(words)
        return ""

    def _job(self, number: str) -> Record:
        job = self.state.jobs.get(int(number))
        if job is None or job.state == "F":
            raise Rejected("Unknown Job Id")
        return job

    def _not(self, job: Record, states: str) -> None:
        if job.state in states:
            raise Rejected(BAD_STATE)

    def _keep(self, job: Record) -> None:
        self.state = self.state.with_job(job)

    def _waits(self, job: Record) -> None:
        """Keep a job; where it waits, in the state that follows from its holds and its time."""
        if job.waits:
            later = "W" if job.begin_s > self.now_s else "Q"
            state, had_s = "H" if job.holds else later, job.etime_s
            job = changed(job, state=state, etime_s=0.0)
            if state == "Q":
                job = changed(job, etime_s=had_s or self.now_s, start_s=0.0)
        self._keep(job)

    def _wakes(self) -> None:
        self.state = self.state.flagged(due=True)

    def _rerun(self, job: Record) -> None:
        if not job.rerunable:
            raise Rejected("Job is not rerunnable")
        if job.state != "R":
            raise Rejected(BAD_STATE)
        if job.adopted:
            self._reruns_slowly(job)
        elif job.runs or job.deleted:  # that one comes back
            self._ends(changed(job, deleted=False), "Q")

    def _reruns_slowly(self, job: Record) -> None:
        """Send it back after a while: its pbs_mom does not end it. It runs on until then."""
        if job.runs and not job.ends_s:
            self._keep(changed(job, then="Q", ends_s=self.now_s + RERUN_S))
            raise Rejected("Rerun request timed out, the rerun is still in progress for")
        raise Rejected(BAD_STATE)

    def _ends(self, job: Record, then: str, code: int = 0) -> None:
        """End its program; PBS shows it as running until its node has told."""
        ends_s = self.now_s + CLEANING_S
        self._keep(changed(job, over=True, falsely=False, then=then, code=code, ends_s=ends_s))

    def _delete(self, job: Record) -> None:
        if job.over:
            raise Rejected(BAD_STATE)
        if job.falsely:  # PBS takes it, and forgets it
            return
        if job.waits:
            self._keep(changed(job, state="F", etime_s=0.0))
        else:
            self._ends(changed(job, deleted=True), "F")

    # --- a qalter --------------------------------------------------------------------------

    def _alter(self, job: Record, words: Sequence[str], *, by_owner: bool) -> None:
        pairs = list(zip(words[::2], words[1::2], strict=True))
        named = dict(value.split("=", 1) for option, value in pairs if option == "-l")
        if self.state.flags["deaf"] and not by_owner and named:
            raise Rejected("request rejected as filter could not be applied")
        if job.state == "R" and not named.keys() <= {"walltime"}:
            raise Rejected("Cannot modify attribute while job running  Resource_List.select")
        attributes = {value for option, value in pairs if option == "-W"}
        counted = {"run_count": 0} if "run_count=0" in attributes else {}
        job = self._hooked(job, named, counted)
        for option, value in pairs:
            if option == "-a":
                job = changed(job, begin_s=_instant(value))
            elif option == "-r":
                job = changed(job, rerunable=value == "y")
        self._waits(job)

    def _hooked(self, job: Record, named: Mapping[str, str], counted: Mapping[str, int]) -> Record:
        """Return a job as it is changed, with what our hook adds to that."""
        state = {"Q": 1, "H": 2, "W": 3, "R": 4}[job.state]
        was = {"resources": job.resources, "variables": job.variables}
        seen = self.hooks.modify(
            {**was, "queue": job.queue, "run_count": job.run_count, "job_state": state},
            resources=named,
            **counted,
        )
        if seen is None:
            raise Rejected("request rejected by filter")
        new = {n: str(v) for n, v in seen.Resource_List.values.items() if v is not None}
        job = changed(_with(job, new), run_count=counted.get("run_count", job.run_count))
        return _varied(job, {**job.variables, **seen.Variable_List})

    # --- what happens by itself ------------------------------------------------------------

    def pass_to(self, now_s: float) -> None:
        """Let time pass."""
        self.now_s = now_s
        for job in self.state.jobs.values():
            if 0 < job.begin_s <= now_s:  # PBS forgets a time to begin that has come
                self._waits(changed(job, begin_s=0.0))
                self._wakes()
            if 0 < job.ends_s <= now_s:
                self._over(self.state.jobs[job.number])

    def _over(self, job: Record) -> None:
        """Let its node tell of the end of a run, or of a start that was refused."""
        if job.untaken:  # no cycle follows: in ten minutes one comes by itself
            self._waits(changed(job, state="Q", untaken=False, ends_s=0.0))
            self.state = self.state.flagged(missed=True)
            return
        self._wakes()
        told = changed(job, ends_s=0.0, falsely=False, over=False)
        if job.falsely:
            self._waits(changed(told, state="Q", marked=False))
            return
        if job.then == "F":
            told = self._epilogue(told)
        if told.then == "F" and not told.marked:
            self._keep(changed(told, state="F"))
        else:
            self._waits(changed(told, state="Q", repeats=told.then == "F", then="", code=0))

    def _epilogue(self, job: Record) -> Record:
        """Ask our hook, of a run that has ended by itself."""
        seen, goes_back = self.hooks.epilogue(
            id=f"{job.number}.head",
            variables=job.variables,
            Exit_status=0 if job.adopted else job.code,
            run_count=job.run_count,
            Rerunable=job.rerunable,
        )
        job = _varied(job, {**job.variables, **seen.Variable_List})
        if not goes_back:
            return job
        begin_s = float(seen.Execution_Time or job.begin_s)
        return changed(job, then="Q", marked=True, begin_s=begin_s, run_count=seen.run_count)

    # --- starts ----------------------------------------------------------------------------

    def starts(self) -> list[Record]:
        """Who would start in a cycle of the scheduler, in order."""
        if not self.state.flags["due"]:
            return []
        free, started = self.state.free(), list[Record]()
        for job in sorted(self.state.jobs.values(), key=lambda job: job.number):
            if job.state == "Q" and job.gpus <= free and self._lets(job):
                started.append(job)
                free -= job.gpus
        return started

    def _lets(self, job: Record) -> bool:
        return not self.state.fences or self._asked(job) is not None

    def _asked(self, job: Record) -> Record | None:
        """Ask our runjob hook; return the job as it starts, None where it may not."""
        if not self.state.fences and not job.variables:
            return job
        seen = self.hooks.runs(
            [*self.state.fences.values()],
            self.state.since[SILENT] or self.now_s,
            id=f"{job.number}.head",
            queue=job.queue,
            exec_vnode=_places(job),
            run_count=job.run_count,
            variables=job.variables,
            Exit_status=SENT_BACK if job.marked else None,
        )
        return seen and _varied(job, {**job.variables, **seen.Variable_List})

    def schedule(self) -> None:
        """Make a cycle of the scheduler."""
        starts = self.starts()
        self.state = self.state.flagged(due=False, missed=False)
        for job in starts:
            self._start(self._asked(job) or job)

    def _start(self, job: Record) -> None:
        counted = changed(job, run_count=job.run_count + 1, code=0, adopted=False)
        fails = self.start_fails.pop(job.number, "")
        if fails == UNREACHED:
            self._waits(counted)
            self._wakes()
            return
        runs = changed(counted, state="R", start_s=float(int(self.now_s)))
        if fails == UNTAKEN:
            self._keep(changed(runs, untaken=True, ends_s=self.now_s + UNTAKEN_S))
            return
        said = runs.variables
        seen = {"variables": said, "run_count": runs.run_count}
        if self.hooks.launch(said, exec_vnode=_places(job), **seen):
            run = restarts(said.get(RESTARTS, ""), said.get(BACK, ""), runs.run_count)
            self._keep(changed(runs, run=run))
        else:
            self._keep(changed(runs, falsely=True, ends_s=self.now_s + FALSE_START_S))

    def restart(self) -> None:
        """Start pbs_server anew: it begins with a cycle in which no node has answered yet."""
        for job in self.state.jobs.values():
            if job.falsely:
                self._waits(changed(job, state="Q", falsely=False, ends_s=0.0))
        self.state = self.state.flagged(due=False, missed=True)

    def end(self, number: int, code: int = 0) -> None:
        """Let the script of a job end."""
        self._ends(self.state.jobs[number], "F", code)

    def settle(self) -> None:
        """Let a cycle of the scheduler pass that starts nobody."""
        if self.state.flags["due"] and not self.starts():
            self.state = self.state.flagged(due=False)


_HOOKS = {
    ("qmgr", "-c", f"list hook {name}"): HOOK.format(name=name) for name in (SENDS_BACK, KEEPS_OUT)
}
_FIXED = {
    ("qstat", "-Q", "-f", "-F", "json"): json.dumps({"Queue": {"workq": QUEUE, "other": QUEUE}}),
    ("qstat", "-B", "-f", "-F", "json"): json.dumps({"Server": {"head": SERVER}}),
    ("pbsnodes", "-a", "-v", "-F", "json"): json.dumps({"nodes": {"n1": NODE}}),
    ("qmgr", "-c", "list sched"): LISTED,
}
"""What is always answered so."""


def _places(job: Record) -> str:
    return f"(n1:ncpus={job.cpus}:ngpus={job.gpus})"


def _with(job: Record, resources: Mapping[str, str]) -> Record:
    """Return a job with other resources."""
    chunk = dict(part.split("=") for part in resources.get("select", "").split(":")[1:])
    asks = {**dict(job.asks), **{n: resources[n] for n in resources.keys() & _ASKS}}
    limit = resources.get("walltime", "")
    return changed(
        job,
        gpus=number(chunk.get("ngpus", job.gpus if not chunk else 0)),
        cpus=number(chunk.get("ncpus", job.cpus)),
        token=resources.get("pliant", job.token),
        walltime_s=duration_s(limit) or job.walltime_s,
        asks=tuple(sorted((name, text) for name, text in asks.items() if text)),
    )


_ASKS = frozenset(("moldable", "malleable", "job_class"))


def _varied(job: Record, variables: Mapping[str, str]) -> Record:
    """Return a job with other variables."""
    back = read_back(variables.get(BACK, ""))
    return changed(
        job,
        returns=variables.get(RETURNS, ""),
        restarts=int(variables.get(RESTARTS, 0)),
        back_runs=back.runs if back else -1,
        back_times=back.times if back else 0,
        back_begins_s=float(back.begins_s) if back else 0.0,
    )


def _instant(text: str) -> float:
    return datetime.strptime(text, "%Y%m%d%H%M.%S").replace(tzinfo=UTC).timestamp()


@lru_cache(maxsize=4096)
def _printed(job: Record) -> str:
    """Return a job as qstat prints it, with its name."""
    attributes: dict[str, Any] = {
        "Job_Name": "train",
        "Job_Owner": "alice@head",
        "job_state": job.state,
        "queue": job.queue,
        "ctime": _said(SUBMITTED_S),
        "mtime": _said(job.start_s or SUBMITTED_S),
        "Hold_Types": job.holds or "n",
        "Priority": 0,
        "Rerunable": str(job.rerunable),
        "Resource_List": {**job.resources, "ncpus": job.cpus, "ngpus": job.gpus, "nodect": 1},
        "schedselect": job.resources["select"],
        "Variable_List": job.variables,
        "queue_rank": job.number,
        "run_count": job.run_count,
        "comment": OTHERS if job.waits else f"Job run at{DELETES * job.deleted}",
    }
    if job.has_gpus:
        attributes["exec_vnode"] = _places(job)
    if job.start_s:
        attributes["stime"] = _said(job.start_s)
    if job.etime_s:
        attributes["etime"] = _said(job.etime_s)
    if job.begin_s:
        attributes["Execution_Time"] = _said(job.begin_s)
    return f'"{job.number}.head":{json.dumps(attributes)}'


def _said(instant_s: float) -> str:
    return datetime.fromtimestamp(instant_s, UTC).strftime("%a %b %d %H:%M:%S %Y")
