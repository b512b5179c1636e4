"""What a wrapper asks Slurm itself, seldom: to requeue its own job, and why it is ended."""

from __future__ import annotations

from pliant.errors import PliantError

TIMEOUT_S = 20.0
FIELDS = "State:|,Reason:|,TimeLeft:|,RestartCnt:|"


def requeue(job: str) -> str:
    """Requeue a job; return "" or why that failed, in one line."""
    from pliant.batch.slurm.commands import Commands  # noqa: PLC0415  # seldom needed

    try:
        answer = Commands(timeout_s=TIMEOUT_S).run(["scontrol", "requeue", job])
    except PliantError as error:
        return str(error)
    return answer.words if answer.status else ""


def why_ended(job: str, restarts: int) -> str:
    """Ask why this run of a job is being ended; "" where that is not known."""
    from pliant.batch.slurm.commands import Commands  # noqa: PLC0415  # seldom needed

    try:
        answer = Commands(timeout_s=TIMEOUT_S).run(
            ["squeue", "-h", "-t", "all", "-j", job, "-O", FIELDS]
        )
    except PliantError:
        return ""
    return words(answer.out, restarts) if answer.status == 0 else ""


def words(row: str, restarts: int) -> str:
    """Say in words what a row of FIELDS means for a run that was sent a TERM.

    The state of one that is being ended reads COMPLETING, whatever the reason (squeue(1)); a
    requeue counts the restart at once.
    """
    state, reason, left, counted, *_ = [*row.strip().split("|"), "", "", "", ""]
    if counted.isdecimal() and int(counted) > restarts:
        return "it is requeued"
    if state in ("TIMEOUT", "DEADLINE") or reason == "TimeLimit":
        return "its time limit is reached"
    if state == "PREEMPTED" or "Preempt" in reason:
        return "Slurm preempts it"
    if state in ("NODE_FAIL", "BOOT_FAIL") or "Node" in reason:
        return "its node is taken away"
    return "it is cancelled" if state in ("CANCELLED", "COMPLETING") and left else ""
