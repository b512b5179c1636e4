"""What a what-if assumes and leaves out, in words: they stand above its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pliant.figures import close_duration
from pliant.grammar import request_text
from pliant.model import Request
from pliant.simulator.traces import Record
from pliant.simulator.whatif.molding import NOT_LIMITED, Molding
from pliant.simulator.whatif.month import Month
from pliant.simulator.whatif.result import Fit

LAST_S = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The last instant that :func:`instant` is asked to write, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a trace holds.

    ``gpu``: jobs with GPUs (on a cluster without any: all), ``moldable`` of them. ``out``: how many
    were left out, None where the trace does not tell. ``elsewhere``: how many name a partition that
    there is no more.
    """

    jobs: int
    users: int
    gpu: int
    moldable: int
    first_s: float
    last_s: float
    requeued: int
    elsewhere: int
    out: int | None


def seen(records: Sequence[Record], month: Month, out: int | None) -> Seen:
    """Look at the records of a month; there is one at least."""
    cluster, molding = month.cluster, month.molding
    names = {partition.name for partition in cluster.partitions}
    gpu = [record for record in records if record.gpus or cluster.by_cpu]
    return Seen(
        len(records),
        len({record.user for record in records if record.user}),
        len(gpu),
        sum(molding.is_of(record.user) for record in gpu),
        min(record.submit_s for record in records),
        max(map(end_s, records)),
        sum(record.requeues > 0 for record in records),
        sum(record.queue not in names for record in records) if len(names) > 1 else 0,
        out,
    )


def end_s(record: Record) -> float:
    """Return when a job ended."""
    return record.submit_s + record.wait_s + record.run_s


def title(what: Seen) -> str:
    """Say what was replayed in one line."""
    jobs, users = _count(what.jobs, "job"), _count(what.users, "user")
    return f"{jobs} of {users}, from {instant(what.first_s)} to {instant(what.last_s)} UTC"


def assumptions(what: Seen, month: Month, baseline: str) -> Iterator[str]:
    """Yield what is assumed, one sentence or two each."""
    unit = "CPUs" if month.cluster.by_cpu else "GPUs"
    yield f"Cluster: {month.cluster.words}, as it is today; no node was ever down."
    yield from _left_out(what)
    yield from _moldable(what, month.molding, unit)
    yield f"Speed: {month.molding.curve.words}. Nobody measured these jobs; --speedup sets it."
    yield (
        f"Time limits: {baseline} has each job's own. A moldable job's is longer by as much as its"
        " smallest size is slower, as its owner would have to write it."
    )
    if month.molding.restart_s:
        yield (
            f"A job that is resized while it runs saves, and loses {month.molding.restart_s:g} s"
            " each time; a policy that can weigh this resizes only where it pays, as pliantd does."
        )
    if month.molding.malleable != NOT_LIMITED:
        words = request_text(Request(malleable=month.molding.malleable))
        yield f"Owners say --{words}: no policy resizes a job more often, nor sooner again."
    yield (
        "The queue is in order of first submission, one for each partition. Not looked at:"
        " priorities and fair share, QOS and limits of accounts, reservations, licences,"
        " dependencies and other ties between jobs, begin times, features, types of GPU, shares of"
        " GPUs, memory, topology."
    )
    yield (
        "Jobs that failed or were cancelled run as long as they did, and users submit what they"
        " did, when they did. The cluster is empty when the first job comes."
    )


def _left_out(what: Seen) -> Iterator[str]:
    if what.out:
        why = "did not run for a second, or had not ended"
        yield f"Left out: {_count(what.out, 'job')} that {why}."
    if what.requeued:
        words = "had been requeued: each counts once, with its last run"
        yield f"{_count(what.requeued, 'job')} {words}."
    if what.elsewhere:
        words = "replayed in the default one"
        yield f"Of partitions that are no more: {_count(what.elsewhere, 'job')}, {words}."


def _moldable(what: Seen, molding: Molding, unit: str) -> Iterator[str]:
    whose = f" of {', '.join(molding.users)}" if molding.users else ""
    other = what.jobs - what.moldable
    rest = f" Of the others ({_count(other, 'job')}) each keeps its size." if other else ""
    sizes = [f"1/{2**k}" for k in range(1, molding.shrink.bit_length())]
    sizes += [f"{2**k}" for k in range(1, molding.grow.bit_length())]
    also = f", or that times {' or '.join(sizes)} where that is a whole number and fits"
    yield (
        f"Moldable: {_count(what.moldable, 'job')} with {unit}{whose}: each may start with as many"
        f" as it had{also if sizes else ''}, and may be resized while it runs.{rest}"
    )
    if molding.grow > 1:
        yield (
            f"More {unit} than a job had: where few wait, most of what is gained is this"
            " assumption; --grow 1 leaves it out."
        )


def agreement(fit: Fit | None, baseline: str) -> str:
    """Say how well the rigid replay agrees with what happened, and what follows."""
    if fit is None:
        return f"Agreement: no job ended in the replay under {baseline}."
    said = (
        f"Agreement: jobs waited {close_duration(fit.wait_s)} on average; replayed, rigid, under"
        f" {baseline} they wait {close_duration(fit.replayed_wait_s)} (flow time:"
        f" {close_duration(fit.flow_s)} and {close_duration(fit.replayed_flow_s)})."
    )
    if fit.is_close:
        return f"{said} That is close: within a minute, or a quarter."
    why = "longer" if fit.replayed_wait_s > fit.wait_s else "shorter"
    return (
        f"{said} That is much {why}: what the replay leaves out decides much here. Read the changes"
        " below as a direction, not as an amount."
    )


def instant(at_s: float) -> str:
    """Write an instant."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + "s" * (number != 1)
