"""Serves metrics by HTTP, from a process of its own: pliantd opens no port for them.

Whoever keeps a connection open keeps no scrape waiting: each has a thread until its request has
come, and where there are many, that which has waited longest is dropped. pliantd is asked once at a
time, and at most once a second, however many scrapes come.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn

from pliant import __version__
from pliant.cli.metrics_text import TYPE
from pliant.errors import BadInput, Unavailable
from pliant.grammar import quoted

LIMIT_S = 5.0
"""For one request to come, and for its answer to be taken."""
MOST_READING = 32
"""So many connections may be open without a request."""
FRESH_S = 1.0
"""For so long what pliantd said is told again."""
PATHS = ("/metrics", "/")
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)


def address_of(text: str) -> tuple[str, int]:
    """Read ``127.0.0.1:9680`` or ``[::1]:9680``.

    Raises BadInput; a name is none: it could come to mean another address.
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        bare = ""
    if not bare or (":" in bare and bare == host) or not _PORT.fullmatch(port) or int(port) > 65535:
        raise BadInput(f"--serve: {quoted(text)}: an address like 127.0.0.1:9680 is expected")
    return bare, int(port)


def serve(host: str, port: int, text: Callable[[], str]) -> None:
    """Answer each request for /metrics with ``text()`` until interrupted.

    Raises Unavailable where the address is taken.
    """
    try:
        server = Server((host, port), text)
    except OSError as error:
        raise Unavailable(f"--serve: {host}:{port}: {error.strerror}") from error
    with server:
        server.serve_forever()


class Server(ThreadingMixIn, HTTPServer):
    """Answers at one address with what ``text`` returns; see :func:`serve`."""

    daemon_threads = True
    request_queue_size = MOST_READING

    def __init__(
        self,
        address: tuple[str, int],
        text: Callable[[], str],
        limit_s: float = LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock`` counts seconds, evenly."""
        self.limit_s = limit_s
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._text, self._clock = text, clock
        self._asking, self._said, self._said_s = threading.Lock(), "", float("-inf")
        self._lock, self._reading = threading.Lock(), dict[_Handler, None]()
        super().__init__(address, _Handler)

    def text(self) -> str:
        """Return what is told now."""
        with self._asking:
            now_s = self._clock()
            if now_s - self._said_s >= FRESH_S:
                self._said, self._said_s = self._text(), now_s
            return self._said

    def awaits(self, handler: _Handler) -> None:
        """Note that a request is awaited; drop the one that is awaited for longest of too many."""
        with self._lock:
            self._reading[handler] = None
            oldest = next(iter(self._reading)) if len(self._reading) > MOST_READING else None
            if oldest is not None:
                del self._reading[oldest]
        if oldest is not None:
            oldest.read_no_more()

    def has(self, handler: _Handler) -> None:
        """Note that a request is awaited no more."""
        with self._lock:
            self._reading.pop(handler, None)

    def server_bind(self) -> None:
        """Bind, and ask no name server who we are."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        host, port, *_ = self.server_address
        self.server_name, self.server_port = str(host), int(port)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever broke off knows."""


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = f"pliant/{__version__}", ""
    server: Server

    def setup(self) -> None:
        """Read for no longer than the limit, however often something comes."""
        super().setup()
        self.connection.settimeout(self.server.limit_s)  # of each piece, and of the answer
        self._limit = threading.Timer(self.server.limit_s, self.read_no_more)
        self._limit.daemon = True
        self._limit.start()
        self.server.awaits(self)

    def read_no_more(self) -> None:
        """Take the connection for one that its client has ended."""
        with suppress(OSError):  # it is closed by now
            self.connection.shutdown(socket.SHUT_RD)

    def finish(self) -> None:
        """End what setup has begun."""
        self._limit.cancel()
        self.server.has(self)
        super().finish()

    def do_GET(self) -> None:  # as http.server calls it
        """Answer a scrape."""
        self.server.has(self)
        if self.path.partition("?")[0] not in PATHS:
            self.send_error(404)
            return
        body = self.server.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # its name there
        """Log no request: there is one every few seconds."""
