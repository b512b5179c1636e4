"""``make prove-mutants``: takes each decision of a hand-over out in turn, and says what notices it.

A mutant is tried in a process of its own: by the unit tests first, then by the exploration with
single faults. Prints what nothing notices, and exits with 1 where that is not known to make no
difference (see unneeded.py), or where what is known so is noticed, or is no more.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from prove.__main__ import KINDS, SYSTEMS, explored
from prove.mutants import Mutant, mutants
from prove.unneeded import UNNEEDED

UNIT = Path(__file__).parents[1] / "unit"
MOST_S, MOST = 600.0, 200_000
"""After so many seconds, or states, a mutant does not end."""
_PLIANTD = ("daemon_handing", "daemon_elastic", "daemon_run_verbs", "daemon_stalled", "daemon")
_SLURM = ("slurm_handing", "slurm_standing", "slurm_update")
_PBS = ("pbs_handing", "pbs_batch")
PARTS = {
    "pliant.handover": ("handover", *_SLURM, "pbs_handing", *_PLIANTD),
    "pliant.daemon.handing": _PLIANTD,
    "pliant.daemon.elastic": ("daemon_elastic", *_PLIANTD, "remembering"),
    "pliant.batch.slurm.handing": (*_SLURM, *_PLIANTD),
    "pliant.batch.slurm.standing": (*_SLURM, *_PLIANTD),
    "pliant.batch.slurm.lent": (*_SLURM, *_PLIANTD),
    "pliant.batch.pbs.handing": _PBS,
    "pliant.batch.pbs.standing": _PBS,
    "pliant.batch.pbs.fences": _PBS,
    "pliant.node.core": ("node_core",),
}
"""Whose decisions are taken out, and by which unit tests they are looked at."""


class _First:
    """The test that failed first."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.removeprefix("unit/")


def _noticed(mutant: Mutant, told: Connection) -> None:
    """Say what notices a mutant; "" where nothing does."""
    with mutant.at_work():
        name = mutant.module.__name__
        told.send(_by_a_test(PARTS[name]) or _by_exploring(name))


def _unit_tests(name: str, told: Connection) -> None:
    """Say which test fails of those that look at a module as it is."""
    told.send(_by_a_test(PARTS[name]))


def _by_a_test(names: Sequence[str]) -> str:
    first = _First()
    for name in dict.fromkeys(names):
        status = _pytest(name, "-x", "--hypothesis-seed=0", plugins=[first])
        if status:
            return first.name or f"test_{name}.py: {status!s}"
    return ""


def _pytest(name: str, *options: str, plugins: Sequence[object] = ()) -> int:
    argv = ["-q", "-p", "no:cacheprovider", *options, str(UNIT / f"test_{name}.py")]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        return int(pytest.main(argv, plugins=plugins))


def _by_exploring(module: str) -> str:
    logging.disable(logging.CRITICAL)
    own = [one for one in SYSTEMS if f"batch.{one.name.lower()}." in module]
    for system, (what, guest) in product(own or SYSTEMS, KINDS):
        try:
            found = explored(system, faults=1, guest=guest, most=MOST, to_the_end=False)
        except Exception as error:
            return f"{system.name}, {what} explored: {type(error).__name__}"
        if found.wrong:
            return f"{system.name}, {what} explored: {found.wrong[0][0].partition(':')[0]}"
        if found.restless():
            return f"{system.name}, {what} explored: no end"
    return ""


def tried(mutant: Mutant) -> str:
    """Try a mutant; return what notices it, "" for nothing."""
    return _apart(_noticed, mutant)


def _apart(target: Callable[..., None], what: object) -> str:
    """Do it in a process of its own; return what that tells."""
    ours, its = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=target, args=(what, its))
    process.start()
    its.close()
    try:
        return str(ours.recv()) if ours.poll(MOST_S) else "it does not end"
    except EOFError:
        return "it dies"
    finally:
        process.kill()
        process.join()


def _chosen(words: Sequence[str]) -> Iterator[Mutant]:
    for name in PARTS:
        if not words or any(word in name for word in words):
            yield from mutants(importlib.import_module(name))


def main() -> int:
    """Try them all, and say what was found."""
    parser = argparse.ArgumentParser(prog="make prove-mutants", description=__doc__)
    parser.add_argument("part", nargs="*", help="modules alone, by a part of their names")
    parser.add_argument("--at-once", type=int, default=2, help="how many are tried at a time")
    chosen = parser.parse_args()
    every, counts = [*_chosen(chosen.part)], Counter[str]()
    modules = {mutant.module.__name__ for mutant in every}
    known = {name for name in UNNEEDED if name.startswith(tuple(f"{one}." for one in modules))}
    for name in modules:
        for test in PARTS[name]:
            _pytest(test, "--collect-only")  # imported once, for all processes
        if by := _apart(_unit_tests, name):
            parser.error(f"{by} fails as it is: nothing can be told by it")
    with ThreadPoolExecutor(chosen.at_once) as pool:
        for mutant, by in zip(every, pool.map(tried, every), strict=True):
            reason = "" if by else UNNEEDED.get(mutant.name, "")
            kind = "noticed" if by else "makes no difference" if reason else "NOT NOTICED"
            counts[f"{mutant.module.__name__}: {kind}"] += 1
            known -= {mutant.name} if reason else set()
            print(f"{mutant.name} [{mutant.line}]\t{by or reason or kind}", flush=True)
    for name in known:
        print(f"{name}: NOT to be in unneeded.py: it is noticed, or no more")
    for name, many in sorted(counts.items()):
        print(f"{many:5} {name}")
    return int(bool(known) or any("NOT" in name for name in counts))


if __name__ == "__main__":
    sys.exit(main())
