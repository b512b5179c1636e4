"""A what-if as a page: what changes, for whom, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pliant.simulator.jobs import JobChange
from pliant.simulator.report.page import Page, Part, Plot, Table, number, percent
from pliant.simulator.report.replays import plot_of_users, plots_of
from pliant.simulator.users import Change, Sides
from pliant.simulator.whatif.month import Month
from pliant.simulator.whatif.result import Result
from pliant.simulator.whatif.words import Seen, agreement, assumptions, title

HAPPENED = "as it happened"
TITLE = "What policies would have done"


def page(what: Seen, month: Month, result: Result, drawn: bool = False) -> Page:
    """Return the page, with plots where they are to be ``drawn``. Raises Unavailable."""
    baseline = result.baseline
    lead = [title(what), *_gains(result), *_never(result), agreement(result.fit, baseline)]
    parts = [
        Part("What changes", _read(baseline), tables=[_changes(result)]),
        Part("For whom", tables=[*_for_whom(result)]),
        Part("What is assumed", items=[*assumptions(what, month, baseline)]),
    ]
    if drawn:
        parts.insert(2, Part("Plots", plots=[*_plots(result, month)]))
    return Page(TITLE, lead, parts)


def _gains(result: Result) -> Iterator[str]:
    """The most important of each policy, in a sentence."""
    rows = {row.figure: row.replays for row in result.rows}
    for place, (side, jobs) in enumerate(zip(result.sides, result.job_sides, strict=True), 1):
        said = [
            f"{words} {percent(change.mean)}"
            for figure, words in (
                ("flow time, mean (s)", "mean flow time"),
                ("wait, mean (s)", "mean wait"),
            )
            if figure in rows and (change := rows[figure][place].change) is not None
        ]
        users = f"better for {side.better} of {len(side.changes)} users, worse for {side.worse}"
        of = jobs.better + jobs.worse + jobs.same
        each = f"better for {jobs.better} of {of} jobs, worse for {jobs.worse}"
        yield f"{side.policy}: {'; '.join([', '.join(said), users, each])}."


def _never(result: Result) -> Iterator[str]:
    """What is missing in the figures: it would make them look better than they are."""
    for name, outcome in result.outcomes.items():
        never = outcome.figures.never
        if never:
            one = f"job {outcome.figures.never_example} for one"
            yield f"{name}: jobs that never start, and are in none of its figures: {never}, {one}."


def _read(baseline: str) -> tuple[str, ...]:
    return (
        f"Changes are against {baseline}, which replays every job rigid: the first column is what"
        " sacct says, the second what the replay makes of it.",
    )


def _changes(result: Result) -> Table:
    first, *others = result.outcomes
    header = ["figure", HAPPENED, first]
    for name in others:
        header += [name, "change"]
    rows: list[list[str]] = []
    for row in result.rows:
        before, *after = row.replays
        write = _hundredths if row.figure.endswith("(%)") else number
        cells = [row.figure, "" if row.happened is None else write(row.happened)]
        cells.append(write(before.mean.mean))
        for one in after:
            cells += [write(one.mean.mean), percent(one.change.mean if one.change else None)]
        rows.append(cells)
    return Table(header, rows, "All jobs")


def _hundredths(value: float) -> str:
    return f"{value:.2f}"


def _for_whom(result: Result) -> Iterator[Table]:
    both = [*zip(result.sides, result.job_sides, strict=True)]
    rows = [
        [one.policy, who, str(one.better), str(one.worse), str(one.same)]
        for users, jobs in both
        for who, one in (("users", users), ("jobs", jobs))
    ]
    title = "Users by their mean flow time, jobs by their own (within 1 %: same)"
    yield Table(["policy", "of", "better", "worse", "same"], rows, title, words=2)
    for users, jobs in both:
        times = (f"{result.baseline} (s)", f"{users.policy} (s)", "change")
        for rows, header, what in (
            (_users(users.worst), ("user", "jobs"), "users who are hit worst, by their mean flow"),
            (_users(users.best), ("user", "jobs"), "users who gain most, by their mean flow"),
            (_jobs(jobs.worst), ("job", "user"), "jobs that lose most seconds of flow"),
            (_jobs(jobs.best), ("job", "user"), "jobs that gain most seconds of flow"),
        ):
            if rows:
                title = f"{users.policy}: {what} time"
                words = 1 if header[0] == "user" else 2
                yield Table((*header, *times), rows, title, words=words)


def _users(changes: Sequence[Change]) -> list[list[str]]:
    return [[one.user or _NOBODY, str(one.jobs), *_times(one)] for one in changes]


def _jobs(changes: Sequence[JobChange]) -> list[list[str]]:
    return [[one.job, one.user or _NOBODY, *_times(one)] for one in changes]


_NOBODY = "(nobody known)"


def _times(one: Change | JobChange) -> list[str]:
    return [number(one.before_s), number(one.after_s), percent(one.part)]


def _plots(result: Result, month: Month) -> Iterator[Plot]:
    outcomes = {HAPPENED: result.happened, **result.outcomes}
    curves = {name: of.curves for name, of in outcomes.items() if of.curves is not None}
    yield from plots_of(curves, month.cluster.gpus)
    for number_, one in enumerate(result.sides, 1):
        if one.changes:
            yield plot_of_users(one.policy, _parts(one), f"users-{number_}")


def _parts(side: Sides) -> list[tuple[str, float]]:
    return [(one.user, one.part) for one in side.changes]
