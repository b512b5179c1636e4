"""A trace's file: each look is appended at once, by one process at a time.

- A look is one write. What a crash left of a line is cut off when the file is opened again.
- What cannot be written whole, as on a full disk, is not written at all, and told once.
- Where the file was moved away or emptied, as by logrotate, the next look begins it anew.
- Who may read it follows from where it stands: it tells who ran what, and is begun for root alone.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from pathlib import Path

from pliant.errors import BadInput
from pliant.wire.gpu_trace import HEADER, LONGEST

log = logging.getLogger("pliant.trace")

_HEADER = f"{HEADER}\n".encode()
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o600


class TraceFile:
    """A file that is appended to. Raises BadInput where it cannot be, or is something else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _opened(path)
        self._told = ""

    def append(self, text: str) -> None:
        """Write lines, all or none of them. What hinders is logged once, until it has gone."""
        try:
            if self._is_there():
                _ready(self._file, self._path)  # it may have been emptied
            else:
                self._reopen()
            _write(self._file, text.encode("utf-8", "replace"))
        except (OSError, BadInput) as error:
            words = f"{self._path}: {error.strerror}" if isinstance(error, OSError) else str(error)
            if words != self._told:
                log.warning("the trace is not written: %s", words)
            self._told = words
        else:
            if self._told:
                log.warning("the trace is written again: %s", self._path)
            self._told = ""

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._file)

    def _is_there(self) -> bool:
        """Say whether the file still stands under its name."""
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self._file))

    def _reopen(self) -> None:
        file = _opened(self._path)
        os.close(self._file)
        self._file = file


def _opened(path: Path) -> int:
    """Open or begin a trace, ready to be appended to. Raises BadInput."""
    try:
        file = os.open(path, _FLAGS, _MODE)
    except OSError as error:
        why = "a link is not followed" if error.errno == errno.ELOOP else error.strerror
        raise BadInput(f"{path}: {why}") from error
    try:
        _ready(file, path)
    except BaseException:
        os.close(file)
        raise
    return file


def _ready(file: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise BadInput(f"{path}: it is no file: a trace is appended to one")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        begin = os.pread(file, len(_HEADER), 0)
        if not _HEADER.startswith(begin):
            raise BadInput(f"{path}: it is no trace of processes on GPUs: it begins otherwise")
        if begin != _HEADER:  # new, or cut off in its first line
            os.ftruncate(file, 0)
            _write(file, _HEADER)
        else:
            _cut_torn_line(file, path)
    except BlockingIOError:
        raise BadInput(f"{path}: another process writes it") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def _cut_torn_line(file: int, path: Path) -> None:
    size = os.fstat(file).st_size
    end = size
    while end > len(_HEADER):
        at = max(len(_HEADER), end - LONGEST)
        found = os.pread(file, end - at, at).rfind(b"\n")
        if found >= 0:
            end = at + found + 1
            break
        end = at
    if end < size:
        log.warning("%s: its last line was cut off: %d bytes are left out", path, size - end)
        os.ftruncate(file, end)


def _write(file: int, data: bytes) -> None:
    """Write all or nothing. Raises OSError."""
    before = os.fstat(file).st_size
    try:
        if os.write(file, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(file, before)
        raise
