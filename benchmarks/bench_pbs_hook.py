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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.section import Section, verdict
from benchmarks.stats import estimate, quantile
from pbs_double import Event, Job, Pbs, run
from pliant.filter.pbs.state import Ground, Room, State, state_text
from pliant.hooks import hook_text
from pliant.model import Mode

GOAL_MS = 5.0
_HOW = """\
{count} submissions of each sort, shuffled, under the double of PBS's module that the tests have;
the state file names {queues} queues with {rooms} sorts of nodes each. The hook is made from its
text once, as PBS does, and begins anew for every job."""
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
    """Measure all sorts of jobs."""
    count, queues, rooms = (20 if quick else 300), 10, 20
    code = compile(hook_text("queuejob"), "<hook>", "exec")
    times: dict[str, list[float]] = {sort: [] for sort in _SORTS}
    verdicts: dict[str, set[str]] = {sort: set() for sort in _SORTS}
    order = [sort for sort in _SORTS for _ in range(count)]
    random.Random(0).shuffle(order)
    with tempfile.TemporaryDirectory() as directory:
        config = _site(Path(directory), queues, rooms)
        for sort in order:
            spent_ms, said, looked = _submit(code, config, _SORTS[sort])
            assert not looked, "it looked at other jobs"
            times[sort].append(spent_ms)
            verdicts[sort].add(said)
    assert [sort for sort, said in verdicts.items() if "reject" in said] == ["refused"]
    return [_section(times, _HOW.format(count=count, queues=queues, rooms=rooms))]


def _site(directory: Path, queues: int, rooms: int) -> str:
    """Write a state file and the configuration that names it, and return the latter's path."""
    some = tuple(Room(4, 1 + n % 8, 16 + n, 64_000, "a100") for n in range(rooms))
    grounds = tuple((f"queue{n}" if n else "workq", Ground(some, some)) for n in range(queues))
    # time that passes while it is measured must not make it old
    state = State(time.time() + 20, Mode.ENFORCE, default_queue="workq", queues=grounds)
    config, told = directory / "hook.json", directory / "state.json"
    told.write_text(state_text(state))
    config.write_text(json.dumps({"state": str(told), "owner": os.geteuid()}))
    for path in (config, told):
        path.chmod(0o600)
    return str(config)


def _submit(
    code: types.CodeType, config: str, resources: Mapping[str, str]
) -> tuple[float, str, int]:
    pbs = Pbs(Event("queuejob", job=Job("queuejob", resources)), config=config)
    began = time.perf_counter()
    said, _ = run(code, pbs)
    return 1000 * (time.perf_counter() - began), said, pbs.looked


def _section(times: Mapping[str, Sequence[float]], how: str) -> Section:
    reached = max(estimate(spent).high for spent in times.values()) < GOAL_MS
    p99 = quantile(0.99)
    return Section(
        "The queuejob hook of PBS",
        how,
        ("", "p50, ms", "p99, ms"),
        [
            (sort, estimate(spent).text(3), estimate(spent, p99).text(2))
            for sort, spent in times.items()
        ],
        f"Goal: less than {GOAL_MS:.0f} ms at the median, the whole interval: {verdict(reached)}.",
    )
