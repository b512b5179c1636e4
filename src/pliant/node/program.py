"""The one module that starts the user's program, and the witness beside it.

The program stays in our process group: on a terminal it reads and is stopped as ever, and
proctrack/pgid finds it. A signal may therefore reach us alone (a script's ``kill``, a task under
proctrack/cgroup, which signals only slurmstepd's own children) or both (a terminal, ``timeout``,
proctrack/linuxproc, SignalChildrenProcesses): nobody can tell from the signal itself. So a
``sleep`` stands beside the program as a witness: what ends it has reached the program too, and is
not passed on a second time.

Where its parent is killed the program gets a TERM (PR_SET_PDEATHSIG): nobody would collect its exit
code, and a script that starts it again must not find the old one still writing. TERM and not KILL,
because launchers (torchrun, mpirun, srun) end what they started only when they are told. Its parent
is the guardian where there is one (see :mod:`pliant.node.guardian`), and else we are.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from pliant.node import guarded
from pliant.node.bystander import as_script, as_started

_PR_SET_PDEATHSIG = 1
WITNESS = ("sleep", "2147483647")
SAW_S = 0.2
"""How long the witness may take to die of a signal that we got."""
GONE_S = 1.0
BLOCKS_S = 0.5
"""For how long a program blocks a signal that it waits for, at least."""
NOT_FOUND, NOT_RUN = 127, 126
"""What a shell makes of a program that it cannot start."""
FAILS = (OSError, subprocess.SubprocessError)
"""What a start raises: the latter where the process between has none to give."""
_QUIET = frozenset({signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH})


def why_not(error: Exception) -> tuple[str, int]:
    """Return why a program could not be started, in words and as a shell's exit code."""
    words = (isinstance(error, OSError) and error.strerror) or "no process can be made here"
    return words, NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUN


def _is_in(said: Mapping[str, str], mask: str, number: int) -> bool:
    """Whether a mask in /proc/PID/status has a signal."""
    return bool(int(said.get(mask, "0"), 16) >> (number - 1) & 1)


def _before(mask: Collection[int], at_our_end: int) -> Callable[[], None]:
    """Return what a child does before it becomes the program."""
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def child() -> None:
        prctl(_PR_SET_PDEATHSIG, at_our_end, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + at_our_end)
        as_started()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return child


def _adopted(link: tuple[int, int, int], told: int, mask: Collection[int]) -> Callable[[], None]:
    """Return what makes a child of ours one of the guardian's; its process id goes to ``told``."""
    guardian, tells, _ = link
    prctl = ctypes.CDLL(None).prctl

    def child() -> None:
        between = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == between:
            time.sleep(0.0005)
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != guardian:
            os._exit(128 + signal.SIGTERM)
        os.write(tells, f"program {os.getpid()}\n".encode())
        os.write(told, f"{os.getpid()}".encode())
        as_started()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return child


class Program:
    """The user's program."""

    pid = 0
    _blocks = (0, 0.0)  # which process was found to block the signal at each look since when

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], mask: Collection[int]) -> None:
        """``mask`` is what was blocked before we blocked anything.

        Raises OSError where it cannot be started.
        """
        self._argv, self._env, self._mask = list(argv), dict(env), mask
        try:
            self.start()
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            self._argv = as_script(argv, env)
            self.start()

    def start(self) -> None:
        """Start it, again once it has ended; where that fails, it has still ended as it had.

        Raises one of FAILS.
        """
        self._process = self._popen(_before(self._mask, signal.SIGTERM))
        self.pid = self._process.pid

    def _popen(self, before: Callable[[], None]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._argv,
            env=self._env,
            close_fds=False,  # it may have been handed some: by srun --mpi, `exec 7>file`, make -j
            preexec_fn=before,  # noqa: PLW1509  # prctl(2) has no other place
        )

    def tell(self, word: str, path: Path) -> None:
        """Tell the guardian, where there is one, of a file."""

    def is_orphan(self) -> bool:
        """Whether its guardian was killed: it is told to end, and nobody learns how it did."""
        return False

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
        """Whether it catches, ignores or (to wait for it) blocks a signal, as proc(5) shows.

        True where that is not known. Who starts a process blocks all signals for a moment, until
        that has become another program (posix_spawn, vfork): blocked is what was so before, too.
        """
        if number in _QUIET:
            return True
        try:
            text = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return True
        said = dict(line.split(":", 1) for line in text.splitlines())
        if _is_in(said, "SigCgt", number) or _is_in(said, "SigIgn", number):
            return True
        starts_another = "D" in said.get("State", "")
        if starts_another or not _is_in(said, "SigBlk", number):
            self._blocks = (0, 0.0)
            return False
        now_s = time.monotonic()
        if self._blocks[0] != self.pid:
            self._blocks = (self.pid, now_s)
        return now_s - self._blocks[1] >= BLOCKS_S


class Adopted(Program):
    """The user's program as the guardian's child: the guardian tells how it ended."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        mask: Collection[int],
        link: tuple[int, int, int],
    ) -> None:
        """``link``: to the guardian."""
        self._link = link
        self._heard = b""
        self._orphan = False
        self._code: int | None = None
        os.set_blocking(link[2], False)
        super().__init__(argv, env, mask)

    def start(self) -> None:
        """Start it, as above."""
        told, tells = os.pipe()
        try:
            self._popen(_adopted(self._link, tells, self._mask)).wait()
        except FAILS:
            os.write(self._link[1], b"program 0\n")  # that child of its is none
            raise
        else:
            os.set_blocking(told, False)
            self.pid, self._code = int(os.read(told, 32)), None
        finally:
            os.close(told)
            os.close(tells)

    def ended(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        if self._code is None:
            self._hear()
        return self._code

    def _hear(self) -> None:
        try:
            heard = os.read(self._link[2], 4096)
        except BlockingIOError:
            return
        self._orphan = heard == b""  # the guardian alone has the other end
        *lines, self._heard = (self._heard + heard).split(b"\n")
        for pid, code in (line.split() for line in lines):
            if int(pid) == self.pid:
                self._code = int(code)
        if self._orphan and self._code is None:
            self._code = -signal.SIGKILL  # as the job's script that it was part of

    def is_orphan(self) -> bool:
        """Whether its guardian was killed: it is told to end, and nobody learns how it did."""
        self._hear()
        return self._orphan

    def wait(self) -> int:
        """Wait for its end."""
        while (code := self.ended()) is None:
            select.select([self._link[2]], [], [])
        return code

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.ended() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def tell(self, word: str, path: Path) -> None:
        """Tell the guardian of a file."""
        os.write(self._link[1], os.fsencode(f"{word} {path}\n"))


def started(argv: Sequence[str], env: Mapping[str, str], mask: Collection[int]) -> Program:
    """Start the program below the guardian, where there is one.

    Raises OSError where it cannot be started.
    """
    if guarded.link is None:
        return Program(argv, env, mask)
    try:
        return Adopted(argv, env, mask, guarded.link)
    except subprocess.SubprocessError:  # no process could be made in the one between
        return Program(argv, env, mask)


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
        except FAILS:
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
