"""What an installation changed, kept in one directory, so that every file can be given back.

``installed.json`` lists the files in order; beside it lies each one's first state, byte for byte,
under its path with ``%`` for ``/``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from pliant.errors import Unavailable


class Entry(msgspec.Struct):
    """One file that was changed. ``before`` is false where it was not there."""

    path: str
    before: bool
    after_sha256: str
    ours: bool
    made: list[str]  # directories that were made for it, the innermost first


class Record:
    """``installed.json`` in ``directory``."""

    def __init__(self, directory: Path) -> None:
        """Read what was done so far.

        Raises Unavailable.
        """
        self.directory = directory
        self._list = directory / "installed.json"
        raw = read(self._list)
        try:
            self.entries = msgspec.json.decode(raw, type=list[Entry]) if raw else []
        except msgspec.DecodeError as wrong:
            raise Unavailable(f"{self._list}: {wrong}: it is not what was written") from wrong

    def find(self, path: Path) -> Entry | None:
        """Return what was done to a file."""
        return next((entry for entry in self.entries if entry.path == str(path)), None)

    def first_state(self, entry: Entry) -> str | None:
        """Return what a file held before the first change; None: it was not there."""
        return read(self.backup(Path(entry.path))) if entry.before else None

    def note(self, path: Path, before: str | None, after: str, ours: bool) -> None:
        """Keep a file's first state and the digest of its new one, before it is written."""
        entry = self.find(path)
        if entry is not None:
            entry.after_sha256 = sha256(after)
        else:
            if before is not None:
                write(self.backup(path), before, 0o600)
            made = [str(parent) for parent in path.parents if not parent.exists()]
            self.entries.append(Entry(str(path), before is not None, sha256(after), ours, made))
        self._write()

    def forget(self, path: Path, keep: bool = False) -> None:
        """Drop a file that was put back, with the directories that were made for it.

        ``keep``: what was there first stays here, for a person, because it was not put back.
        """
        entry = self.find(path)
        if entry is None:
            return
        self.entries.remove(entry)
        if not keep:
            self.backup(path).unlink(missing_ok=True)
        if self.entries:
            self._write()
        else:
            self._list.unlink(missing_ok=True)
            _remove_empty(self.directory)
            _remove_empty(self.directory.parent)  # /etc/pliant, where nothing else is left
        for made in entry.made:
            _remove_empty(Path(made))

    def backup(self, path: Path) -> Path:
        """Return where a file's first state is kept."""
        return self.directory / str(path).replace("/", "%")

    def _write(self) -> None:
        text = msgspec.json.format(msgspec.json.encode(self.entries), indent=1).decode()
        write(self._list, f"{text}\n", 0o600)


def read(path: Path) -> str | None:
    """Return a file's text, bytes kept, or None where there is none.

    Raises Unavailable.
    """
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as wrong:
        raise Unavailable(f"{path}: {wrong.strerror}") from wrong


def write(path: Path, text: str, mode: int) -> None:
    """Write a file under a temporary name and rename it; an old file keeps its mode and owner.

    A symbolic link stays one: the file that it names is written. Raises Unavailable.
    """
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.pliant-new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(_raw(text))
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            old = target.stat()
            temporary.chmod(old.st_mode & 0o7777)
            if os.geteuid() == 0:
                os.chown(temporary, old.st_uid, old.st_gid)
        else:
            temporary.chmod(mode)
        temporary.replace(target)
    except OSError as wrong:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise Unavailable(f"{path}: {wrong.strerror}: it is as it was") from wrong


def sha256(text: str) -> str:
    """Return the digest that tells whether a file is as we wrote it."""
    return hashlib.sha256(_raw(text)).hexdigest()


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        directory.rmdir()
