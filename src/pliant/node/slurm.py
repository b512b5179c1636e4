"""What a wrapper asks Slurm itself, seldom: to requeue its own job, and why it is ended."""

from __future__ import annotations

from pliant.errors import PliantError

TIMEOUT_S = 20.0
FIELDS = "State:|,Reason:|,TimeLeft:|,RestartCnt:|"
_BACK = frozenset(("PENDING", "COMPLETING"))
_ENDED = frozenset(("CANCELLED", "COMPLETED", "TIMEOUT", "DEADLINE", "PREEMPTED"))
"""The states of a job that is not to come back; one that has FAILED, or whose node has, would lose
what it has saved.
"""
_GONE = "Invalid job id specified"
"""Slurm's words where it has forgotten a job that ended: after MinJobAge."""


def requeue(job: str, restarts: int) -> str:
    """Requeue a job; return "" or why that failed, in one line.

    Not one that has been requeued already, is not to come back, or is not known any more: this run
    is over then, and another may have its GPUs, where nobody could end it, as its slurmstepd was
    killed.
    """
    from pliant.batch.slurm.commands import Commands  # noqa: PLC0415  # seldom needed

    if is_over(_row(job), restarts):
        return ""
    try:
        answer = Commands(timeout_s=TIMEOUT_S).run(["scontrol", "requeue", job])
    except PliantError as error:
        return str(error)
    is_gone = _GONE in answer.words
    return answer.words if answer.status and not (is_gone or is_over(_row(job), restarts)) else ""


def why_ended(job: str, restarts: int) -> str:
    """Ask why this run of a job is being ended; "" where that is not known."""
    return words(_row(job), restarts)


def _row(job: str) -> str:
    """Return a job's FIELDS; "" where Slurm does not say."""
    from pliant.batch.slurm.commands import Commands  # noqa: PLC0415  # seldom needed

    try:
        answer = Commands(timeout_s=TIMEOUT_S).run(
            ["squeue", "-h", "-t", "all", "-j", job, "-O", FIELDS]
        )
    except PliantError:
        return ""
    return "" if answer.status else answer.out


def is_over(row: str, restarts: int) -> bool:
    """Whether a row of FIELDS is of a job whose run of so many restarts is not to be requeued."""
    state, _, _, counted, *_ = _fields(row)
    return state in _BACK | _ENDED or _is_later(counted, restarts)


def words(row: str, restarts: int) -> str:
    """Say in words what a row of FIELDS means for a run that was sent a TERM.

    The state of one that is being ended reads COMPLETING, whatever the reason (squeue(1)); a
    requeue counts the restart at once.
    """
    state, reason, left, counted, *_ = _fields(row)
    if _is_later(counted, restarts):
        return "it is requeued"
    if state in ("TIMEOUT", "DEADLINE") or reason == "TimeLimit":
        return "its time limit is reached"
    if state == "PREEMPTED" or "Preempt" in reason:
        return "Slurm preempts it"
    if state in ("NODE_FAIL", "BOOT_FAIL") or "Node" in reason:
        return "its node is taken away"
    return "it is cancelled" if state in ("CANCELLED", "COMPLETING") and left else ""


def _fields(row: str) -> list[str]:
    return [*row.strip().split("|"), "", "", "", ""]


def _is_later(counted: str, restarts: int) -> bool:
    return counted.isdecimal() and int(counted) > restarts
