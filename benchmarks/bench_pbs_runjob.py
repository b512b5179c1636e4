"""What the runjob hook adds to a start on PBS, whose server does nothing else meanwhile.

It runs under the double of PBS's module, as the queuejob hook does (see bench_pbs_hook.py).
"""

from __future__ import annotations

import random
import tempfile
import time
import types
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from benchmarks.bench_pbs_hook import cells, site
from benchmarks.section import Section
from pbs_double import Event, Job, Pbs, run
from pliant.daemon.publishing import MOST_SORTS
from pliant.filter.pbs.fences import Fence, fences_text
from pliant.hooks import hook_text

_HOW = """\
{count} starts of each sort in each case, shuffled, **under a double** of PBS's module, the one that
the tests have. A fence is around four vnodes. The hook looks into the state file only where a fence
stands; that one names 10 queues with {most} sorts of nodes each, the most that pliantd tells."""
_FENCES = (0, 1, 20)
_NODES: Mapping[str, Sequence[str]] = {
    "on one vnode": ("gn999",),
    "on 16 vnodes": tuple(f"gn{n}" for n in range(900, 916)),
    "into the first fence": ("gn0",),
}


def measure(quick: bool) -> list[Section]:
    """Measure all sorts of starts behind so many fences."""
    count = 20 if quick else 300
    code = compile(hook_text("runjob"), "<hook>", "exec")
    cases = [(sort, many) for sort in _NODES for many in _FENCES]
    times: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    refused: set[tuple[str, int]] = set()
    order = [case for case in cases for _ in range(count)]
    random.Random(0).shuffle(order)
    with tempfile.TemporaryDirectory() as directory:
        sites = {many: _site(Path(directory), many) for many in _FENCES}
        for case in order:
            sort, many = case
            spent_ms, said = _start(code, sites[many], _NODES[sort])
            times[case].append(spent_ms)
            refused |= {case} if said == "reject" else set()
    assert refused == {("into the first fence", many) for many in _FENCES if many}
    return [_section(times, _HOW.format(count=count, most=MOST_SORTS))]


def _site(directory: Path, many: int) -> str:
    path = directory / f"fences-{many}.json"
    until_s = time.time() + 100  # longer than the measurement
    some = (
        Fence(str(n), until_s, tuple(f"gn{4 * n + of}" for of in range(4)), (str(n),), ("workq",))
        for n in range(many)
    )
    if many:
        path.write_text(fences_text(some))
        path.chmod(0o600)
    return site(directory, MOST_SORTS, fences=str(path))


def _start(code: types.CodeType, config: str, vnodes: Sequence[str]) -> tuple[float, str]:
    exec_vnode = "+".join(f"({vnode}:ncpus=8:ngpus=4)" for vnode in vnodes)
    job = Job("runjob", exec_vnode=exec_vnode, queue="workq", id="4711.head")
    pbs = Pbs(Event("runjob", job=job, requestor="Scheduler"), config=config)
    began = time.perf_counter()
    said, _ = run(code, pbs)
    return 1000 * (time.perf_counter() - began), said


def _section(times: Mapping[tuple[str, int], Sequence[float]], how: str) -> Section:
    shown = {0: "no fence", 1: "1 fence", 20: "20 fences"}
    return Section(
        "The runjob hook of PBS",
        how,
        ("", *(f"{name}: {what}, ms" for name in shown.values() for what in ("p50", "p99"))),
        [(sort, *chain(*(cells(times[sort, many]) for many in shown))) for sort in _NODES],
        "Goal: none was set.",
    )
