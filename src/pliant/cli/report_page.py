"""The report as a page: results and pictures first, then what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from pliant.cli.output import Column
from pliant.cli.report_words import (
    PARTITION_COLUMNS,
    REFUSAL_COLUMNS,
    RESIZE_COLUMNS,
    minute,
    sentences,
    span,
    used,
)
from pliant.daemon.reporting import ReportAnswer
from pliant.figures import duration, gpu_hours
from pliant.pages.model import Lengths, Marked, Page, Part, Picture, Stacks, Table, Tile
from pliant.store import PartitionReport, Report, Tally

T = TypeVar("T")
HOUR_S = 3600.0

Kind = tuple[str, str, Callable[[Tally], float]]
GPU_KINDS: tuple[Kind, ...] = (
    ("flagged", "jobs with Pliant's options", lambda step: step.flagged_gpu_s),
    ("other", "other jobs", lambda step: step.other_gpu_s),
    ("avoidable", "idle although a waiting job could have had them", lambda t: t.avoidable_gpu_s),
    ("idle", "idle", lambda step: step.idle_gpu_s),
    ("down", "down", lambda step: step.down_gpu_s),
)
START_KINDS: tuple[Kind, ...] = (
    ("flagged", "in another shape than their own", lambda step: step.molded),
    ("other", "as written", lambda step: step.starts - step.molded),
)
SUBMISSION_KINDS: tuple[Kind, ...] = (
    ("flagged", "answered", lambda step: step.answered),
    ("worse", "unanswered", lambda step: step.unanswered),
    ("avoidable", "refused", lambda step: step.refused),
)


def page(answer: ReportAnswer) -> Page:
    """Return the page."""
    found = answer.report
    results = [*sentences(found)]
    paused = "; PAUSED" if answer.paused else ""
    about = [
        f"Cluster {answer.cluster or answer.host}, {span(found)}",
        f"pliantd {answer.version} on {answer.host}, policy {answer.policy}{paused}",
    ]
    shown = [*pictures(found), *waits(found)]
    parts = [Part("In pictures", pictures=shown)] if shown else []
    parts.append(Part("In words", items=[Marked(one.text, one.kind) for one in results]))
    parts += [Part(name, tables=[table]) for name, table in tables(found) if table.rows]
    tiles = [Tile(one.number, one.short, one.kind) for one in results if one.number]
    return Page(f"Pliant on {answer.cluster or answer.host}", about, (), parts, tiles)


class _Series(NamedTuple):
    """Kinds that are counted over time, and how their values are written."""

    name: str
    title: str
    kinds: tuple[Kind, ...]
    written: Callable[[float], str]


def _count(number: float) -> str:
    return f"{number:.0f}"


SERIES = (
    _Series("gpu-time", "GPU time", GPU_KINDS, gpu_hours),
    _Series("starts", "Starts of jobs with Pliant's options", START_KINDS, _count),
    _Series("submissions", "Submissions with Pliant's options", SUBMISSION_KINDS, _count),
)


def pictures(found: Report) -> Iterator[Stacks]:
    """Yield what happened over time."""
    for series in SERIES:
        heights = [sum(of(step) for _, _, of in series.kinds) for step in found.steps]
        if any(heights):
            yield _stacks(found, series, max(heights))


def _stacks(found: Report, series: _Series, tallest: float) -> Stacks:
    step = "the hour" if found.step_s == HOUR_S else duration(found.step_s)
    title = f"{series.title}, by {step}"
    first_s = found.since_s - found.since_s % found.step_s
    bars = []
    for one in found.steps:
        values = [
            (of(one), f"{minute(one.hour_s)}: {series.written(of(one))} {words}")
            for _, words, of in series.kinds
        ]
        bars.append(((one.hour_s - first_s) / found.step_s, values))
    totals = [
        f"{words}: {series.written(sum(map(of, found.steps)))}" for _, words, of in series.kinds
    ]
    return Stacks(
        series.name,
        title,
        f"{title}. {'; '.join(totals)}",
        kinds=[(kind, words) for kind, words, _ in series.kinds],
        bars=bars,
        steps=(found.until_s - first_s) // found.step_s + 1,
        most=series.written(tallest),
        first=_day(first_s),
        last=_day(found.until_s),
    )


def _day(at_s: float) -> str:
    """Write an instant without its year, which stands above: a narrow screen has both ends."""
    return minute(at_s).partition("-")[2]


def waits(found: Report) -> Iterator[Picture]:
    """Yield how long jobs waited on average, by partition, as written and otherwise."""
    lines = [line for part in found.partitions for line in _waits_of(part)]
    if any(length for _, _, length, _ in lines):
        yield Lengths("waits", "Mean wait, by partition", "Mean wait, by partition", lines)


def _waits_of(part: PartitionReport) -> Iterator[tuple[str, str, float, str]]:
    for kind, words, some in (
        ("other", "as written", part.written),
        ("flagged", "in another shape", part.molded),
    ):
        if some.jobs:
            jobs = "1 job" if some.jobs == 1 else f"{some.jobs} jobs"
            says = f"{duration(some.mean_s)} ({jobs}, median {duration(some.median_s)})"
            yield f"{part.partition}, {words}", kind, some.mean_s, says


def tables(found: Report) -> Iterator[tuple[str, Table]]:
    """Yield what the results are made of, each with its title."""
    yield "By partition", _table(used(found), PARTITION_COLUMNS)
    yield "Changes of running jobs", _table(found.resizes, RESIZE_COLUMNS)
    yield "Refused changes of waiting jobs", _table(found.refusals, REFUSAL_COLUMNS)


def _table(rows: Sequence[T], columns: Sequence[Column[T]]) -> Table:
    cells = [[column.text(row) for column in columns] for row in rows]
    words = [place for place, column in enumerate(columns) if not column.right]
    return Table([column.name for column in columns], cells, words=words)
