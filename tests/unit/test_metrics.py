"""Metrics as text: the format, and the process that serves them. What they are: test_top.py."""

from __future__ import annotations

import select
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from itertools import count

import pytest

from limits import HANG_S
from pliant.cli import main
from pliant.cli.metrics_serve import MOST_READING, Server, address_of
from pliant.cli.metrics_text import Histogram, Told, written
from pliant.errors import BadInput

EXAMPLE: list[Told | Histogram] = [
    Told("up", "Whether pliantd answers.", {(): 1}),
    Told("none", "Nobody has any.", {}, ("kind",)),
    Told("starts", "Starts.", {("gpu",): 3, ("cpu",): 0.5}, ("partition",), "counter"),
    Histogram("handover_seconds", "How long.", (1.0, 2.5), (1, 3), 4, 17.25),
]
TEXT = """\
# HELP pliant_up Whether pliantd answers.
# TYPE pliant_up gauge
pliant_up 1.0
# HELP pliant_starts_total Starts.
# TYPE pliant_starts_total counter
pliant_starts_total{partition="gpu"} 3.0
pliant_starts_total{partition="cpu"} 0.5
# HELP pliant_handover_seconds How long.
# TYPE pliant_handover_seconds histogram
pliant_handover_seconds_bucket{le="1.0"} 1.0
pliant_handover_seconds_bucket{le="2.5"} 3.0
pliant_handover_seconds_bucket{le="+Inf"} 4.0
pliant_handover_seconds_sum 17.25
pliant_handover_seconds_count 4.0
"""


def test_metrics_are_written_as_prometheus_reads_them() -> None:
    assert written(EXAMPLE) == TEXT


def test_what_a_label_says_ends_no_line_and_no_label() -> None:
    hostile = Told("x", "a\\b\nc", {('"} 1\nup 0\\',): 2}, ("node",))
    head, _, line = written([hostile]).splitlines()
    assert head == "# HELP pliant_x a\\\\b\\nc"
    assert line == 'pliant_x{node="\\"} 1\\nup 0\\\\"} 2.0'


def test_prometheus_own_checker_finds_nothing_wrong() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is Debian's prometheus")
    argv = [promtool, "check", "metrics"]
    done = subprocess.run(
        argv, input=TEXT, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@contextmanager
def served(
    text: Callable[[], str], *, limit_s: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[Server]:
    """A server at a free port, in a thread."""
    made = Server(("127.0.0.1", 0), text, limit_s=limit_s, clock=clock)
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.shutdown()
    thread.join(HANG_S)
    made.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with served(lambda: TEXT, limit_s=0.5) as made:
        yield made


def asked(server: Server, path: str) -> tuple[int, str | None, str]:
    """The status, the kind and the text of an answer."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=HANG_S)
    with closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()


def test_scrapes_are_answered_and_nothing_else(server: Server) -> None:
    right = (200, "text/plain; version=0.0.4; charset=utf-8", TEXT)
    assert asked(server, "/metrics") == right
    assert asked(server, "/../etc/passwd")[0] == 404
    with socket.create_connection(("127.0.0.1", server.server_port)) as rude:
        rude.sendall(b"\0" * 100)
    assert asked(server, "/metrics?x=1") == right


def test_who_sends_a_request_byte_by_byte_keeps_nobody_waiting(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port)) as slow:
        slow.settimeout(0.05)
        slow.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
        dropped = False
        for _ in range(int(HANG_S / 0.05)):
            try:
                slow.sendall(b"x")
                dropped = slow.recv(1000) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                dropped = True
            if dropped:
                break
    assert dropped
    assert asked(server, "/metrics")[0] == 200


def test_who_keeps_connections_open_keeps_no_scrape_waiting() -> None:
    with served(lambda: TEXT, limit_s=10 * HANG_S) as server, ExitStack() as open_:
        address = ("127.0.0.1", server.server_port)
        idle = [
            open_.enter_context(socket.create_connection(address)) for _ in range(MOST_READING + 3)
        ]
        assert asked(server, "/metrics")[0] == 200
        dropped, _, _ = select.select(idle, [], [], HANG_S)  # each has a thread: in any order
        assert [one.recv(1) for one in dropped[:1]] == [b""]


def test_scrapes_that_come_together_ask_pliantd_once() -> None:
    times = iter([0.0, 0.5, 0.9, 1.5])
    counted = count(1)
    with served(lambda: f"{next(counted)}\n", limit_s=HANG_S, clock=lambda: next(times)) as server:
        texts = [asked(server, "/metrics")[2] for _ in range(4)]
    assert texts == ["1\n", "1\n", "1\n", "2\n"]


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:9680", ("127.0.0.1", 9680)), ("[::1]:1", ("::1", 1)), ("[::]:65535", ("::", 65535))],
)  # fmt: skip
def test_an_address_is_read(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize(
    "text", ["9680", ":9680", "localhost:9680", "::1:9680", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:٣"]
)  # fmt: skip
def test_what_is_no_address_is_one_line(text: str) -> None:
    with pytest.raises(BadInput, match=r"an address like 127\.0\.0\.1:9680 is expected"):
        address_of(text)


def test_an_address_that_is_taken_is_one_line(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["metrics", "--serve", f"127.0.0.1:{server.server_port}"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == f"pliant: --serve: 127.0.0.1:{server.server_port}: Address already in use\n"


def test_a_file_and_a_port_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["metrics", "--serve", "127.0.0.1:9680", "--textfile", "x"])
    assert ended.value.code == 2
    assert "one of them" in capsys.readouterr().err
