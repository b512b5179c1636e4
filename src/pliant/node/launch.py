"""Starts a program under the shell that watches it, and lets it run on where that fails."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pliant.node import bystander
from pliant.node.files import Private, for_checkpoints
from pliant.node.importable import with_pliant
from pliant.node.own_requeue import with_stand_in
from pliant.node.program import Program, Witness, started, why_not
from pliant.node.run import CHOSEN, DIRECTORY, REQUESTED, Run
from pliant.node.saying import say
from pliant.node.wrapper import Outside, Parts, Wrapper

TICK_S = 1.0
_LEFT = frozenset(
    {
        *(signal.SIGKILL, signal.SIGSTOP),  # nobody can
        *(signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH),  # end nothing
        *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),  # a terminal's, for us as well
        *(
            signal.SIGILL,
            signal.SIGTRAP,
            signal.SIGBUS,
            signal.SIGFPE,
            signal.SIGSEGV,
            signal.SIGSYS,
        ),
    }
)
CAUGHT = frozenset(signal.valid_signals() - _LEFT)
"""All that would end us, but for our own mistakes."""
NO_PROCESS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Why no program can be started beside us: `ulimit -u`, no memory, `ulimit -n`."""


def run(
    argv: Sequence[str],
    this: Run,
    outside: Outside,
    environ: Mapping[str, str],
    tick_s: float = TICK_S,
) -> int:
    """Run a program as this run of a job; return the exit code to end with."""
    caught = {number for number in CAUGHT if signal.getsignal(number) is not signal.SIG_IGN}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*caught, signal.SIGCHLD})
    files = _private(this) if this.job else None
    env = {**environ, **with_pliant(environ)}
    if this.directory is not None:
        this = replace(this, directory=_for_checkpoints(this.directory, this.otherwise))
        env[DIRECTORY] = str(this.directory)
        if this.chosen:
            env[CHOSEN] = f"{this.job}:{this.directory}"
    alone = dict(env)
    if files is not None:
        env[REQUESTED] = str(files.request)
        if this.signal:
            env |= with_stand_in(environ)
    try:
        program = started(argv, env, mask)
        if files is not None:
            program.tell("saved", files.saved)
    except OSError as error:
        if files is not None:
            files.remove()
        if error.errno in NO_PROCESS:
            error = _become(argv, alone, mask)
        words, code = why_not(error)
        say(f"{argv[0]}: {words}")
        return code
    witness = Witness(mask)
    parts = Parts(program, witness, files, outside, frozenset(caught))
    try:
        return Wrapper(this, parts, tick_s).run()
    except Exception as fault:
        say(f"a mistake of Pliant's own ({type(fault).__name__}: {fault}): the program runs on")
        return _plainly(program, caught, mask)
    finally:
        witness.end()
        if files is not None:
            files.remove()


def _become(argv: Sequence[str], env: Mapping[str, str], mask: Collection[int]) -> OSError:
    """Become the program, which needs no process more than a wrapper; return why that failed."""
    say("no process can be made here: the program runs without its wrapper")
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        bystander.become(argv, env)
    except OSError as error:
        return error


def _for_checkpoints(directory: Path, otherwise: Path | None) -> Path:
    try:
        made = for_checkpoints(directory, otherwise)
    except OSError as error:
        say(f"{directory} cannot be made ({error.strerror}): the program can save nothing there")
        return directory
    if made != directory:
        why = "is another user's" if os.path.lexists(directory) else "cannot be made"
        say(f"{directory} {why}: checkpoints go to {made}")
    return made


def _private(this: Run) -> Private | None:
    try:
        return Private(this.job)
    except OSError as error:
        say(f"no directory of its own ({error.strerror}): no checkpoint will be asked for")
        return None


def _plainly(program: Program, caught: Collection[int], mask: Collection[int]) -> int:
    for number in caught:
        signal.signal(number, lambda got, _frame: program.send(got))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return _shell_code(program.wait())


def _shell_code(code: int) -> int:
    return code if code >= 0 else 128 - code
