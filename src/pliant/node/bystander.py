"""What stands beside the program where the wrapper and its witness are gone, and small helps."""

from __future__ import annotations

import _signal
import os
import sys

MYPY = False  # typing takes longer to import than all of the guardian
if MYPY:
    from collections.abc import Callable
    from typing import Any

DEATH = 1  # PR_SET_PDEATHSIG
FAULTS = (1, 70)  # of a wrapper that began nothing: an uncaught exception, and a caught one
_is_deaf = False  # whether who started us ignores SIGCHLD


def hear_ends() -> None:
    """Take SIGCHLD again where it was ignored: nobody would learn of an exit code (wait(2))."""
    global _is_deaf  # noqa: PLW0603  # one for each process
    _is_deaf = _signal.getsignal(_signal.SIGCHLD) == _signal.SIG_IGN
    if _is_deaf:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)


def as_started() -> None:
    """Ignore SIGCHLD again, in what becomes the program, where we were started so."""
    if _is_deaf:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)


def bystander(prctl: Any) -> int:
    """Fork a child that only a signal ends: what it dies of has reached the program too."""
    parent = os.getpid()
    pid = attempt(os.fork)
    if pid == 0:
        prctl(DEATH, _signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it was killed before that
            os._exit(128 + _signal.SIGKILL)
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


def plainly(code: int, caught: Any, mask: Any) -> None:
    """Become the program where the wrapper fell before it began; return where it is not known.

    One that ended by a signal that we pass on was told to.
    """
    words = sys.orig_argv
    if "--" in words and (code in FAULTS or (code < 0 and -code not in caught)):
        how = f"was killed by signal {-code}" if code < 0 else "failed"
        line = f"pliant run: its wrapper {how} before the program began: it runs without\n"
        attempt(os.write, 2, line.encode())
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        as_started()
        argv = words[words.index("--") + 1 :]
        attempt(os.execvp, argv[0], argv)


def clear(saved: str, lost: str) -> None:
    """Remove what a lost wrapper left: its own directory, by a file in it; say that it is done."""
    folder = os.path.dirname(saved)
    for name in attempt(os.listdir, folder) or () if folder else ():
        attempt(os.unlink, os.path.join(folder, name))
    attempt(os.rmdir, folder)
    attempt(os.mknod, lost.replace("lost-", "left-")) if lost else None


def attempt(does: Callable[..., Any], *words: Any) -> Any:
    """Do it, or return None: one that has ended, or a pipe without an end, costs no job."""
    try:
        return does(*words)
    except (OSError, ValueError):
        return None
