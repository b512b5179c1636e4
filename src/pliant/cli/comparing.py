"""What `pliant compare` does and prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant import policies
from pliant.cli.output import Column, Style, print_json, print_table, say, solvers_on_stderr
from pliant.cli.reporting import check_report, write_report
from pliant.cli.simulating import (
    listed,
    named,
    policy_words,
    progress,
    workload_asked,
)
from pliant.cli.sweeping import sweep_asked
from pliant.cli.written import check_written, printed_to
from pliant.errors import BadInput
from pliant.figures import number
from pliant.simulator.comparison import Compared, WorstHit, compare, worst_hit
from pliant.simulator.report.compared import Several, page
from pliant.simulator.runs import Case, Choice, Outcome, run_case
from pliant.simulator.seeds import Estimate
from pliant.simulator.sources import source
from pliant.simulator.sweep import Sweep


def run_compare(
    *,
    choices: tuple[str, ...],
    seeds: int,
    processes: int | None,
    slurm: bool,
    sbatch: tuple[str, ...],
    no_idle: bool,
    as_json: bool,
    out: str,
    html: str,
    plots: str,
    **said: Any,
) -> None:
    """Do and print what was asked for. Raises BadInput, Unavailable."""
    if listed(said, as_json=as_json):
        return
    chosen = choices_of(choices)
    asked = workload_asked(said)
    draws = any("seed" in policies.options(choice.name) for choice in chosen)
    if seeds > 1 and not (source(asked).draws or draws):
        raise BadInput(f"--seeds: workload {asked.name} draws nothing: each seed is the same")
    check_written({"--out": out, "--html": html}, {"--trace": asked.trace})
    sweep = sweep_asked(processes, slurm, sbatch)
    pictured = check_report(html, plots)
    # All policies of a seed one after the other: a process that does several reads it once.
    drawn = range(1, seeds + 1)
    cases = [
        Case(c, asked, seed, idle=not no_idle, curves=pictured) for seed in drawn for c in chosen
    ]
    outcomes = run_cases(cases, sweep)
    words = [policy_words(choice) for choice in chosen]
    results = {
        word: [outcome.figures for outcome in outcomes[place :: len(words)]]
        for place, word in enumerate(words)
    }
    rows, hits = compare(results), worst_hit(results, drawn)
    if pictured:
        compared = Several(dict(zip(words, outcomes, strict=False)), seeds, rows, hits)
        write_report(page(compared), html, plots)
    with printed_to(out):
        if as_json:
            print_json(_plain(outcomes[0], seeds, rows, hits))
        else:
            _print(outcomes[0].workload, seeds, rows, hits)


def choices_of(texts: Sequence[str]) -> list[Choice]:
    """Read the policies. Raises BadInput."""
    if not texts:
        raise BadInput("a policy at least is expected; --list-policies lists them")
    found = [Choice(name, tuple(options.items())) for name, options in map(named, texts)]
    for choice in found:
        choice.policy_for(1)
        if found.count(choice) > 1:
            raise BadInput(f"{policy_words(choice)} stands twice")
    return found


def run_cases(cases: Sequence[Case], sweep: Sweep) -> list[Outcome]:
    """Replay all cases, and show how far they are where a person looks."""
    with solvers_on_stderr(), progress("replays") as shown:

        def tell(done: int) -> None:
            if shown is not None:
                shown(done, len(cases))

        tell(0)
        return sweep.each(run_case, cases, tell)


def _plain(
    first: Outcome, seeds: int, rows: Sequence[Compared], hits: Sequence[WorstHit]
) -> dict[str, Any]:
    return {
        "workload": first.workload,
        "choices": first.choices,
        "seeds": seeds,
        "figures": rows,
        "worst_hit": hits,
    }


_COLUMNS: list[Column[Compared]] = [
    Column("figure", lambda row: row.figure),
    Column("policy", lambda row: row.policy),
    Column("mean", lambda row: number(row.mean.mean), right=True),
    Column("within", lambda row: _within(row.mean), right=True),
    Column("change", lambda row: _percent(row.change), right=True),
    Column("within", lambda row: _within(row.change, 100, " %"), right=True),
]


def _within(of: Estimate | None, times: float = 1, unit: str = "") -> str:
    return "" if of is None or of.within is None else f"±{number(times * of.within)}{unit}"


def _percent(of: Estimate | None) -> str:
    return "" if of is None else f"{100 * of.mean:+.1f} %"


def _print(workload: str, seeds: int, rows: Sequence[Compared], hits: Sequence[WorstHit]) -> None:
    say(f"{workload}" + (f" and {seeds - 1} more" if seeds > 1 else ""))
    columns = _COLUMNS if seeds > 1 else [c for c in _COLUMNS if c.name != "within"]
    print_table(rows, columns, Style())
    for hit in hits:
        on = f" (seed {hit.seed})" if seeds > 1 else ""
        say(f"worst hit by {hit.policy}: user {hit.user}{on}, flow time x {hit.ratio:.2f}")
