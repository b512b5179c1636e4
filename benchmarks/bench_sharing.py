"""Jobs that share nodes while it pays: against exclusive nodes, and against blind sharing.

The same stream of jobs of two kinds, each of which asks for a whole node and lets it be shared,
runs three times on a sandbox: with exclusive nodes (plain Slurm), with every job marked by its
owner (``--oversubscribe``: Slurm itself pairs any two), and with Pliant under ``cosched-ucb``,
which knows nothing at first and learns from the programs' steps. With Pliant it runs once more
right after that: the programs are known then.

All nodes of a sandbox are one machine: what jobs do to each other on a node is therefore played by
their program (see :mod:`benchmarks.sharing_program`). Slurm, the hand-overs and the way of the
steps to pliantd are real.
"""

from __future__ import annotations

import json
import random
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.section import Section
from pliant.sandbox import Options, Sandbox

NODES, CPUS = 4, 4
JOBS = 32
STEPS = 1000
"""Of 20 ms each: 20 s alone."""
TIMES = (3, 5)
"""How much longer a heavy job takes beside another."""
EVERY_S = 0.25
"""From submission to submission."""
MOST_S, COMMAND_S = 900.0, 120.0
PROGRAM = Path(__file__).with_name("sharing_program.py")
ARMS = ("exclusive nodes", "blind sharing", "Pliant", "Pliant, once more")
AGREES = ("--colocate", "--malleable=grace=30s")


@dataclass(frozen=True, slots=True)
class Run:
    """When a job was submitted, and when it ended for good; seconds since the epoch."""

    submit_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Parting:
    """How long after its pair's begin a job was asked to leave, and had saved."""

    asked_s: float
    saved_s: float


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one stream."""

    runs: Sequence[Run]
    partings: Sequence[Parting] = ()

    @property
    def makespan_s(self) -> float:
        """From the first submission to the last end."""
        return max(r.end_s for r in self.runs) - min(r.submit_s for r in self.runs)

    @property
    def flow_s(self) -> float:
        """The mean from submission to end."""
        return sum(r.end_s - r.submit_s for r in self.runs) / len(self.runs)


def measure(quick: bool) -> list[Section]:
    """Measure one order of the jobs, or three, for each strength of the interference."""
    sections: list[Section] = []
    for times in TIMES[-1:] if quick else TIMES:
        rounds: dict[str, list[Round]] = {arm: [] for arm in ARMS}
        for seed in range(1 if quick else 3):
            kinds = ["heavy", "light"] * (JOBS // 2)
            random.Random(seed).shuffle(kinds)
            for arms in ((ARMS[0],), (ARMS[1],), ARMS[2:]):
                for arm, found in zip(arms, _rounds(arms, kinds, times), strict=True):
                    rounds[arm].append(found)
                    print(f"  {arm}: {found.makespan_s:.0f} s", file=sys.stderr, flush=True)
        sections += [_section(rounds, times), _parted(rounds["Pliant"], times)]
    return sections


def _section(rounds: dict[str, list[Round]], times: int) -> Section:
    base = [one.makespan_s for one in rounds[ARMS[0]]]
    rows = []
    for arm, found in rounds.items():
        spans = [one.makespan_s for one in found]
        ratios = [span / alone for span, alone in zip(spans, base, strict=True)]
        rows.append(
            (
                arm,
                f"{median(spans):.0f} ({min(spans):.0f} to {max(spans):.0f})",
                f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                f"{median(one.flow_s for one in found):.0f}",
            )
        )
    return Section(
        f"Jobs that share nodes, {times} times as long at worst",
        f"{JOBS} jobs, half of them heavy ones that take {times} times as long beside each other,"
        f" on {NODES} nodes; each takes {STEPS * 0.02:.0f} s alone. {len(base)} order(s) of the"
        " jobs, each with all four; median, and least to most. The interference is played by the"
        " program; Slurm and Pliant are real.",
        ("", "makespan, s", "of exclusive nodes", "mean flow time, s"),
        rows,
    )


def _parted(found: Sequence[Round], times: int) -> Section:
    partings = [parting for one in found for parting in one.partings]
    rows = []
    for words, values in (
        ("found to be bad, and asked to part", [p.asked_s for p in partings]),
        ("saved, and requeued", [p.saved_s for p in partings]),
    ):
        if values:
            rows.append((words, f"{median(values):.1f}", f"{max(values):.1f}"))
    return Section(
        f"Bad pairs, {times} times as long",
        f"{len(partings)} parted in {len(found)} stream(s); from the second job's start.",
        ("", "median, s", "most, s"),
        rows,
    )


def _rounds(arms: Sequence[str], kinds: Sequence[str], times: int) -> Iterator[Round]:
    """Run the stream on one cluster, as often as there are arms."""
    mode = "enforce" if "Pliant" in arms else "none"
    options = Options(nodes=NODES, gpus=0, cpus=CPUS, mode=mode, policy="cosched-ucb")
    flags = {"Pliant": AGREES, "blind sharing": ("--oversubscribe",)}.get(arms[0], ())
    for_program = (str(STEPS), str(times))
    with _cluster(options) as (sandbox, folder):
        for arm in arms:
            jobs: dict[str, float] = {}
            for number, kind in enumerate(kinds):
                name = f"{kind}{number}{arm == arms[0]}"
                words = (kind, str(folder), name, *for_program)
                submit_s = time.time()
                jobs[_submit(sandbox, folder, words, flags)] = submit_s
                time.sleep(EVERY_S)
            _wait(sandbox)
            yield _ended(sandbox, jobs)


def _ended(sandbox: Sandbox, jobs: dict[str, float]) -> Round:
    """What came of jobs, by when each was submitted."""
    ended = {job: _fields(sandbox, job) for job in jobs}
    runs = [Run(jobs[job], _instant(fields["EndTime"])) for job, fields in ended.items()]
    restarted = [job for job, fields in ended.items() if fields["Restarts"] != "0"]
    return Round(runs, [parting for job in restarted for parting in _partings(sandbox, job)])


@contextmanager
def _cluster(options: Options) -> Iterator[tuple[Sandbox, Path]]:
    sandbox, folder = Sandbox("bench-sharing", options), Path(tempfile.mkdtemp())
    sandbox.up()
    try:
        words = ("Nodes=ALL", "OverSubscribe=YES:2", "DefaultTime=10", "MaxTime=60")
        sandbox.run(["scontrol", "create", "PartitionName=sharing", *words], check=True)
        yield sandbox, folder
    finally:
        sandbox.down()
        shutil.rmtree(folder, ignore_errors=True)


def _submit(sandbox: Sandbox, folder: Path, words: Sequence[str], flags: Sequence[str]) -> str:
    program = [sys.executable, str(PROGRAM), *words]
    pliant = str(Path(sys.executable).with_name("pliant"))
    script = f"#!/bin/bash\nexec {shlex.join([pliant, 'run', '--', *program])}\n"
    whole = ("--partition=sharing", f"-c{CPUS}", "--mem=100", f"--job-name={words[0]}")
    output = (f"--output={folder}/%j.out", "--open-mode=append")
    argv = ["sbatch", "--parsable", *whole, *output, *flags]
    return sandbox.run(argv, stdin=script, check=True).stdout.strip()


def _wait(sandbox: Sandbox) -> None:
    deadline_s = time.monotonic() + MOST_S
    while sandbox.run(["squeue", "-h"], check=True).stdout.strip():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"the stream has not ended after {MOST_S:.0f} s")
        time.sleep(1.0)


def _fields(sandbox: Sandbox, job: str) -> dict[str, str]:
    """What Slurm says of a job that has ended well; raises RuntimeError for any other."""
    argv = ["scontrol", "show", "job", job]
    told = sandbox.run(argv, check=True, timeout=COMMAND_S).stdout.split()
    fields = dict(word.partition("=")[::2] for word in told)
    if fields["JobState"] != "COMPLETED":
        raise RuntimeError(f"job {job} is {fields['JobState']}")
    return fields


def _instant(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def _partings(sandbox: Sandbox, job: str) -> Iterator[Parting]:
    """What a job was parted from, by Pliant's own history."""
    argv = ["pliant", "history", job, "--json"]
    told = json.loads(sandbox.run(argv, check=True, timeout=COMMAND_S).stdout)
    starts = {run["run"]: run["start_s"] for run in told["runs"]}
    for change in told["handovers"]:
        begin_s = starts.get(change["run"])
        if "parted" in change["reason"] and begin_s and change["saved_s"]:
            yield Parting(change["at_s"] - begin_s, change["saved_s"] - begin_s)
