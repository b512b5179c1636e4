"""The one module that starts the user's program, and the witness beside it.

The program stays in our process group: on a terminal it reads and is stopped as ever, and
proctrack/pgid finds it. A signal may therefore reach us alone (a script's ``kill``, a task under
proctrack/cgroup, which signals only slurmstepd's own children) or both (a terminal, ``timeout``,
proctrack/linuxproc, SignalChildrenProcesses): nobody can tell from the signal itself. So a
``sleep`` stands beside the program as a witness: what ends it has reached the program too, and is
not passed on a second time.

Where we are killed the program gets a TERM (PR_SET_PDEATHSIG): nobody would collect its exit code,
and a script that starts it again must not find the old one still writing. TERM and not KILL,
because launchers (torchrun, mpirun, srun) end what they started only when they are told.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
WITNESS = ("sleep", "2147483647")
SAW_S = 0.2
"""How long the witness may take to die of a signal that we got."""
GONE_S = 1.0
_QUIET = frozenset({signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH})


def _before(mask: Collection[int], at_our_end: int) -> Callable[[], None]:
    """Return what a child does before it becomes the program."""
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def child() -> None:
        prctl(_PR_SET_PDEATHSIG, at_our_end, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + at_our_end)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return child


class Program:
    """The user's program."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], mask: Collection[int]) -> None:
        """``mask`` is what was blocked before we blocked anything.

        Raises OSError where it cannot be started.
        """
        self._argv, self._env, self._mask = list(argv), dict(env), mask
        self.start()

    def start(self) -> None:
        """Start it, again once it has ended."""
        self._process = subprocess.Popen(
            self._argv,
            env=self._env,
            close_fds=False,  # it may have been handed some: by srun --mpi, `exec 7>file`, make -j
            preexec_fn=_before(self._mask, signal.SIGTERM),  # noqa: PLW1509  # prctl(2) has no other place
        )

    def ended(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait for its end."""
        return self._process.wait()

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        self._process.send_signal(number)

    def survives(self, number: int) -> bool:
        """Whether it catches, blocks (to wait for it) or ignores a signal, as proc(5) shows.

        True where that is not known.
        """
        if number in _QUIET:
            return True
        try:
            text = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return True
        masks = dict(line.split(":", 1) for line in text.splitlines() if line.startswith("Sig"))
        kept = (int(masks.get(name, "0"), 16) for name in ("SigCgt", "SigBlk", "SigIgn"))
        return any(mask >> (number - 1) & 1 for mask in kept)


class Witness:
    """A process that does nothing and dies of what the program is sent too."""

    def __init__(self, mask: Collection[int]) -> None:
        """Start it; where that fails, every signal counts as ours alone."""
        self._mask = mask
        self._gone_since: float | None = None
        self._start()

    def _start(self) -> None:
        self._gone_since = None
        try:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                WITNESS,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                preexec_fn=_before(self._mask, signal.SIGKILL),  # noqa: PLW1509  # as above
            )
        except (OSError, subprocess.SubprocessError):
            self._process = None

    def saw(self, number: int) -> bool:
        """Whether a signal that we got has reached the program too."""
        if self._process is None:
            return False
        try:
            code = self._process.wait(SAW_S)
        except subprocess.TimeoutExpired:
            return False
        self._start()
        return code == -number

    def tend(self, now_s: float) -> None:
        """Start it again where somebody ended it a while ago."""
        if self._process is None or self._process.poll() is None:
            return
        if self._gone_since is None:
            self._gone_since = now_s
        elif now_s - self._gone_since >= GONE_S:
            self._start()

    def end(self) -> None:
        """End it."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
