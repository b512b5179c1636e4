"""What the reports of a thousand nodes' monitors cost pliantd.

The senders are simulated: each asks as ``pliant monitor`` does, with a connection, a challenge and
a munge credential of its own, from threads of this process. The door is pliantd's own, with what it
does with reports behind it, over a cluster that is made up, in a process that does nothing else:
what that process uses is what reports cost. munged is real and private.
"""

from __future__ import annotations

import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.monitors_door import WINDOW_S, job_number, node_name
from benchmarks.section import Section, verdict
from benchmarks.stats import quantile
from pliant.sandbox.programs import program
from pliant.wire import ask_over_tcp
from pliant.wire.monitor import Report, Window, request

GOAL = 0.05
JOBS = 4  # on each node
THREADS = 16
_HOW = """\
{nodes} simulated senders, each at a moment of its own within {minute:.0f} s: a report of
{windows} windows ({jobs} jobs, one window each {window_s:.0f} s of a minute) over TCP with a
munge(1) credential of its own. CPU time is that of the process that has pliantd's second door and
takes the reports, and munged's beside it, from /proc; the door had no other work. "At once" sends
as many as the machine can from {threads} threads. Senders run on the same machine, and their time
is not counted; so the time until an answer, munge(1) included, is that of a busy machine."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round took: seconds, CPU seconds, and for each report the seconds to its answer."""

    wall_s: float
    door_cpu_s: float
    munged_cpu_s: float
    answers_s: list[float]


def measure(quick: bool) -> list[Section]:
    """Measure a minute of reports (a tenth of it in a quick run), and all of them at once."""
    nodes, minute_s = (100, 6.0) if quick else (1000, 60.0)
    with _munged() as (munged, munge_socket), _door(munge_socket, nodes) as (door, port):
        senders = _Senders(port, munge_socket, nodes)
        senders.round((door, munged), 0.0)  # all that is done once only
        spread = senders.round((door, munged), minute_s)
        at_once = senders.round((door, munged), 0.0)
    share = spread.door_cpu_s / minute_s
    return [
        Section(
            "Reports of monitors",
            _HOW.format(
                nodes=nodes,
                minute=minute_s,
                windows=JOBS * _WINDOWS,
                jobs=JOBS,
                window_s=WINDOW_S,
                threads=THREADS,
            ),
            (
                *("", "reports/s", "pliantd, ms of CPU each", "munged, ms of CPU each"),
                *("until the answer, ms (median)", "99 % within, ms"),
            ),
            [_cells("over a minute", spread), _cells("at once", at_once)],
            f"At {nodes / minute_s * 60:.0f} reports a minute they take {100 * share:.1f} % of one "
            f"core of pliantd. Goal: under {100 * GOAL:.0f} %: {verdict(share < GOAL)}.",
        )
    ]


_WINDOWS = int(60 / WINDOW_S)


def _cells(name: str, found: Round) -> tuple[str, ...]:
    count = len(found.answers_s)
    return (
        name,
        f"{count / found.wall_s:.1f}",
        f"{1e3 * found.door_cpu_s / count:.2f}",
        f"{1e3 * found.munged_cpu_s / count:.2f}",
        f"{1e3 * quantile(0.5)(found.answers_s):.0f}",
        f"{1e3 * quantile(0.99)(found.answers_s):.0f}",
    )


class _Senders:
    """One monitor on each node."""

    def __init__(self, port: int, munge_socket: Path, nodes: int) -> None:
        self._port, self._munge_socket, self._nodes = port, str(munge_socket), nodes
        self._starts = [secrets.token_hex(16) for _ in range(nodes)]
        self._rounds = 0

    def round(self, servers: tuple[psutil.Process, psutil.Process], within_s: float) -> Round:
        """Let each report once, at a moment drawn within so many seconds."""
        self._rounds += 1
        draw = random.Random(self._rounds)
        began = time.monotonic()
        due = [(began + draw.random() * within_s, node) for node in range(self._nodes)]
        door_s, munged_s = map(_cpu_s, servers)
        with ThreadPoolExecutor(THREADS) as threads:
            answers = list(threads.map(self._report, sorted(due)))
        # nothing is sent any more, but a minute is a minute
        time.sleep(max(0.0, began + within_s - time.monotonic()))
        return Round(
            time.monotonic() - began,
            _cpu_s(servers[0]) - door_s,
            _cpu_s(servers[1]) - munged_s,
            answers,
        )

    def _report(self, due: tuple[float, int]) -> float:
        at_s, node = due
        time.sleep(max(0.0, at_s - time.monotonic()))
        said = request(self._said(node))
        began = time.monotonic()
        answer = ask_over_tcp("127.0.0.1", self._port, said, munge_socket=self._munge_socket)
        assert '"taken"' in answer.fields.get("json", ""), answer
        assert '"left":0' in answer.fields["json"], answer
        return time.monotonic() - began

    def _said(self, node: int) -> Report:
        now_s = time.time()
        windows = tuple(
            Window(
                job=job_number(node, job),
                begin_s=now_s - ago_s - WINDOW_S,
                end_s=now_s - ago_s,
                tier="counters",
                value=1.234e9 + ago_s,
                unit="instructions/s",
                window_s=WINDOW_S,
                cpu_s=1234.5678,
                memory_mib=2345.678,
                threads=17,
                waited=0.0123,
            )
            for ago_s in (WINDOW_S * number for number in reversed(range(_WINDOWS)))
            for job in range(JOBS)
        )
        return Report(node_name(node), self._starts[node], self._rounds, now_s, windows)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return sum((times.user, times.system, times.children_user, times.children_system))


@contextmanager
def _munged() -> Iterator[tuple[psutil.Process, Path]]:
    """A munged of our own."""
    with tempfile.TemporaryDirectory(prefix="pliant-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # munged insists that its socket's folder can be entered
        key = folder / "key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(32))
        places = {"socket": "s", "key-file": "key", "seed-file": "seed", "pid-file": "pid"}
        places["log-file"] = "log"
        argv = [program("munged"), "--foreground", "--force"]
        argv += [f"--{option}={folder / file}" for option, file in places.items()]
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as munged:
            try:
                while not (folder / "s").exists():
                    assert munged.poll() is None, (folder / "log").read_text()
                    time.sleep(0.05)
                yield psutil.Process(munged.pid), folder / "s"
            finally:
                munged.terminate()


@contextmanager
def _door(munge_socket: Path, nodes: int) -> Iterator[tuple[psutil.Process, int]]:
    """pliantd's second door in a process of its own."""
    argv = [sys.executable, "-m", "benchmarks.monitors_door", str(munge_socket), str(nodes)]
    argv.append(str(JOBS))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as door:
        try:
            assert door.stdout is not None
            yield psutil.Process(door.pid), int(door.stdout.readline())
        finally:
            door.terminate()
