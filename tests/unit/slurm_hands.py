"""A hand-over's hands for the unit tests: the adapter of Slurm that ships, on the fake Slurm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pliant.batch.slurm import Slurm
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.jobs import running_job
from pliant.errors import Refused, Unavailable
from pliant.grammar import NICE, note, put_token
from pliant.handover import Do, HandOver, Scene, Step
from pliant.model import Job, JobState
from prove.fake_slurm import OWN_PRIORITY, FakeSlurm, Jobs, Record
from prove.on_slurm import OnSlurm
from prove.world import BEST_EFFORT, GUEST, JOB, RIVAL, SPEC, TRIAL

NOW_S = 1000.0
CHANGES = ("update", "create", "delete", "requeue", "release")
"""What scontrol may be told."""


def begun(*, rival: bool = True, guest: bool = False, now_s: float = NOW_S) -> FakeSlurm:
    """Four GPUs on which the job runs; a rival and a guest wait for all of them.

    Both would be before the job in the queue, and the rival before the guest.
    """
    spec = BEST_EFFORT if guest else SPEC
    running = Record(JOB, "RUNNING", submit_s=400.0, start_s=500.0, comment=put_token("", spec))
    jobs = {JOB: running}
    if rival:
        jobs[RIVAL] = Record(RIVAL, priority=1000, own_priority=1000, submit_s=700.0)
    if guest:
        trial = Record(GUEST, priority=500, own_priority=500, submit_s=800.0)
        jobs[GUEST] = replace(trial, comment=put_token("", TRIAL))
    fake = FakeSlurm(Jobs(jobs, {}), now_s)
    fake.slurmd = "100"
    return fake


def slurm_of(*jobs: Job) -> FakeSlurm:
    """A Slurm that has these jobs, of which those that run do so for some minutes."""
    return FakeSlurm(Jobs({int(job.id): _record(job) for job in jobs}, {}), NOW_S)


def _record(job: Job) -> Record:
    comment = put_token("", job.spec) if job.spec is not None else ""
    return Record(
        int(job.id),
        {JobState.WAITING: "PENDING", JobState.ENDING: "COMPLETING"}.get(job.state, "RUNNING"),
        gpus=job.shape.gpus,
        priority=job.priority or OWN_PRIORITY,
        run=job.restarts,
        submit_s=job.submit_s or NOW_S - 100,
        start_s=0.0 if job.state is JobState.WAITING else NOW_S - 500,
        comment=note(comment, NICE, 30) if job.owed else comment,
    )


class Clients:
    """The fake's commands; ``asked``: all that were given. scontrol may refuse some."""

    def __init__(self, fake: FakeSlurm) -> None:
        self.fake, self.asked = fake, list[tuple[str, ...]]()
        self.refuses: Mapping[str, str] = {}
        """In which words what is refused of which an argument begins so."""
        self.away: Unavailable | None = None
        """Why no command finds slurmctld."""
        self.turned_away = 0
        self.took: list[tuple[str, ...]] = []
        """What scontrol was told to do, and Slurm did."""

    @property
    def told(self) -> list[tuple[str, ...]]:
        """What scontrol was told to do."""
        return [argv[1:] for argv in self.asked if self._changes(argv)]

    def _changes(self, argv: Sequence[str]) -> bool:
        return argv[0] == "scontrol" and argv[1] in CHANGES

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer one command."""
        self.asked.append(tuple(argv))
        if self.away:
            self.turned_away += 1
            raise self.away
        for begin, words in self.refuses.items():
            if argv[0] == "scontrol" and any(word.startswith(begin) for word in argv[1:]):
                return Answer("", f"{words}\n", 1)
        answer = self.fake.run(argv, env=env, stdin=stdin)
        if self._changes(argv) and not answer.status:
            self.took.append(tuple(argv[1:]))
        return answer


class Hands(Slurm):
    """The adapter on the fake, which notes what it is asked; some steps may be refused.

    ``refuses``: which, in words that are taken back later unless ``for_good``; ``breaks``: in which
    it fails once; ``words``: others in which they are; ``idle``: which Slurm takes and does not do. ``stranded``: nothing would send a
    job back that ends after its checkpoint.
    """

    def __init__(self, fake: FakeSlurm) -> None:
        self.fake, self.clients = fake, Clients(fake)
        super().__init__(self.clients, self.clock, monotonic=lambda: fake.now_s)
        self._cluster = Cluster((22, 5), {}, {})
        self.refuses, self.for_good, self.words = set[Do](), False, ""
        self.breaks, self.idle, self.stranded = list[Do](), set[Do](), False
        self.tried = set[Do]()
        self.did: list[tuple[str, Do]] = []
        self.ends: list[tuple[str, list[Do]]] = []
        """Which programs were to end, after what."""
        self.seen: list[tuple[HandOver, Job]] = []
        """What was looked at."""
        self.idle_s = 0.0
        """How long GPUs were idle behind a fence."""

    def clock(self) -> float:
        """The time by pliantd's clock."""
        return self.fake.now_s + self.fake.ahead_s

    @property
    def job(self) -> Record:
        """The job as Slurm has it."""
        return self.fake.state.jobs[JOB]

    def has(self, number: int = JOB, **changed: Any) -> None:
        """Let a job be another one from now on."""
        jobs = self.fake.state
        self.fake.state = jobs.with_job(replace(jobs.jobs[number], **changed))

    @property
    def guest(self) -> Record:
        """Whom room is made for, as Slurm has it."""
        return self.fake.state.jobs[GUEST]

    @property
    def rival(self) -> str:
        """The state of the rival."""
        return self.fake.state.jobs[RIVAL].state

    @property
    def fence_end_s(self) -> float:
        """When the job's fence ends that stands now; 0 without one."""
        return self.fences().get(str(JOB), 0.0)

    def fence(self, job: str, end_s: float = NOW_S + 1000) -> None:
        """Let a fence of a job stand on the node."""
        state, name = self.fake.state, f"pliant_{job}"
        fences, fenced = {**state.fences, name: end_s}, {**state.fenced, name: ("n1",)}
        self.fake.state = replace(state, fences=fences, fenced=fenced)

    def pass_time(self, by_s: float, *, scheduler: bool = True) -> None:
        """Let time pass, and the scheduler make a pass at its end."""
        if self.job.waits and self.fake.state.standing(self.fake.now_s):
            self.idle_s += by_s
        self.fake.pass_to(self.fake.now_s + by_s)
        if scheduler:
            self.fake.schedule()

    def running(self, number: int = JOB) -> Job:
        """The job as it is seen now."""
        (row,) = self._queries.jobs([str(number)])
        return running_job(row, Cluster((22, 5), {}, {}))

    def scene(self, over: HandOver, job: Job) -> Scene:
        """Look."""
        assert job.id == over.job
        self.seen.append((over, job))
        return super().scene(over, job)

    def step(self, step: Step, over: HandOver, job: Job) -> None:
        """Do a step, unless it is to go wrong."""
        if step.do in self.breaks:
            self.breaks.remove(step.do)
            raise OSError(22, "Invalid argument")
        self.tried.add(step.do)
        words = self.words or (OnSlurm.for_good if self.for_good else OnSlurm.temporary)
        refused = self.clients.refuses
        if step.do in self.refuses:
            self.clients.refuses = dict.fromkeys(CHANGES, words)
        try:
            if step.do not in self.idle:
                super().step(step, over, job)
        finally:
            self.clients.refuses = refused
        self.did.append((job.id, step.do))

    def must_go_back(self, _job: Job) -> None:
        """Say whether something would send it back."""
        if self.stranded:
            raise Refused("nothing would send it back")

    def before_end(self, over: HandOver, job: Job) -> None:
        """Note it."""
        assert job.id == over.job
        self.ends.append((job.id, [do for _, do in self.did]))
