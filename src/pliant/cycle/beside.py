"""What to say of jobs that share a node: with whom, and how fast they are together."""

from __future__ import annotations

from pliant.model import ANYWHERE, Job, Snapshot, jobs_text


def beside(snapshot: Snapshot, job: Job) -> str:
    """Return what to say of a running job whose owner lets it share; "" of all others."""
    if not job.colocates:
        return ""
    others = [
        other.id
        for other in snapshot.running
        if other.id != job.id and not {*other.nodes}.isdisjoint(job.nodes)
    ]
    table = snapshot.company.table
    if not others:
        known = frozenset((job.id,)) in table
        told = "" if known else ", which is being measured" if job.shares else ""
        words = "; its speed alone is known" if known else ""
        return f"; it has its node alone{told}{words}{_closed(job)}"
    speeds = table.get(frozenset((job.id, *others)))
    fast = f" at {speeds[job.id]:.2f} of its speed alone" if speeds is not None else ""
    return f"; it shares {', '.join(job.nodes)} with {jobs_text(others)}{fast}"


def _closed(job: Job) -> str:
    return "" if job.shares else "; nobody can join it: it had no mark when it started"


def may_share(job: Job) -> str:
    """Return what to say of a waiting job that is marked; "" of all others."""
    if not job.mark:
        return ""
    where = "wherever another is that is marked" if job.mark == ANYWHERE else f"on {job.mark}"
    return f"; it may start beside another job, {where}"
