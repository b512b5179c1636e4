"""One job that counts, resized at random moments while others wait for exactly its GPUs.

``python -m benchmarks.resizes [--resizes N]`` writes docs/resizes.md: how long each hand-over took
from the end of its checkpoint, whether one of those who waited got in between, and whether the
count and its checksum are right in the end.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import msgspec

from benchmarks import machine
from benchmarks.section import Section, verdict
from pliant.daemon.answers import HandOverHistory, HistoryAnswer
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.options import SCHEDULER_PARAMETERS

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "resizes.md"
USER = "pliant-alice"
SHAPES = ("1", "2", "4", "2x2", "2x4")
TICKS = "bf_interval=1,bf_continue,bf_resolution=1"
"""SchedulerParameters with Slurm's own waits before it schedules."""
STEP_S = 0.01
RIVALS = 5
END_S = 300.0

_HEAD = """\
# A running job, resized again and again

Written by `make resizes`; every number below was measured by that run. GPUs are fake; Slurm is
real.
"""


@dataclass(slots=True)
class Resized:
    """One job, and what was seen while it was resized."""

    sandbox: Sandbox
    draw: random.Random
    job: int = 0
    rivals: list[int] = field(default_factory=list)
    slipped_in: set[int] = field(default_factory=set)
    log: Path = Path()
    told: str = ""  # why it was not asked, the last time

    def submit(self, steps: int) -> None:
        """Start the job that counts, then who waits for all GPUs of its first node."""
        place = self.sandbox.layout.top / "resizes"
        place.mkdir(mode=0o777)
        place.chmod(0o777)
        self.log = place / "count.out"
        count = ROOT / "docs" / "examples" / "count.py"
        script = (
            f"export PLIANT_CHECKPOINT_DIR={place}/saves\n"
            f"exec pliant run -- {sys.executable} {count} {steps} {place}/count {STEP_S}"
        )
        own = ("-N1", "--gres=gpu:4", "--nodelist=n1", "--moldable=gpus=1:2:4:8,nodes=1-2")
        options = ("--malleable=grace=30", "--open-mode=append", f"--output={self.log}")
        self.job = self._sbatch(None, script, *own, *options, "--time=60")
        self._until(lambda: self._state(self.job) == "RUNNING", "the job to run")
        self.rivals = [
            self._sbatch(USER, "sleep 600", "-N1", "--gres=gpu:4", "-wn1", "-o", "/dev/null")
            for _ in range(RIVALS)
        ]

    def _sbatch(self, user: str | None, script: str, *options: str) -> int:
        argv = ["sbatch", "--parsable", "-t5", *options]
        done = self.sandbox.run(argv, user=user, stdin=f"#!/bin/sh\n{script}\n", check=True)
        return int(done.stdout)

    def _state(self, job: int) -> str:
        argv = ["squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T"]
        return self.sandbox.run(argv).stdout.strip()

    def _until(self, is_so: object, what: str) -> None:
        deadline = time.monotonic() + END_S
        while not (callable(is_so) and is_so()):
            assert time.monotonic() < deadline, f"waited {END_S:.0f} s for {what}: {self.told}"
            time.sleep(0.05)

    def history(self) -> HistoryAnswer:
        """What Pliant knows of the job."""
        argv = ["pliant", "history", "--json", str(self.job)]
        told = self.sandbox.run(argv, check=True).stdout
        return msgspec.json.decode(told, type=HistoryAnswer)

    def done(self) -> list[HandOverHistory]:
        """The hand-overs that are over."""
        return [row for row in self.history().handovers if row.outcome]

    def resize(self) -> None:
        """Ask for another shape at a random moment, and wait until that is over."""
        time.sleep(self.draw.uniform(0, 1))
        before = len(self.done())
        self._until(lambda: bool(self.history().runs), "the program to speak")
        shape = self.history().runs[-1].shape
        wanted = self.draw.choice([other for other in SHAPES if other != shape])
        self._until(lambda: self._asked(wanted), f"{shape} to be asked for {wanted}")
        self._until(lambda: self._over(before), f"{shape} to become {wanted}")

    def _asked(self, shape: str) -> bool:
        done = self.sandbox.run(["pliant", "resize", str(self.job), shape])
        self.told = done.stderr.strip()
        return done.returncode == 0

    def _over(self, before: int) -> bool:
        states = {job: self._state(job) for job in self.rivals}
        self.slipped_in |= {job for job, state in states.items() if state != "PENDING"}
        rows = self.done()
        return len(rows) > before and bool(rows[-1].lost_s)

    def finish(self) -> str:
        """Let the job count to its end; return what it printed last."""
        self.sandbox.run(["scancel", *map(str, self.rivals)], check=True)
        self._until(lambda: self._state(self.job) == "COMPLETED", "the job to end")
        return self.log.read_text().splitlines()[-1]


def checksum(steps: int) -> str:
    """What count.py prints in the end."""
    total = 0
    for step in range(1, steps + 1):
        total = (total * 31 + step) % (2**61 - 1)
    return f"{steps} {total}"


def resized(title: str, parameters: str, resizes: int, seed: int) -> Section:
    """Resize one job so many times on a cluster of its own."""
    options = Options(nodes=2, gpus=4, users=(USER,), scheduler_parameters=parameters)
    sandbox = Sandbox("resizes", options)
    steps = int((30.0 + 10.0 * resizes) / STEP_S)
    try:
        sandbox.up()
        one = Resized(sandbox, random.Random(seed))  # a draw, no secret
        one.submit(steps)
        for _ in range(resizes):
            one.resize()
        history, last = one.history(), one.finish()
    finally:
        sandbox.down()
    rows = history.handovers
    right = last == checksum(steps)
    failed = sum(row.outcome != "done" for row in rows)
    words = (
        f"{len(rows)} resizes, {failed} of them not done; {len(one.slipped_in)} of {RIVALS} jobs "
        f"that waited got in between; counted to {steps} with the right checksum: "
        f"{verdict(right)}."
    )
    return Section(title, f"SchedulerParameters: {parameters}.", _HEADER, [*_rows(rows)], words)


_HEADER = ("what", "times", "min s", "median s", "p90 s", "max s")


def _rows(rows: Sequence[HandOverHistory]) -> Iterator[Sequence[str]]:
    requeued = [row.done_s - row.saved_s for row in rows if row.outcome == "done"]
    works = [row.lost_s for row in rows if row.lost_s]
    yield _row("from the checkpoint's end to running again", requeued)
    yield _row("from the checkpoint's end to the program's first step", works)


def _row(what: str, seconds: Sequence[float]) -> Sequence[str]:
    ordered = sorted(seconds)
    some = (ordered[0], median(ordered), ordered[int(0.9 * (len(ordered) - 1))], ordered[-1])
    return (what, str(len(ordered)), *(f"{value:.2f}" for value in some))


def main() -> None:
    """Run it and write the document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resizes", description=__doc__)
    parser.add_argument("--resizes", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=DOCUMENT)
    chosen = parser.parse_args()
    lines = [_HEAD, *machine.lines(), ""]
    for title, parameters in (
        ("Where Slurm schedules at once", SCHEDULER_PARAMETERS),
        ("Where it waits as it does by default", TICKS),
    ):
        lines += resized(title, parameters, chosen.resizes, chosen.seed).markdown()
    chosen.out.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
