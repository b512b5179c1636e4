"""The checkpoint that a job's owner has named: whether it is new and whole.

It is looked at twice: when a checkpoint is requested, before the program hears of it, and once the
program has saved. What is new is told by the files themselves, which another host may have written,
and by no clock: by a file's inode, size or time of change. Nothing of the path reaches a shell.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from pliant.node.aside import Aside
from pliant.node.ranks import PREFIX

BEFORE_S = 2.0
"""How long a look may take before the program is told: signals wait for it."""
WAIT_S = 5.0
"""How long a file system may show what was there before: NFS does so for some seconds."""
LOOK_S = 0.25
MOST_FILES = 20_000

_File = tuple[int, int, int, int]
_Files = frozenset[_File]
_NOTHING: _Files = frozenset()


class _Unclear(Exception):
    """Why it cannot be told, in words."""


class NamedCheckpoint:
    """What there was when it was last requested."""

    def __init__(self, directory: Path | None) -> None:
        """``directory``: that for checkpoints; a path is looked for beside the program first."""
        self._directory = directory
        self._before: dict[Path, _Files | str] = {}
        self._aside = Aside()

    def remember(self, name: str) -> None:
        """Look what is there now."""
        places = self._places(name)
        unknown: dict[Path, _Files | str] = dict.fromkeys(places, f"it took {BEFORE_S:.0f} s")
        found = self._aside.within(BEFORE_S, lambda: {place: _seen(place) for place in places})
        self._before = found if found is not None else unknown

    def trouble(self, name: str, wait_s: float | None = None) -> str:
        """Return why it is no new and whole checkpoint, in words; "" where it is one.

        ``wait_s``: for how long it may become one, WAIT_S where it is None.
        """
        end_s = time.monotonic() + (WAIT_S if wait_s is None else wait_s)
        while True:
            troubles = [self._of(place) for place in self._places(name)]
            if "" in troubles:
                return ""
            if time.monotonic() >= end_s:
                there = [words for words in troubles if words != _MISSING]
                return f"{name} {(there or troubles)[0]}"
            time.sleep(LOOK_S)

    def trouble_soon(self, name: str) -> str:
        """Return the same, after one look that takes no longer than we have."""
        found = self._aside.within(BEFORE_S, lambda: self.trouble(name, 0.0))
        return f"{name} could not be looked at within {BEFORE_S:.0f} s" if found is None else found

    def _of(self, place: Path) -> str:
        before, now = self._before.get(place, "nobody looked"), _seen(place)
        if isinstance(now, str):
            return now
        if isinstance(before, str) and before != _MISSING:
            return f"could not be looked at before: {before}"
        if not any(size for _, _, size, _ in now):
            return "is empty"
        known = before if isinstance(before, frozenset) else _NOTHING
        if not any(file[2] for file in now - known):
            return "is no newer than the request"
        return ""

    def _places(self, name: str) -> tuple[Path, ...]:
        beside = Path(name)
        with suppress(OSError):  # a working directory that is gone
            beside = Path.cwd() / name
        within = self._directory / name if self._directory is not None else beside
        return tuple(dict.fromkeys((beside, within)))


_MISSING = "is not there"


def _seen(place: Path) -> _Files | str:
    """Return the files of a path, or why there are none, in words."""
    try:
        return _files(place)
    except (FileNotFoundError, NotADirectoryError):
        return _MISSING
    except _Unclear as why:
        return str(why)
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _files(place: Path) -> _Files:
    """Return the regular files of a path, followed where it is a link.

    Raises OSError, _Unclear.
    """
    kind = place.stat().st_mode
    if stat.S_ISREG(kind):
        handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK)  # NFS asks its server at an open
        try:
            return frozenset({_file(os.fstat(handle))})
        finally:
            os.close(handle)
    if not stat.S_ISDIR(kind):
        raise _Unclear("is neither a file nor a directory")
    found: set[_File] = set()
    folders = [place]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.startswith(PREFIX):  # what tasks tell each other is no checkpoint
                    continue
                with suppress(FileNotFoundError):  # it is being written
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif stat.S_ISREG((what := entry.stat()).st_mode):
                        found.add(_file(what))
                if len(found) + len(folders) > MOST_FILES:
                    raise _Unclear(f"has more than {MOST_FILES} files: name one of them")
    return frozenset(found)


def _file(what: os.stat_result) -> _File:
    return (what.st_dev, what.st_ino, what.st_size, what.st_mtime_ns)
