"""What `pliant simulate` does and prints, and what `pliant compare` shares with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pliant import policies
from pliant.cli.output import Column, Style, print_json, print_table, say, solvers_on_stderr
from pliant.cli.policy_options import policy_options
from pliant.cli.written import check_written, printed_to
from pliant.errors import BadInput
from pliant.figures import number
from pliant.grammar import quoted
from pliant.policies.chosen import options_of, typed
from pliant.simulator.metrics import Spread
from pliant.simulator.runs import Case, Choice, Outcome, Value, run_case
from pliant.simulator.sources import SOURCES, Asked, source
from pliant.simulator.tally import Figures, Spreads


def run_simulate(
    *,
    policy: str,
    options: tuple[str, ...],
    seed: int | None,
    no_idle: bool,
    as_json: bool,
    out: str,
    **said: Any,
) -> None:
    """Do and print what was asked for. Raises BadInput, Unavailable."""
    if listed(said, as_json=as_json):
        return
    name, chosen = named(policy)
    for option, value in policy_options(options).items():
        if option in chosen:
            raise BadInput(f"--with: {option}: --policy says it too: one of them is expected")
        chosen[option] = value
    choice = Choice(name, tuple(chosen.items()))
    choice.policy_for(1)  # what is wrong with it is said before anything is read
    asked = workload_asked(said)
    if seed is not None and not (source(asked).draws or "seed" in policies.options(name)):
        raise BadInput(f"--seed: workload {asked.name} draws nothing")
    check_written({"--out": out}, {"--trace": asked.trace})
    case = Case(choice, asked, 1 if seed is None else seed, idle=not no_idle)
    with solvers_on_stderr(), progress("jobs") as tell:
        outcome = run_case(case, tell)
    with printed_to(out):
        if as_json:
            print_json({"policy": policy_words(choice), **_plain(outcome)})
        else:
            print_outcome(policy_words(choice), outcome)


def _plain(outcome: Outcome) -> dict[str, Any]:
    names = ("workload", "choices", "figures")
    return {name: getattr(outcome, name) for name in names}


# --- what both commands read ----------------------------------------------------------------


def named(text: str) -> tuple[str, dict[str, Value]]:
    """Read ``NAME[:OPTION=VALUE,...]``. Raises BadInput."""
    name, colon, rest = text.partition(":")
    try:
        return (name, dict(policy_options(rest.split(",") if colon else ())))
    except BadInput:
        raise BadInput(
            f"{quoted(text)}: NAME:OPTION=VALUE,..., each option once, is expected"
        ) from None


def workload_asked(said: dict[str, Any]) -> Asked:
    """Return what the options of the workload ask for, checked. Raises BadInput."""
    if not (said["workload"] or said["trace"]):
        raise BadInput("--trace FILE or --workload NAME is missing; --list-workloads lists them")
    name, options = named(said["workload"] or "trace")
    rest = {key: said[key] for key in Asked.__dataclass_fields__ if said.get(key)}
    asked = Asked(name, tuple(options.items()), **rest)
    source(asked)
    return asked


def policy_words(choice: Choice) -> str:
    """Write a policy with its options as it is typed."""
    options = ",".join(f"{name}={typed(value)}" for name, value in choice.options)
    return f"{choice.name}:{options}" if options else choice.name


class _Listed(NamedTuple):
    name: str
    what: str
    options: dict[str, object]


_COLUMNS: list[Column[_Listed]] = [
    Column("name", lambda row: row.name),
    Column("what", lambda row: row.what),
    Column("options", lambda row: _options(row.options)),
]


def _options(options: dict[str, object]) -> str:
    return " ".join(f"{name}={typed(default)}" for name, default in options.items())


def listed(said: dict[str, Any], *, as_json: bool) -> bool:
    """Print the lists that were asked for; return whether there were any."""
    if said["list_policies"]:
        rows = [_Listed(n, policies.summary(n), policies.options(n)) for n in policies.names()]
        _print(rows, as_json=as_json)
    if said["list_workloads"]:
        _print([*_workloads()], as_json=as_json)
    return bool(said["list_policies"] or said["list_workloads"])


def _print(rows: list[_Listed], *, as_json: bool) -> None:
    if as_json:
        print_json([row._asdict() for row in rows])
    else:
        print_table(rows, _COLUMNS, Style())


def _workloads() -> Iterator[_Listed]:
    for name, of in SOURCES.items():
        what = (of.__doc__ or "").partition("\n")[0].rstrip(".").replace("`", "")
        reads = " (--trace FILE)" if "trace" in of.said else ""
        yield _Listed(name, what + reads, options_of(of))


# --- how far it is ----------------------------------------------------------------------------


@contextmanager
def progress(what: str) -> Iterator[Any]:
    """Show on stderr how far it is, where a person looks; yields what is told (done, of all)."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import (  # noqa: PLC0415  # the same
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TimeElapsedColumn,
    )

    columns = (BarColumn(), MofNCompleteColumn(), what, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(bar, completed=done, total=total)


# --- the table --------------------------------------------------------------------------------


class _Line(NamedTuple):
    figure: str
    of: Spread


_SPREAD: list[Column[_Line]] = [
    Column("figure", lambda row: row.figure),
    Column("mean", lambda row: number(row.of.mean), right=True),
    Column("median", lambda row: number(row.of.median), right=True),
    Column("p95", lambda row: number(row.of.p95), right=True),
    Column("p99", lambda row: number(row.of.p99), right=True),
    Column("max", lambda row: number(row.of.most), right=True),
]
_FACTS: list[Column[tuple[str, str]]] = [
    Column("what", lambda row: row[0]),
    Column("value", lambda row: row[1]),
]


def print_outcome(policy: str, outcome: Outcome) -> None:
    """Print one replay for a person."""
    figures = outcome.figures
    say(f"{outcome.workload}, policy {policy}")
    print_table([*_facts(figures)], _FACTS, Style(header=False))
    lines = [*_lines(figures)]
    if lines:
        say()
        print_table(lines, _SPREAD, Style())


def _facts(figures: Figures) -> Iterator[tuple[str, str]]:
    ended = figures.tasks.tasks if figures.tasks else 0
    yield "jobs ended", f"{ended}" + (f", {figures.timed_out} by a limit" * (figures.timed_out > 0))
    if figures.never:
        yield "never started", f"{figures.never}, job {figures.never_example} for one"
    if figures.bags:
        yield "users, bags", f"{len(figures.users)}, {figures.bags.bags}"
    if ended:
        yield "makespan", f"{number(figures.makespan_s)} s"
        yield "utilisation", f"{100 * figures.utilisation:.1f} % of {figures.gpus} GPUs"
        yield "idle GPU time", _gpu_time(figures.idle_gpu_s, figures)
        if figures.avoidable_gpu_s is not None:
            yield "avoidably idle", _gpu_time(figures.avoidable_gpu_s, figures)
        yield "lost GPU time", _gpu_time(figures.lost_gpu_s, figures)
        yield "preemptions", f"{figures.preemptions}, of {figures.preempted} jobs"
        yield "restarts", str(figures.restarts)
    if figures.worst_off:
        name, user = figures.worst_off
        words = f"mean slowdown {number(user.slowdown)} (jobs: {user.tasks})"
        yield "worst-off user", f"{name}: {words}"


def _gpu_time(gpu_s: float, figures: Figures) -> str:
    part = gpu_s / figures.capacity_gpu_s if figures.capacity_gpu_s else 0.0
    return f"{number(gpu_s)} GPU s ({100 * part:.1f} %)"


def _lines(figures: Figures) -> Iterator[_Line]:
    if figures.tasks:
        yield from _of(figures.tasks, "")
    if figures.bags:
        yield _Line("bag's flow time (s)", figures.bags.flow_s)
        yield _Line("bag's stretch", figures.bags.stretch)
    for name, spreads in figures.classes.items():
        yield from _of(spreads, f"{name}: ")
    if figures.away_s:
        yield _Line("re-scheduled after (s)", figures.away_s)


def _of(spreads: Spreads, prefix: str) -> Sequence[_Line]:
    return (
        _Line(f"{prefix}flow time (s)", spreads.flow_s),
        _Line(f"{prefix}stretch", spreads.stretch),
        _Line(f"{prefix}slowdown", spreads.slowdown),
        _Line(f"{prefix}wait (s)", spreads.wait_s),
    )
