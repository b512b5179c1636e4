"""A fake pliantd for wrappers: speaks door 2's lines, remembers, and answers what a test says.

munge is a program that wraps its input, so no credential is proven here.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from limits import HANG_S
from pliant.daemon.answers import to_json
from pliant.wire import CHALLENGE, HELLO, Message, decode, encode, no, ok
from pliant.wire.runs import RunAnswer

NOTHING = RunAnswer()
POLL_S = 0.5  # of a watch without news; a real pliantd keeps it longer


@dataclass
class FakeDoor:
    """What is wanted now, and what was said."""

    folder: Path
    wish: RunAnswer = NOTHING
    refuses: frozenset[str] = frozenset()
    answers: dict[str, object] = field(default_factory=dict)  # by verb, where it is not the wish
    said: list[Message] = field(default_factory=list)
    port: int = 0
    _news: threading.Condition = field(default_factory=threading.Condition)
    _door: socket.socket | None = None

    def open(self) -> None:
        """Begin to answer, at the same port as before."""
        self._door = socket.create_server(("127.0.0.1", self.port))
        self.port = self._door.getsockname()[1]
        (self.folder / "pliant.toml").write_text(f'[daemon]\nlisten = "127.0.0.1:{self.port}"\n')
        threading.Thread(target=self._serve, args=(self._door,), daemon=True).start()

    def close(self) -> None:
        """Fall silent."""
        if self._door is not None:
            self._door.shutdown(socket.SHUT_RDWR)
            self._door.close()
            self._door = None

    def want(self, wish: str, within_s: float = 120.0, checkpoint: str = "") -> None:
        """Want a checkpoint; "" none any more. ``checkpoint``: which its owner named."""
        with self._news:
            until_s = time.time() + within_s if wish else 0.0
            why = "resize" if wish else ""
            self.wish = RunAnswer(wish, why, "2", until_s, checkpoint=checkpoint)
            self._news.notify_all()

    def of(self, verb: str) -> list[dict[str, str]]:
        """Return the fields of what was said with a verb."""
        return [dict(message.fields) for message in list(self.said) if message.word == verb]

    def wait_for(self, verb: str, count: int = 1) -> dict[str, str]:
        """Wait until something was said; return its fields."""
        wait_until(lambda: len(self.of(verb)) >= count, f"{verb} in {self.said}")
        return self.of(verb)[count - 1]

    def _serve(self, door: socket.socket) -> None:
        while True:
            try:
                connection, _ = door.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            line = stream.readline()
            if line.rstrip() == HELLO.encode():
                stream.write(encode(ok(**{CHALLENGE: "c"})) + b"\n")
                stream.flush()
                line = stream.readline()
            if not line:
                return  # it has gone
            request = decode(base64.b64decode(line.removeprefix(b"munge ").strip()))
            fields = {name: said for name, said in request.fields.items() if name != CHALLENGE}
            said = replace(request, fields=fields)
            if request.word != "run-saved" or said not in self.said:  # it is said again and again
                self.said.append(said)
            if request.word in self.refuses:
                answer = no(f"'{request.word}': one of status, jobs is expected")
            else:
                if request.word == "run-watch":
                    self._wait_for_news(request.fields["known"])
                answer = ok(json=to_json(self.answers.get(request.word, self.wish)))
            try:
                stream.write(encode(answer) + b"\n")
            except OSError:
                return

    def _wait_for_news(self, known: str) -> None:
        with self._news:
            self._news.wait_for(lambda: self.wish.wish not in ("", known), POLL_S)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that must come."""
    deadline = time.monotonic() + HANG_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        time.sleep(0.02)


def munge_program(folder: Path) -> None:
    """Put a munge that proves nothing into a folder."""
    munge = folder / "munge"
    munge.write_text(
        f"#!{sys.executable} -S\nimport base64, sys\n"
        "print(base64.b64encode(sys.stdin.buffer.read()).decode())\n"
    )
    munge.chmod(0o755)


@contextmanager
def stays() -> Iterator[Callable[[], Awaitable[bool]]]:
    """Stand for a connection of which nobody leaves (see pliant.daemon.lines.GivingWay)."""

    async def gone() -> bool:
        return await asyncio.get_running_loop().create_future() is None

    yield gone
