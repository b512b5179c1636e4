"""The one module that runs a batch system's client commands.

No shell ever: argument lists, each call with a time limit (without their server the clients may
hang for minutes), at most so much output, and an environment of our own in which nothing that a
user or an administrator has set changes what a command prints.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from pliant.errors import BadAnswer, Refused, Unavailable

MAX_OUTPUT = 512 * 1024 * 1024
MAX_WORD = 120_000
"""The longest argument: Linux takes 128 KiB (execve(2), MAX_ARG_STRLEN)."""
_CHUNK = 1024 * 1024
_AWAY = (
    "unable to contact slurm controller",
    "unable to establish",
    "could not establish a configuration source",
    "zero bytes were transmitted",
    "connection refused",
    "socket timed out",
    "unexpected message received",
    "protocol authentication error",
    "munge",
    "slurm backup controller in standby mode",
    "cannot connect to server",
    "connection to server timed out",
)


_NAMES = ("scontrol: error: ", "squeue: error: ", "sacct: error: ", "slurm_load_jobs error: ")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed and how it ended."""

    out: str
    err: str
    status: int

    @property
    def words(self) -> str:
        """Its complaint in one line."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        text = "; ".join(_without_name(line) for line in lines) or f"exit status {self.status}"
        shown = "".join(letter if letter.isprintable() else "?" for letter in text)
        return shown if len(shown) <= 300 else shown[:300] + "..."

    @property
    def controller_is_away(self) -> bool:
        """Whether it complained about slurmctld or munge rather than about what was asked."""
        low = self.err.lower()
        return any(text in low for text in _AWAY)


def _without_name(line: str) -> str:
    for name in _NAMES:
        line = line.removeprefix(name)
    return line


class Runs(Protocol):
    """Runs one command, as :class:`Clients` does."""

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Run one command; see :meth:`Clients.run`."""
        ...


@dataclass(frozen=True, slots=True)
class Clients:
    """Runs the client commands of one batch system, which lie in ``bin_dir``; "": on PATH."""

    bin_dir: str = ""
    timeout_s: float = 10.0
    max_output: int = MAX_OUTPUT
    env: Mapping[str, str] = field(default_factory=dict)
    system: ClassVar[str] = "the batch system"

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Run one command; a complaint of its own is left to the caller.

        Raises Unavailable where it is not there, does not end in time, or finds no controller,
        BadAnswer where it prints without end, and Refused for an argument that is too long.
        """
        if any(len(word) > MAX_WORD for word in argv):
            raise Refused(
                f"{argv[0]}: an argument of more than {MAX_WORD} bytes cannot be passed on"
            )
        program = str(Path(self.bin_dir) / argv[0]) if self.bin_dir else argv[0]
        try:
            with tempfile.TemporaryFile() as source:
                source.write(stdin.encode("utf-8", "surrogateescape"))
                source.seek(0)
                process = subprocess.Popen(
                    [program, *argv[1:]],
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self.environment(env or {}),
                )
        except OSError as error:
            reason = error.strerror or str(error)
            raise Unavailable(
                f"{program}: {reason}; are {self.system}'s client commands here?"
            ) from None
        with process:
            try:
                answer = self._collect(process, argv[0])
            finally:
                if process.poll() is None:
                    process.kill()
        if answer.status and answer.controller_is_away:
            raise Unavailable(f"{argv[0]}: {answer.words}")
        return answer

    def _collect(self, process: subprocess.Popen[bytes], name: str) -> Answer:
        assert process.stdout is not None  # noqa: S101 - callers see to it
        assert process.stderr is not None  # noqa: S101 - callers see to it
        out, err = process.stdout.fileno(), process.stderr.fileno()
        texts: dict[int, bytearray] = {out: bytearray(), err: bytearray()}
        deadline = time.monotonic() + self.timeout_s
        with selectors.DefaultSelector() as selector:
            for stream in texts:
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise Unavailable(f"{name}: no answer within {self.timeout_s:g} s")
                for key, _ in ready:
                    chunk = os.read(key.fd, _CHUNK)
                    texts[key.fd] += chunk
                    if not chunk:
                        selector.unregister(key.fd)
                if sum(map(len, texts.values())) > self.max_output:
                    raise BadAnswer(f"{name}: more than {self.max_output} bytes of output")
        try:
            status = process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{name}: does not end within {self.timeout_s:g} s") from None
        return Answer(_text(texts[out]), _text(texts[err]), status)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return what a command finds in its environment, with some variables of its own."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return {**kept, "TZ": "UTC", "LC_ALL": "C", **self.fixed(), **self.env, **extra}

    def fixed(self) -> dict[str, str]:
        """Return what all commands of this system find there."""
        return {}


def _text(raw: bytearray) -> str:
    return raw.decode("utf-8", "surrogateescape")
