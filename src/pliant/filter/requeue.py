"""Jobs that may be requeued: a malleable one is resized so, and a best-effort one preempted.

Whether Slurm requeues a job at all is the site's choice (slurm.conf(5), JobRequeue) where its owner
does not say it (sbatch(1), --requeue and --no-requeue). Who calls a job malleable or best-effort
asks for it, so it is said for them; who says --no-requeue besides keeps that.
"""

from __future__ import annotations

from collections.abc import Mapping

from pliant.filter.fields import number
from pliant.model import JobClass, Mode, Request

FIELD = "requeue"


def requeue_fields(
    submission: Mapping[str, str], request: Request, mode: Mode
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the fields to set so that Slurm requeues the job, and what its owner should know."""
    what = _what(request)
    if not what:
        return {}, ()
    if number(submission, "het_job_offset") is not None:
        return {}, (f"pliant: a component of a heterogeneous job is {what}",)
    if submission.get("batch") == "0":
        return {}, (f"pliant: only jobs of sbatch can be requeued: this one is {what}",)
    said = number(submission, FIELD)
    if said == 0:
        return {}, (f"pliant: --no-requeue: the job is {what}",)
    return ({FIELD: "1"} if said is None and mode is Mode.ENFORCE else {}), ()


def _what(request: Request) -> str:
    """What is not done with such a job that cannot be requeued; "" for all others."""
    resizes, stops = request.malleable is not None, request.job_class is JobClass.BEST_EFFORT
    if resizes and stops:
        return "neither resized nor preempted"
    return "not resized" if resizes else "not preempted" if stops else ""
