"""What pliantd and a malleable job's wrapper, ``pliant run``, say to each other at door 2.

================  ==================================  ============================================
``run-begin``     host, grace, signal, others, age,   a run has begun; ``grace`` in s, 0: not known;
                  lost                                ``others`` is 1 where an earlier answer said
                                                      that there are ``several``; ``age``: for how
                                                      many s the wrapper has lived
``run-launched``  step, rate, ago                     its program works, since ``ago`` seconds
``run-watch``     known, step, rate, beat, launched,  at once where there is a wish that is not
                  lost                                ``known``, else after at most WATCH_S;
                                                      ``beat``: for how many s it has been at
                                                      ``step``, which earlier releases do not say
``run-saved``     wish, took, step, number            the program has saved and ended; where the
                                                      answer is ok, pliantd requeues, unless it
                                                      says ``several`` or ``stays``, as a later
                                                      ``run-watch`` may; said again until then
``run-failed``    wish, words, number, untold         no checkpoint was made; the program runs on;
                                                      ``untold`` is 1 where it could not be asked
``run-end``       code, termed                        the program ended by itself; ``termed`` is 1
                                                      where it had been sent a TERM by others
================  ==================================  ============================================

All carry ``job`` (the job's own number, SLURM_JOB_ID, which no job inherits; a task of an array has
another than squeue shows), ``run`` (how often it was restarted, as its environment says until
``run-begin`` is answered, as the answer says from then on) and ``word``, the wrapper's own, by
which two of one job are told apart; earlier releases have none. ``lost`` is 1 while a task of the
step has lost its wrapper: its program would not hear of a wish. ``number`` counts what a wrapper
says of checkpoints: of two the later one is true, whichever comes first; earlier releases have
none.
"""

from __future__ import annotations

from dataclasses import dataclass

WATCH_S = 25.0
"""How long pliantd keeps a ``run-watch`` waiting at most."""
MOST = 10**15
"""Steps and seconds beyond this are no measurement."""
TAKE_OVER_S = 60.0
"""How long a wrapper waits to be ended once pliantd has taken its checkpointed job over."""


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """What pliantd wants of a run. An empty ``wish``: nothing."""

    wish: str = ""  # an id; a wish that is gone or another is withdrawn
    why: str = ""  # resize, preempt
    shape: str = ""  # what the job is to become; "" where not known
    until_s: float = 0.0  # by when the checkpoint must be done, seconds since the epoch
    state: str = ""  # the job's phase in its lifecycle
    now_s: float = 0.0  # pliantd's clock, so that until_s is right on a host whose clock is not
    several: bool = False  # another wrapper speaks for this run: nothing is asked, nothing requeued
    run: int = -1  # which one it is; -1: an earlier release does not say
    signal: str = ""  # by which the job's program is told of a wish, as its owner said; "": none
    checkpoint: str = ""  # which its owner named: to be new and whole before ``run-saved``
    stays: bool = False  # it has saved, and is to stay: it could not start again, or be requeued
