"""Stands above ``pliant run`` in a job, so that the end of its wrapper costs no job.

The first process forks the wrapper before anything large is imported, waits, passes signals on.
The program is its child too: the wrapper starts it through a process that ends at once, and the
guardian adopts it (PR_SET_CHILD_SUBREAPER, prctl(2)). A wrapper's death changes nothing for it: its
PR_SET_PDEATHSIG hangs on its parent. The wrapper says, by lines, ``program PID``, ``saved FILE``
and ``lost FILE`` (made where it is lost); it is told ``PID CODE`` of what has ended.
"""

from __future__ import annotations

import _signal
import os
import sys
import time

from pliant.node.bystander import attempt, bystander, clear, mark, plainly, send

MYPY = False  # typing takes longer to import than all of this
if MYPY:
    from typing import Any

SAVED = 85
LEAVE_S = 20.0
"""How long a wrapper may outlast a program that has not saved: it takes ten seconds at most."""
KILLED_S = 5.0
"""How long after a KILL: a process that a file system keeps dies of none."""
KIND = "-I" if sys.flags.isolated else "-P"
START = (sys.executable, KIND, "-c", "from pliant.entry import alone; alone()")


class Guardian:
    """A process id of 0 is none."""

    def __init__(
        self, wrapper: int, pipes: tuple[int, int], signals: tuple[set[int], set[int]], prctl: Any
    ) -> None:
        """``pipes``: from the wrapper, to it; ``signals``: caught, and blocked before."""
        self.wrapper, self.program, self.witness, self.code, self.saw = wrapper, 0, 0, 0, 0
        self.pipes, (self.caught, self.mask), self.prctl = pipes, signals, prctl
        self.known: dict[str, str] = {"saved": "", "lost": "", "termed": ""}
        self.is_alone = self.has_others = False
        self.before, self.until_s = 0, 0.0

    def stand(self) -> None:
        """Wait for both; end with the wrapper's exit code, the program's where that is lost."""
        for pipe in self.pipes:
            os.set_blocking(pipe, False)
        while self.wrapper or self.program or (self.has_others and "program" not in self.known):
            number = self.signal()
            self.reap()
            if number == _signal.SIGTERM:
                self.known["termed"] = "termed"
            if number in self.caught and not self.reached(number):
                send(self.wrapper or self.program, number)
        send(self.witness, _signal.SIGKILL)
        if "program" not in self.known and not self.known["termed"]:
            plainly(self.code, self.caught, self.mask)
        code, saved = self.code if self.code >= 0 else 128 - self.code, self.known["saved"]
        if self.is_alone and (code == SAVED or os.path.exists(saved)):
            told = [self.known[word] for word in ("termed", "saved", "lost")]
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self.mask)
            attempt(os.execv, sys.executable, [*START, *told, *sys.orig_argv[1:]])
        if self.is_alone:
            clear(saved, self.known["lost"])
        os._exit(code)

    def signal(self) -> int:
        """Wait for a signal; return 0 where the wrapper outlasts its time."""
        awaited = {*self.caught, _signal.SIGCHLD}
        if not self.until_s:
            got = _signal.sigwaitinfo(awaited)
        elif not (got := _signal.sigtimedwait(awaited, max(0.0, self.until_s - time.monotonic()))):
            self.hear()
            self.ends_wrapper() if self.until_s else None
        number: int = got.si_signo if got else 0
        return number

    def ends_wrapper(self) -> None:
        """Kill a wrapper that hangs; go without one that hangs even so."""
        if self.is_alone:
            self.wrapper, self.until_s = 0, 0.0
            return
        attempt(os.write, 2, b"pliant run: its wrapper hangs: it is killed\n")
        self.is_alone, self.until_s = True, time.monotonic() + KILLED_S
        send(self.wrapper, _signal.SIGKILL)

    def hear(self) -> None:
        """Read what the wrapper says."""
        for line in os.fsdecode(attempt(os.read, self.pipes[0], 65536) or b"").split("\n"):
            word, _, self.known[word] = line.partition(" ")
            self.starts(int(self.known[word])) if word == "program" else None

    def reap(self) -> None:
        """See who has ended, also of those whom the program has left behind."""
        while (end := attempt(os.waitpid, -1, os.WNOHANG)) and end[0]:
            self.hear()
            pid, code = end[0], os.waitstatus_to_exitcode(end[1])
            if pid == self.witness:
                self.witness, self.saw = 0, -code
            elif pid == self.program:
                self.program, self.code = 0, code
                if code != SAVED and not os.path.exists(self.known["saved"]):
                    self.until_s = time.monotonic() + LEAVE_S
                attempt(os.write, self.pipes[1], f"{pid} {code}\n".encode())
                send(self.wrapper, _signal.SIGCHLD)
            elif pid == self.wrapper:
                self.wrapper, self.until_s = 0, 0.0
                self.is_alone = self.program > 0 or (code < 0 and "program" in self.known)
                self.code = self.code if self.is_alone else code
                self.alone(code) if self.is_alone else None
        self.has_others = end is not None

    def starts(self, program: int) -> None:
        """Note the program's process; 0: that was none, and the end of the one before counts."""
        if program:
            self.before = self.code
        self.program, self.code, self.until_s = program, self.before, 0.0

    def alone(self, code: int) -> None:
        """Say that nobody asks the program for checkpoints any more."""
        if self.program:
            self.witness = bystander(self.prctl)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
            attempt(os.write, 2, f"pliant run: its wrapper {how}: the program runs on\n".encode())
            mark(self.known["lost"]) if self.known["lost"] else None

    def reached(self, number: int) -> bool:
        """Whether a signal has reached the program too: a child beside it dies of what it gets."""
        for _ in range(20 if self.witness else 0):
            self.reap()
            time.sleep(0.01 if self.witness else 0)
        saw, self.saw = self.saw, 0
        if self.is_alone and not self.witness:
            self.witness = bystander(self.prctl)
        return saw == number
