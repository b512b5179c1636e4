"""What a job's environment says of its run on PBS, and what a wrapper cannot have of PBS."""

from __future__ import annotations

from collections.abc import Mapping

from pliant.node.words import CHECKPOINTED

JOB = "PBS_JOBID"
WORKDIR = "PBS_O_WORKDIR"
RESTARTS = "PLIANT_RESTART_COUNT"
RETURNS = "PLIANT_RETURNS"


def is_here(environ: Mapping[str, str]) -> bool:
    """Whether this is a job of PBS's."""
    return "SLURM_JOB_ID" not in environ and JOB in environ


def job_of(environ: Mapping[str, str]) -> str:
    """Return the job's id as pliantd knows it: without its server."""
    return environ.get(JOB, "").partition(".")[0]


def returns(environ: Mapping[str, str]) -> bool:
    """Whether the hooks send a job back that ends with CHECKPOINTED; only they say so."""
    return is_here(environ) and environ.get(RETURNS, "") == str(CHECKPOINTED)


def requeue(_job: str, _restarts: int) -> str:
    """Say why a job is not requeued: PBS never lets its owner do so."""
    return "PBS has no hook of Pliant's here that would send it back to the queue"


def why_ended(_job: str, _restarts: int) -> str:
    """Say nothing: PBS tells nobody in the job why it is being ended."""
    return ""
