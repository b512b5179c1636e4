"""Runs of the drill, some at once, each on a batch system that is its own meanwhile."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from benchmarks.drill.fault import Fault
from benchmarks.drill.field import Field
from benchmarks.drill.installing import install
from benchmarks.drill.run import Ran, run
from benchmarks.drill.slurm_field import SlurmField

Up = Callable[[Path, int], contextlib.AbstractContextManager[Field]]
"""Brings a batch system up, given what its jobs need, and takes it down."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run that is to be made: with the same seed the same is drawn."""

    fault: Fault
    seed: int


def drilled(
    tasks: Iterable[Task],
    at_once: int,
    stopping: threading.Event | None = None,
    logs: Path | None = None,
    up: Up = SlurmField.up,
) -> Iterator[tuple[Task, Ran]]:
    """Make the runs; yield each as it ends. No more are begun once it is ``stopping``.

    What the daemons logged before one that was not good, and in it, is kept in ``logs``; in the end
    what they logged in all.
    """
    ends = stopping or threading.Event()
    waiting, running = enumerate(tasks), set[Future[tuple[Task, Ran]]]()
    with _fields(at_once, up, logs) as (top, free), ThreadPoolExecutor(at_once) as pool:

        def one(number: int, task: Task) -> tuple[Task, Ran]:
            area, place = free.get(), top / str(number)
            try:
                ran = run(area, task.fault, place, random.Random(task.seed))
                if logs and not ran.is_good:
                    to = logs / f"{task.seed} {task.fault.name}".replace(" ", "_")
                    with contextlib.suppress(OSError):  # a file that is gone again costs no run
                        shutil.copytree(area.logs, to, dirs_exist_ok=True)
                        shutil.copytree(place, to / "job", dirs_exist_ok=True)
                return task, ran
            finally:
                free.put(area)

        while True:
            while len(running) < at_once and not ends.is_set():
                following = next(waiting, None)
                if following is None:
                    break
                running.add(pool.submit(one, *following))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in done)


@contextlib.contextmanager
def _fields(many: int, up: Up, logs: Path | None) -> Iterator[tuple[Path, SimpleQueue[Field]]]:
    """A directory that all may read, and so many fields; gone in the end, but for their logs."""
    top = Path(tempfile.mkdtemp(prefix="pliant-drill-", dir="/tmp"))
    top.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, top, ignore_errors=True)
        lib, free = install(top), SimpleQueue[Field]()
        for number in range(many):
            area = stack.enter_context(up(lib, number))
            if logs:
                to = logs / f"all-{number}"
                stack.callback(shutil.copytree, area.logs, to, dirs_exist_ok=True)
            free.put(area)
        yield top, free
