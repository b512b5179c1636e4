"""What pyslurm gains over the commands: reading all jobs, and changing one.

``python -m benchmarks native`` where Slurm is of the release that the installed pyslurm was made
for; elsewhere the section says so. Both ways are asked in turn, of one slurmctld. Its own time is
sdiag's.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from benchmarks.section import Section
from benchmarks.stats import estimate, quantile
from pliant.batch.slurm import Commands, Native, Worker
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.native import NativeQueries, installed
from pliant.batch.slurm.queries import Queries
from pliant.batch.slurm.site import version_of
from pliant.errors import PliantError
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.programs import program

TITLE = "pyslurm instead of the commands"
_HOW = """\
{jobs} waiting jobs with a GPU request and a time limit each, on a private Slurm {release} with
pyslurm {version}; {rounds} looks at all jobs and {updates} updates (GPUs, AdminComment) each way,
in turn. A look is all that it takes until the jobs are rows: two `squeue` and their parsing, or the
C library in its worker process. slurmctld's own time is sdiag's, on average. Both ways leave nodes
and partitions to `scontrol`."""
_READ, _UPDATE = "REQUEST_JOB_INFO", "REQUEST_UPDATE_JOB"
_WAYS = ("commands", "pyslurm")


def measure(quick: bool) -> list[Section]:
    """Measure both ways, or say why that is not possible here."""
    reason = why_not()
    if reason:
        return [Section(TITLE, f"Not measured here: {reason}.", ("", *_WAYS), [])]
    sandbox = Sandbox("bench-native", Options(nodes=2, accounting=True, mode="none"))
    sandbox.up()
    try:
        return [_Bench(sandbox, 300 if quick else 5000).section(3 if quick else 20, quick)]
    finally:
        sandbox.down()


def why_not() -> str:
    """Return why pyslurm cannot be measured here, "" where it can."""
    version = installed()
    if not version:
        return "pyslurm is not installed"
    try:
        argv = [program("slurmctld"), "-V"]
        told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        fits = version_of(told) == version_of(version)
    except (OSError, subprocess.CalledProcessError, PliantError) as error:
        return str(error)
    return "" if fits else f"pyslurm {version} does not fit {told.strip()}"


class _Bench:
    """A sandbox full of waiting jobs, and both ways to ask it."""

    def __init__(self, sandbox: Sandbox, jobs: int) -> None:
        self.sandbox, self.jobs = sandbox, jobs
        path = {"PATH": sandbox.env["PATH"]}
        self.commands = Commands(conf=sandbox.env["SLURM_CONF"], env=path, timeout_s=60)
        self.native = Native(Worker(self.commands.environment({}), 60))
        self.queries = (Queries(self.commands), NativeQueries(self.native, self.commands))
        self.site = self.queries[0].site()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._submit, range(jobs)))

    def _submit(self, number: int) -> None:
        options = (f"--gres=gpu:{1 + number % 4}", f"--time={30 + number % 1000}", "--mem=100")
        argv = ("sbatch", "--hold", "--nodes=1", f"--comment=job {number}", *options)
        self.sandbox.run(argv, stdin="#!/bin/sh\nsleep 60\n", check=True)

    def section(self, rounds: int, quick: bool) -> Section:
        """Measure and return the section."""
        updates = 20 if quick else 500
        rows = [row for row in self.queries[0].jobs() if row.waits][: 2 * (updates + 1)]
        looks, of_ctld = self._turns([self._look(q) for q in self.queries], rounds, _READ)
        calls = [self._by_commands(rows), self._natively(rows)]
        made, of_ctld_too = self._turns(calls, updates, _UPDATE)
        how = _HOW.format(
            jobs=self.jobs,
            release=self.site.release,
            version=installed(),
            rounds=rounds,
            updates=updates,
        )
        table = (
            ("one look at all jobs, ms", *(estimate(some).text(0) for some in looks)),
            ("... of it slurmctld's own, ms", *(f"{ms:.1f}" for ms in of_ctld)),
            ("one update, ms", *(estimate(some).text() for some in made)),
            ("... p99", *(f"{quantile(0.99)(some):.2f}" for some in made)),
            ("... of it slurmctld's own, ms", *(f"{ms:.3f}" for ms in of_ctld_too)),
        )
        result = (
            f"By pyslurm a look takes {median(looks[1]) / median(looks[0]):.2f} times as long, "
            f"an update {median(made[1]) / median(made[0]):.2f} times."
        )
        return Section(TITLE, how, ("", *_WAYS), table, result)

    def _turns(
        self, calls: Sequence[Callable[[], None]], rounds: int, request: str
    ) -> tuple[list[list[float]], list[float]]:
        """Call both in turn: each one's times in ms, and what it cost slurmctld on average."""
        times: list[list[float]] = [[] for _ in calls]
        of_ctld = [0.0 for _ in calls]
        for _ in range(rounds + 1):
            for place, call in enumerate(calls):
                before = self._ctld_ms(request)
                began = time.perf_counter()
                call()
                times[place].append((time.perf_counter() - began) * 1000)
                of_ctld[place] += self._ctld_ms(request) - before
        return [some[1:] for some in times], [total / (rounds + 1) for total in of_ctld]

    def _ctld_ms(self, request: str) -> float:
        told = self.sandbox.run(["sdiag"], check=True).stdout
        found = re.search(
            rf"{request}\s+\(\s*\d+\)\s+count:\d+\s+ave_time:\d+\s+total_time:(\d+)", told
        )
        return int(found[1]) / 1000 if found else 0.0

    def _look(self, queries: Queries) -> Callable[[], None]:
        def look() -> None:
            assert len(queries.jobs()) == self.jobs

        return look

    def _by_commands(self, rows: list[JobRow]) -> Callable[[], None]:
        def update() -> None:
            row = rows.pop()
            argv = ("scontrol", "update", f"jobid={row.job_id}", *_WORDS)
            assert self.commands.run(argv).status == 0

        return update

    def _natively(self, rows: list[JobRow]) -> Callable[[], None]:
        def update() -> None:
            answer = self.native.update(self.site, rows.pop(), _WORDS)
            assert answer is not None
            assert answer.status == 0

        return update


_WORDS = ("Gres=gpu:4", "AdminComment=measured")
