"""Three batch systems on which the same things can be made to happen, for the contract's tests.

Slurm and PBS are the backends over recorded answers that their commands change; the third is the
one in memory on which policies are tested, seen through the same protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pbs_recorded
from batch_in_memory import SimulatedCluster
from build import job, node
from pbs_recorded import Recorded
from slurm_recorded import Changing

from pliant.batch import HELD_FOR_SHAPE, Batch, Change
from pliant.batch.clients import Answer, Runs
from pliant.batch.pbs import Pbs
from pliant.batch.slurm import Slurm
from pliant.errors import BatchError, Refused, Unavailable
from pliant.model import Job, JobState, Partition, Snapshot, Spec
from pliant.plan import Mark

AWAY = "cannot connect to server"


class World(ABC):
    """A batch system, and what befalls its jobs."""

    batch: Batch
    moldable = ("32", "36")
    """Two jobs that wait and may be changed; the first is eligible."""

    def waiting(self, job_id: str) -> Job:
        """Return a job that waits, as it is seen now."""
        return next(one for one in self.batch.observe().waiting if one.id == job_id)

    @abstractmethod
    def ends(self, job_id: str) -> None:
        """Let a job be gone."""

    @abstractmethod
    def starts(self, job_id: str) -> None:
        """Let a job run as it is."""

    @abstractmethod
    def is_touched(self, job_id: str) -> None:
        """Let its owner ask for another run time."""

    @abstractmethod
    def is_held(self, job_id: str, *, held: bool) -> None:
        """Let its owner hold it, or release it again."""

    @abstractmethod
    def cannot_run(self, job_id: str) -> None:
        """Let the batch system find that it can never run as it is."""

    @abstractmethod
    def refuses(self, words: str) -> None:
        """Let every change be refused in these words."""

    @abstractmethod
    def goes_away(self) -> None:
        """Let nobody answer any more."""


class Line:
    """Commands that find their server until the line is cut."""

    def __init__(self, commands: Runs) -> None:
        self.commands, self.cut = commands, False

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        if self.cut:
            raise Unavailable(f"{argv[0]}: {AWAY}")
        return self.commands.run(argv, env=env, stdin=stdin)


class OnSlurm(World):
    """The backend for Slurm over the commands of 22.05."""

    moldable = ("306", "298")

    def __init__(self) -> None:
        self.commands = Changing()
        self.line = Line(self.commands)
        self.batch = Slurm(self.line, clock=lambda: 1795207380.0)

    def ends(self, job_id: str) -> None:
        self.commands.rows = [row for row in self.commands.rows if row.key != job_id]

    def starts(self, job_id: str) -> None:
        self.commands.job(job_id, state="RUNNING", nodes="n1")

    def is_touched(self, job_id: str) -> None:
        self.commands.job(job_id, time_limit="2:00:00")

    def is_held(self, job_id: str, *, held: bool) -> None:
        priority, reason = ("0", "JobHeldUser") if held else ("4294901498", "Priority")
        self.commands.job(job_id, priority=priority, reason=reason)

    def cannot_run(self, job_id: str) -> None:
        self.commands.job(job_id, priority="0", reason=HELD_FOR_SHAPE)

    def refuses(self, words: str) -> None:
        self.commands.refuses = words

    def goes_away(self) -> None:
        self.line.cut = True


class OnPbs(World):
    """The backend for PBS over the commands of 23.06."""

    def __init__(self) -> None:
        self.commands = Recorded()
        self.line = Line(self.commands)
        self.batch = Pbs(self.line, lambda: pbs_recorded.NOW_S, pbs_recorded.NAMES)

    def ends(self, job_id: str) -> None:
        del self.commands.answers["jobs"]["Jobs"][f"{job_id}.head"]

    def starts(self, job_id: str) -> None:
        self.commands.job(job_id).update(job_state="R", exec_vnode="(gn1:ncpus=2:ngpus=4)")

    def is_touched(self, job_id: str) -> None:
        self.commands.job(job_id)["Resource_List"]["walltime"] = "02:00:00"

    def is_held(self, job_id: str, *, held: bool) -> None:
        state, holds = ("H", "u") if held else ("Q", "n")
        self.commands.job(job_id).update(job_state=state, Hold_Types=holds)

    def cannot_run(self, job_id: str) -> None:
        self.commands.job(job_id)["comment"] = "Can Never Run: Insufficient amount of resource"

    def refuses(self, words: str) -> None:
        self.commands.refuses = f"qalter: {words}"

    def goes_away(self) -> None:
        self.line.cut = True


class InMemory:
    """The batch system in memory, as the daemon would see it."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.refuses = ""
        self.away = False
        self._seen: dict[str, Job] = {}

    def observe(self) -> Snapshot:
        seen = self._look()
        self._seen = {one.id: self.cluster.job(one.id) for one in seen.waiting}
        return seen

    def _look(self) -> Snapshot:
        if self.away:
            raise Unavailable(AWAY)
        return self.cluster.snapshot()

    def _now(self, job: Job) -> Job:
        waits = job.state is JobState.WAITING
        seen = self._look()
        found = [one for one in (seen.waiting if waits else seen.running) if one.id == job.id]
        if not found or not waits:  # here nobody notes anything on a job that runs
            raise Refused(f"job {job.id}: it does not {'wait' if waits else 'run'} any more")
        return self.cluster.job(job.id)

    def change(self, changes: Sequence[Change]) -> Sequence[BatchError | None]:
        self._look()
        return [self._tried(one) for one in changes]

    def _tried(self, one: Change) -> BatchError | None:
        try:
            self._change(one)
        except Refused as error:
            return error
        return None

    def _change(self, one: Change) -> None:
        if self._now(one.job) != self._seen.get(one.job.id):
            raise Refused(f"job {one.job.id} to {one.shape}: its owner wins")
        if self.refuses:
            raise Refused(f"job {one.job.id} to {one.shape}: {self.refuses}")
        self.cluster.put(one.job.id, shape=one.shape, spec=one.spec)

    def annotate(self, job: Job, says: Callable[[Job], Spec]) -> Job:
        spec = says(self._now(job))
        if self.refuses:
            raise Refused(f"job {job.id}: {self.refuses}")
        self.cluster.put(job.id, spec=spec)
        return self.cluster.job(job.id)

    def mark(self, marks: Sequence[Mark]) -> Sequence[BatchError | None]:
        return [Refused(f"job {one.job.id}: there are no marks here") for one in marks]

    def rescue(self, job: Job) -> None:
        spec = job.spec
        if job.reason != HELD_FOR_SHAPE or spec is None or spec.own is None or spec.set is None:
            raise Refused(f"job {job.id}: it is not held for a shape that Pliant set")
        self._now(job)
        self.cluster.put(job.id, shape=spec.own, spec=replace(spec, set=None), reason="")


class OnMemory(World):
    """Two nodes in memory: one job runs, four wait."""

    def __init__(self) -> None:
        partition = Partition("gpu", ("n1", "n2"), default=True)
        self.cluster = SimulatedCluster((node("n1"), node("n2")), (partition,))
        jobs = [
            *(job(30, "4"), job(32, "4", "gpus=2-4"), job(36, "2", "gpus=1:2")),
            *(job(33, "4", "gpus=4"), job(39, "1")),
        ]
        for one in jobs:
            self.cluster.submit(one, 3600.0)
        self.cluster.start("30", ["n1"])
        self.memory = InMemory(self.cluster)
        self.batch = self.memory

    def ends(self, job_id: str) -> None:
        self.cluster.withdraw(job_id)

    def starts(self, job_id: str) -> None:
        assert self.cluster.start(job_id, ["n2"]) == job_id

    def is_touched(self, job_id: str) -> None:
        self.cluster.put(job_id, time_limit_s=7200)

    def is_held(self, job_id: str, *, held: bool) -> None:
        reason = "JobHeldUser" if held else "Priority"
        self.cluster.put(job_id, eligible=not held, reason=reason)

    def cannot_run(self, job_id: str) -> None:
        self.cluster.put(job_id, reason=HELD_FOR_SHAPE)

    def refuses(self, words: str) -> None:
        self.memory.refuses = words

    def goes_away(self) -> None:
        self.memory.away = True
