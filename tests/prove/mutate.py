"""``make prove-mutants``: takes each decision of a hand-over out in turn, and says what notices it.

A mutant is tried in a process of its own: by the tests that noticed another of its function, as
docs/mutants.md says, by the unit tests, then by the exploration with single faults. Prints what
nothing notices, and exits with 1 where that is not known to make no difference (see unneeded.py),
or where what is known so is noticed, or is no more. Writes docs/mutants.md after each function, and
tries no function again that is as that page says.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import multiprocessing
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, groupby
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from prove.__main__ import SYSTEMS
from prove.asked import some
from prove.explore import explored
from prove.mutants import Mutant, mutants
from prove.noted import (
    MOST,
    MOST_S,
    TEST_S,
    WAITS,
    Noted,
    decision_at,
    noted_of,
    read_page,
    write_page,
)
from prove.unneeded import UNNEEDED

UNIT = Path(__file__).parents[1] / "unit"
_PLIANTD = ("daemon_handing", "daemon_elastic", "daemon_run_verbs", "daemon_stalled", "daemon")
_PLACES = (
    "daemon_places",
    "foreseen",
    "leftover",
    "room_for_guests",
    "slurm_limits",
    *_PLIANTD,
    "cycle",
)
_SLURM = ("slurm_handing", "slurm_standing", "slurm_update")
_PBS = ("pbs_handing", "pbs_batch")
PARTS = {
    "pliant.handover": ("handover", *_SLURM, "pbs_handing", *_PLIANTD),
    "pliant.daemon.handing": _PLIANTD,
    "pliant.daemon.elastic": ("daemon_elastic", *_PLIANTD, "remembering"),
    "pliant.daemon.places": _PLACES,
    "pliant.daemon.foreseen": _PLACES,
    "pliant.batch.slurm.handing": (*_SLURM, *_PLIANTD),
    "pliant.batch.slurm.standing": (*_SLURM, *_PLIANTD),
    "pliant.batch.slurm.lent": (*_SLURM, *_PLIANTD),
    "pliant.batch.pbs.handing": _PBS,
    "pliant.batch.pbs.standing": _PBS,
    "pliant.batch.pbs.fences": _PBS,
    "pliant.node.core": ("node_core",),
}
"""Whose decisions are taken out, and by which unit tests they are looked at.

Where there is room the exploration says itself: it takes nothing out there.
"""


Found = tuple[Mutant, str, str]
"""A mutant, what notices it ("" for nothing), and why nothing need."""


class _TooLongError(BaseException):
    """A test does not end: nothing on its way catches this."""


class _First:
    """The test that failed first, or which limit one had reached."""

    by = ""

    def pytest_runtest_logstart(self) -> None:
        self._limit = ""
        signal.signal(signal.SIGPROF, self._too_long)
        signal.signal(signal.SIGALRM, self._too_long)
        _end_test_after(TEST_S)

    def pytest_runtest_logfinish(self) -> None:
        _end_test_after(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.by:
            self.by = self._limit or report.nodeid.removeprefix("unit/")

    def _too_long(self, number: int, _frame: object) -> None:
        used = f"{TEST_S} CPU" if number == signal.SIGPROF else f"{WAITS * TEST_S:,}"
        self._limit = f"no end of a test in {used} seconds"
        raise _TooLongError


def _end_test_after(cpu_s: int) -> None:
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, WAITS * cpu_s)


def _noticed(mutant: Mutant, likely: Sequence[str], told: Connection) -> None:
    """Say what notices a mutant; "" where nothing does."""
    with mutant.at_work():
        name = mutant.module.__name__
        by = _by_one_of(likely) or _by_a_test(PARTS[name])
        told.send(by or ("" if PARTS[name] is _PLACES else _by_exploring(name)))


def _unit_tests(name: str, told: Connection) -> None:
    """Say which test fails of those that look at a module as it is."""
    told.send(_by_a_test(PARTS[name]))


def _by_one_of(tests: Sequence[str]) -> str:
    first = _First()
    if tests:
        _pytest(tests, "-x", "--hypothesis-seed=0", plugins=[first])
    return first.by


def _by_a_test(names: Sequence[str]) -> str:
    first = _First()
    for name in dict.fromkeys(names):
        status = _pytest([f"test_{name}.py"], "-x", "--hypothesis-seed=0", plugins=[first])
        if status:
            return first.by or f"test_{name}.py: {status!s}"
    return ""


def _pytest(tests: Sequence[str], *options: str, plugins: Sequence[object] = ()) -> int:
    argv = ["-q", "-p", "no:cacheprovider", *options, *(f"{UNIT}/{test}" for test in tests)]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        return int(pytest.main(argv, plugins=plugins))


def _by_exploring(module: str) -> str:
    logging.disable(logging.CRITICAL)
    own = [one for one in SYSTEMS if f"batch.{one.name.lower()}." in module]
    for system, kind in ((one, kind) for one in own or SYSTEMS for kind in one.kinds):
        try:
            found = explored(system, faults=1, kind=kind, most=MOST, to_the_end=False)
        except OverflowError:
            return f"no end in {MOST:,} states"
        except Exception as error:
            return f"{system.name}, {kind.name} explored: {type(error).__name__}"
        if found.wrong:
            return f"{system.name}, {kind.name} explored: {found.wrong[0][0].partition(':')[0]}"
        if found.restless():
            return f"{system.name}, {kind.name} explored: no end"
    return ""


def tried(mutant: Mutant, likely: Sequence[str] = ()) -> str:
    """Try a mutant, by ``likely`` tests first; return what notices it, "" for nothing."""
    return _apart(_noticed, mutant, likely)


def _apart(target: Callable[..., None], *what: object) -> str:
    """Do it in a process of its own; return what that tells."""
    ours, its = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_limited, args=(target, *what, its)
    )
    process.start()
    its.close()
    try:
        waited_s = WAITS * MOST_S
        return str(ours.recv()) if ours.poll(waited_s) else f"no end in {waited_s:,} seconds"
    except EOFError:
        process.join(TEST_S)
        is_limit = process.exitcode == -signal.SIGXCPU
        return f"no end in {MOST_S:,} CPU seconds" if is_limit else "it dies"
    finally:
        process.kill()
        process.join()


def _limited(target: Callable[..., None], *what: object) -> None:
    """Do it; the kernel ends this process when it has used too much CPU."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_S, most))
    target(*what)


def _chosen(words: Sequence[str]) -> Iterator[Mutant]:
    for name in PARTS:
        if not words or any(word in name for word in words):
            yield from mutants(importlib.import_module(name))


def _likely() -> dict[str, list[str]]:
    """By function, the tests of docs/mutants.md that are still there, in the order of PARTS."""
    files = [UNIT / f"test_{one}.py" for one in dict.fromkeys(chain(*PARTS.values()))]
    there = [
        f"{file.name}::{name}"
        for file in files
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    ]
    return {one.name: [test for test in there if test in one.by] for one in read_page()}


def _all_tried(every: Sequence[Mutant], at_once: int) -> Iterator[Found]:
    """Try them all; print and yield each with what notices it, or why nothing need."""
    likely = _likely()
    with ThreadPoolExecutor(at_once) as pool:
        told = pool.map(tried, every, (likely.get(one.where, ()) for one in every))
        for mutant, by in zip(every, told, strict=True):
            reason = "" if by else UNNEEDED.get(mutant.name, "")
            print(f"{mutant.name} [{mutant.line}]\t{by or reason or 'NOT NOTICED'}", flush=True)
            yield mutant, by, reason


def _may_be_told(modules: Iterable[str]) -> str:
    """Import the tests once, for all processes; return which fails as it is."""
    for name in modules:
        _pytest([f"test_{test}.py" for test in PARTS[name]], "--collect-only")
        if by := _apart(_unit_tests, name):
            return by
    return ""


def _noted(found: Iterable[Found]) -> Iterator[tuple[Noted, set[str]]]:
    """Yield what was found by function, and which were needed after all; each written at once."""
    for where, together in groupby(found, key=lambda one: one[0].where):
        told = [*together]
        named = [(decision_at(one.name, one.line), by, why) for one, by, why in told]
        new = noted_of(where, named, told[0][0].of)
        write_page([*PARTS], {one.name: one for one in (*read_page(), new)}.values(), UNNEEDED)
        yield new, {mutant.name for mutant, _, reason in told if reason}


def _to_try(every: Sequence[Mutant]) -> list[Mutant]:
    """Return those of functions that are not as they were when all was noticed that need be."""
    done = {one.name: one.of for one in read_page() if not one.missed}
    return [mutant for mutant in every if done.get(mutant.where) != mutant.of]


def _order(there: Mapping[str, int], modules: Iterable[str]) -> None:
    """Write the page as the code is: in its order, without functions that are no more."""
    page = [*read_page()]
    some = sorted((one for one in page if one.name in there), key=lambda one: there[one.name])
    others = (one for one in page if not one.name.startswith(_in(modules)))
    write_page([*PARTS], [*some, *others], UNNEEDED)


def _in(modules: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in modules)


def main() -> int:
    """Try them all, and say what was found."""
    parser = argparse.ArgumentParser(prog="make prove-mutants", description=__doc__)
    parser.add_argument("part", nargs="*", help="modules alone, by a part of their names")
    parser.add_argument("--all", action="store_true", help="those, too, of which the page says it")
    parser.add_argument("--at-once", type=some, default=2, help="how many are tried at a time")
    chosen = parser.parse_args()
    every = [*_chosen(chosen.part)]
    if not every:
        parser.error(f"{' '.join(chosen.part)}: no such module; they are {', '.join(PARTS)}")
    modules = {mutant.module.__name__ for mutant in every}
    to_try = every if chosen.all else _to_try(every)
    if by := _may_be_told({mutant.module.__name__ for mutant in to_try}):
        parser.error(f"with nothing taken out, too: {by}; nothing can be told so")
    there = {one.where: number for number, one in enumerate(every)}
    others = there.keys() - {one.where for one in to_try}
    noted, known = [], {name for name in UNNEEDED if name.startswith(_in(modules))}
    known -= {name for name in known if name.partition(":")[0] in others}
    for one, unneeded in _noted(_all_tried(to_try, chosen.at_once)):
        noted.append(one)
        known -= unneeded
    _order(there, modules)
    for name in known:
        print(f"{name}: NOT to be in unneeded.py: it is noticed, or no more")
    missed = sum(one.missed for one in noted)
    print(f"{sum(one.counts[0] for one in noted)} decisions, {missed} NOT NOTICED")
    return int(bool(known or missed))


if __name__ == "__main__":
    sys.exit(main())
