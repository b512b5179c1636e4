"""What the report adds up, from the tables: one statement for each kind of thing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby

from pliant.store.database import Reads
from pliant.store.reported import (
    HOUR_S,
    JobSums,
    PartitionReport,
    Refusal,
    Report,
    Resizes,
    Waits,
    reason_of,
)
from pliant.store.rows import COUNTED, Tally

ALL = ""
"""In place of a partition: all of them."""
MOST_STEPS = 168
"""So many steps of time at most: a week by the hour."""
MOST_WORDS = 10
"""How many kinds of refusals are told."""


def report(read: Reads, since_s: float, until_s: float) -> Report:
    """Add up what was seen of the jobs that were there in that time, and what was counted in it."""
    sums = _sums(read, since_s, until_s)
    waits = _waits(read, since_s, until_s)
    hours = [*_hours(read, since_s, until_s)]
    counted = _by_partition(hours)
    names = {*sums, *counted} - {ALL}
    parts = (_partition(name, sums, waits, counted) for name in sorted(names))
    total = _partition(ALL, sums, waits, counted)
    step_s = _step_s(until_s - since_s)
    return Report(
        since_s,
        until_s,
        _first_s(read),
        replace(total, counted=_total(hours)),
        tuple(parts),
        tuple(_resizes(read, since_s, until_s)),
        tuple(_refusals(read, since_s, until_s)),
        step_s,
        tuple(_steps(hours, step_s)),
    )


def _partition(
    name: str,
    sums: Mapping[str, JobSums],
    waits: Mapping[tuple[str, bool], Waits],
    counted: Mapping[str, Tally],
) -> PartitionReport:
    return PartitionReport(
        name,
        sums.get(name, JobSums()),
        waits.get((name, False), Waits()),
        waits.get((name, True), Waits()),
        counted.get(name, Tally(0.0, name)),
    )


# Jobs

_IN_TIME = "submit_s < :until AND (end_s = 0 OR end_s >= :since) AND tasks > 0"
_SUMS = {
    "jobs": "sum(tasks)",
    "waiting": "sum(tasks * (state = 'waiting'))",
    "running": "sum(state IN ('running', 'ending'))",
    "ended": "sum(tasks * (state = 'ended'))",
    "failed": "sum(tasks * (state = 'ended' AND exit NOT IN ('', 'COMPLETED')))",
    "unanswered": "sum(tasks * NOT answered)",
    "started": "sum(start_s > 0)",
    "smaller": "sum(molded = 'smaller')",
    "larger": "sum(molded = 'larger')",
    "other": "sum(molded = 'other')",
    "would": "sum(tasks * (would != ''))",
    "expected": "sum(expected_s > 0 AND start_s > 0)",
    "sooner_s": "sum(CASE WHEN expected_s > 0 AND start_s > 0"
    " THEN max(0, expected_s - start_s) ELSE 0 END)",
    "later_s": "sum(CASE WHEN expected_s > 0 AND start_s > 0"
    " THEN max(0, start_s - expected_s) ELSE 0 END)",
    "would_sooner_s": "sum(CASE WHEN would_s = 0 THEN 0 WHEN start_s > 0"
    " THEN max(0, start_s - would_s) WHEN end_s > 0 THEN 0 ELSE :until - would_s END)",
    "gpu_s": "sum(gpu_s + running_s * gpus)",
    "fewer_gpu_s": "sum(max(0, own_gpu_s - gpu_s + running_s * (own_gpus - gpus)))",
    "more_gpu_s": "sum(max(0, gpu_s - own_gpu_s + running_s * (gpus - own_gpus)))",
}
"""Each field of :class:`JobSums`, as SQLite adds it up."""
_RUNNING_S = "CASE WHEN run_s > 0 THEN max(0, :until - run_s) ELSE 0 END"
_JOBS = (
    f"SELECT partition, {', '.join(_SUMS.values())} FROM jobs"  # noqa: S608  # our own words
    f" WHERE {_IN_TIME} GROUP BY partition"
).replace("running_s", _RUNNING_S)


def _sums(read: Reads, since_s: float, until_s: float) -> dict[str, JobSums]:
    rows = read(_JOBS, {"since": since_s, "until": until_s})
    found = {str(name): JobSums(*numbers) for name, *numbers in rows}
    if found:
        found[ALL] = _added(found.values())
    return found


def _added(every: Iterable[JobSums]) -> JobSums:
    numbers = [[getattr(one, name) for name in _SUMS] for one in every]
    return JobSums(*map(sum, zip(*numbers, strict=True)))


_WAITS = (
    "SELECT partition, molded, max(0, start_s - submit_s) FROM jobs"  # noqa: S608  # our own words
    f" WHERE start_s > 0 AND {_IN_TIME}"
)


def _waits(read: Reads, since_s: float, until_s: float) -> dict[tuple[str, bool], Waits]:
    """Return the waits by partition, and whether the jobs were molded."""
    found: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for partition, molded, wait_s in read(_WAITS, {"since": since_s, "until": until_s}):
        found[partition, molded != ""].append(wait_s)
    for (_, molded), some in [*found.items()]:
        found[ALL, molded] += some
    return {key: _spread(waits) for key, waits in found.items()}


def _spread(waits: list[float]) -> Waits:
    if not waits:
        return Waits()
    waits.sort()
    middle = len(waits) // 2
    median_s = waits[middle] if len(waits) % 2 else (waits[middle - 1] + waits[middle]) / 2
    return Waits(len(waits), sum(waits) / len(waits), median_s)


# What was counted by the hour


def _hours(read: Reads, since_s: float, until_s: float) -> Iterable[Tally]:
    names = ", ".join(("hour_s", "partition", *COUNTED))
    rows = read(
        f"SELECT {names} FROM hours WHERE hour_s > ? AND hour_s < ? ORDER BY hour_s",  # noqa: S608  # our own names
        (since_s - HOUR_S, until_s),
    )
    return (Tally(*row) for row in rows)


def _by_partition(hours: Iterable[Tally]) -> dict[str, Tally]:
    found: dict[str, Tally] = {}
    for hour in hours:
        found.setdefault(hour.partition, Tally(0.0, hour.partition)).add(hour)
    return found


def _total(hours: Iterable[Tally]) -> Tally:
    """Add up what happened; GPUs as of all nodes, each once."""
    found = Tally()
    for hour in hours:
        found.add(hour if hour.partition == ALL else hour.without_gpus())
    return found


def _step_s(length_s: float) -> float:
    return HOUR_S * max(1, -(-int(length_s / HOUR_S) // MOST_STEPS))


def _steps(hours: Iterable[Tally], step_s: float) -> Iterable[Tally]:
    """Yield what was counted in each step of time, in order."""
    for start_s, some in groupby(hours, key=lambda hour: hour.hour_s - hour.hour_s % step_s):
        yield replace(_total(some), hour_s=start_s)


def _first_s(read: Reads) -> float:
    """The first job seen; where there is none, the first hour counted."""
    ((seen_s,),) = read("SELECT min(seen_s) FROM jobs", ()) or [(None,)]
    ((hour_s,),) = read("SELECT min(hour_s) FROM hours", ()) or [(None,)]
    return float(seen_s or hour_s or 0.0)


# What became of running jobs

_CHANGES = (
    "SELECT coalesce(j.partition, ''), h.guest, h.reason, h.outcome, h.saved_s, h.done_s,"
    " coalesce(was.saved_took_s * was.gpus, 0), coalesce(now.launched_s, 0), coalesce(now.gpus, 0)"
    " FROM handovers AS h LEFT JOIN jobs AS j ON j.job = h.job"
    " LEFT JOIN runs AS was ON was.job = h.job AND was.run = h.run"
    " LEFT JOIN runs AS now ON now.job = h.job AND now.run ="
    " (SELECT min(run) FROM runs WHERE job = h.job AND run > h.run)"
    " WHERE h.at_s < ? AND (h.done_s IS NULL OR h.done_s >= ?)"
)
UNDER_WAY = "under way"


def _resizes(read: Reads, since_s: float, until_s: float) -> Iterable[Resizes]:
    count: Counter[tuple[str, str, str]] = Counter()
    gpu_s: dict[tuple[str, str, str], float] = defaultdict(float)
    took_s: dict[tuple[str, str, str], float] = defaultdict(float)
    for row in read(_CHANGES, (until_s, since_s)):
        partition, guest, reason, outcome, saved_s, done_s, saving, launched_s, gpus = row
        word = str(outcome or UNDER_WAY).partition(": ")[0]
        key = (str(partition), reason_of(guest, reason), word)
        count[key] += 1
        lost_s = max(0.0, launched_s - saved_s) if saved_s and launched_s else 0.0
        gpu_s[key] += saving + lost_s * gpus
        took_s[key] += max(0.0, done_s - saved_s) if word == "done" and saved_s else 0.0
    return (Resizes(*key, n, gpu_s[key], took_s[key]) for key, n in sorted(count.items()))


_REFUSED = (
    "SELECT reason, count(*) FROM decisions WHERE what = 'refused' AND at_s >= ? AND at_s < ?"
    " GROUP BY reason"
)


def _refusals(read: Reads, since_s: float, until_s: float) -> Iterable[Refusal]:
    """Count refusals by the batch system's words, without which job and for how long."""
    found: Counter[str] = Counter()
    for reason, count in read(_REFUSED, (since_s, until_s)):
        words = str(reason).rpartition("; left out for ")[0] or str(reason)
        if words.startswith("job "):
            words = words.partition(": ")[2] or words
        found[words] += count
    return (Refusal(*pair) for pair in found.most_common(MOST_WORDS))
