"""The filter's door in its thread: what a bad peer can do to it, nobody else notices."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pliant.daemon import sockets
from pliant.daemon.lines import Limits
from pliant.daemon.quick import QuickServer

LIMITS = Limits(connections=3, line_s=0.3, lines=2, line_bytes=1000)


def upper(line: bytes, _peer: socket.socket) -> bytes:
    if line == b"fail":
        raise ValueError("on purpose")
    return b"" if line == b"close" else line.upper()


class Served:
    """A door that answers in capitals, and what was done afterwards."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent = 0
        self.server = QuickServer("test", upper, LIMITS, time.monotonic, self._count)
        self.server.start(sockets.unix_socket(path))

    def _count(self) -> None:
        self.sent += 1

    def connect(self, text: bytes = b"") -> socket.socket:
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(10)
        peer.connect(str(self.path))
        if text:
            peer.sendall(text)
        return peer

    def ask(self, text: bytes) -> bytes:
        """Everything that is said to ``text`` and the end of what we say."""
        with self.connect() as peer:
            try:
                peer.sendall(text)
                peer.shutdown(socket.SHUT_WR)
                return read_all(peer)
            except ConnectionError:
                return b""


def read_all(peer: socket.socket) -> bytes:
    found = b""
    while chunk := peer.recv(65536):
        found += chunk
    return found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path / "s")
    yield made
    made.server.close()


def test_a_line_in_is_a_line_out_and_then_there_is_time_for_more(served: Served) -> None:
    assert served.ask(b"one\ntwo\n") == b"ONE\nTWO\n"
    assert served.sent == 2


def test_a_line_may_come_in_pieces(served: Served) -> None:
    with served.connect(b"on") as peer:
        time.sleep(0.05)
        peer.sendall(b"e\n")
        assert peer.recv(100) == b"ONE\n"


@pytest.mark.parametrize(
    "garbage",
    [
        b"no newline",
        b"x" * 100_000 + b"\n",
        b"",
        b"close\n",
        b"fail\n",
    ],
)
def test_a_bad_peer_gets_no_answer_and_the_next_one_does(served: Served, garbage: bytes) -> None:
    assert served.ask(garbage) == b""
    assert served.ask(b"\0\xff\n") == b"\0\xff\n"


def test_a_connection_is_closed_after_its_lines(served: Served) -> None:
    assert served.ask(b"a\nb\nc\n") == b"A\nB\n"


def test_slow_peers_are_dropped_and_make_room_again(served: Served) -> None:
    slow = [served.connect(b"half a li"), served.connect(), served.connect()]
    time.sleep(0.05)
    assert served.ask(b"too many\n") == b""
    assert served.server.turned_away == 1
    assert [read_all(peer) for peer in slow] == [b"", b"", b""]
    assert served.ask(b"again\n") == b"AGAIN\n"
    for peer in slow:
        peer.close()


def test_a_peer_that_trickles_has_its_time_like_every_other(served: Served) -> None:
    with served.connect() as peer:
        with pytest.raises(ConnectionError):
            for _ in range(100):
                peer.sendall(b"x")
                time.sleep(0.02)
        assert served.ask(b"again\n") == b"AGAIN\n"


def test_a_peer_that_is_gone_before_its_answer_hurts_nobody(served: Served) -> None:
    for _ in range(20):
        served.connect(b"gone\n").close()
    assert served.ask(b"here\n") == b"HERE\n"


def test_closing_ends_open_connections_and_the_door(tmp_path: Path) -> None:
    made = Served(tmp_path / "s")
    with made.connect() as peer:
        made.server.close()
        assert peer.recv(100) == b""
    with pytest.raises(ConnectionRefusedError):
        made.connect()
