"""What the queuejob hook adds to a submission on PBS, whose server does nothing else meanwhile.

The hook runs under the double of PBS's module that its tests have (tests/pbs_double.py): what is
measured is the hook's own time, in this Python. A job's attributes cost a real server more.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
import types
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.section import Section, verdict
from benchmarks.stats import estimate, quantile
from pbs_double import Event, Job, Pbs, run
from pliant.daemon.publishing import MOST_SORTS
from pliant.filter.pbs.state import MAX_BYTES, Ground, Room, State, state_text
from pliant.hooks import hook_text
from pliant.model import Mode

GOAL_MS = 5.0
_HOW = """\
{count} submissions of each sort in each case, shuffled, **under a double** of PBS's module, the one
that the tests have; it ends the measurement where the hook looks at another job. The hook is made
from its text once, as PBS does, and begins anew for every job. The state file names 10 queues, with
20 sorts of nodes each, or with {most}, the most that pliantd tells of a queue: then it has
{size} KiB, and {limit} KiB is the most that is read."""
_FILES: Mapping[str, int] = {"no state file": 0, "20 sorts": 20, "{most} sorts": MOST_SORTS}
"""How many sorts of nodes a queue has in the state file; 0: there is no file."""
_SORTS: Mapping[str, Mapping[str, str]] = {
    "says nothing": {"select": "1:ncpus=8:ngpus=4"},
    "malleable": {"select": "1:ncpus=8:ngpus=4", "malleable": "yes"},
    "moldable, four shapes": {"select": "1:ncpus=8:ngpus=4", "moldable": "gpus=1-4"},
    "moldable, 64 combinations": {
        "select": "1:ncpus=8:ngpus=4",
        "moldable": "gpus=1-16+nodes=1:2:4:8",
    },
    "moldable, left to pliantd": {
        "select": "1:ncpus=8:ngpus=4",
        "moldable": "gpus=1-256+nodes=1-16",
    },
    "refused": {"select": "1:ncpus=8:ngpus=4", "moldable": "gpus=1-"},
}


def measure(quick: bool) -> list[Section]:
    """Measure all sorts of jobs in all cases."""
    count = 20 if quick else 300
    code = compile(hook_text("queuejob"), "<hook>", "exec")
    cases = [(sort, rooms) for sort in _SORTS for rooms in _FILES.values()]
    times: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    refused: set[tuple[str, int]] = set()
    order = [case for case in cases for _ in range(count)]
    random.Random(0).shuffle(order)
    with tempfile.TemporaryDirectory() as directory:
        sites = {rooms: site(Path(directory), rooms) for rooms in _FILES.values()}
        size = (Path(directory) / f"state-{max(sites)}.json").stat().st_size
        for case in order:
            sort, rooms = case
            spent_ms, said = _submit(code, sites[rooms], _SORTS[sort])
            times[case].append(spent_ms)
            refused |= {case} if said == "reject" else set()
    assert refused == {("refused", rooms) for rooms in sites if rooms}
    sizes = {"most": max(sites), "size": size // 1024, "limit": MAX_BYTES // 1024}
    return [_section(times, _HOW.format(count=count, **sizes))]


def site(directory: Path, rooms: int, fences: str = "") -> str:
    """Write a state file and the configuration that names it, and return the latter's path.

    ``fences``: the file of them, if there is one.
    """
    some = tuple(Room(4, 1 + n % 8, 16 + n, 64_000, "a100") for n in range(rooms))
    grounds = tuple((f"queue{n}" if n else "workq", Ground(some, some)) for n in range(10))
    # time that passes while it is measured must not make it old
    state = State(time.time() + 20, Mode.ENFORCE, default_queue="workq", queues=grounds)
    told = directory / f"state-{rooms}.json"
    config = directory / f"hook-{rooms}-{Path(fences).stem}.json"
    if rooms:
        told.write_text(state_text(state))
        told.chmod(0o600)
    files = {"state": str(told), "fences": fences, "taken": str(directory / "taken")}
    config.write_text(json.dumps({**files, "owner": os.geteuid()}))
    config.chmod(0o600)
    return str(config)


def _submit(code: types.CodeType, config: str, resources: Mapping[str, str]) -> tuple[float, str]:
    pbs = Pbs(Event("queuejob", job=Job("queuejob", resources)), config=config)
    began = time.perf_counter()
    said, _ = run(code, pbs)
    return 1000 * (time.perf_counter() - began), said


def _section(times: Mapping[tuple[str, int], Sequence[float]], how: str) -> Section:
    reached = max(estimate(spent).high for spent in times.values()) < GOAL_MS
    shown = {name.format(most=max(_FILES.values())): rooms for name, rooms in _FILES.items()}
    rows = [(sort, *chain(*(cells(times[sort, n]) for n in shown.values()))) for sort in _SORTS]
    return Section(
        "The queuejob hook of PBS",
        how,
        ("", *(f"{name}: {what}, ms" for name in shown for what in ("p50", "p99"))),
        rows,
        f"Goal: less than {GOAL_MS:.0f} ms at the median, the whole interval: {verdict(reached)}.",
    )


def cells(spent: Sequence[float]) -> tuple[str, str]:
    """Return the median and the 99th percentile of some times, as text."""
    return estimate(spent).text(3), estimate(spent, quantile(0.99)).text(2)
