"""Count programs whose instructions are known: by thread, process and cgroup, one or two at once.

Runs wherever pliant.monitor does, with nothing but the standard library: here, and as the first
process of an emulated machine. Each experiment is printed as one line of JSON after `MARK`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pliant.monitor import perf, tier
from pliant.monitor.counting import Counting, begin, offered
from pliant.monitor.perf import Event, Reading
from pliant.monitor.refusals import Way

MARK = "PMU "


class Program:
    """The loop: waiting to begin, then done and still there."""

    def __init__(self, loop: Path, count: int, threads: int = 1, children: int = 0) -> None:
        argv = [str(loop), str(count), str(threads), str(children)]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.by_thread = [count * (i + 1) for i in range(threads)]
        self.expected = sum(self.by_thread) + count * children
        self._hear("ready")

    @property
    def pid(self) -> int:
        return self._process.pid

    def goes(self) -> None:
        assert self._process.stdin
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def is_done(self) -> None:
        self._hear("done")

    def ends(self) -> None:
        self._process.communicate()

    def _hear(self, word: str) -> None:
        assert self._process.stdout
        heard = self._process.stdout.readline().decode().strip()
        if heard != word:
            raise RuntimeError(f"{heard!r} of the program where {word!r} is expected")


def say(what: str, expected: int, reading: Reading) -> None:
    """Print what a program was to execute and what was counted of it."""
    counts = {event.label: reading.counts[event] for event in reading.counts}
    times = {"enabled_ns": reading.enabled_ns, "running_ns": reading.running_ns}
    print(
        f"{MARK}{json.dumps({'what': what, 'expected': expected, **counts, **times})}", flush=True
    )


def new_cgroup(cgroups: Path) -> None:
    """Print how a job is counted in a cgroup below which and beside which no controller is on."""
    folder = cgroups / "bare"
    folder.mkdir()
    attempt = begin(folder, [os.getpid()])
    choice = tier.choose(attempt.way, attempt.refusals)
    about = {"what": "new cgroup", "line": tier.line("1", None, choice)}
    print(f"{MARK}{json.dumps(about)}", flush=True)
    folder.rmdir()


def enable_controllers(cgroups: Path) -> None:
    """Do what Slurm and systemd do: then perf follows the cgroups below."""
    first = (cgroups / "cgroup.controllers").read_text().split()[0]
    (cgroups / "cgroup.subtree_control").write_text(f"+{first}")


def machine() -> bool:
    """Print what this machine offers and the tier of a job here; return whether it counts."""
    attempt = begin(None, [])
    choice = tier.choose(attempt.way, attempt.refusals, partial=attempt.partial)
    answers = {event.label: no.errno if no else 0 for event, no in offered().items()}
    about = {"what": "machine", **answers, "line": tier.line("1", None, choice)}
    print(f"{MARK}{json.dumps(about)}", flush=True)
    return choice.tier is tier.Tier.COUNTERS


def threads(loop: Path, count: int) -> None:
    """Count three threads of a program, each by itself."""
    program = Program(loop, count, threads=3)
    tids = sorted(int(task.name) for task in Path(f"/proc/{program.pid}/task").iterdir())
    groups = [perf.of_thread(tid, tuple(Event)) for tid in tids]
    program.goes()
    program.is_done()
    for group, expected in zip(groups, program.by_thread, strict=True):
        say("thread", expected, group.read())
    perf.close(groups)
    program.ends()


def shared(loop: Path, count: int, groups: int = 10) -> None:
    """Count one thread by more groups than a PMU has counters: they take turns, and are scaled."""
    program = Program(loop, count)
    counted = [perf.of_thread(program.pid, tuple(Event)) for _ in range(groups)]
    program.goes()
    program.is_done()
    for group in counted:
        say("shared PMU", program.expected, group.read())
    perf.close(counted)
    program.ends()


def jobs(what: str, way: Way, programs: Sequence[Program], cgroups: Path) -> None:
    """Count programs that run at once, each as a job by this way, with all that they start."""
    counted = [_begin(way, program, cgroups / f"job_{i}") for i, program in enumerate(programs)]
    for program in programs:
        program.goes()
    for program in programs:
        program.is_done()
    for program, counting in zip(programs, counted, strict=True):
        say(what, program.expected, counting.read())
        counting.close()
        program.ends()


def _begin(way: Way, program: Program, folder: Path) -> Counting:
    """Begin to count a program as a job, in a cgroup of its own if by that."""
    if way is Way.CGROUP:
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.procs").write_text(str(program.pid))
    attempt = begin(folder if way is Way.CGROUP else None, [program.pid])
    if attempt.counting is None or attempt.way is not way:
        raise RuntimeError(f"not counted by {way}: {attempt}")
    return attempt.counting


def every(loop: Path, count: int, cgroups: Path | None) -> None:
    """Run all experiments of which this machine is capable."""
    if not machine():
        return
    threads(loop, count)
    shared(loop, count)
    if cgroups:
        new_cgroup(cgroups)
        enable_controllers(cgroups)
    for way in Way:
        if way is Way.THREADS or cgroups:
            where = cgroups or Path()
            jobs(f"job by {way}", way, [Program(loop, count, threads=2, children=2)], where)
            pair = [Program(loop, count), Program(loop, 3 * count)]
            jobs(f"two jobs by {way}", way, pair, where)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loop", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--cgroups", type=Path)
    asked = parser.parse_args()
    every(asked.loop, asked.count, asked.cgroups)
