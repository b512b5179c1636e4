"""A fake of Slurm: nodes of four GPUs, what its commands print and take, when its jobs start.

It speaks the text that squeue and scontrol speak, and takes the arguments that Pliant gives them.
It keeps what was measured on real ones: a reservation holds all others out, a requeued job may
begin two minutes later unless it is told when, the end of a reservation starts a pass of the
scheduler, and a job that starts in the second in which it was put back is killed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pliant.batch import HELD_FOR_SHAPE
from pliant.batch.slurm.arrays import ranges
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.values import task_runs
from prove.changed import changed
from prove.world import Rejected

GPUS = 4
OWN_PRIORITY = 10
CLEANING_S = 1.0
"""How long the processes of a run take to end after its requeue."""
REQUEUE_S = 121.0
LIMIT_MIN = 30
LISTED_S = 30.0
"""How long a reservation is listed at most that has ended, and no other may have its name."""
BACKFILL_S = 30.0
"""How long a pass of backfill lasts at most: its bf_max_time, where nothing is said."""
NONCE, MOST_ROWS = "\0", 10_000
HELD = "launch failed requeued held"
"""Why a job waits whose node refused its start."""
BY_OWNER = "JobHeldUser"
"""Why one waits that its owner holds."""
KILLED = "0:15"
"""The exit code of a run that was killed, as by a kill that was meant for the run before."""
KILLS_S = 5.0
"""For how long after a requeue such a kill may come: two seconds (measured), and its work."""
AGAIN = "requeued"
"""How a start fails whose PrologSlurmctld fails: the job goes back into the queue."""
CONFIG = """\
Configuration data as of {now}
AuthInfo                = {auth}
ClusterName             = fake
PriorityType            = priority/{priority}
SchedulerParameters     = (null)
SLURM_CONF              = /etc/slurm/slurm.conf
SLURM_VERSION           = 22.05.8
SlurmUser               = slurm(64030)
AccountingStorageEnforce = none
GresTypes               = gpu
SelectTypeParameters    = {counts}
PrivateData             = none
"""
NODE = (
    "NodeName={node} CPUAlloc={cpus} CPUEfctv=32 CPUTot=32 ActiveFeatures=(null) Gres=gpu:4"
    " GresUsed=gpu:{gpus} RealMemory=64000 AllocMem=0 MemSpecLimit=0 State={state}"
    " ThreadsPerCore=1 Partitions=gpu\n"
)
PARTITION = (
    "PartitionName={name} DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED"
    " MinNodes=0 Nodes={nodes} PriorityTier=1 OverSubscribe=NO State=UP QoS=N/A {more}\n"
)


_IGNORED = frozenset(("NumTasks", "CPUsPerTask", "TasksPerNode", "EndTime"))
_NUMBERS = {
    **{"NumNodes": "nodes", "NumCPUs": "cpus", "MinCPUsNode": "min_cpus"},
    **{"TimeLimit": "limit_min", "Nice": "nice"},
}
"""Which number a word of scontrol's sets; of a range, the least."""
_ALSO = {
    "TimeMin": ("MinTime", "{}:00"),
    "MinMemoryNode": ("MinMemory", "{}M"),
    "OverSubscribe": ("OverSubscribe", "{}"),
    "ReqNodeList": ("ReqNodes", "{}"),
}
"""What squeue shows of a word of scontrol's that is nothing to the fake, and how."""
_OF_WAITING = frozenset(("Gres", "TresPerNode", "NumCPUs", "MinCPUsNode", "StartTime", "NumTasks"))
"""What Slurm changes of no job that runs."""

Fields = tuple[tuple[str, bool], ...]
"""The names of a form of squeue's, and whether each is a number."""


@dataclass(frozen=True)
class Record:
    """A job as slurmctld has it; instants are seconds since the epoch, 0 for none.

    ``gpus``: on each of its ``nodes``, as it asks; ``held``: as its run has, where it asks for
    others since. ``on``: where it runs, or ran last. ``killed_s``: when its last run was told to
    end. ``final``: the state in which it ends once its processes have, "" where it waits again
    then. ``bf_priority``: that with which a pass of backfill may have begun that has not come to it
    yet, 0 for its own; ``written_back``: it has come to it since. ``unfit``: of how many GPUs no
    node has so many; each pass of the scheduler holds it for that, and each update frees it, but
    those of its priority. ``unseen``: it was held, and no pass has seen since that it may begin.
    ``lacks``: something that no look shows keeps it from starting.
    """

    number: int
    state: str = "PENDING"
    gpus: int = GPUS
    nodes: int = 1
    on: tuple[str, ...] = ("n1",)
    held: int = 0
    cpus: int = 8
    min_cpus: int = 8
    priority: int = OWN_PRIORITY
    own_priority: int = OWN_PRIORITY
    run: int = 0
    limit_min: int = LIMIT_MIN
    submit_s: float = 0.0
    begin_s: float = 0.0
    start_s: float = 0.0
    end_s: float = 0.0
    cleaned_s: float = 0.0
    killed_s: float = 0.0
    reason: str = "None"
    comment: str = ""
    dependency: str = "(null)"
    user: str = "alice"
    code: str = "0:0"
    name: str = "train"
    final: str = ""
    nice: int = 0
    requeues: bool = True
    bf_priority: int = 0
    written_back: bool = False
    unfit: int = 0
    unseen: bool = False
    lacks: bool = False
    also: tuple[tuple[str, str], ...] = ()
    """What else squeue shows of it, by the names of its fields."""

    @property
    def waits(self) -> bool:
        """Whether it has no allocation, and may have one."""
        return self.state == "PENDING"

    @property
    def runs(self) -> bool:
        """Whether its program may run."""
        return self.state == "RUNNING"

    @property
    def is_between_runs(self) -> bool:
        """Whether one of its runs is over, and the next one has not begun."""
        return self.state in ("PENDING", "COMPLETING")

    @property
    def has_failed(self) -> bool:
        """Whether it has ended for good, and was not to."""
        return self.state == "FAILED"

    @property
    def is_lost(self) -> bool:
        """Whether it has failed after it ran: one that failed at its start may be requeued."""
        return self.has_failed and self.end_s > self.start_s

    @property
    def is_over(self) -> bool:
        """Whether it has ended: Slurm remembers it for a while (MinJobAge)."""
        return not self.waits and not self.has_gpus

    @property
    def has_gpus(self) -> bool:
        """Whether it takes GPUs now."""
        return self.state in _HAVE_GPUS

    @property
    def taken(self) -> Mapping[str, int]:
        """How many GPUs of which nodes it has now."""
        return dict.fromkeys(self.on, self.held or self.gpus) if self.has_gpus else {}


THROTTLE = "ArrayTaskThrottle"
"""What scontrol alone says of each task of an array: how many may run at once."""
_HAVE_GPUS = frozenset(("CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"))


@dataclass(frozen=True)
class Jobs:
    """All that slurmctld knows: its jobs by number, and when each reservation ends.

    ``fenced``: the nodes of each; ``down``: those that are none of its jobs' now; ``bars``: why jobs
    of so many GPUs do not start, a limit's Reason. A reservation is listed for a while yet once it
    has ended.
    """

    jobs: Mapping[int, Record]
    fences: Mapping[str, float]
    fenced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    down: frozenset[str] = frozenset()
    bars: Mapping[int, str] = field(default_factory=dict)

    def free(self, node: str = "n1") -> int:
        """How many of a node's GPUs no job has."""
        return GPUS - sum(job.taken.get(node, 0) for job in self.jobs.values())

    def standing(self, now_s: float) -> list[str]:
        """The names of the reservations that hold others out."""
        return [name for name, end_s in self.fences.items() if end_s > now_s]

    def with_job(self, job: Record) -> Jobs:
        """The same with this job as it is now."""
        return changed(self, jobs={**self.jobs, job.number: job})

    def with_fences(
        self, fences: Mapping[str, float], fenced: Mapping[str, tuple[str, ...]]
    ) -> Jobs:
        """The same with these reservations."""
        return changed(self, fences=fences, fenced=fenced)


class FakeSlurm:
    """Slurm at ``now_s``; ``state`` is all there is of it, and may be put back."""

    def __init__(self, state: Jobs, now_s: float, nodes: Sequence[str] = ("n1",)) -> None:
        self.state, self.now_s, self.nodes = state, now_s, nodes
        self._rows: dict[Fields, dict[int, tuple[Record, str]]] = {}  # by form, and by record
        self.start_fails: dict[int, str] = {}
        """How the next start of a job fails: with an exit code, HELD or AGAIN."""
        self.cleaning_s = CLEANING_S
        self.slurmd = "1000"
        """Since when the slurmds of its nodes run, as scontrol shows it."""
        self.partitions = {"gpu": "Default=YES"}
        """What each partition says beside what all of them say."""
        self.counts = "CR_CORE"
        """What of a node jobs share out among themselves."""
        self.priority = "multifactor"
        """How jobs' priorities come about."""
        self.auth = "(null)"
        """Its AuthInfo, which says how long a job waits that was requeued."""
        self.ahead_s = 0.0
        """How far the clock of the host is ahead where scontrol runs."""

    # --- what is asked ---------------------------------------------------------------------

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer a command of Pliant's."""
        try:
            if stdin:
                return Answer("".join(map(self._detail, stdin.splitlines())), "", 0)
            return Answer(self._answer(tuple(argv), env or {}), "", 0)
        except Rejected as error:
            return Answer("", f"slurm_update error: {error}\n", 1)

    def _answer(self, argv: tuple[str, ...], env: Mapping[str, str]) -> str:
        match argv:
            case ("squeue", *words):
                return self._squeue(words, env)
            case ("scontrol", *words) if "show" in words:
                return self._shown(words)
            case ("scontrol", *words):
                return self.told(words)
        raise AssertionError(argv)

    def _shown(self, words: Sequence[str]) -> str:
        match words:
            case ("show", "config"):
                return CONFIG.format(
                    now=int(self.now_s),
                    auth=self.auth,
                    priority=self.priority,
                    counts=self.counts,
                )
            case ("-o", "show", "reservation"):
                return "".join(map(self._reservation, self.state.fences.items()))
            case ("-o", "show", "node", names):
                return "".join(map(self._slurmd, names.split(",")))
            case ("-o", "-d", "-a", "show", "node"):
                return "".join(map(self._node, self.nodes))
            case ("-o", "-a", "show", "partition"):
                nodes, said = ",".join(self.nodes), self.partitions.items()
                return "".join(PARTITION.format(name=n, nodes=nodes, more=m) for n, m in said)
        raise AssertionError(words)

    def _slurmd(self, node: str) -> str:
        return f"NodeName={node} SlurmdStartTime={self.slurmd}\n"

    def _detail(self, asked: str) -> str:
        """What scontrol says to a line that it reads: of a task how many of its array may run."""
        match asked.split():
            case ["show", "hostnames", mark]:
                return f"{mark}\n"
            case ["show", "job", number]:
                job = self.state.jobs.get(int(number))
                return _throttled(job) if job is not None else ""
        raise AssertionError(asked)

    def _node(self, node: str) -> str:
        jobs = [job for job in self.state.jobs.values() if job.has_gpus and node in job.on]
        gpus, cpus = GPUS - self.state.free(node), sum(job.cpus // job.nodes for job in jobs)
        state = "DOWN" if node in self.state.down else "MIXED" if cpus else "IDLE"
        if any(job.state == "COMPLETING" for job in jobs):
            state += "+COMPLETING"
        return NODE.format(node=node, gpus=gpus, cpus=cpus, state=state)

    def _reservation(self, fence: tuple[str, float]) -> str:
        name, end_s = fence
        nodes = ",".join(self.state.fenced[name])
        return (
            f"ReservationName={name} StartTime=1000 EndTime={int(end_s)} Nodes={nodes}"
            " NodeCnt=1 Flags=IGNORE_JOBS,SPEC_NODES Users=root\n"
        )

    def _squeue(self, words: Sequence[str], env: Mapping[str, str]) -> str:
        only = self.named(words)
        if "FAILED" in words:
            return "".join(
                f"{job.run}|{job.start_s:.0f}|{job.submit_s:.0f}|{job.end_s:.0f}|{job.code}|\n"
                for job in self.state.jobs.values()
                if job.number in only and job.state == "FAILED"
            )
        ended = "-t" in words and "CA" in words[words.index("-t") + 1].split(",")
        some = self.ended(only) if ended else self.alive(only)
        if "-O" in words:  # its nice value
            return "".join(f"{job.number}|{job.nice}|\n" for job in some)
        if "SQUEUE_FORMAT" in env:
            nonce = env["SQUEUE_FORMAT"].partition("%x")[2]
            return "".join(f"{job.number}|(null){nonce}\n" for job in some)
        fields, nonce = _fields(env["SQUEUE_FORMAT2"])
        return "".join(self._row(job, fields) for job in some).replace(NONCE, nonce)

    def _row(self, job: Record, fields: Fields) -> str:
        """A job's row, made once for each record, with NONCE for the nonce."""
        rows = self._rows.setdefault(fields, {})
        known = rows.get(id(job))
        if known is None or known[0] is not job:
            if len(rows) > MOST_ROWS:
                rows.clear()
            known = rows[id(job)] = job, _row(job, fields)
        return known[1]

    def named(self, words: Sequence[str]) -> Collection[int]:
        """Return which jobs squeue is asked for: all where none is named."""
        if "-j" not in words:
            return self.state.jobs.keys()
        only = words[words.index("-j") + 1].split(",")
        tasks = [job.number for job in self.state.jobs.values() if _array(job) in only]
        return {*map(int, only), *tasks}

    def alive(self, only: Collection[int]) -> list[Record]:
        """Return those of them that wait or have an allocation."""
        jobs = self.state.jobs.values()
        return [job for job in jobs if job.number in only and not job.is_over]

    def ended(self, only: Collection[int]) -> list[Record]:
        """Return those of them that have ended."""
        return [job for job in self.state.jobs.values() if job.number in only and job.is_over]

    # --- what is told ----------------------------------------------------------------------

    def told(self, words: Sequence[str], *, by_owner: bool = False) -> str:
        """Do what scontrol is told, or scancel. Raises Rejected, having done nothing."""
        match words:
            case ("update", what, *rest) if what.startswith("ReservationName="):
                self._fence(what, rest)
                self.schedule()
            case ("create", "reservation", what, *rest):
                if what.removeprefix("ReservationName=") in self.state.fences:
                    raise Rejected("Duplicate reservation name")
                self._fence(what, rest)
            case ("delete", what):
                self._unfence(what.removeprefix("ReservationName="))
            case ("cancel", number):
                self.cancel(int(number))
            case ("requeue", number):
                job = self._named(number)
                assert job is not None, number
                self._requeue(job)
            case ("release", number):
                self._release(self._job(number))
            case ("hold", number):
                job = self._job(number)
                unseen = job.unseen or (job.waits and job.begin_s <= self.now_s)
                self._keep(changed(job, priority=0, reason=BY_OWNER, unseen=unseen))
            case ("suspend", number):
                self._keep(changed(self._job(number), state="SUSPENDED", priority=0))
            case ("resume", number):
                job = self._job(number)
                self._keep(changed(job, state="RUNNING", priority=job.own_priority))
            case ("update", what, *rest):
                self._split(what.removeprefix("jobid="))
                self._update(self._job(what.removeprefix("jobid=")), rest, by_owner=by_owner)
            case _:
                raise AssertionError(words)
        return ""

    def _job(self, number: str) -> Record:
        job = self._named(number)
        if job is None or job.is_over:
            raise Rejected("Job/step already completing or completed")
        return job

    def _split(self, number: str) -> None:
        """Give a task a record of its own that waits in its array's, ``8_2`` of ``8_[2-3,5]``."""
        array, _, task = number.partition("_")
        if not task.isdecimal() or self._named(number) is not None:
            return
        record = next(job for job in self.state.jobs.values() if _array(job) == array)
        if record.is_over:
            return
        also = dict(record.also)
        tasks, _, most = also["ArrayTaskID"].partition("%")
        left = [one for run in task_runs(tasks) for one in run if one != int(task)]
        number_of_its_own = self.next_number()
        own = {**also, "ArrayTaskID": task}
        limit = f"%{most}" if most and len(left) > 1 else ""  # as 22.05 shows it
        rest = {**also, "ArrayTaskID": f"{ranges(left)}{limit}"}
        self._keep(changed(record, number=number_of_its_own, also=tuple(own.items())))
        self._keep(changed(record, also=tuple(rest.items())))

    def next_number(self) -> int:
        """The number of a record that is made."""
        return max(self.state.jobs) + 1

    def _named(self, number: str) -> Record | None:
        """The job of this number; of an array, like ``8_[2-3,5]``, the record of these tasks."""
        array, _, tasks = number.partition("_")
        if not tasks:
            others = [one for one in self.state.jobs.values() if _array(one) == array]
            assert len(others) < 2, f"{number} means all tasks of its array"
            return self.state.jobs.get(int(number))
        known = ((job, dict(job.also)) for job in self.state.jobs.values())
        found = (
            job
            for job, also in known
            if also.get("ArrayJobID", str(job.number)) == array
            and also.get("ArrayTaskID", "").partition("%")[0] == tasks.strip("[]")
        )
        return next(found, None)

    def _keep(self, job: Record) -> None:
        self.state = self.state.with_job(job)

    def _fence(self, what: str, words: Sequence[str]) -> None:
        name, said = what.removeprefix("ReservationName="), dict(w.split("=", 1) for w in words)
        fences, fenced = self.state.fences, self.state.fenced
        if said.get("Nodes") == "":
            raise Rejected(
                "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified"
            )
        if name not in fences and "StartTime" not in said:
            raise Rejected("Requested reservation is invalid")
        if "Nodes" in said:
            fenced = {**fenced, name: tuple(said["Nodes"].split(","))}
        end_s = _instant(said["EndTime"]) if "EndTime" in said else fences[name]
        self.state = self.state.with_fences({**fences, name: end_s}, fenced)

    def _unfence(self, name: str) -> None:
        if name not in self.state.fences:
            raise Rejected("Requested reservation is invalid")
        self._keep_fences({other for other in self.state.fences if other != name})
        self.schedule()

    def _keep_fences(self, names: Collection[str]) -> None:
        fences, fenced = self.state.fences, self.state.fenced
        self.state = self.state.with_fences(
            {name: fences[name] for name in fences if name in names},
            {name: fenced[name] for name in fenced if name in names},
        )

    def cancel(self, number: int) -> None:
        """Do what scancel does, which says nothing of a job that has ended.

        Between two runs a job does not come back.
        """
        job = self.state.jobs[number]
        if job.waits:
            self.end(number, "CANCELLED")
        elif job.has_gpus:
            self._ends(job, "CANCELLED", KILLED)

    def _ends(self, job: Record, final: str, code: str) -> None:
        """End its run, as what it ends."""
        cleaned_s = self.now_s + self.cleaning_s
        self._keep(changed(job, state="COMPLETING", cleaned_s=cleaned_s, final=final, code=code))

    def _requeue(self, job: Record) -> None:
        if not job.requeues:
            raise Rejected("Requested operation is presently disabled")
        if job.waits or (job.state == "COMPLETING" and not job.final):
            raise Rejected("Job is pending execution")
        if job.is_over:  # Slurm knows it for MinJobAge
            self._keep(self._again(_counted(job)))
        elif job.final:  # it ends, by a cancel say, and comes back all the same
            self._keep(_counted(changed(job, final="")))
        else:
            self.sends_back(job)

    def sends_back(self, job: Record) -> None:
        """End its run, after which it waits again."""
        cleaned_s = self.now_s + self.cleaning_s
        ends = changed(_counted(job), state="COMPLETING", cleaned_s=cleaned_s)
        self._keep(changed(ends, killed_s=float(int(self.now_s))))

    def loses_its_node(self, job: Record) -> None:
        """Let the node of a run go down that ends: Slurm then notes no new SubmitTime, nor begin."""
        self._keep(changed(self._again(job), submit_s=job.submit_s, begin_s=job.begin_s))

    def _release(self, job: Record) -> None:
        self._keep(changed(_prior(job, job.own_priority), reason="None"))

    def _update(self, job: Record, words: Sequence[str], *, by_owner: bool) -> None:
        if job.reason == HELD_FOR_SHAPE and not any(word.startswith("Priority=") for word in words):
            job = changed(_prior(job, job.own_priority), reason="None")
        for word in words:
            name, _, value = word.partition("=")
            job = self._updated(job, name, value, by_owner=by_owner)
        self._keep(job)

    def _updated(self, job: Record, name: str, value: str, *, by_owner: bool) -> Record:
        if name in _OF_WAITING:
            self._only_waiting(job)
        match name:
            case "Priority":
                if by_owner and int(value) > job.priority:
                    raise Rejected("Access/permission denied")
                if not job.priority:
                    raise Rejected("Job is in held state, pending scheduler release")
                job = _prior(job, int(value))
            case "AdminComment":
                job = changed(job, comment=value)
            case "Gres" | "TresPerNode":
                held = job.held or job.gpus if job.has_gpus else 0
                job = changed(job, gpus=int(value.rpartition(":")[2]), held=held)
            case "NumNodes" if job.runs:
                job = self._parts(job, int(value.partition("-")[0]))
            case "Requeue":
                job = changed(job, requeues=value == "1")
            case "StartTime":
                begin_s = max(_instant(value), float(int(self.now_s + self.ahead_s)))
                job = changed(job, begin_s=begin_s, unseen=False)
                job = changed(job, reason="BeginTime") if job.priority else job
            case _ if name in _NUMBERS:
                number: Any = int(value.partition("-")[0] or value)
                job = changed(job, **{_NUMBERS[name]: number})
            case _ if name in _ALSO:
                field, shows = _ALSO[name]
                job = changed(job, also=(*job.also, (field, shows.format(value))))
            case _:
                assert name in _IGNORED, (name, value)
        return job

    def _parts(self, job: Record, nodes: int) -> Record:
        """Take nodes from a job that runs, at once."""
        if nodes > len(job.on):
            raise Rejected("Requested operation is presently disabled")
        return changed(job, nodes=nodes, on=job.on[:nodes])

    def _only_waiting(self, job: Record) -> None:
        if not job.waits and (job.state != "COMPLETING" or job.final):
            raise Rejected("Job is not pending execution")

    # --- what happens by itself ------------------------------------------------------------

    def pass_to(self, now_s: float) -> None:
        """Let time pass; no pass of the scheduler comes with it."""
        is_over, self.now_s = now_s - self.now_s > BACKFILL_S, now_s
        fences = self.state.fences.items()
        self._keep_fences({name for name, end_s in fences if end_s + LISTED_S > now_s})
        for job in self.state.jobs.values():
            if job.bf_priority and is_over:
                self._keep(changed(job, bf_priority=0))
            if job.state == "COMPLETING" and job.cleaned_s <= now_s:
                over = changed(job, state=job.final, end_s=float(int(now_s)))
                self._keep(over if job.final else self._again(job))

    def _again(self, job: Record) -> Record:
        """A requeued job whose processes have ended."""
        second = float(int(self.now_s))
        return changed(
            job,
            state="PENDING",
            submit_s=second,
            begin_s=max(job.begin_s, second + REQUEUE_S),  # it may have been told one meanwhile
            start_s=0.0,
            bf_priority=0,
            end_s=0.0,
            reason="BeginTime" if job.priority else job.reason,
            dependency="(null)",
        )

    def starts(self) -> list[Record]:
        """Who would start in a pass of the scheduler, where, in order."""
        free, started = self.open(), list[Record]()
        for job in sorted(self.state.jobs.values(), key=lambda job: -job.priority):
            if not self._may_start(job):
                continue
            on = [node for node, gpus in free.items() if gpus >= job.gpus][: job.nodes]
            if len(on) < job.nodes or job.lacks:  # who is next keeps the nodes: nobody goes before
                break
            started.append(changed(job, on=tuple(on)))
            for node in on:
                free[node] -= job.gpus
        return started

    def _may_start(self, job: Record) -> bool:
        """Whether it would, if it had room."""
        may = job.waits and job.priority > 0 and job.begin_s <= self.now_s
        return may and job.dependency == "(null)" and job.gpus not in self.state.bars

    def open(self) -> dict[str, int]:
        """The nodes that anybody may have, and how many of their GPUs no job has."""
        standing = self.state.standing(self.now_s)
        shut = self.state.down.union(*[self.state.fenced[name] for name in standing])
        free = {node: GPUS for node in self.nodes if node not in shut}
        for job in self.state.jobs.values():
            for node, gpus in job.taken.items():
                if node in free:
                    free[node] -= gpus
        return free

    def schedule(self) -> None:
        """Make a pass of the scheduler."""
        if self.state.bars:
            self.say_why()
        for job in self.state.jobs.values():
            if not (job.waits and job.priority > 0 and job.begin_s <= self.now_s):
                continue
            if 0 < job.unfit == job.gpus:
                self._keep(held_for_shape(job))
            elif job.unseen:
                self._keep(changed(job, unseen=False, begin_s=float(int(self.now_s))))
        for job in self.starts():
            self.start(job)

    def start(self, job: Record) -> None:
        """Start a job where it is to run, unless its start fails."""
        second = float(int(self.now_s))
        kill_s = max(job.submit_s, job.killed_s)
        old = job.run > 0 and second <= kill_s  # its credential is as old as the kill
        how = self.start_fails.pop(job.number, "1:0" if old else "")
        if how == HELD:
            self._keep(changed(self._again(_counted(job)), priority=0, reason=HELD))
        elif how == AGAIN:
            self._keep(self._again(_counted(job)))
        elif how:
            fails = changed(job, state="FAILED", reason="", code=how)
            self._keep(changed(fails, start_s=second, end_s=second))
        else:
            runs = changed(job, state="RUNNING", start_s=second, end_s=0.0, held=0)
            self._keep(changed(runs, reason="", bf_priority=0))

    def bar(self, *gpus: int, why: str) -> None:
        """Let a limit keep jobs of so many GPUs from starting."""
        self.state = changed(self.state, bars={**self.state.bars, **dict.fromkeys(gpus, why)})

    def say_why(self) -> None:
        """Note why jobs wait that a limit keeps from starting, or no longer does."""
        for job in self.state.jobs.values():
            if job.waits and job.begin_s <= self.now_s:
                free = "None" if job.reason in self.state.bars.values() else job.reason
                self._keep(changed(job, reason=self.state.bars.get(job.gpus, free)))

    def end(self, number: int, state: str = "COMPLETED", code: str = "0:0") -> None:
        """Let a job end."""
        ended = changed(self.state.jobs[number], state=state, code=code)
        self._keep(changed(ended, end_s=float(int(self.now_s))))


def _counted(job: Record) -> Record:
    """The job, sent back once more."""
    return changed(job, run=job.run + 1)


def held_for_shape(job: Record) -> Record:
    """The job as Slurm holds it whose request no node can ever meet."""
    return changed(job, priority=0, reason=HELD_FOR_SHAPE, bf_priority=0, unfit=job.gpus)


def _prior(job: Record, priority: int) -> Record:
    """Give a job a priority; a pass of backfill writes back the one with which it began."""
    begun = job.bf_priority or job.priority if job.waits else 0
    return changed(job, priority=priority, nice=0, bf_priority=begun, written_back=False)


def _array(job: Record) -> str:
    """The number of the array that it is of; "" where that is its own."""
    return dict(job.also).get("ArrayJobID", "") if job.also else ""


def array_task(job: Record) -> tuple[str, str, int]:
    """The array that a job is of, its tasks, and how many may run at once; "" and 0 without."""
    also = dict(job.also)
    tasks = also.get("ArrayTaskID", "").partition("%")[0]
    return also.get("ArrayJobID", ""), tasks, int(also.get(THROTTLE, 0))


def called(job: Record) -> str:
    """Return what scontrol is to be told that a job is called: ``27``, ``27_1``, ``27_[2-4]``."""
    array, tasks, _ = array_task(job)
    if not array:
        return f"{job.number}"
    return f"{array}_{tasks}" if tasks.isdecimal() else f"{array}_[{tasks}]"


def _throttled(job: Record) -> str:
    array, tasks, most = array_task(job)
    limit = f"{THROTTLE}={most} " if most else ""
    return f"JobId={job.number} ArrayJobId={array} ArrayTaskId={tasks} {limit}JobName=\n"


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@lru_cache(maxsize=8)
def _names(form: str) -> Fields:
    words = (word.partition(":") for word in form.split(","))
    return tuple((name, end == "|") for name, _, end in words)


def _fields(form: str) -> tuple[Fields, str]:
    """The names of a form in order, whether each is a number, and the nonce after the others."""
    last = form.rpartition(":")[2]
    nonce = last[: len(last) // 2]
    return _names(form.replace(nonce, "")), nonce


_CONSTANT = {
    **{"NTPerNode": "0", "MinMemory": "0"},
    **{"OverSubscribe": "OK", "HetJobID": "0", "Contiguous": "0", "BatchFlag": "1"},
    **{"Deadline": "N/A", "ArrayTaskID": "N/A", "Account": "lab"},
    **{"QOS": "normal", "Partition": "gpu", "MinTime": "0:00", "Origin": "N/A"},
}


def _row(job: Record, fields: Fields) -> str:
    runs = job.has_gpus
    ran = runs or (job.is_over and job.start_s > 0)
    goes_back = job.state == "COMPLETING" and not job.final  # it shows its next start: now, or none
    start_s = job.killed_s if goes_back else job.start_s
    limit_s = start_s + job.limit_min * 60
    said = {
        **_CONSTANT,
        "JobID": str(job.number),
        "ArrayJobID": str(job.number),
        "State": job.state,
        "PriorityLong": str(job.priority),
        "SubmitTime": _said(job.submit_s),
        "EligibleTime": "N/A" if job.unseen else _said(job.begin_s or job.submit_s),
        "StartTime": _said(start_s),
        "EndTime": _said(limit_s if runs else job.end_s),
        "TimeLimit": f"{job.limit_min}:00",
        "NumNodes": str(job.nodes),
        "MaxNodes": str(job.nodes),
        "NumTasks": str(job.nodes),
        "NumCPUs": str(job.cpus),
        "cpus-per-task": str(job.cpus // job.nodes),
        "MinCpus": str(job.min_cpus),
        "RestartCnt": str(job.run),
        "Requeue": str(int(job.requeues)),
        "Reason": job.reason or "None",
        "UserName": job.user,
        "tres-alloc": _allocated(job) if ran else "",
        "tres-per-node": f"gres:gpu:{job.gpus}" if job.gpus else "N/A",
        "NodeList": ",".join(job.on) if ran else "",
        "Name": job.name,
        "Dependency": job.dependency,
        "admin_comment": job.comment or "(null)",
        **dict(job.also),
    }
    ends = (f"{said.get(name, '(null)')}{'|' if number else NONCE}" for name, number in fields)
    return "".join(ends) + NONCE + "\n"


def _allocated(job: Record) -> str:
    return f"cpu={job.cpus},node={job.nodes},gres/gpu={job.nodes * job.gpus}"


def _said(instant_s: float) -> str:
    return f"{instant_s:.0f}" if instant_s else "N/A"
