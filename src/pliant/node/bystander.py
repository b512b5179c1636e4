"""What stands beside the program where the wrapper and its witness are gone, and small helps."""

from __future__ import annotations

import _signal
import errno
import os
import sys
import time

MYPY = False  # typing takes longer to import than all of the guardian
if MYPY:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn

DEATH = 1  # PR_SET_PDEATHSIG
OURS = (_signal.SIGPIPE, _signal.SIGXFSZ)  # Python ignores them, and who it becomes would too
FAULTS = (1, 70)  # of a wrapper that began nothing: an uncaught exception, and a caught one
MARK_S = 2.0
"""How long a file system may take to make a mark."""
_is_deaf = False  # whether who started us ignores SIGCHLD


def hear_ends() -> None:
    """Take SIGCHLD again where it was ignored: nobody would learn of an exit code (wait(2))."""
    global _is_deaf  # noqa: PLW0603  # one for each process
    _is_deaf = _signal.getsignal(_signal.SIGCHLD) == _signal.SIG_IGN
    if _is_deaf:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)


def as_started() -> None:
    """Take signals as we were started, in what becomes the program, but for Python's own ways."""
    for number in OURS:
        _signal.signal(number, _signal.SIG_DFL)
    if _is_deaf:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)


def become(argv: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Become the program, as execvp(3) would. Raises OSError."""
    as_started()
    try:
        os.execvpe(argv[0], [*argv], environ)  # noqa: S606  # no shell is meant
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    script = as_script(argv, environ)
    os.execve(script[0], script, environ)  # noqa: S606  # its owner's own words, as they are


def as_script(argv: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """What execvp(3) makes of a file that the kernel does not know: a script for sh."""
    name = argv[0]
    places = [""] if "/" in name else os.get_exec_path(environ)
    some = (os.path.join(place, name) for place in places)
    return ["/bin/sh", next((one for one in some if os.access(one, os.X_OK)), name), *argv[1:]]


def bystander(prctl: Any) -> int:
    """Fork a child that only a signal ends: what it dies of has reached the program too."""
    parent = os.getpid()
    pid = attempt(os.fork)
    if pid == 0:
        prctl(DEATH, _signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it was killed before that
            os._exit(128 + _signal.SIGKILL)
        for number in (_signal.SIGINT, *OURS):  # Python's own ways
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
        attempt(become, words[words.index("--") + 1 :], os.environ)


def clear(saved: str, lost: str) -> None:
    """Remove what a lost wrapper left: its own directory, by a file in it; say that it is done."""
    folder = os.path.dirname(saved)
    for name in attempt(os.listdir, folder) or () if folder else ():
        attempt(os.unlink, os.path.join(folder, name))
    attempt(os.rmdir, folder)
    mark(lost.replace("lost-", "left-")) if lost else None


def mark(path: str) -> None:
    """Make a file where a file system may hang: in a child, that is waited for shortly."""
    pid = attempt(os.fork)
    if not pid:  # the child; or we, where there can be none
        attempt(os.mknod, path)
        if pid == 0:
            os._exit(0)
        return
    end_s = time.monotonic() + MARK_S
    while attempt(os.waitpid, pid, os.WNOHANG) == (0, 0) and time.monotonic() < end_s:
        time.sleep(0.01)


def attempt(does: Callable[..., Any], *words: Any) -> Any:
    """Do it, or return None: one that has ended, or a pipe without an end, costs no job."""
    try:
        return does(*words)
    except (OSError, ValueError):
        return None
