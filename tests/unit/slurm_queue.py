"""A batch system for the daemon's tests: the adapter of Slurm that ships, on the fake Slurm.

One node of four GPUs, on which nothing starts by itself. Users submit and change their jobs by
number, as they would by hand; what Slurm was told of them is in ``changes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from slurm_hands import NOW_S, Clients

from pliant.batch.slurm import Slurm
from pliant.batch.slurm.jobs import running_job, waiting_job
from pliant.grammar import find_token, parse, put_token
from pliant.model import Job, Shape, Snapshot, Spec
from prove.fake_slurm import FakeSlurm, Jobs, Record

OWN_PRIORITY = 500
TASKS = 1000
"""How many numbers each job has, one for each of its tasks if it is an array."""


class Clock:
    """The fake's time; stands still until it is moved."""

    def __init__(self, fake: FakeSlurm) -> None:
        self._fake = fake

    def __call__(self) -> float:
        return self._fake.now_s

    @property
    def now_s(self) -> float:
        """Seconds since the epoch."""
        return self._fake.now_s

    @now_s.setter
    def now_s(self, now_s: float) -> None:
        self._fake.pass_to(now_s)


class Queue(Slurm):
    """The adapter and what is behind it.

    ``between`` runs after each look, before the cycle goes on.
    """

    def __init__(self) -> None:
        self.fake = FakeSlurm(Jobs({}, {}), NOW_S)
        self.fake.counts = "CR_CORE_MEMORY"
        self.clients, self.clock = Clients(self.fake), Clock(self.fake)
        self.between: Callable[[], None] = lambda: None
        super().__init__(self.clients, self.clock)

    def observe(self) -> Snapshot:
        """Look."""
        self.fake.say_why()
        seen = super().observe()
        self.between()
        return seen

    @property
    def refuses(self) -> str:
        """In which words Slurm refuses every update."""
        return self.clients.refuses.get("update", "")

    @refuses.setter
    def refuses(self, words: str) -> None:
        self.clients.refuses = {"update": words} if words else {}

    # --- what users do ---------------------------------------------------------------------

    def submit(
        self, number: str, text: str, own: Shape, user: str = "alice", **more: Any
    ) -> Record:
        """Let a job wait: ``text`` is its request, "" for none; ``more``: of its record."""
        spec = Spec(parse(text), own) if text else None
        comment = put_token("", spec) if spec else ""
        plain = {"comment": comment, "reason": "Resources", "submit_s": self.clock()}
        return self._put(number, own, user, **{**plain, **more})

    def run(self, number: str, shape: Shape, user: str = "bob", **more: Any) -> Record:
        """Let a job run until 7200."""
        plain = {"state": "RUNNING", "submit_s": 500.0, "start_s": 600.0, "limit_min": 110}
        return self._put(number, shape, user, **{**plain, **more})

    def start(self, number: str) -> None:
        """Let a waiting job run as it is."""
        self.has(number, state="RUNNING", start_s=self.clock(), reason="None")

    def _put(self, number: str, shape: Shape, user: str, **more: Any) -> Record:
        array, _, task = number.partition("_")
        also = dict(more.pop("also", ()))
        if task:
            also |= {"ArrayJobID": str(_number(array)), "ArrayTaskID": task}
        plain = {"gpus": shape.gpus, "cpus": 1, "min_cpus": 1, "limit_min": 60}
        plain |= {"priority": OWN_PRIORITY, "own_priority": OWN_PRIORITY}
        record = Record(_number(number), user=user, **{**plain, **more}, also=tuple(also.items()))
        self.fake.state = self.fake.state.with_job(record)
        return record

    def has(self, number: str, also: Iterable[tuple[str, str]] = (), **changed: Any) -> None:
        """Let a job be another one from now on."""
        now = self.record(number)
        record = replace(now, also=(*now.also, *also), **changed)
        self.fake.state = self.fake.state.with_job(record)

    def says(self, number: str, **changed: Any) -> None:
        """Let a job's token say something else."""
        spec = self.spec(number)
        assert spec is not None
        self.has(number, comment=put_token("", replace(spec, **changed)))

    def gone(self, number: str) -> None:
        """Let Slurm know nothing of a job any more."""
        jobs = {n: job for n, job in self.fake.state.jobs.items() if n != _number(number)}
        self.fake.state = replace(self.fake.state, jobs=jobs)

    # --- what there is ---------------------------------------------------------------------

    def record(self, number: str) -> Record:
        """A job as Slurm has it."""
        return self.fake.state.jobs[_number(number)]

    def spec(self, number: str) -> Spec | None:
        """What a job's token says."""
        return find_token(self.record(number).comment)

    def job(self, number: str) -> Job:
        """A job as it is seen now."""
        cluster, row = self._known_cluster(), self._queries.again([number])[number]
        return waiting_job(row, cluster, self.clock()) if row.waits else running_job(row, cluster)

    @property
    def changes(self) -> list[tuple[str, str]]:
        """What Slurm took: of which job, and its shape, its mark, or its token alone."""
        return [_change(*words) for words in self.clients.took]


def _number(name: str) -> int:
    array, _, task = name.partition("_")
    return int(array) * TASKS + int(task) if task else int(array)


def _change(what: str, job: str, *words: str) -> tuple[str, str]:
    told: Mapping[str, str] = dict(word.split("=", 1) for word in words)
    name = job.removeprefix("jobid=")
    if "OverSubscribe" in told:
        spec = find_token(told["AdminComment"])
        return name, f"mark {spec.mark if spec else ''}"
    if "Gres" in told:
        return name, told["Gres"].rpartition(":")[2]
    return name, "token" if what == "update" else what
