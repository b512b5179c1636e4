"""What ``pliant report`` says, as text and on its page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pliant.cli.output import Column
from pliant.daemon.reporting import ReportAnswer
from pliant.figures import duration, gpu_hours
from pliant.pages.model import Mark
from pliant.store import JobSums, PartitionReport, Refusal, Report, Resizes, Tally, Waits

IDLE_PART = 0.05
"""An avoidable idle part of all GPU time above this is marked."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One result; ``short`` for a tile: the number, and what it is of."""

    text: str
    number: str = ""
    short: str = ""
    kind: Mark = ""


def head(answer: ReportAnswer) -> str:
    """Return whose report it is, and of when."""
    found = answer.report
    cluster = f"cluster {answer.cluster}, " if answer.cluster else ""
    paused = ", PAUSED" if answer.paused else ""
    who = f"pliantd {answer.version} on {answer.host}, policy {answer.policy}{paused}"
    return f"{cluster}{span(found)}; {who}"


def span(found: Report) -> str:
    """Return from when to when, and how long that is."""
    began = f", history since {minute(found.first_s)}" if found.first_s > found.since_s else ""
    length = duration(found.until_s - found.since_s)
    return f"{minute(found.since_s)} to {minute(found.until_s)} ({length}{began})"


def used(found: Report) -> Sequence[PartitionReport]:
    """Return the partitions in which something was said to Pliant; all where it was in none."""
    return [part for part in found.partitions if _is_used(part)] or found.partitions


def _is_used(part: PartitionReport) -> bool:
    counted = part.counted
    return bool(part.sums.jobs or counted.answered or counted.unanswered or counted.refused)


def minute(at_s: float) -> str:
    """Write an instant to the minute, in local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s))


def sentences(found: Report) -> Iterator[Sentence]:
    """Yield the results, the most telling first."""
    sums, counted = found.total.sums, found.total.counted
    yield _jobs(sums)
    yield from _molded(found.total)
    yield from _gains(sums)
    yield from _would(sums)
    yield from _gpus(sums, counted)
    yield from _resizes(found)
    yield _submissions(counted)


def _jobs(sums: JobSums) -> Sentence:
    failed = f" ({sums.failed} of them not COMPLETED)" if sums.failed else ""
    states = f"{sums.waiting} waiting, {sums.running} running, {sums.ended} ended{failed}"
    text = f"{sums.jobs} jobs with Pliant's options: {states}"
    return Sentence(text, str(sums.jobs), "jobs with Pliant's options")


def _molded(total: PartitionReport) -> Iterator[Sentence]:
    sums = total.sums
    if not sums.started:
        return
    kinds = (("smaller", sums.smaller), ("larger", sums.larger), ("of other nodes", sums.other))
    how = ", ".join(f"{count} {word}" for word, count in kinds if count)
    text = f"{sums.molded} of {sums.started} that started did so in another shape than their own"
    number = f"{sums.molded} of {sums.started}"
    yield Sentence(text + (f": {how}" if how else ""), number, "started in another shape")
    if total.molded.jobs and total.written.jobs:
        shorter = total.molded.mean_s <= total.written.mean_s
        yield Sentence(
            f"these waited {_wait(total.molded)}, the others {_wait(total.written)}",
            duration(total.molded.mean_s),
            f"mean wait in another shape; {duration(total.written.mean_s)} as written",
            "better" if shorter else "worse",
        )
    elif total.written.jobs or total.molded.jobs:
        waits = total.written if total.written.jobs else total.molded
        yield Sentence(f"they waited {_wait(waits)}", duration(waits.mean_s), "mean wait")


def _wait(waits: Waits) -> str:
    return f"{duration(waits.mean_s)} on average (median {duration(waits.median_s)})"


def _gains(sums: JobSums) -> Iterator[Sentence]:
    if not sums.expected:
        return
    gained_s = sums.sooner_s - sums.later_s
    apart = f" ({duration(sums.sooner_s)} sooner, {duration(sums.later_s)} later)"
    later = apart if sums.later_s >= 1 and sums.sooner_s >= 1 else ""
    word = "sooner" if gained_s >= 0 else "later"
    text = (
        f"of {sums.expected} that were changed while they waited it was known when they would "
        f"start otherwise: they started {duration(abs(gained_s))} {word} in all{later}"
    )
    kind: Mark = "better" if gained_s >= 0 else "worse"
    yield Sentence(text, duration(abs(gained_s)), f"{word} than expected, in all", kind)


def _would(sums: JobSums) -> Iterator[Sentence]:
    if sums.would:
        each_s = sums.would_sooner_s / sums.would
        yield Sentence(
            f"where Pliant only observes {sums.would} jobs would have started in another shape, "
            f"{duration(each_s)} sooner on average",
            str(sums.would),
            f"would have started in another shape, {duration(each_s)} sooner",
        )


def _gpus(sums: JobSums, counted: Tally) -> Iterator[Sentence]:
    if sums.gpu_s:
        changed = ((sums.fewer_gpu_s, "fewer"), (sums.more_gpu_s, "more"))
        how = " and ".join(f"{gpu_hours(gpu_s)} {word}" for gpu_s, word in changed if gpu_s >= 1)
        beside = f": {how} than their own shapes would have held meanwhile" if how else ""
        yield Sentence(f"their runs took {gpu_hours(sums.gpu_s)}{beside}")
    every = gpu_total(counted)
    if every:
        idle = counted.idle_gpu_s + counted.avoidable_gpu_s
        part = counted.avoidable_gpu_s / every
        yield Sentence(
            f"of {gpu_hours(every)} of all GPUs {gpu_hours(idle)} stood idle, "
            f"{gpu_hours(counted.avoidable_gpu_s)} of it although a waiting job could have had it",
            f"{100 * part:.1f} %",
            "of all GPU time avoidably idle",
            "bad" if part > IDLE_PART else "",
        )


def gpu_total(counted: Tally) -> float:
    """Return all GPU seconds, whose ever they were."""
    used = counted.flagged_gpu_s + counted.other_gpu_s
    return used + counted.idle_gpu_s + counted.avoidable_gpu_s + counted.down_gpu_s


def _resizes(found: Report) -> Iterator[Sentence]:
    if not found.resizes:
        return
    done = sum(row.count for row in found.resizes if row.outcome == "done")
    every = sum(row.count for row in found.resizes)
    cost = gpu_hours(sum(row.gpu_s for row in found.resizes))
    text = f"{done} of {every} changes of running jobs were done; they cost {cost}"
    yield Sentence(text, f"{done} of {every}", f"running jobs changed, for {cost}")


def _submissions(counted: Tally) -> Sentence:
    said = counted.answered + counted.unanswered
    part = f" ({100 * counted.unanswered / said:.1f} %)" if counted.unanswered else ""
    text = (
        f"submissions: {counted.answered} answered, {counted.unanswered} unanswered{part}, "
        f"{counted.refused} refused; changes of waiting jobs: {counted.updates}, "
        f"{counted.failures} refused"
    )
    kind: Mark = "bad" if counted.unanswered else ""
    return Sentence(text, str(counted.unanswered), "submissions without an answer", kind)


def _of_jobs(waits: Waits) -> str:
    return duration(waits.mean_s) if waits.jobs else ""


def _hours(gpu_s: float) -> str:
    return gpu_hours(gpu_s).removesuffix(" GPU-h") if gpu_s else "0"


PARTITION_COLUMNS: list[Column[PartitionReport]] = [
    Column("partition", lambda row: row.partition),
    Column("mode", lambda row: row.mode),
    Column("jobs", lambda row: str(row.sums.jobs), right=True),
    Column("started", lambda row: str(row.sums.started), right=True),
    Column("molded", lambda row: str(row.sums.molded), right=True),
    Column("would", lambda row: str(row.sums.would), right=True),
    Column("wait", lambda row: _of_jobs(row.written), right=True),
    Column("molded wait", lambda row: _of_jobs(row.molded), right=True),
    Column("gpu-h", lambda row: _hours(row.sums.gpu_s), right=True),
    Column("avoidable", lambda row: _hours(row.counted.avoidable_gpu_s), right=True),
    Column("unanswered", lambda row: str(row.counted.unanswered), right=True),
]

RESIZE_COLUMNS: list[Column[Resizes]] = [
    Column("partition", lambda row: row.partition),
    Column("for", lambda row: row.why),
    Column("changes", lambda row: str(row.count), right=True),
    Column("gpu-h lost", lambda row: _hours(row.gpu_s), right=True),
    Column("came of it", lambda row: row.outcome),
]

REFUSAL_COLUMNS: list[Column[Refusal]] = [
    Column("times", lambda row: str(row.count), right=True),
    Column("in the words of the batch system", lambda row: row.words),
]
