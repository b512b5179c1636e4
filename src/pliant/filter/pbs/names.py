"""What things are called in PBS: our custom resources, and the variables in a job's environment."""

from __future__ import annotations

from dataclasses import dataclass

from pliant.grammar.options import OPTIONS
from pliant.model.requests import Request
from pliant.model.shapes import Kind, Shape, shape_text

TOKEN = "pliant"  # noqa: S105  # no secret
"""The resource that holds the token; only managers and hooks write it (``flag=r``)."""
RESOURCES = {option: option.replace("-", "_") for option in OPTIONS}
"""The resource for each option: ``qsub -l job_class=trial``."""
ASKED = {option: f"PLIANT_{name.upper()}" for option, name in RESOURCES.items()}
"""The variable for each option, where a site has no such resource: ``qsub -v PLIANT_STEPS=9``."""

COUNTED = ("ncpus", "ngpus", "mpiprocs", "ompthreads")
"""The resources that PBS takes as numbers, not as text."""

SHAPE = "PLIANT_SHAPE"
NODES = "PLIANT_NODES"
GPUS = "PLIANT_GPUS"
TYPE = "PLIANT_TYPE"
SHARE = "PLIANT_SHARE"
RESTARTS = "PLIANT_RESTART_COUNT"
"""In the job: how often it was restarted. In its record: how often before run_count began anew."""
RETURNS = "PLIANT_RETURNS"
"""The exit code with which the job goes back to the queue; "" where with none."""
HELD = "PLIANT_HELD"
"""Of 0.1.0, whose hook could hold a job that went back: run_count at the end of that run."""
BACK = "PLIANT_BACK"
"""What our hook that sends a job back to the queue notes of it: a Back as text."""
SENT_BACK = "-18"
"""The Exit_status of a job that a hook has sent back (JOB_EXEC_HOOK_RERUN in src/include/job.h)."""
PLACE = "PLIANT_PLACE"
"""The place that the owner of a job wrote which may be spread over nodes (see places.py)."""
UNANSWERED = "PLIANT_UNANSWERED"
"""Whether pliantd told the hook nothing, for too long, when a job was submitted."""
WROTE = "PLIANT_WROTE"
"""The shape that a job's owner wrote, where that has no GPU and the own one of its token has."""
CHECKPOINTED = 85
HOOKS = "pliant_"
"""How the names of our hooks begin."""
SENDS_BACK = HOOKS + "execjob_epilogue"
"""The hook by which jobs go back to the queue."""
KEEPS_OUT = HOOKS + "runjob"
"""The hook that keeps others out of what a job gives up meanwhile."""
LONGEST = 20
"""Of the numbers in variables, which are anybody's to write."""


def shape_variables(shape: Shape) -> dict[str, str]:
    """Return what a job's environment says of its shape."""
    return {
        SHAPE: shape_text(shape),
        NODES: str(shape.nodes),
        GPUS: str(shape.nodes * shape.gpus if shape.kind is not Kind.CPU else 0),
        TYPE: str(shape.kind),
        SHARE: str(shape.share),
    }


@dataclass(frozen=True, slots=True)
class Back:
    """How a job was sent back to the queue, ``RUNS:TIMES[:BEGINS]``.

    ``runs``: run_count at the end of its run; the start after it is one that our hook refuses (see
    execjob_launch). ``times``: how often it was sent back. ``begins_s``: the time to begin that
    it was given, in seconds since the epoch; 0: none.
    """

    runs: int
    times: int
    begins_s: int = 0

    def __str__(self) -> str:
        begins = f":{self.begins_s}" if self.begins_s else ""
        return f"{self.runs}:{self.times}{begins}"


def read_back(text: str) -> Back | None:
    """Return what BACK says; None where nothing, or nothing of ours."""
    numbers = text.split(":")
    if len(numbers) not in (2, 3) or len(text) > 2 * LONGEST:
        return None
    if not all(one.isdecimal() for one in numbers):
        return None
    return Back(*map(int, numbers))


def restarts(before: str, back: str, run_count: int) -> int:
    """Return how often a job was restarted, as RESTARTS, BACK and run_count of its record say.

    A start that our hook refused is none.
    """
    refused = read_back(back)
    return max(0, earlier_runs(before) + run_count - 1 - (refused.times if refused else 0))


def earlier_runs(before: str) -> int:
    """Return how often a job was started before its run_count began anew, as RESTARTS says."""
    return int(before) if before.isdecimal() and len(before) < LONGEST else 0


def returns(request: Request) -> str:
    """Return the exit code with which a job of this request goes back to the queue, or ""."""
    return str(CHECKPOINTED) if request.is_elastic else ""
