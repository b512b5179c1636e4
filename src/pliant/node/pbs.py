"""What a job's environment says of its run on PBS, and what a wrapper cannot have of PBS."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pliant.node.ancestors import above, is_anywhere
from pliant.node.words import CHECKPOINTED

JOB = "PBS_JOBID"
WORKDIR = "PBS_O_WORKDIR"
RESTARTS = "PLIANT_RESTART_COUNT"
RETURNS = "PLIANT_RETURNS"
MOM = "pbs_mom"


def is_here(environ: Mapping[str, str]) -> bool:
    """Whether this is a job of PBS's."""
    return "SLURM_JOB_ID" not in environ and JOB in environ


def job_of(environ: Mapping[str, str]) -> str:
    """Return the job's id as pliantd knows it: without its server."""
    return environ.get(JOB, "").partition(".")[0]


def returns(environ: Mapping[str, str]) -> bool:
    """Whether the hooks send a job back that ends with CHECKPOINTED; only they say so."""
    return is_here(environ) and environ.get(RETURNS, "") == str(CHECKPOINTED)


class Mom:
    """Whether PBS learns how the job's script ends.

    A pbs_mom that was started again, with -p, is not the parent of the scripts that run since
    before: it takes each for one that ended with 0.
    """

    def __init__(self) -> None:
        """Note who is above now."""
        self._first = above(MOM)

    def waits(self) -> bool:
        """Whether a pbs_mom is above this process, as far as can be told.

        Where others' processes are not shown, the same one as at first is taken for it, unless it
        is process 1, which becomes the parent of whose own has ended. And where none was ever to
        be seen, as in a container with process ids of its own, it is taken to be outside.
        """
        now = process, name = above(MOM)
        if name == MOM or now != self._first:
            return name == MOM
        return process != "1" if name == "" else not is_anywhere(MOM)


def requeue(_job: str, _restarts: int) -> str:
    """Say why a job is not requeued: PBS never lets its owner do so."""
    if returns(os.environ):
        return "PBS lets no job requeue itself, and pliantd has not done it"
    return "PBS has no hook of Pliant's here that would send it back to the queue"


def why_ended(_job: str, _restarts: int) -> str:
    """Say nothing: PBS tells nobody in the job why it is being ended."""
    return ""
