"""What remembering every flagged job costs pliantd, and how long a report takes.

``python -m benchmarks history --quick`` prints the tables alone.
"""

from __future__ import annotations

import gc
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import psutil

from benchmarks.bench_cycle import apart, snapshot
from benchmarks.section import Section, verdict
from pliant.batch import Batch
from pliant.daemon.config import parse
from pliant.daemon.cycling import Cycling
from pliant.daemon.patience import Patience
from pliant.daemon.seen import Seen
from pliant.model import Job, Snapshot
from pliant.policies import by_name
from pliant.store import JobRecord, RunRow, Store, Tally

JOBS, DAY_S = 100_000, 86_400.0
DAYS = (1, 30)
GOAL_S, GOAL_PART = 1.0, 0.05
PARTITIONS = ("gpu", "short", "long", "cpu")
NODES, WAITING = 1_000, 5_000


def measure(quick: bool) -> list[Section]:
    """Measure a report, and a cycle with and without remembering."""
    return [_report(JOBS // 10 if quick else JOBS, 3 if quick else 10), _cycle(3 if quick else 10)]


# A report


def _report(jobs: int, repeats: int) -> Section:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        _fill(store, jobs)
        store.close()
        size = store.file.stat().st_size / jobs
        store = Store(Path(folder))
        times = {days: [*_times(store, days * DAY_S, repeats)] for days in DAYS}
        store.close()
    slowest = max(map(max, times.values()))
    return Section(
        "A report",
        f"`pliant report` over a history of {jobs} jobs in 30 days, each with a run, in "
        f"{len(PARTITIONS)} partitions: what pliantd takes to add it up, in seconds, of {repeats} "
        "times; it keeps no cycle from writing meanwhile.",
        ("", "median", "slowest"),
        [
            (f"the last {days} days", f"{median(some):.2f}", f"{max(some):.2f}")
            for days, some in times.items()
        ],
        f"At most {GOAL_S:g} s: {verdict(slowest <= GOAL_S)}. A job with its run takes {size:.0f} "
        "bytes of disk.",
    )


def _times(store: Store, since_s: float, repeats: int) -> Iterator[float]:
    for _ in range(repeats):
        begin = time.perf_counter()
        store.report(30 * DAY_S - since_s, 30 * DAY_S)
        yield time.perf_counter() - begin


def _fill(store: Store, jobs: int) -> None:
    draw = random.Random(1)
    for first in range(0, jobs, 1000):
        some = [_record(number, jobs, draw) for number in range(first, min(first + 1000, jobs))]
        store.jobs.keep(some, [_run(record) for record in some])
    hours = (Tally(hour * 3600.0, name, answered=5) for hour in range(720) for name in PARTITIONS)
    store.jobs.keep(tallies=hours)


def _record(number: int, jobs: int, draw: random.Random) -> JobRecord:
    submit_s = number * 30 * DAY_S / jobs
    start_s = submit_s + draw.expovariate(1 / 1800)
    end_s = start_s + draw.expovariate(1 / 7200)
    gpus, own = draw.choice((1.0, 2.0, 4.0)), 4.0
    return JobRecord(
        *(str(number), f"u{number % 200}", "physics", draw.choice(PARTITIONS), "enforce"),
        *("moldable=gpus=1-4", "4", ""),
        answered=True,
        seen_s=submit_s,
        submit_s=submit_s,
        state="ended",
        shape=f"{gpus:g}",
        molded="smaller" if gpus < own else "",
        start_s=start_s,
        gpus=gpus,
        own_gpus=own,
        gpu_s=gpus * (end_s - start_s),
        own_gpu_s=own * (end_s - start_s),
        end_s=end_s,
        exit="COMPLETED",
    )


def _run(record: JobRecord) -> RunRow:
    return RunRow(
        *(record.job, 0, record.user, record.account, record.shape, "n0001"),
        *(record.submit_s, record.start_s, 0.0),
        name="train.sh",
        gpus=record.gpus,
    )


# A cycle


@dataclass(slots=True)
class _Still:
    """A batch system in which nothing happens; each look makes its jobs anew."""

    seen: Snapshot

    def observe(self) -> Snapshot:
        return replace(apart(self.seen), now_s=time.time())


def _cycle(repeats: int) -> Section:
    """Measure cycles; what Slurm's commands take is not in it, and would make the part smaller."""
    seen = snapshot(NODES, WAITING, 0.0)
    whole_s, of_it_s, mib = [], [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        cycling = _cycling(_Still(seen), Path(folder))
        looked, spent = cycling.remembering.looked, [0.0]

        def timed(seen: Seen, acts_on: Callable[[Job], bool]) -> None:
            begin = time.process_time()
            looked(seen, acts_on)
            spent[0] = time.process_time() - begin

        cycling.remembering.looked = timed  # type: ignore[method-assign]  # to time it
        tracemalloc.start()
        cycling.run()
        before = tracemalloc.take_snapshot()
        cycling.remembering._known = None
        gc.collect()
        freed = tracemalloc.take_snapshot().compare_to(before, "filename")
        mib = -sum(one.size_diff for one in freed) / 2**20
        tracemalloc.stop()
        rest_mib = psutil.Process().memory_info().rss / 2**20
        for _ in range(repeats + 1):
            gc.collect()
            begin = time.process_time()
            cycling.run()
            whole_s.append(time.process_time() - begin)
            of_it_s.append(spent[0])
    part = median(b / (a - b) for a, b in zip(whole_s[1:], of_it_s[1:], strict=True))
    share = mib / rest_mib
    rest_s = median(a - b for a, b in zip(whole_s[1:], of_it_s[1:], strict=True))
    return Section(
        "What remembering costs",
        f"A look at {NODES} nodes and {WAITING} waiting flagged jobs in which nothing happens, and "
        "the decision; Slurm's own time to answer is not in it. Memory: beside what is resident.",
        ("", "a cycle without it", "of it", "part"),
        [
            (
                "processor time, ms",
                f"{1000 * rest_s:.0f}",
                f"{1000 * median(of_it_s[1:]):.1f}",
                f"{100 * part:.1f} %",
            ),
            ("memory, MiB", f"{rest_mib:.0f}", f"{mib:.1f}", f"{100 * share:.1f} %"),
        ],
        f"At most {100 * GOAL_PART:g} %: {verdict(max(part, share) <= GOAL_PART)}.",
    )


def _cycling(batch: _Still, folder: Path) -> Cycling:
    still: Batch = batch  # type: ignore[assignment]  # nothing is ever changed
    return Cycling(
        still,
        Store(folder),
        parse({"partitions": {"default": "enforce"}}),
        by_name("moldable-equipartition"),
        patience=Patience(),
        clock=time.time,
        monotonic=time.monotonic,
    )
