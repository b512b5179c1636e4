"""Puts a guardian above ``pliant run`` in a job, before anything large is imported."""

from __future__ import annotations

import _signal  # what Python's signal stands on, without its enums, which take 6 ms
import os

from pliant.node.bystander import DEATH, hear_ends
from pliant.node.guardian import Guardian

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
LEFT = {4, 5, 7, 8, 9, 11, 17, 18, 19, 20, 21, 22, 23, 28, 31}  # as pliant.node.launch
link: tuple[int, int, int] | None = None
"""Of a wrapper below a guardian: its process id, where to tell it, where to hear it."""


def guard(environ: os._Environ[str]) -> None:
    """Return in a child, the wrapper; or here, where there is no job or can be no guardian."""
    global link  # noqa: PLW0603  # one for each process
    hear_ends()
    job = environ.get("SLURM_JOB_ID") or environ.get("PBS_JOBID", "").partition(".")[0]
    asked = os.path.dirname(environ.get("PLIANT_CHECKPOINT_REQUESTED", ""))
    is_inside = os.path.basename(asked).startswith(f"pliant-{job}-") and os.path.exists(asked)
    if not job or is_inside:
        return
    every = _signal.valid_signals() - LEFT
    caught = {number for number in every if _signal.getsignal(number) != _signal.SIG_IGN}
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, {*caught, _signal.SIGCHLD})
    try:
        link = _below(caught, mask)
    except (ImportError, AttributeError, OSError):
        pass  # the program runs as without a guardian
    _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def _below(caught: set[int], mask: set[int]) -> tuple[int, int, int] | None:
    import ctypes  # noqa: PLC0415  # in jobs alone

    prctl, us = ctypes.CDLL(None).prctl, os.getpid()
    (told, tells), (hears, says) = os.pipe(), os.pipe()
    if prctl(SUBREAPER, 1, 0, 0, 0):
        return None
    wrapper = os.fork()
    if wrapper:
        os.close(tells)
        Guardian(wrapper, (told, says), (caught, mask), prctl).stand()
    prctl(DEATH, _signal.SIGCHLD, 0, 0, 0)  # wakes the wrapper, which sees it by its pipe
    if os.getppid() != us:
        os._exit(128 + _signal.SIGKILL)
    os.close(told)
    os.close(says)
    return us, tells, hears
