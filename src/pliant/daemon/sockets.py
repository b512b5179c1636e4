"""The doors' sockets, and the locks that keep a second pliantd out."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from pliant.daemon.config import address
from pliant.errors import Unavailable

log = logging.getLogger("pliant.daemon")

BACKLOG = 128
_PEER = struct.Struct("iII")
"""A process, its user and its group: unix(7), SO_PEERCRED."""


def lock(directory: Path) -> int:
    """Lock the state directory for this process's life; return what holds the lock.

    The directory itself is locked, so that a full disk is no hindrance.

    Raises Unavailable.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"{directory}: {error.strerror}: a state directory is needed") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise Unavailable(f"{directory}: another pliantd runs with this state_dir") from None
    return handle


def only_one_of(cluster: str) -> socket.socket:
    """Keep a second pliantd of a cluster off this host, whatever its state_dir; close it to end.

    To it all programs that speak to the first are silent: it would requeue best-effort ones without
    a checkpoint. The name is an abstract one, which ends with us (unix(7)). Any user could take it:
    only root and our own user are believed.

    Raises Unavailable.
    """
    name = f"\0pliantd:{hashlib.sha256(os.fsencode(cluster)).hexdigest()}"
    mine = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        mine.bind(name)
        mine.listen(BACKLOG)
    except OSError as error:
        pid, uid = _holder(name) if error.errno == errno.EADDRINUSE else (0, -1)
        if uid in (0, os.geteuid()):
            mine.close()
            words = f"another pliantd, process {pid}, is this cluster's on this host: end it first"
            raise Unavailable(f"{cluster}: {words}") from None
        words = "%s: whether another pliantd is this cluster's on this host is not known: %s"
        log.warning(words, cluster, error.strerror)
    return mine


def _holder(name: str) -> tuple[int, int]:
    """Return the process that listens at an abstract name, and its user; -1 where none answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as asks:
        try:
            asks.connect(name)
            told = asks.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        except OSError:
            return 0, -1
    pid, uid, _ = _PEER.unpack(told)
    return pid, uid


def unix_socket(path: Path) -> socket.socket:
    """Listen at ``path``, for this user alone until :func:`hand_over`; an old socket goes.

    Raises Unavailable.
    """
    new = path.with_name(path.name + ".new")
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        new.unlink(missing_ok=True)
        old_mask = os.umask(0o177)
        try:
            door.bind(str(new))
        finally:
            os.umask(old_mask)
        door.listen(BACKLOG)
        new.replace(path)
    except OSError as error:
        door.close()
        raise Unavailable(f"{path}: {error.strerror}: the filter's door cannot be opened") from None
    return door


def hand_over(path: Path, uid: int) -> None:
    """Let slurmctld's user in: 0660, its own where we may give it away.

    The mode comes first: of root's powers its unit leaves CAP_CHOWN alone, so what was given away
    is no more ours to change.
    """
    with suppress(OSError):
        path.chmod(0o660)
    with suppress(OSError):
        if os.geteuid() == 0 and path.stat().st_uid != uid:
            os.chown(path, uid, -1)


def tcp_socket(listen: str) -> socket.socket:
    """Listen at "host:port".

    Raises Unavailable.
    """
    host, port = address(listen)
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        door = socket.socket(family, kind | socket.SOCK_NONBLOCK, proto)
    except OSError as error:
        raise Unavailable(f"{listen}: {error.strerror}: the second door is shut") from None
    except ValueError:  # an empty label, say, or one of more than 63 letters
        raise Unavailable(f"{listen}: no name of a host: the second door is shut") from None
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(where)
        door.listen(BACKLOG)
    except OSError as error:
        door.close()
        raise Unavailable(f"{listen}: {error.strerror}: the second door is shut") from None
    return door
