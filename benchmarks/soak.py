"""Ten thousand short jobs on two clusters side by side, one with Pliant and one without.

``python -m benchmarks.soak [--jobs N] [--minutes N]`` writes docs/soak.md. Both get the same jobs
at the same moments, drawn beforehand: two users, a third of the jobs moldable (where Pliant is).
Each job's last command writes down its number, so that a job that is lost, or runs twice, shows.
"""

from __future__ import annotations

import argparse
import random
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil

from benchmarks import machine
from benchmarks.section import Section, verdict
from pliant.sandbox import Options, Sandbox
from pliant.store import Store

DOCUMENT = Path(__file__).parents[1] / "docs" / "soak.md"
USERS = ("pliant-alice", "pliant-bob")
LONGEST_S = 1.0
"""The longest job: most of the GPUs are busy then, and the queue empties now and then."""
SAMPLE_S = 10.0
END_S = 600.0
PARTS = 6
"""Growth is from the second of so many parts of the run to the last: the first warms up."""
GROWTH_MIB = 1.0
"""What counts as no growth: a page here and there, not something for each job."""
RETENTION_S = 300.0
"""In place of the configured days, to see what the store is like once it drops what is old."""

_HEAD = """\
# Soak

Written by `make soak`; every number below was measured by that run. GPUs are fake; Slurm is real.
"""
_SDIAG = {
    "main cycles, mean µs": r"Main schedule statistics.*?Mean cycle:\s+(\d+)",
    "main depth, mean": r"Main schedule statistics.*?Mean depth cycle:\s+(\d+)",
    "backfill cycles": r"Backfilling stats.*?Total cycles:\s+(\d+)",
    "backfill cycles, mean µs": r"Backfilling stats.*?Mean cycle:\s+(\d+)",
    "backfill depth, mean": r"Backfilling stats.*?Depth Mean:\s+(\d+)",
    "backfill depth tried, mean": r"Depth Mean \(try depth\):\s+(\d+)",
    "started by backfill": r"Total backfilled jobs \(since last stats cycle start\):\s+(\d+)",
    "queue length, mean": r"Queue length mean:\s+(\d+)",
}


@dataclass(frozen=True, slots=True)
class Planned:
    """One job: when it is submitted, by whom, and what it asks."""

    at_s: float
    user: str
    gpus: int
    sleep_s: float
    moldable: bool


def drawn(jobs: int, over_s: float) -> list[Planned]:
    """Draw the jobs: the same for both clusters, and for every run."""
    draw = random.Random(0)
    moments = sorted(draw.uniform(0, over_s) for _ in range(jobs))
    return [
        Planned(
            at_s,
            draw.choice(USERS),
            draw.choice((1, 1, 1, 2, 2, 4)),
            round(draw.uniform(0, LONGEST_S), 1),
            moldable=draw.random() < 1 / 3,
        )
        for at_s in moments
    ]


@dataclass(slots=True)
class Sample:
    """pliantd at one moment."""

    at_s: float
    rss_mib: float
    descriptors: int
    threads: int
    store_mib: float
    waiting: int


@dataclass(slots=True)
class Side:
    """One cluster, and what was seen of it."""

    sandbox: Sandbox
    with_pliant: bool
    jobs: Sequence[Planned]
    submitted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    late_s: float = 0.0
    ctld_cpu_s: float = 0.0
    told: dict[str, str] = field(default_factory=dict)
    store: list[Sequence[str]] = field(default_factory=list)

    @property
    def ended(self) -> Path:
        """Where each job writes its number when it ends."""
        return self.sandbox.layout.top / "soak-ended"

    def submit_all(self, began: float) -> None:
        """Submit each job at its time, or as soon after it as can be."""
        for job in self.jobs:
            time.sleep(max(0.0, began + job.at_s - time.monotonic()))
            self.late_s = max(self.late_s, time.monotonic() - began - job.at_s)
            flag = ["--moldable=gpus=1-4"] if job.moldable and self.with_pliant else []
            argv = ["sbatch", "--parsable", "-t5", "-o", "/dev/null", f"--gres=gpu:{job.gpus}"]
            script = f"#!/bin/sh\nsleep {job.sleep_s}\necho $SLURM_JOB_ID >>{self.ended}\n"
            done = self.sandbox.run([*argv, *flag], user=job.user, stdin=script)
            if done.returncode:
                self.refused.append(done.stderr.strip())
            else:
                self.submitted.append(done.stdout.strip())

    def sample(self, began: float, stop: threading.Event) -> None:
        """Look at pliantd now and then."""
        while not stop.wait(SAMPLE_S):
            pliantd = psutil.Process(self.sandbox.pid("pliantd"))
            store = sum(p.stat().st_size for p in self.sandbox.layout.pliant_state.iterdir())
            self.samples.append(
                Sample(
                    time.monotonic() - began,
                    pliantd.memory_info().rss / 2**20,
                    pliantd.num_fds(),
                    pliantd.num_threads(),
                    store / 2**20,
                    len(self.sandbox.run(["squeue", "-h", "-t", "PD", "-o", "%i"]).stdout.split()),
                )
            )

    def finish(self) -> None:
        """Wait for the last job, and ask slurmctld what it did."""
        deadline = time.monotonic() + END_S
        while self.sandbox.run(["squeue", "-h"], check=True).stdout:
            assert time.monotonic() < deadline, f"{self.sandbox.name}: jobs do not end"
            time.sleep(2)
        text = self.sandbox.run(["sdiag"], check=True).stdout
        found = {name: re.search(pattern, text, re.DOTALL) for name, pattern in _SDIAG.items()}
        self.told = {name: one[1] if one else "-" for name, one in found.items()}
        times = psutil.Process(self.sandbox.pid("slurmctld")).cpu_times()
        self.ctld_cpu_s = times.user + times.system

    def end_pliantd(self) -> None:
        """End pliantd, and look at its store before and after it drops what is old."""
        self.sandbox.stop("pliantd")
        store = Store(self.sandbox.layout.pliant_state)
        self.store = [("at the end", *_contents(store.file))]
        store.prune(time.time(), RETENTION_S)
        self.store.append((f"older than {RETENTION_S:.0f} s dropped", *_contents(store.file)))
        store.close()

    def lost(self) -> tuple[int, int]:
        """Return how many jobs did not end, and how many ran more than once."""
        runs = Counter(self.ended.read_text().split())
        return sum(job not in runs for job in self.submitted), sum(n > 1 for n in runs.values())


def measure(jobs: int, minutes: float) -> list[Section]:
    """Run both clusters at the same time."""
    planned = drawn(jobs, 60 * minutes)
    sides = [
        Side(Sandbox(name, Options(4, 4, mode=mode, users=USERS)), mode != "none", planned)
        for name, mode in (("soak-without", "none"), ("soak-with", "enforce"))
    ]
    try:
        for side in sides:
            side.sandbox.up()
            side.ended.touch()
            side.ended.chmod(0o666)
            side.sandbox.run(["sdiag", "-r"], check=True)
        _run(sides)
        return [_jobs(sides), _pliantd(sides[1]), _store(sides[1]), _slurmctld(sides)]
    finally:
        for side in sides:
            side.sandbox.down()


def _run(sides: Sequence[Side]) -> None:
    began, stop = time.monotonic(), threading.Event()
    submitters = [threading.Thread(target=side.submit_all, args=(began,)) for side in sides]
    sampler = threading.Thread(target=sides[1].sample, args=(began, stop))
    for thread in (*submitters, sampler):
        thread.start()
    for thread in submitters:
        thread.join()
    for side in sides:
        side.finish()
    stop.set()
    sampler.join()
    sides[1].end_pliantd()


def _contents(store: Path) -> tuple[str, ...]:
    """Return a store's decisions, the jobs re-molded, and its size and free space in MiB."""
    with closing(sqlite3.connect(store)) as file:

        def ask(question: str) -> int:
            return int(file.execute(question).fetchone()[0])

        page_mib = ask("PRAGMA page_size") / 2**20
        size, free = (page_mib * ask(f"PRAGMA {of}") for of in ("page_count", "freelist_count"))
        decisions = ask("SELECT count(*) FROM decisions")
        molded = ask("SELECT count(DISTINCT job) FROM decisions WHERE what = 'mold'")
        return f"{decisions}", f"{molded}", f"{size:.2f}", f"{free:.2f}"


def _jobs(sides: Sequence[Side]) -> Section:
    rows = []
    for side in sides:
        lost, twice = side.lost()
        rows.append(
            (
                "with Pliant" if side.with_pliant else "without",
                *map(str, (len(side.submitted), len(side.refused), lost, twice)),
                f"{side.late_s:.1f}",
            )
        )
    whole = all(row[2:5] == ("0", "0", "0") for row in rows)
    return Section(
        "Jobs",
        "The same jobs at the same moments on both: 1, 2 or 4 GPUs for up to "
        f"{LONGEST_S:g} s, of two users; "
        "a third of them with `--moldable=gpus=1-4` where Pliant is. Four nodes of four GPUs each.",
        ("", "submitted", "refused", "lost", "run twice", "latest submission late by, s"),
        rows,
        f"None lost, refused or run twice: {verdict(whole)}.",
    )


def _pliantd(side: Side) -> Section:
    size = max(1, len(side.samples) // PARTS)
    parts = [side.samples[at : at + size] for at in range(0, size * PARTS, size)]
    rows = [
        (
            f"{part[0].at_s / 60:.0f} to {part[-1].at_s / 60:.0f}",
            f"{median(one.rss_mib for one in part):.1f}",
            f"{median(one.descriptors for one in part):.0f}",
            f"{max(one.descriptors for one in part)}",
            f"{max(one.threads for one in part)}",
            f"{part[-1].store_mib:.2f}",
            f"{median(one.waiting for one in part):.0f}",
            f"{max(one.waiting for one in part)}",
        )
        for part in parts
        if part
    ]
    return Section(
        "pliantd",
        f"Looked at every {SAMPLE_S:.0f} s. The store keeps what was decided for `retention_days`, "
        "30 here, so it grows with the jobs; its size is that at the end of each part.",
        (
            "minutes",
            "MiB, median",
            "descriptors, median",
            "most",
            "threads",
            "store at the end, MiB",
            "jobs waiting, median",
            "most",
        ),
        rows,
        _growth(parts[1], parts[-1]),
    )


def _growth(early: Sequence[Sample], late: Sequence[Sample]) -> str:
    mib = [median(one.rss_mib for one in part) for part in (early, late)]
    open_files = [max(one.descriptors for one in part) for part in (early, late)]
    none = mib[1] - mib[0] <= GROWTH_MIB and open_files[1] <= open_files[0]
    return (
        f"From the second row to the last: {mib[1] - mib[0]:+.1f} MiB, "
        f"{open_files[1] - open_files[0]:+d} descriptors. No growth: {verdict(none)}."
    )


def _store(side: Side) -> Section:
    return Section(
        "The store",
        "Its hourly clean-up, done by hand with a retention of minutes: the space is used again.",
        ("", "decisions", "jobs re-molded", "MiB", "of that free, MiB"),
        side.store,
    )


def _slurmctld(sides: Sequence[Side]) -> Section:
    without, with_pliant = sides
    rows = [(name, without.told[name], with_pliant.told[name]) for name in _SDIAG]
    rows.append(
        ("its own CPU time, s", f"{without.ctld_cpu_s:.0f}", f"{with_pliant.ctld_cpu_s:.0f}")
    )
    return Section("slurmctld, by sdiag", "At the end.", ("", "without", "with Pliant"), rows)


def main() -> None:
    """Run it and write the document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--out", type=Path, default=DOCUMENT)
    chosen = parser.parse_args()
    lines = [_HEAD, *machine.lines(), ""]
    for section in measure(chosen.jobs, chosen.minutes):
        lines += section.markdown()
    chosen.out.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
