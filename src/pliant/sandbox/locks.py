"""Locks on directories: a lock file would be one more thing to leave behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a directory that is made where it is missing, and removed in the end if it is empty."""
    handle = _make_and_hold(directory)
    try:
        yield
    finally:
        with suppress(OSError):
            directory.rmdir()
        os.close(handle)


def _make_and_hold(directory: Path) -> int:
    while True:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        fcntl.flock(handle, fcntl.LOCK_EX)
        if is_same(handle, directory):
            return handle
        os.close(handle)  # its last user removed it while we waited


def hold(directory: Path) -> int | None:
    """Return a handle that keeps the directory locked until it is closed; None if another does."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def is_same(handle: int, path: Path) -> bool:
    """Return whether the handle is still the directory of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
