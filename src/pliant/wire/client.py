"""Ask pliantd, at either door, within a time limit for the whole exchange."""

from __future__ import annotations

import contextlib
import queue
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pliant.errors import BadInput, Unavailable
from pliant.grammar import quoted
from pliant.wire.lines import (
    CHALLENGE,
    HELLO,
    MAX_ANSWER,
    MAX_REQUEST,
    SEAL_KEY,
    Message,
    decode,
    encode,
    unsealed,
)

_CHUNK = 256 * 1024
_Address = tuple[int, int, int, str, Any]  # as getaddrinfo gives them


def ask(path: Path | str, request: Message, timeout_s: float = 5.0) -> Message:
    """Ask at door 1, a Unix socket, and return the answer, ok or no.

    Raises Unavailable in one line: no daemon, no answer in time, one that is not understood.
    """
    deadline = time.monotonic() + timeout_s
    line = _fitting(encode(request))
    with _in_one_line(str(path)), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        _limit(door, deadline)
        door.connect(str(path))
        return _exchange(door, line, deadline)


def ask_over_tcp(
    host: str,
    port: int,
    request: Message,
    *,
    munge_socket: str = "",
    munge: str = "munge",
    reader: int | None = None,
    timeout_s: float = 10.0,
    connect_s: float = 10.0,
) -> Message:
    """Ask at door 2, as the user of this process, and return the answer, ok or no.

    ``reader``: pliantd's uid, who alone can read the request then, and whose answer alone counts:
    while pliantd is away others may listen at its port. None: whoever answers.

    ``munge_socket`` "" is munge's own default; ``munge`` is its program. ``timeout_s`` holds for
    everything, the look-up of the host's name too; ``connect_s`` for reaching it once that is
    known. Raises Unavailable.
    """
    deadline = time.monotonic() + timeout_s
    with _in_one_line(f"{host}:{port}"):
        found = _addresses(host, port, deadline)
        with _connected(found, min(deadline, time.monotonic() + connect_s)) as door:
            challenged = _challenged(request, door, deadline)
            key = secrets.token_hex(16) if reader is not None else ""
            asked = encode(_with(challenged, SEAL_KEY, key) if key else challenged)
            left_s = deadline - time.monotonic()
            argv = [munge, *([f"--socket={munge_socket}"] if munge_socket else [])]
            argv += [f"--restrict-uid={reader}"] if key else []
            made = _fitting(b"munge " + _credential(asked, argv, left_s))
            answer = _exchange(door, made, deadline)
            return _believed(answer, key) if key else answer


def _believed(answer: Message, key: str) -> Message:
    """Return what pliantd said; raise OSError where another one did.

    pliantd itself says unsealed why it could not read a credential.
    """
    bare = unsealed(answer, key)
    if bare is None:
        why = quoted(answer.message) if answer.message else "no seal"
        raise OSError(0, f"what answers there is not known to be pliantd: {why}")
    return bare


def _with(message: Message, name: str, value: str) -> Message:
    return Message(message.word, {**message.fields, name: value})


def _challenged(request: Message, door: socket.socket, deadline: float) -> Message:
    """Return the request with the challenge of the pliantd at the other end of ``door``.

    Raises OSError, also where it has none.
    """
    answer = _exchange(door, HELLO.encode(), deadline)
    if CHALLENGE not in answer.fields:
        raise OSError(0, "it is of an earlier release than this pliant: upgrade it there")
    return _with(request, CHALLENGE, answer.fields[CHALLENGE])


def _addresses(host: str, port: int, deadline: float) -> Sequence[_Address]:
    """Look a host's name up; getaddrinfo(3) alone waits as long as resolv.conf says.

    Raises OSError.
    """
    found: queue.SimpleQueue[Sequence[_Address] | OSError] = queue.SimpleQueue()

    def look() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.put(error)
        except ValueError:  # an empty label, say, or one of more than 63 letters
            found.put(OSError(0, "that is no name of a host"))

    threading.Thread(target=look, daemon=True).start()
    try:
        answer = found.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        raise OSError(0, "no name server says in time where that is") from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def _connected(addresses: Sequence[_Address], deadline: float) -> socket.socket:
    """Connect to the first address that answers: pliantd may listen at one kind alone.

    Raises OSError.
    """
    trouble = OSError(0, "it has no address")
    for family, kind, protocol, _, address in addresses:
        door = socket.socket(family, kind, protocol)
        try:
            _limit(door, deadline)
            door.connect(address)
        except OSError as error:
            door.close()
            trouble = error
        else:
            return door
    raise trouble


def _credential(payload: bytes, argv: Sequence[str], timeout_s: float) -> bytes:
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


def _fitting(line: bytes) -> bytes:
    if len(line) >= MAX_REQUEST:
        raise Unavailable(f"pliantd takes requests up to {MAX_REQUEST} bytes, not {len(line) + 1}")
    return line


@contextlib.contextmanager
def _in_one_line(where: str) -> Iterator[None]:
    """Say what goes wrong at a door as Unavailable, in one line."""
    try:
        yield
    except TimeoutError:
        raise Unavailable(f"pliantd at {where} does not answer in time") from None
    except OSError as error:
        raise Unavailable(f"pliantd at {where}: {error.strerror or error}") from None
    except BadInput as error:
        raise Unavailable(f"pliantd at {where}: its answer is not understood: {error}") from None


def _exchange(door: socket.socket, line: bytes, deadline: float) -> Message:
    _limit(door, deadline)
    door.sendall(line + b"\n")
    return decode(_read_line(door, deadline))


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
