"""What a wrapper asks Slurm itself, seldom: to requeue its own job, and why it is ended."""

from __future__ import annotations

from pliant.errors import PliantError

TIMEOUT_S = 20.0
FIELDS = "State:|,Reason:|,TimeLeft:|,RestartCnt:|"


def requeue(job: str, restarts: int) -> str:
    """Requeue a job; return "" or why that failed, in one line.

    Slurm refuses it of one that has been requeued already, while its slurmd does not answer say:
    this run is over then, and the next one may have begun elsewhere.
    """
    from pliant.batch.slurm.commands import Commands  # noqa: PLC0415  # seldom needed

    try:
        answer = Commands(timeout_s=TIMEOUT_S).run(["scontrol", "requeue", job])
    except PliantError as error:
        return str(error)
    return answer.words if answer.status and not is_over(_row(job), restarts) else ""


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
    """Whether a row of FIELDS is of a job whose run of so many restarts holds nothing any more."""
    state, _, _, counted, *_ = _fields(row)
    return state in ("PENDING", "COMPLETING") or _is_later(counted, restarts)


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
