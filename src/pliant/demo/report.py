"""What the demonstration prints: what each job asked, got, waited and took, and the means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pliant.demo.idle import Idle
from pliant.demo.mix import Submission
from pliant.demo.run import Run, makespan_s, mean_flow_s, mean_wait_s

_COLUMNS = ("{:<12}", "{:<6}", "{:<25}") + ("{:>6}", "{:>7}", "{:>6}") * 2
_LINE = " ".join(_COLUMNS)


def asked(job: Submission) -> str:
    """Return a job's request: its user's own, and what else it may run as."""
    return f"{job.own}, {job.moldable}" if job.moldable else str(job.own)


def table(off: Sequence[Run], on: Sequence[Run]) -> Iterator[str]:
    """Yield one line for each job, both rounds beside each other; times in seconds."""
    yield _LINE.format("", "", "", "Pliant", "off", "", "Pliant", "on", "").rstrip()
    yield _LINE.format("job", "user", "asked", *(("got", "waited", "flow") * 2))
    for left, right in zip(off, on, strict=True):
        yield _LINE.format(left.job.name, _person(left), asked(left.job), *_cells(left, right))


def _person(run: Run) -> str:
    return run.job.user.removeprefix("pliant-")


def _cells(*runs: Run) -> Iterator[str]:
    for run in runs:
        yield from (str(run.shape), f"{run.waited_s:.0f}", f"{run.flow_s:.0f}")


def means(off: Sequence[Run], on: Sequence[Run], idle: tuple[Idle, Idle]) -> Iterator[str]:
    """Yield the means of both rounds, and the change."""
    line = "{:<40} {:>8} {:>8} {:>8}"
    yield line.format("", "off", "on", "change")
    for name, measure in (
        ("mean flow time, s", mean_flow_s),
        ("mean wait, s", mean_wait_s),
        ("makespan, s", makespan_s),
    ):
        was, now = measure(off), measure(on)
        change = f"{100 * (now - was) / was:+.0f} %" if was else ""
        yield line.format(name, f"{was:.1f}", f"{now:.1f}", change)
    for name, shares in (
        ("idle GPU time", [one.idle_share for one in idle]),
        ("of all GPU time, avoidably idle", [one.avoidable_share for one in idle]),
    ):
        yield line.format(name, *(f"{100 * share:.1f} %" for share in shares), "")
