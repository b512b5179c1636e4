"""What runs in the worker process: the one module that imports pyslurm.

A question is a list, its answer a dictionary: ``{"rows": ...}``, ``{"refused": words}``,
``{"done": True}``, or ``{"unfit": words}`` where pyslurm cannot be used.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pliant.batch.slurm.native import rows
from pliant.batch.slurm.native.frames import receive, send

GRACE_S = 2.0
"""How much longer than pliantd the worker waits for itself, should nobody be there to kill it."""


def answer(question: Sequence[Any]) -> Mapping[str, object]:
    """Answer ``["load"]``, ``["jobs"]``, or ``["update", job id, arguments]``.

    No error leaves it.
    """
    try:
        import pyslurm  # noqa: PLC0415 - it takes what it finds: it may be missing, or end us
    except Exception as error:
        return {"unfit": f"{type(error).__name__}: {error}"}
    if question[0] == "load":  # whether it can be, and nothing more
        return {"done": True}
    try:
        if question[0] == "jobs":
            return _jobs(pyslurm)
        return _update(pyslurm, *question[1:])
    except pyslurm.RPCError as error:
        return {"refused": str(error)}
    except Exception as error:
        return {"unfit": f"{type(error).__name__}: {error}"}


def _jobs(pyslurm: Any) -> Mapping[str, object]:
    """All jobs as rows of squeue, and the ids of those of which pyslurm does not know all."""
    found, unsure = [], []
    for job in pyslurm.Jobs.load().values():
        if job.state in _OVER:
            continue
        try:
            fields = rows.fields(job)
        except (ValueError, TypeError, AttributeError):  # a text that is not UTF-8, say
            fields = None
        if fields is None or None in fields:
            unsure.append(str(job.id))
        else:
            found.append(fields)
    return {"rows": found, "unsure": unsure}


_OVER = frozenset(
    ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL")
) | {"DEADLINE", "OUT_OF_MEMORY", "REVOKED"}
"""What squeue does not show either."""


def _update(pyslurm: Any, job_id: int, arguments: Mapping[str, str | int]) -> Mapping[str, object]:
    pyslurm.Job(job_id).modify(pyslurm.JobSubmitDescription(**arguments))
    return {"done": True}


def main(argv: Sequence[str]) -> None:
    """Answer until pliantd goes: ``argv`` is the socket's number and the time limit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # pliantd ends us
    with socket.socket(fileno=int(argv[0])) as door:
        while True:
            try:
                question = receive(door)
            except (EOFError, OSError):
                return
            # A call into the library cannot be broken off: after this the kernel ends us.
            signal.setitimer(signal.ITIMER_REAL, float(argv[1]) + GRACE_S)
            told = answer(question)
            signal.setitimer(signal.ITIMER_REAL, 0)
            send(door, told)


if __name__ == "__main__":
    main(sys.argv[1:])
