"""Ask pliantd, at either door, within a time limit for the whole exchange."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from pliant.errors import BadInput, Unavailable
from pliant.wire.lines import MAX_ANSWER, MAX_REQUEST, Message, decode, encode

_CHUNK = 256 * 1024


def ask(path: Path | str, request: Message, timeout_s: float = 5.0) -> Message:
    """Ask at door 1, a Unix socket, and return the answer, ok or no.

    Raises Unavailable in one line: no daemon, no answer in time, one that is not understood.
    """
    deadline = time.monotonic() + timeout_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        return _exchange(door, str(path), encode(request), deadline, str(path))


def ask_over_tcp(
    host: str,
    port: int,
    request: Message,
    *,
    munge_socket: str = "",
    munge: str = "munge",
    timeout_s: float = 10.0,
) -> Message:
    """Ask at door 2, as the user of this process, and return the answer, ok or no.

    ``munge_socket`` "" is munge's own default; ``munge`` is its program. Raises Unavailable.
    """
    deadline = time.monotonic() + timeout_s
    line = b"munge " + _credential(encode(request), munge_socket, munge, timeout_s)
    where = f"{host}:{port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unavailable(f"pliantd at {where}: {error.strerror}") from None
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as door:
        return _exchange(door, address, line, deadline, where)


def _credential(payload: bytes, munge_socket: str, munge: str, timeout_s: float) -> bytes:
    argv = [munge, *([f"--socket={munge_socket}"] if munge_socket else [])]
    try:
        made = subprocess.run(
            argv, input=payload, capture_output=True, timeout=timeout_s, check=False
        )
    except OSError as error:
        raise Unavailable(f"munge: {error.strerror}: is munge installed on this host?") from None
    except subprocess.TimeoutExpired:
        raise Unavailable("munge does not answer: is munged running on this host?") from None
    if made.returncode != 0:
        words = made.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise Unavailable(f"munge: {words[-1]}")
    return made.stdout.strip()


def _exchange(
    door: socket.socket, address: object, line: bytes, deadline: float, where: str
) -> Message:
    if len(line) >= MAX_REQUEST:
        raise Unavailable(f"pliantd takes requests up to {MAX_REQUEST} bytes, not {len(line) + 1}")
    try:
        _limit(door, deadline)
        door.connect(address)  # type: ignore[arg-type]  # as the address family wants it
        _limit(door, deadline)
        door.sendall(line + b"\n")
        return decode(_read_line(door, deadline))
    except TimeoutError:
        raise Unavailable(f"pliantd at {where} does not answer in time") from None
    except OSError as error:
        raise Unavailable(f"pliantd at {where}: {error.strerror or error}") from None
    except BadInput as error:
        raise Unavailable(f"pliantd at {where}: its answer is not understood: {error}") from None


def _limit(door: socket.socket, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    door.settimeout(left)


def _read_line(door: socket.socket, deadline: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while not parts or b"\n" not in parts[-1]:
        _limit(door, deadline)
        part = door.recv(_CHUNK)
        size += len(part)
        if not part:
            raise OSError("the connection was closed before an answer")
        if size > MAX_ANSWER:
            raise OSError("the answer is too long")
        parts.append(part)
    return b"".join(parts).partition(b"\n")[0]
