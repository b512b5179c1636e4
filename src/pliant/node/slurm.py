"""What a wrapper asks Slurm itself, seldom: to requeue its own job, and why it is ended."""

from __future__ import annotations

from pliant.errors import PliantError

TIMEOUT_S = 20.0


def requeue(job: str) -> str:
    """Requeue a job; return "" or why that failed, in one line."""
    from pliant.batch.slurm.commands import Commands  # noqa: PLC0415  # seldom needed

    try:
        answer = Commands(timeout_s=TIMEOUT_S).run(["scontrol", "requeue", job])
    except PliantError as error:
        return str(error)
    return answer.words if answer.status else ""


def why_ended(job: str) -> str:
    """Ask why a job is being ended; "" where that is not known."""
    from pliant.batch.slurm.commands import Commands  # noqa: PLC0415

    try:
        answer = Commands(timeout_s=TIMEOUT_S).run(
            ["squeue", "-h", "-t", "all", "-j", job, "-o", "%T|%r|%L"]
        )
    except PliantError:
        return ""
    return words(answer.out) if answer.status == 0 else ""


def words(row: str) -> str:
    """Say in words what ``STATE|REASON|TIME LEFT`` means for a job that was sent a TERM.

    The state of one that is being ended reads COMPLETING, whatever the reason (squeue(1)).
    """
    state, _, rest = row.strip().partition("|")
    reason, _, left = rest.partition("|")
    if state in ("TIMEOUT", "DEADLINE") or "TimeLimit" in reason or left in ("0:00", "INVALID"):
        return "its time limit is reached"
    if state == "PREEMPTED" or "Preempt" in reason:
        return "Slurm preempts it"
    if state in ("PENDING", "REQUEUED", "REQUEUE_HOLD") or reason in ("BeginTime", "JobHeldUser"):
        return "it is requeued"
    if state in ("NODE_FAIL", "BOOT_FAIL") or "Node" in reason:
        return "its node is taken away"
    return "it is cancelled" if state in ("CANCELLED", "COMPLETING") else ""
