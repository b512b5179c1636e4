"""One seed: a site, its users, what goes wrong; and whether all was as it must be."""

from __future__ import annotations

import gc
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest.mock import patch

from prove.fake_slurm import called
from prove.seeds.cluster import Cluster
from prove.seeds.disk import Disk
from prove.seeds.faults import FAULTS, Faults
from prove.seeds.loops import BEGAN_S, Time
from prove.seeds.owners import Owners
from prove.seeds.records import Records, made
from prove.seeds.rules import LOOKS, Rules, is_held_by_slurm
from prove.seeds.site import Site, Trace
from prove.seeds.workload import (
    EVERY_S,
    JOBS,
    TRIALS,
    USUAL,
    Submission,
    answered,
    asked,
    submissions,
)

HAND_OVERS = 20
"""The fewest of a seed of 200 jobs: it goes on until there were as many."""
MOST_JOBS = 1000
MOST_S = 2 * 3600.0
"""By when all jobs must have ended."""
PASS_S = 5.0
AFTER = 20
"""For so many looks more nothing is done once all is over."""
NODES = 8
HELD_S = 25.0
"""How soon an administrator releases a job whose node refused it."""


@dataclass(slots=True)
class Found:
    """What came of a seed: ``hash`` of all that has happened.

    ``hand_overs``: how often a job that had saved began again; ``made``: of how many pliantd's
    history says in the end that all was as it had asked.
    """

    seed: int
    hash: str
    jobs: int
    hand_overs: int
    made: int
    steps: dict[str, int]
    faults: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def run(seed: int, *, flags: bool = True, shown: bool = False) -> Found:
    """Run a seed to its end."""
    gc.disable()  # little of it is kept, and all at once is freed at the end
    try:
        with tempfile.TemporaryDirectory(prefix="pliant-seed-", dir="/dev/shm") as folder:
            return _Seed(seed, Path(folder), flags=flags, shown=shown).run()
    finally:
        gc.enable()


class _Seed:
    def __init__(self, seed: int, folder: Path, *, flags: bool, shown: bool) -> None:
        self.seed = seed
        self.time, self.disk = Time(), Disk()
        self.trace = Trace(self.time, folder, shown=shown)
        self.cluster = Cluster(self.time, NODES, Random(f"{seed} cluster"))
        self.site = Site(folder, self.time, self.cluster, self.trace)
        self.owners = Owners(self.site, Random(f"{seed} owners"))
        self.rules = Rules(self.site, self.owners, self.disk)
        span_s = (BEGAN_S + 20, BEGAN_S + JOBS * EVERY_S)
        random = Random(f"{seed} faults")
        self.faults = Faults(self.site, self.owners, self.disk, random, span_s)
        self.owners.did = lambda _what: self.rules.disturbed()
        self.faults.disturbed = self.site.disturbed = self.rules.disturbed
        self.records = Records()
        self.site.watches.append(self.records.changed)
        self._looks = self._made = 0
        self._configure(Random(f"{seed} site"))
        kinds = TRIALS if self.site.policy == "fitgpp" else USUAL
        self.jobs = submissions(Random(f"{seed} jobs"), kinds, flags=flags)

    def _configure(self, random: Random) -> None:
        site = self.site
        site.policy = random.choice(
            (
                "malleable-equipartition",
                "malleable-proportional",
                "f-scheduling",
                "fitgpp",
                "fitgpp",
            )
        )
        if site.policy.startswith("malleable"):
            site.options = "least_left_s = 20.0\npays = false"
        site.restarts_s = lambda: random.choice((0.5, 2.0, random.uniform(1, 30)))
        slow = random.choice((1.0, 0.2))
        site.takes_s = lambda is_look: slow * random.uniform(0.02, 0.35 if is_look else 0.08)

    def run(self) -> Found:
        with self._logging(), patch("pliant.store.database.sqlite3", self.disk):
            self.site.start()
            self._next()
            while not self._is_done() and self.time.now_s < BEGAN_S + MOST_S:
                self._pass()
            self._settle()
            self.site.ends()
        if self.rules.hand_overs < HAND_OVERS or self.faults.came.total() < FAULTS:
            self.rules.is_wrong("too little happened")
        return Found(
            self.seed,
            self.trace.hash,
            self.cluster.last,
            self.rules.hand_overs,
            self._made,
            dict(self.site.steps),
            dict(self.faults.came),
            self.rules.wrong,
            self.trace.lines,
        )

    def _next(self) -> None:
        """Submit the next one when its time comes, until there was enough of all."""
        few = self.rules.hand_overs < HAND_OVERS or self.faults.came.total() < FAULTS
        if self.cluster.last < JOBS or (few and self.cluster.last < MOST_JOBS):
            submission = next(self.jobs)
            self.time.at(BEGAN_S + submission.at_s, self._submit, submission)
        else:
            self.owners.is_quiet = True

    def _submit(self, submission: Submission) -> None:
        record, number = submission.record, self.cluster.last + 1
        if submission.says:
            process = self.site.process
            record = answered(submission, process.submit(asked(submission)) if process else None)
        self.trace.note(f"job {number}: {submission.says or 'nothing said'}")
        self.site.work[number], self.site.says[number] = submission.work, submission.says
        job = self.cluster.submit(record, submission.tasks, submission.at_once)
        self.records.submitted(job, submission.says if "pliant=" in job.comment else "")
        self._next()

    def _is_done(self) -> bool:
        jobs = self.cluster.state.jobs.values()
        return self.owners.is_quiet and all(job.is_over for job in jobs)

    def _pass(self) -> None:
        """Let some time pass, and look whether all is as it must be."""
        self.time.pass_for(PASS_S)
        self.site.tidy()
        self._administer()
        if self.site.looks > self._looks:
            self.rules.looked()
        self._looks = self.site.looks

    def _administer(self) -> None:
        """Let an administrator release what Slurm holds."""
        for job in [*self.cluster.state.jobs.values()]:
            if is_held_by_slurm(job) and self.time.now_s > job.submit_s + HELD_S:
                self.trace.note(f"an administrator releases {job.number}")
                self.cluster.tell("release", called(job), by_owner=False)

    def _settle(self) -> None:
        """Once all is over nothing of ours is left after some looks, and nothing is done in more."""
        self._look(LOOKS)
        self.rules.settled()
        did = self.site.steps.total()
        self._look(AFTER)
        if self.site.steps.total() != did:
            self.rules.is_wrong("something was changed after all was over")
        if self.site.process is not None:
            file = self.site.process.state / "pliant.db"
            self._made = made(file)
            for words in self._differences(file):
                self.rules.is_wrong(words)

    def _differences(self, file: Path) -> Iterator[str]:
        if not (self.disk.was_full or self.site.has_aged):
            rules, stood = self.rules, self.site.stood
            yield from self.records.differences(file, rules.requeued, rules.undisturbed, stood)

    def _look(self, looks: int) -> None:
        for _ in range(looks):
            before, until_s = self.site.looks, self.time.now_s + MOST_S
            while self.site.looks <= before and self.time.now_s < until_s:
                self._pass()

    @contextmanager
    def _logging(self) -> Iterator[None]:
        log = logging.getLogger("pliant")
        level, propagates = log.level, log.propagate
        log.addHandler(self.trace)
        log.setLevel(logging.INFO)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(self.trace)
            log.setLevel(level)
            log.propagate = propagates
