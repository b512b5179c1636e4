"""Jobs that share nodes while it pays: against exclusive nodes, and against blind sharing.

The same stream of jobs of two kinds, each of which asks for a whole node and lets it be shared,
runs on a sandbox with exclusive nodes (plain Slurm), with every job marked by its owner
(``--oversubscribe``: Slurm itself pairs any two), and with Pliant under ``cosched-ucb``, which
knows nothing at first and learns from the programs' steps. Then, with Pliant still, a bad pair of a
program that nobody knows yet is made while nodes are idle, some times: how soon is it parted?

All nodes of a sandbox are one machine: what jobs do to each other on a node is therefore played by
their program (see :mod:`benchmarks.sharing_program`). Slurm, the hand-overs and the way of the
steps to pliantd are real. On exclusive nodes nothing is played: they serve for each strength.
"""

from __future__ import annotations

import json
import random
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.section import Section
from pliant.sandbox import Options, Sandbox

NODES, CPUS = 4, 4
JOBS = 30
SEED = 0
"""Of the order of the jobs."""
STEPS, STEP_S = 2000, 0.02
TIMES = (3, 5)
"""How much longer a heavy job takes beside another, as it is played."""
EVERY_S = 0.25
"""From submission to submission."""
PAIRS = 2
"""How many bad pairs are made to be parted."""
MOST_S, COMMAND_S = 900.0, 120.0
ENDLESS = 1_000_000
"""Steps of a program that is told when to end."""
PROGRAM = Path(__file__).with_name("sharing_program.py")
EXCLUSIVE, BLIND, PLIANT = ARMS = ("exclusive nodes", "blind sharing", "Pliant")
AGREES = ("--colocate", "--malleable=grace=30s")


@dataclass(frozen=True, slots=True)
class Run:
    """When a job was submitted, and when it ended for good; seconds since the epoch."""

    submit_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Parting:
    """How long after its pair's begin a job was asked to leave, had saved, and ran alone again."""

    asked_s: float
    saved_s: float
    alone_s: float


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
    """Measure both strengths of the interference, or, to try it out, a few jobs under one."""
    jobs, pairs = (8, 1) if quick else (JOBS, PAIRS)
    kinds = ["heavy", "light"] * (jobs // 2)
    random.Random(SEED).shuffle(kinds)
    alone, _ = _run(EXCLUSIVE, kinds, TIMES[0])
    sections: list[Section] = []
    made: list[Parting] = []
    for times in TIMES[-1:] if quick else TIMES:
        blind, _ = _run(BLIND, kinds, times)
        ours, parted = _run(PLIANT, kinds, times, pairs=pairs if times == TIMES[-1] else 0)
        made += parted
        sections.append(_section((alone, blind, ours), times))
    return [*sections, _parted(made)]


def _section(rounds: Sequence[Round], times: int) -> Section:
    first = rounds[0].makespan_s
    rows = [
        (arm, f"{one.makespan_s:.0f}", f"{one.makespan_s / first:.2f}", f"{one.flow_s:.0f}")
        for arm, one in zip(ARMS, rounds, strict=True)
    ]
    parted = len(rounds[-1].partings)
    return Section(
        f"Jobs that share nodes, {times} times as long at worst",
        f"{len(rounds[0].runs)} jobs on {NODES} nodes, {STEPS * STEP_S:.0f} s each alone; half of"
        f" them are heavy ones that take {times} times as long beside each other. The same jobs in"
        " the same order, once each way, in one run. The interference is played by the program;"
        f" Slurm and Pliant are real. {parted} of Pliant's jobs left a pair: that needs an idle"
        " node that nobody waits for.",
        ("", "makespan, s", "of exclusive nodes", "mean flow time, s"),
        rows,
    )


def _parted(found: Sequence[Parting]) -> Section:
    rows = [
        (words, f"{median(values):.1f}", f"{max(values):.1f}")
        for words, values in (
            ("found to be bad, and asked to part", [p.asked_s for p in found]),
            ("saved", [p.saved_s for p in found]),
            ("running again, on a node of its own", [p.alone_s for p in found]),
        )
    ]
    return Section(
        "Bad pairs that could be parted",
        f"{len(found)} pair(s) of two heavy jobs of a new program, {TIMES[-1]} times as long beside"
        " each other as it is played, while another node was idle and nobody waited; from the"
        " second job's start.",
        ("", "median, s", "most, s"),
        rows,
    )


def _run(
    arm: str, kinds: Sequence[str], times: int, *, pairs: int = 0
) -> tuple[Round, list[Parting]]:
    """Run the stream on a cluster of its own, and then make so many bad pairs there."""
    mode = "enforce" if arm == PLIANT else "none"
    options = Options(nodes=NODES, gpus=0, cpus=CPUS, mode=mode, policy="cosched-ucb")
    flags = {PLIANT: AGREES, BLIND: ("--oversubscribe",)}.get(arm, ())
    with _cluster(options) as (sandbox, folder):
        jobs: dict[str, float] = {}
        for number, kind in enumerate(kinds):
            words = (kind, str(folder), f"{kind}{number}", str(STEPS), str(times))
            submit_s = time.time()
            jobs[_submit(sandbox, folder, words, flags)] = submit_s
            time.sleep(EVERY_S)
        _wait(lambda: not sandbox.run(["squeue", "-h"], check=True).stdout.strip())
        found = _ended(sandbox, jobs)
        print(f"  {arm}, {times}: {found.makespan_s:.0f} s", file=sys.stderr, flush=True)
        return found, [_bad_pair(sandbox, folder, number) for number in range(pairs)]


def _bad_pair(sandbox: Sandbox, folder: Path, number: int) -> Parting:
    """Let two jobs of a new program come together on a node, and then leave another one idle."""

    def begun(name: str) -> str:
        words = ("heavy", str(folder), f"{name}{number}", str(ENDLESS), str(TIMES[-1]))
        return _submit(sandbox, folder, words, AGREES, called=f"new{number}")

    sandbox.run(["pliant", "pause"], check=True)  # nobody is to join the first
    first = begun("first")
    _wait(lambda: _fields(sandbox, first)["JobState"] == "RUNNING")
    sandbox.run(["pliant", "resume"], check=True)
    full = ("sbatch", "--parsable", "--partition=sharing", f"-c{CPUS}", "--mem=100", "-o/dev/null")
    sleep = "#!/bin/bash\nsleep 600\n"
    fill = [sandbox.run(full, stdin=sleep, check=True).stdout.strip() for _ in range(NODES - 1)]
    _wait(lambda: all(_fields(sandbox, job)["JobState"] == "RUNNING" for job in fill))
    pair = [begun(name) for name in ("one", "two")]
    _wait(lambda: all(_fields(sandbox, job)["OverSubscribe"] == "YES" for job in pair))
    (folder / f"end-first{number}").touch()
    _wait(lambda: all(_fields(sandbox, job)["JobState"] == "RUNNING" for job in pair))
    begin_s = max(_instant(_fields(sandbox, job)["StartTime"]) for job in pair)
    sandbox.run(["scancel", fill[0]], check=True)
    _wait(lambda: any(_parting(sandbox, job, begin_s) for job in pair))
    found = next(one for job in pair if (one := _parting(sandbox, job, begin_s)))
    print(f"  parted: asked after {found.asked_s:.1f} s", file=sys.stderr, flush=True)
    sandbox.run(["scancel", *fill[1:]], check=True)
    for name in ("one", "two"):
        (folder / f"end-{name}{number}").touch()  # one that is cancelled would stay on its node
    _wait(lambda: not sandbox.run(["squeue", "-h"], check=True).stdout.strip())
    return found


def _ended(sandbox: Sandbox, jobs: dict[str, float]) -> Round:
    """What came of jobs, by when each was submitted; raises RuntimeError where one failed."""
    ended = {job: _fields(sandbox, job) for job in jobs}
    states = {job: fields["JobState"] for job, fields in ended.items()}
    failed = [f"job {job} is {state}" for job, state in states.items() if state != "COMPLETED"]
    if failed:
        raise RuntimeError("; ".join(failed))
    runs = [Run(jobs[job], _instant(fields["EndTime"])) for job, fields in ended.items()]
    restarted = [job for job, fields in ended.items() if fields["Restarts"] != "0"]
    return Round(runs, [one for job in restarted if (one := _parting(sandbox, job))])


@contextmanager
def _cluster(options: Options) -> Iterator[tuple[Sandbox, Path]]:
    sandbox, folder = Sandbox("bench-sharing", options), Path(tempfile.mkdtemp())
    sandbox.up()
    try:
        words = ("Nodes=ALL", "OverSubscribe=YES:2", "DefaultTime=10", "MaxTime=60")
        sandbox.run(["scontrol", "create", "PartitionName=sharing", *words], check=True)
        if options.mode != "none":  # jobs of a partition that pliantd has not seen are not ours
            _wait(lambda: "sharing" in sandbox.run(["pliant", "status"]).stdout)
        yield sandbox, folder
    finally:
        sandbox.down()
        shutil.rmtree(folder, ignore_errors=True)


def _submit(
    sandbox: Sandbox, folder: Path, words: Sequence[str], flags: Sequence[str], called: str = ""
) -> str:
    program = [sys.executable, str(PROGRAM), *words]
    pliant = str(Path(sys.executable).with_name("pliant"))
    script = f"#!/bin/bash\nexec {shlex.join([pliant, 'run', '--', *program])}\n"
    name = f"--job-name={called or words[0]}"
    whole = ("--partition=sharing", f"-c{CPUS}", "--mem=100", name)
    output = (f"--output={folder}/%j.out", "--open-mode=append")
    argv = ["sbatch", "--parsable", *whole, *output, *flags]
    return sandbox.run(argv, stdin=script, check=True).stdout.strip()


def _wait(until: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + MOST_S
    while not until():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"the jobs have not come so far after {MOST_S:.0f} s")
        time.sleep(1.0)


def _fields(sandbox: Sandbox, job: str) -> dict[str, str]:
    """What Slurm says of a job."""
    argv = ["scontrol", "show", "job", job]
    told = sandbox.run(argv, check=True, timeout=COMMAND_S).stdout.split()
    return dict(word.partition("=")[::2] for word in told)


def _instant(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def _parting(sandbox: Sandbox, job: str, begin_s: float = 0.0) -> Parting | None:
    """How a job was parted, by Pliant's own history; ``begin_s``: since when the pair was there.

    By default since its own run began. None where it was not, or does not run again yet.
    """
    argv = ["pliant", "history", job, "--json"]
    told = json.loads(sandbox.run(argv, check=True, timeout=COMMAND_S).stdout)
    starts = {run["run"]: run["start_s"] for run in told["runs"]}
    for change in told["handovers"]:
        since_s, alone_s = begin_s or starts.get(change["run"]), starts.get(change["run"] + 1)
        if "parted" in change["reason"] and since_s and alone_s and change["saved_s"]:
            asked_s, saved_s = change["at_s"] - since_s, change["saved_s"] - since_s
            return Parting(asked_s, saved_s, alone_s - since_s)
    return None
