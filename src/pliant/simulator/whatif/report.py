"""A what-if as a page: what changes, for whom, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pliant.figures import close_duration, percent
from pliant.pages.model import Mark, Marked, Page, Part, Picture, Table, Text, Tile
from pliant.simulator.comparison import Compared
from pliant.simulator.jobs import JobChange
from pliant.simulator.report.replays import picture_of_users, pictures_of
from pliant.simulator.report.said import compared, judged, mean, name_of, said
from pliant.simulator.users import SAME, Change, Sides
from pliant.simulator.whatif.month import Month
from pliant.simulator.whatif.result import Result
from pliant.simulator.whatif.words import Seen, agreement, assumptions, title

HAPPENED = "as it happened"
TITLE = "What policies would have done"
_MAIN = {"flow time, mean (s)": "mean flow time", "wait, mean (s)": "mean wait"}


def page(what: Seen, month: Month, result: Result) -> Page:
    """Return the page."""
    baseline = result.baseline
    lead = [*_gains(result), *_never(result), _agreement(result)]
    parts = [
        Part("What changes", _read(baseline), tables=[_changes(result)]),
        Part("For whom", tables=[*_for_whom(result)], pictures=[*_users_pictures(result)]),
        Part("What is assumed", items=[*assumptions(what, month, baseline)]),
    ]
    if pictures := [*_pictures(result, month)]:
        parts.insert(0, Part("In pictures", pictures=pictures))
    name = f"{month.cluster.name}, " if month.cluster.name else ""
    about = [title(what), f"Cluster: {name}{month.cluster.words}"]
    return Page(TITLE, about, lead, parts, [*_tiles(result)])


def _tiles(result: Result) -> Iterator[Tile]:
    for place, (side, jobs) in enumerate(zip(result.sides, result.job_sides, strict=True), 1):
        for figure, before, after in _main(result, place):
            times = f"{mean(figure, before.mean)} → {mean(figure, after.mean)}"
            change = percent(after.change.mean if after.change else None)
            words = f"{_MAIN[figure]} under {side.policy}: {times}"
            yield Tile(change or said(figure, after.mean.mean), words, judged(after, before))
        for who, one in (("users", side), ("jobs", jobs)):
            of = one.better + one.worse + one.same
            words = f"{who} fare worse under {side.policy}, {one.better} better"
            yield Tile(f"{one.worse} of {of}", words, "worse" if one.worse else "")


def _main(result: Result, place: int) -> Iterator[tuple[str, Compared, Compared]]:
    """Yield the most important figures that there are: before, and under a policy."""
    rows = {row.figure: row.replays for row in result.rows}
    for figure in _MAIN:
        if figure in rows:
            yield figure, rows[figure][0], rows[figure][place]


def _gains(result: Result) -> Iterator[str]:
    """The most important of each policy, in a sentence."""
    for place, (side, jobs) in enumerate(zip(result.sides, result.job_sides, strict=True), 1):
        changes = [
            f"{_MAIN[figure]} {percent(after.change.mean)}"
            for figure, _, after in _main(result, place)
            if after.change is not None
        ]
        users = f"better for {side.better} of {len(side.changes)} users, worse for {side.worse}"
        of = jobs.better + jobs.worse + jobs.same
        each = f"better for {jobs.better} of {of} jobs, worse for {jobs.worse}"
        yield f"{side.policy}: {'; '.join([', '.join(changes), users, each])}."


def _never(result: Result) -> Iterator[Text]:
    """What is missing in the figures: it would make them look better than they are."""
    for name, outcome in result.outcomes.items():
        never = outcome.figures.never
        if never:
            words = f"{name}: jobs that never start, and are in none of its figures: {never},"
            yield Marked(f"{words} job {outcome.figures.never_example} for one.", "bad")


def _agreement(result: Result) -> Text:
    words = agreement(result.fit, result.baseline)
    return words if result.fit is not None and result.fit.is_close else Marked(words, "bad")


def _read(baseline: str) -> tuple[str, ...]:
    return (
        f"Changes are against {baseline}, which replays every job rigid: the first column is what"
        " sacct says, the second what the replay makes of it.",
    )


def _changes(result: Result) -> Table:
    rows: list[list[Text]] = []
    for row in result.rows:
        before, *after = row.replays
        cells: list[Text] = [name_of(row.figure)]
        cells.append("" if row.happened is None else said(row.figure, row.happened))
        cells.append(mean(row.figure, before.mean))
        rows.append([*cells, *(compared(one, before) for one in after)])
    return Table(["figure", HAPPENED, *result.outcomes], rows, "All jobs")


def _for_whom(result: Result) -> Iterator[Table]:
    both = [*zip(result.sides, result.job_sides, strict=True)]
    sides: list[list[Text]] = []
    for users, jobs in both:
        for who, one in (("users", users), ("jobs", jobs)):
            worse = Marked(str(one.worse), "worse") if one.worse else "0"
            sides.append([one.policy, who, str(one.better), worse, str(one.same)])
    title = "Users by their mean flow time, jobs by their own (within 1 %: same)"
    yield Table(["policy", "of", "better", "worse", "same"], sides, title, words=range(2))
    for users, jobs in both:
        times = (result.baseline, users.policy)
        for rows, header, what in (
            (_users(users.worst), ("user", "jobs"), "users who are hit worst, by their mean flow"),
            (_users(users.best), ("user", "jobs"), "users who gain most, by their mean flow"),
            (_jobs(jobs.worst), ("job", "user"), "jobs that lose most time, by their flow"),
            (_jobs(jobs.best), ("job", "user"), "jobs that gain most time, by their flow"),
        ):
            if rows:
                title = f"{users.policy}: {what} time"
                words = range(1 if header[0] == "user" else 2)
                yield Table((*header, *times), rows, title, words=words)


def _users(changes: Sequence[Change]) -> list[list[Text]]:
    return [[one.user or _NOBODY, str(one.jobs), *_times(one)] for one in changes]


def _jobs(changes: Sequence[JobChange]) -> list[list[Text]]:
    return [[one.job, one.user or _NOBODY, *_times(one)] for one in changes]


_NOBODY = "(nobody known)"


def _times(one: Change | JobChange) -> list[Text]:
    mark: Mark = "worse" if one.part > SAME else "better"
    after = Marked(close_duration(one.after_s), mark, percent(one.part))
    return [close_duration(one.before_s), after]


def _pictures(result: Result, month: Month) -> Iterator[Picture]:
    outcomes = {HAPPENED: result.happened, **result.outcomes}
    curves = {name: of.curves for name, of in outcomes.items() if of.curves is not None}
    yield from pictures_of(curves, month.cluster.gpus)


def _users_pictures(result: Result) -> Iterator[Picture]:
    for number, one in enumerate(result.sides, 1):
        if one.changes:
            yield picture_of_users(one.policy, _parts(one), f"users-{number}")


def _parts(side: Sides) -> list[tuple[str, float]]:
    return [(one.user, one.part) for one in side.changes]
