"""The report as one file of HTML: results and pictures first, then what they are made of.

Nothing is loaded, nothing runs, and all text is escaped. The pictures are SVG that is stretched to
the window; what is to be read beside them is text, which stays as large as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pliant import resources
from pliant.cli.output import Column, duration, gpu_hours, printable
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
from pliant.store import PartitionReport, Report, Tally

T = TypeVar("T")
HOUR_S = 3600.0
HEIGHT = 100.0
"""Of a picture, in units of its own."""
GAP = 0.12
"""Between two bars, as a part of one."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One rectangle, and what it says to who points at it."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    says: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Bars over time; ``most``: what the full height is; ``legend``: kinds and their names."""

    title: str
    text: str
    width: float
    bars: Sequence[Bar]
    legend: Sequence[tuple[str, str]]
    most: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Line:
    """One bar of a picture of lengths: its part of the longest, in percent."""

    name: str
    kind: str
    part: float
    says: str


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: titles and cells; ``words``: which columns are no numbers."""

    title: str
    titles: Sequence[str]
    right: Sequence[bool]
    cells: Sequence[Sequence[str]]


Kind = tuple[str, str, Callable[[Tally], float]]
GPU_KINDS: tuple[Kind, ...] = (
    ("flagged", "jobs with Pliant's options", lambda step: step.flagged_gpu_s),
    ("other", "other jobs", lambda step: step.other_gpu_s),
    ("avoidable", "idle although a waiting job could have had them", lambda t: t.avoidable_gpu_s),
    ("idle", "idle", lambda step: step.idle_gpu_s),
    ("down", "down", lambda step: step.down_gpu_s),
)
START_KINDS: tuple[Kind, ...] = (
    ("molded", "in another shape than their own", lambda step: step.molded),
    ("other", "as written", lambda step: step.starts - step.molded),
)
SUBMISSION_KINDS: tuple[Kind, ...] = (
    ("flagged", "answered", lambda step: step.answered),
    ("worse", "unanswered", lambda step: step.unanswered),
    ("avoidable", "refused", lambda step: step.refused),
)


def page(answer: ReportAnswer, since: str) -> str:
    """Return the file; ``since``: as the command was given."""
    environment = resources.pages()
    environment.filters["plain"] = printable
    found = answer.report
    results = [*sentences(found)]
    return environment.get_template("history.html.j2").render(
        answer=answer,
        name=answer.cluster or answer.host,
        span=span(found),
        made=time.strftime("%Y-%m-%d %H:%M %Z"),
        command=f"pliant report --since {since} --html FILE",
        tiles=[one for one in results if one.number],
        results=results,
        pictures=[*pictures(found)],
        waits=[*waits(found)],
        tables=[table for table in tables(found) if table.cells],
    )


def pictures(found: Report) -> Iterator[Picture]:
    """Yield what happened over time."""
    if not found.steps:
        return
    step = "the hour" if found.step_s == HOUR_S else duration(found.step_s)
    every = (
        (f"GPU time, by {step}", GPU_KINDS, gpu_hours),
        (f"Starts of jobs with Pliant's options, by {step}", START_KINDS, _count),
        (f"Submissions with Pliant's options, by {step}", SUBMISSION_KINDS, _count),
    )
    for title, kinds, written in every:
        found_one = _picture(found, title, kinds, written)
        if found_one is not None:
            yield found_one


def _count(number: float) -> str:
    return f"{number:.0f}"


def _picture(
    found: Report, title: str, kinds: Sequence[Kind], written: Callable[[float], str]
) -> Picture | None:
    tallest = max(sum(value(step) for _, _, value in kinds) for step in found.steps)
    if not tallest:
        return None
    first_s = found.since_s - found.since_s % found.step_s
    places = int((found.until_s - first_s) // found.step_s) + 1
    bars = []
    for step in found.steps:
        top = HEIGHT
        for kind, words, value in kinds:
            height = HEIGHT * value(step) / tallest
            top -= height
            says = f"{minute(step.hour_s)}: {written(value(step))} {words}"
            place = (step.hour_s - first_s) / found.step_s
            if height:
                bars.append(Bar(kind, place + GAP / 2, top, 1 - GAP, height, says))
    shown = [(kind, words) for kind, words, _ in kinds if any(bar.kind == kind for bar in bars)]
    totals = [(words, sum(map(value, found.steps))) for _, words, value in kinds]
    text = "; ".join(f"{words}: {written(total)}" for words, total in totals)
    ends = minute(first_s), minute(found.until_s)
    return Picture(title, text, places, bars, shown, written(tallest), *ends)


def waits(found: Report) -> Iterator[Line]:
    """Yield how long jobs waited on average, by partition, as written and otherwise."""
    longest_s = max(
        (max(part.written.mean_s, part.molded.mean_s) for part in found.partitions), default=0.0
    )
    for part in found.partitions if longest_s else ():
        yield from _waits_of(part, longest_s)


def _waits_of(part: PartitionReport, longest_s: float) -> Iterator[Line]:
    for kind, words, some in (
        ("other", "as written", part.written),
        ("molded", "in another shape", part.molded),
    ):
        if some.jobs:
            jobs = "1 job" if some.jobs == 1 else f"{some.jobs} jobs"
            says = f"{duration(some.mean_s)} ({jobs}, median {duration(some.median_s)})"
            length = 100 * some.mean_s / longest_s
            yield Line(f"{part.partition}, {words}", kind, length, says)


def tables(found: Report) -> Iterator[Rows]:
    """Yield what the results are made of."""
    yield _rows("By partition", used(found), PARTITION_COLUMNS)
    yield _rows("Changes of running jobs", found.resizes, RESIZE_COLUMNS)
    yield _rows("Refused changes of waiting jobs", found.refusals, REFUSAL_COLUMNS)


def _rows(title: str, rows: Sequence[T], columns: Sequence[Column[T]]) -> Rows:
    cells = [[column.text(row) for column in columns] for row in rows]
    titles = [column.name for column in columns]
    return Rows(title, titles, [column.right for column in columns], cells)
