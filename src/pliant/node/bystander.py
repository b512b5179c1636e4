"""What stands beside the program where the wrapper and its witness are gone, and small helps."""

from __future__ import annotations

import _signal
import os

MYPY = False  # typing takes longer to import than all of the guardian
if MYPY:
    from collections.abc import Callable
    from typing import Any

DEATH = 1  # PR_SET_PDEATHSIG


def bystander(prctl: Any) -> int:
    """Fork a child that only a signal ends: what it dies of has reached the program too."""
    pid = attempt(os.fork)
    if pid == 0:
        prctl(DEATH, _signal.SIGKILL, 0, 0, 0)
        for number in (_signal.SIGINT, _signal.SIGPIPE, _signal.SIGXFSZ):  # Python's own ways
            _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        while True:
            _signal.pause()
    return pid or 0


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended; 0 is none."""
    if pid:
        attempt(os.kill, pid, number)


def attempt(does: Callable[..., Any], *words: Any) -> Any:
    """Do it, or return None: one that has ended, or a pipe without an end, costs no job."""
    try:
        return does(*words)
    except (OSError, ValueError):
        return None
