"""Runs of the drill, some at once, each in a sandbox that is its own for as long as it runs."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from benchmarks.drill.faults import Fault
from benchmarks.drill.field import USER, Field, install
from benchmarks.drill.run import Ran, run
from pliant.demo.users import users


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
) -> Iterator[tuple[Task, Ran]]:
    """Make the runs; yield each as it ends. No more are begun once it is ``stopping``.

    What the daemons logged before one that was not good, and in it, is kept in ``logs``.
    """
    ends = stopping or threading.Event()
    waiting, running = enumerate(tasks), set[Future[tuple[Task, Ran]]]()
    with _fields(at_once) as (top, free), ThreadPoolExecutor(at_once) as pool:

        def one(number: int, task: Task) -> tuple[Task, Ran]:
            area, place = free.get(), top / str(number)
            try:
                ran = run(area, task.fault, place, random.Random(task.seed))
                if logs and not ran.is_good:
                    shutil.copytree(area.sandbox.layout.logs, logs / str(task.seed))
                    shutil.copytree(place, logs / str(task.seed) / "job")
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
def _fields(many: int) -> Iterator[tuple[Path, SimpleQueue[Field]]]:
    """A directory that all may read, and so many sandboxes; gone in the end."""
    top = Path(tempfile.mkdtemp(prefix="pliant-drill-", dir="/tmp"))
    top.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, top, ignore_errors=True)
        lib, free = install(top), SimpleQueue[Field]()
        stack.enter_context(users([USER]))
        for number in range(many):
            area = Field.up(f"drill-{os.getpid()}-{number}", lib)
            stack.callback(area.sandbox.down)
            free.put(area)
        yield top, free
