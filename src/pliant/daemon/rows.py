"""From what the last cycle saw to the rows of an answer; pure but for the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pliant.cycle import Tried
from pliant.daemon.answers import ChangeRow, ClaimRow, DecisionRow, PartitionRow, ShapeRow, StartRow
from pliant.daemon.cycling import Cycling
from pliant.daemon.flagged import JobRow, ResizeRow
from pliant.daemon.seen import Seen
from pliant.grammar import request_text
from pliant.model import Job, JobState, Mode, Snapshot, shape_text
from pliant.plan import Claim, Mold, Plan, Start
from pliant.store import Decision


def partition_rows(snapshot: Snapshot) -> Iterator[PartitionRow]:
    """One row for each partition; a node in two partitions counts in both."""
    pools = {node.name: node.pools for node in snapshot.nodes}
    free = {node.name: node.up for node in snapshot.nodes}
    for partition in snapshot.partitions:
        mine = [name for name in partition.nodes if name in pools]
        yield PartitionRow(
            name=partition.name,
            mode=partition.mode,
            up=partition.up,
            nodes=len(partition.nodes),
            gpus=sum(pool.total for name in mine for pool in pools[name]),
            gpus_free=sum(pool.free for name in mine if free[name] for pool in pools[name]),
        )


def flagged(snapshot: Snapshot) -> tuple[Job, ...]:
    """The jobs that say something to Pliant: waiting ones in queue order, then running ones."""
    return tuple(job for job in (*snapshot.waiting, *snapshot.running) if job.spec is not None)


def job_row(
    job: Job,
    cycling: Cycling,
    kept_now: Mapping[str, str],
    under_way: Mapping[str, ResizeRow] | None = None,
) -> JobRow:
    """One job, with what was decided about it last. ``kept_now``: as :func:`kept` says."""
    change = (under_way or {}).get(job.id)
    spec = job.spec
    last = next(iter(cycling.store.decisions(job.id, 1)), None)
    words = decision_text(last) if last else ""
    if last and last.what == "keep":
        words = kept_now.get(job.id, words)
    return JobRow(
        id=job.id,
        user=job.user,
        partitions=job.partitions,
        state=job.state,
        reason=job.reason,
        request=request_text(spec.request) if spec else "",
        mode=cycling.mode(job),
        own=shape_text(spec.own) if spec and spec.own else "",
        carried=shape_text(job.shape),
        allowed=tuple(shape_text(shape) for shape in job.shapes),
        refused=tuple(shape_text(shape) for shape in sorted(job.refused)),
        frozen=job.frozen,
        pinned=spec.pinned if spec else False,
        tasks=job.tasks_waiting,
        nodes=job.nodes,
        submitted_s=job.submit_s,
        started_s=job.start_s,
        last=words,
        last_s=last.at_s if last else 0.0,
        changing=change.words if change is not None else "",
    )


def why_left(job: Job, cycling: Cycling, words: str) -> str:
    """Why a job's shape is not changed; ``words``: what the cycle says of it."""
    if job.state is not JobState.WAITING:
        return words
    off = [name for name in job.partitions if cycling.config.mode(name) is Mode.OFF]
    if off:
        unread = "" if job.spec else ": what a job says to it is not read there"
        return f"Pliant is off in partition {', '.join(off)}{unread}"
    return (
        words
        if job.spec or job.frozen
        else "it says nothing to Pliant; `pliant set` gives it a request"
    )


_WORDS = {
    "start": "can start as {}",
    "keep": "waited for an opening as {}",
    "mold": "was changed to {}",
    "would": "would be changed to {}",
    "refused": "{} is left out",
    "filter": "was submitted as {}",
    "unanswered": "was submitted as {}",
    "rescue": "was given back {}",
    "mark": "may start beside another as {}",
    "unmark": "starts beside nobody as {}",
}

MOST_NODES = 3
"""How many nodes of a claim are named in a line."""


def decision_text(decision: Decision) -> str:
    """A decision in words."""
    return f"{_WORDS.get(decision.what, '{}').format(decision.shape)}: {decision.reason}"


def kept(seen: Seen, cycling: Cycling) -> dict[str, str]:
    """What is kept now for first waiting jobs, in words, by job."""
    found = (part.claim for part in parts(seen, cycling))
    return {c.job.id: _kept(c, seen.snapshot.now_s) for c in found if c is not None}


def _kept(claim: Claim, now_s: float) -> str:
    minutes = max(0, round((claim.at_s - now_s) / 60))
    shape = shape_text(claim.shape)
    return f"waits; {_some(claim.nodes)} is kept for it as {shape} in {minutes} min"


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - MOST_NODES
    return ", ".join(names[:MOST_NODES]) + (f" and {more} more" if more > 0 else "")


def decision_rows(decisions: Iterable[Decision]) -> tuple[DecisionRow, ...]:
    """Decisions as they are answered."""
    return tuple(DecisionRow(d.at_s, d.what, d.shape, d.reason) for d in decisions)


def start_row(start: Start, acting: bool) -> StartRow:
    """A job that can start now; ``acting``: whether Pliant changes jobs there."""
    job = start.job
    changed = "" if start.shape == job.shape else ("will" if acting else "would") + " be changed"
    return StartRow(
        id=job.id,
        user=job.user,
        carried=shape_text(job.shape),
        shape=shape_text(start.shape),
        nodes=start.nodes,
        reason=start.reason,
        tasks=start.tasks,
        change=changed,
    )


def claim_row(claim: Claim) -> ClaimRow:
    """What is kept for a first waiting job."""
    job = claim.job
    shape = shape_text(claim.shape)
    return ClaimRow(job.id, job.user, shape, claim.at_s, claim.nodes, claim.reason)


def change_row(mold: Mold, acting: bool) -> ChangeRow:
    """A change that the decision asks for."""
    job = mold.job
    carried, shape = shape_text(job.shape), shape_text(mold.shape)
    return ChangeRow(job.id, job.user, carried, shape, mold.reason, acting)


def running_rows(plan: Plan) -> Iterator[ChangeRow]:
    """What running jobs would be told: to go on as another shape, or to make room."""
    for preempt in plan.preempts:
        job = preempt.job
        yield ChangeRow(job.id, job.user, shape_text(job.shape), "", preempt.reason, done=False)
    for reshape in plan.reshapes:
        job, shape = reshape.job, shape_text(reshape.shape)
        yield ChangeRow(job.id, job.user, shape_text(job.shape), shape, reshape.reason, done=False)


def shape_row(tried: Tried) -> ShapeRow:
    """One shape of a job that waits."""
    return ShapeRow(
        shape_text(tried.shape), tried.fits, tried.earliest_s or 0.0, tried.why_not, tried.nodes
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A start, a claim or a change of the decision that its job falls under."""

    acting: bool
    of: Start | Claim | Mold

    @property
    def start(self) -> Start | None:
        """The start that it is, if it is one."""
        return self.of if isinstance(self.of, Start) else None

    @property
    def claim(self) -> Claim | None:
        """The claim that it is, if it is one."""
        return self.of if isinstance(self.of, Claim) else None

    @property
    def mold(self) -> Mold | None:
        """The change that it is, if it is one."""
        return self.of if isinstance(self.of, Mold) else None


def parts(seen: Seen, cycling: Cycling) -> Iterator[Part]:
    """The decision, job by job from the plan that the job falls under: rigid ones are acted on."""
    for plan, acting in ((seen.plan, True), (seen.shadow, False)):
        every: tuple[Start | Claim | Mold, ...] = (*plan.starts, *plan.claims, *plan.actions)
        for part in every:
            if (part.job.spec is None or cycling.acts_on(part.job)) is acting:
                yield Part(acting, part)
