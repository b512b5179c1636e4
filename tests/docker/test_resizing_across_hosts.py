"""Malleable jobs of the cluster's hosts, resized again and again at random moments.

Other jobs of far higher priority wait for exactly their GPUs. Nobody of them may slip in, and the
jobs may lose nothing of what they did.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cluster_helpers import ALICE, BOB, Cluster

from docs_helpers import TOP

pytest_plugins = ["cluster_fixtures"]

TIMES = 10
"""How often each of the two jobs is resized."""
STEPS = 60_000
"""So many that a job outlasts its resizes, however slow the machine is."""
FOLDER = f"/home/{ALICE}/resizing"
PYTHON = "/usr/lib/pliant/venv/bin/python"
PACE = f"""
import os, time
sleep = time.sleep
time.sleep = lambda s: None if s == 0.02 and os.path.exists("{FOLDER}/hurry") else sleep(s)
"""
RESIZES = """
import json, random, subprocess, sys, time
from pliant.cli.door import SaidNo, ask
from pliant.daemon.answers import DoneAnswer, HistoryAnswer
from pliant.errors import Unavailable

jobs, seed, times = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
draw, end_s = random.Random(seed), time.monotonic() + 700

class Job:
    def __init__(self, number, shapes):
        self.number, self.shapes = number, shapes
        self.asked, self.due_s, self.over = 0, 0.0, False
        self.change = self.said = ""

    def look(self):
        if self.over or time.monotonic() < self.due_s:
            return
        told = ask(HistoryAnswer, "history", job=self.number)
        ended = sum(change.outcome != "" for change in told.handovers)
        if self.change and ended >= self.asked and len(told.runs) > self.asked:
            self.change = ""
            self.due_s = time.monotonic() + draw.uniform(0, 1)
            self.over = self.asked == times
        elif not self.change and told.runs:
            now = told.runs[-1].shape
            self.resize(draw.choice([shape for shape in self.shapes if shape != now]))

    def resize(self, shape):
        self.said = ask(DoneAnswer, "resize", job=self.number, shape=shape).message
        self.change = shape
        self.asked += 1

jobs = [Job(number, shapes) for number, shapes in jobs.items()]
while not all(job.over for job in jobs) and time.monotonic() < end_s:
    for job in jobs:
        try:
            job.look()
        except (SaidNo, Unavailable) as error:
            job.said = str(error)
    time.sleep(0.2)
for job in jobs:
    print(job.number, job.asked, job.over, job.said)
sys.exit(not all(job.over for job in jobs))
"""
"""Asks for one change after the other, as their owner, from a host of theirs."""


@dataclass(frozen=True)
class Counts:
    """A job that counts, with what may be asked of it."""

    job: str
    shapes: tuple[str, ...]
    others: tuple[str, ...]  # who wait for its GPUs


@pytest.fixture
def folder(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster without jobs, and the example that counts in a folder of Alice's."""
    cluster.no_jobs()
    example = (TOP / "docs" / "examples" / "count.py").read_text()
    texts = {"count.py": example, "sitecustomize.py": PACE, "resizes.py": RESIZES}
    cluster.out("login", "mkdir", "-p", FOLDER, user=ALICE)
    for name, text in texts.items():
        write = ("sh", "-c", 'printf %s "$1" >"$2"', "sh", text, f"{FOLDER}/{name}")
        cluster.out("login", *write, user=ALICE)
    yield cluster
    cluster.no_jobs()
    cluster.out("login", "rm", "-r", FOLDER)


def counting(cluster: Cluster, *options: str) -> str:
    """Let a job count that writes the checksum in the end."""
    words = ("--malleable=grace=20", "--open-mode=append", *options)
    run = f"exec pliant run -- {PYTHON} count.py {STEPS} count.$SLURM_JOB_ID 0.02"
    job = cluster.submit("login", ALICE, *words, script=f"cd {FOLDER}; PYTHONPATH=. {run}")
    cluster.wait(job, "RUNNING")
    return job


def waiting(cluster: Cluster, *options: str) -> tuple[str, ...]:
    """Let jobs wait that would start before all others."""
    jobs = [cluster.submit("login", BOB, *options, script="sleep 600") for _ in range(2)]
    cluster.out("controller", "scontrol", "update", f"jobid={','.join(jobs)}", "priority=1000000")
    return tuple(jobs)


def history(cluster: Cluster, job: str) -> Any:
    """Return what pliant history has of a job."""
    return json.loads(cluster.out("login", "pliant", "history", job, "--json", user=ALICE))


def checksum() -> str:
    """What count.py prints in the end."""
    total = 0
    for step in range(1, STEPS + 1):
        total = (total * 31 + step) % (2**61 - 1)
    return f"{STEPS} {total}"


def test_jobs_resized_at_random_moments_lose_nothing_and_nobody_slips_in(folder: Cluster) -> None:
    cluster, seed = folder, random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    one = counting(cluster, "-w", "n1", "--gres=gpu:4", "--moldable=gpus=1:2:4")
    two = counting(cluster, "-x", "n1", "--gres=gpu:4", "--moldable=gpus=4:8,nodes=1-2")
    counts = (
        Counts(one, ("1", "2", "4"), waiting(cluster, "-w", "n1", "--gres=gpu:4")),
        Counts(two, ("4", "2x4"), waiting(cluster, "-x", "n1", "-N2", "--gres=gpu:4")),
    )
    shapes = json.dumps({count.job: count.shapes for count in counts})
    resizes = (PYTHON, f"{FOLDER}/resizes.py", shapes, str(seed), str(TIMES))
    print(cluster.out("login", *resizes, user=ALICE))
    slipped_in = [
        job for count in counts for job in count.others if cluster.state(job) != "PENDING"
    ]
    assert slipped_in == []
    for count in counts:
        cluster.out("controller", "scancel", *count.others)
    cluster.out("login", "touch", f"{FOLDER}/hurry", user=ALICE)
    for count in counts:
        told = history(cluster, count.job)
        print(spread(told))
        assert [change["outcome"] for change in told["handovers"]] == ["done"] * TIMES
        shapes_asked = [change["after"] for change in told["handovers"]]
        assert [run["shape"] for run in told["runs"]][1:] == shapes_asked
        assert [run["run"] for run in told["runs"]] == list(range(TIMES + 1))
        assert checksum() in cluster.said(count.job, ALICE)


def spread(told: Any) -> str:
    """Say how long it took from the end of a checkpoint to the next run's start."""
    starts = {run["run"]: run["start_s"] for run in told["runs"]}
    pairs = [(change["saved_s"], starts.get(change["run"] + 1, 0)) for change in told["handovers"]]
    took = [start_s - saved_s for saved_s, start_s in pairs if start_s]
    if not took:
        return "no run"
    low, high, middle = min(took), max(took), statistics.median(took)
    return f"{len(took)} restarts: {low:.1f} s, {middle:.1f} s in the middle, {high:.1f} s at most"
