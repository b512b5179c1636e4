"""Keeps reports on a node's disk until pliantd has taken them.

A file for each, named by a number that only grows, in a folder of this user alone. It is written
under a temporary name and renamed, so that a file is whole or not there. There is no more than
``most`` files of ``most_bytes`` in all: the oldest go first, and are counted. What the disk does
not take is kept in memory alone, under the same bounds: it would be lost with this process.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pliant.errors import Unavailable

MOST = 1000
"""Reports; at one a minute they last for 16 hours."""
MOST_BYTES = 8 * 1024 * 1024

_NAME = re.compile(r"[0-9]{16}\.report")
_UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Kept:
    """One report: its number, its bytes where memory alone has them."""

    number: int
    size: int
    content: bytes | None = None


@dataclass(slots=True)
class Spool:
    """A queue of bytes on disk, for one process and one of its threads."""

    folder: Path
    most: int = MOST
    most_bytes: int = MOST_BYTES
    lost: int = 0
    """How many were dropped for newer ones, or could not be read again."""
    trouble: str = ""
    """Why the last one is in memory alone; "" where it is not."""
    _kept: deque[Kept] = field(default_factory=deque)
    _bytes: int = 0
    _next: int = 1
    _handle: int | None = None  # of the folder's lock

    def __len__(self) -> int:
        return len(self._kept)

    def open(self) -> None:
        """Find what an earlier process left; without a folder memory must do.

        It keeps other monitors out for this process's life, or until :meth:`close`.
        """
        if self._handle is not None:
            return
        try:
            _make_private(self.folder)
            self._handle = _locked(self.folder)
            (self.folder / _UNFINISHED).unlink(missing_ok=True)
            found = sorted(p for p in self.folder.iterdir() if _NAME.fullmatch(p.name))
            for path in found:
                self._append(Kept(int(path.stem), path.stat().st_size))
        except (OSError, Unavailable) as error:
            self.trouble = self._words(error)
        self._drop()

    def close(self) -> None:
        """Let another monitor have the folder."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def keep(self, content: bytes) -> None:
        """Keep a report; where there are too many, without the oldest ones."""
        self.open()  # it may be there only now
        kept = Kept(self._next, len(content), content)
        if self._handle is not None:
            try:
                self._write(kept, content)
                kept, self.trouble = Kept(kept.number, kept.size), ""
            except (OSError, Unavailable) as error:
                self.trouble = self._words(error)
        self._append(kept)
        self._drop()

    def oldest(self) -> bytes | None:
        """Return the oldest report; None where there is none."""
        while self._kept:
            first = self._kept[0]
            if first.content is not None:
                return first.content
            with suppress(OSError):
                return self._path(first).read_bytes()
            self.lost += 1  # somebody has taken the file away
            self.take_off()
        return None

    def take_off(self) -> None:
        """Forget the oldest report: it is taken, or never will be."""
        first = self._kept.popleft()
        self._bytes -= first.size
        if first.content is None:
            with suppress(OSError):
                self._path(first).unlink()

    def _words(self, error: OSError | Unavailable) -> str:
        return f"{self.folder}: {error.strerror if isinstance(error, OSError) else error}"

    def _append(self, kept: Kept) -> None:
        self._kept.append(kept)
        self._bytes += kept.size
        self._next = max(self._next, kept.number + 1)

    def _drop(self) -> None:
        while self._kept and (len(self._kept) > self.most or self._bytes > self.most_bytes):
            self.take_off()
            self.lost += 1

    def _path(self, kept: Kept) -> Path:
        return self.folder / f"{kept.number:016d}.report"

    def _write(self, kept: Kept, content: bytes) -> None:
        _make_private(self.folder)
        unfinished = self.folder / _UNFINISHED
        try:
            # not through a link that somebody has laid
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
                file.write(content)
            unfinished.rename(self._path(kept))
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            raise


def _locked(folder: Path) -> int:
    """Lock a folder; return what holds the lock. Raises OSError, Unavailable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise Unavailable("another monitor keeps its reports there") from None
    return handle


def _make_private(folder: Path) -> None:
    """Make a folder of this user alone, and of nobody else's making.

    Raises OSError, Unavailable.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Unavailable("it is no folder of this user's own")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
