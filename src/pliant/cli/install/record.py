"""What an installation changed, kept in one directory, so that every file can be given back.

``installed.json`` lists the files in order; beside it lies each one's first state, byte for byte,
under its path with ``%`` for ``/``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pliant.decoding import Decoder
from pliant.errors import Unavailable

RECORD = "/etc/pliant/installed"
RECORD_VARIABLE = "PLIANT_RECORD"
UNFINISHED = ".pliant-new"
"""How the name of a file ends that is being written."""
PLANTED = "it is another user's, in a directory that is open to all: another name is expected"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SHARED = stat.S_ISVTX | stat.S_IWOTH


def default_record(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the record lies if no option says it: $PLIANT_RECORD, or /etc/pliant."""
    return Path(environ.get(RECORD_VARIABLE) or RECORD)


class Entry(msgspec.Struct):
    """One file that was changed. ``before`` is false where it was not there.

    Paths are as the running system sees them, without a root: an image that was installed into
    by --root can be booted, and removes what it holds.
    """

    path: str
    before: bool
    after_sha256: str
    ours: bool
    made: list[str]  # directories that were made for it, the innermost first
    mode: int = 0o644  # of the first state, for a file that somebody deleted since
    owner: tuple[int, int] | None = None
    was_sha256: str = ""  # of what we wrote before: a write that was cut off left it there

    def wrote(self, text: str) -> bool:
        """Say whether a file holds what we wrote, now or before."""
        return sha256(text) in {self.after_sha256, self.was_sha256}


_ENTRIES = Decoder(list[Entry])


class Record:
    """``installed.json`` in ``directory``, on the files below ``root``."""

    def __init__(self, directory: Path, root: Path = Path("/")) -> None:
        """Read what was done so far.

        Raises Unavailable.
        """
        self.directory = directory
        self.root = root
        self._list = directory / "installed.json"
        raw = read(self._list)
        try:
            self.entries = _ENTRIES.json(raw) if raw else []
        except msgspec.DecodeError as wrong:
            raise Unavailable(f"{self._list}: {wrong}: it is not what was written") from wrong

    def find(self, path: Path) -> Entry | None:
        """Return what was done to a file."""
        name = self._inside(path)
        return next((entry for entry in self.entries if entry.path == name), None)

    def path_of(self, entry: Entry) -> Path:
        """Return where an entry's file lies.

        Raises Unavailable where it lies outside of the root by now.
        """
        return below(self.root, Path(entry.path))

    def first_state(self, entry: Entry) -> str | None:
        """Return what a file held before the first change; None: it was not there."""
        return read(self.backup(self.path_of(entry))) if entry.before else None

    def note(self, path: Path, before: str | None, after: str, ours: bool) -> None:
        """Keep a file's first state and the digest of its new one, before it is written.

        A site's own file that somebody changed since is never again one that we wrote: only our
        lines are taken out of it, so its changes last.
        """
        entry = self.find(path)
        if entry is not None:
            if before is None or entry.wrote(before) or before == self.first_state(entry):
                entry.was_sha256 = "" if before is None else sha256(before)
                entry.after_sha256 = sha256(after)
        else:
            parents = Path(os.path.realpath(path)).parents  # a link may name what is not there
            made = [self._inside(parent) for parent in parents if not parent.exists()]
            entry = Entry(self._inside(path), before is not None, sha256(after), ours, made)
            if before is not None:
                write(self.backup(path), before, 0o600)
                first = path.stat()
                entry.mode, entry.owner = first.st_mode & 0o7777, (first.st_uid, first.st_gid)
            self.entries.append(entry)
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
            for cut_off in self.directory.glob(f".*{UNFINISHED}"):
                cut_off.unlink(missing_ok=True)
            _remove_empty(self.directory)
            _remove_empty(self.directory.parent)  # /etc/pliant, where nothing else is left
        for made in entry.made:
            _remove_empty(self.root / made.lstrip("/"))

    def backup(self, path: Path) -> Path:
        """Return where a file's first state is kept."""
        return self.directory / self._inside(path).replace("/", "%")

    def _inside(self, path: Path) -> str:
        real = Path(os.path.realpath(self.root))
        return f"/{path.relative_to(self.root if path.is_relative_to(self.root) else real)}"

    def _write(self) -> None:
        text = msgspec.json.format(msgspec.json.encode(self.entries), indent=1).decode()
        write(self._list, f"{text}\n", 0o600)


def below(root: Path, path: Path) -> Path:
    """Return where a path of the system lies below ``root``.

    Raises Unavailable where a link, or a .., leads out of ``root``: what lies there belongs to
    another system.
    """
    found = root / path.relative_to("/")
    real = Path(os.path.realpath(found))
    if not real.is_relative_to(os.path.realpath(root)):
        raise Unavailable(f"{found}: it leads out of {root}, to {real}: nothing was changed")
    return found


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


def write(path: Path, text: str | bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Write a file under a temporary name and rename it; an old file keeps its mode and owner.

    A new one gets ``mode``, and where root writes it, ``owner`` (uid, gid). A symbolic link stays
    one: the file that it names is written. A device, as /dev/null, is no file: it stays. Raises
    Unavailable.
    """
    target, unfinished = path.resolve(), temporary(path)
    try:
        if is_planted(path):
            raise Unavailable(f"{path}: {PLANTED}")
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise Unavailable(f"{path}: a regular file is expected: it is as it was")
        _make(target.parent)
        unfinished.unlink(missing_ok=True)
        if target.exists():
            old = target.stat()
            mode, owner = old.st_mode & 0o7777, (old.st_uid, old.st_gid)
        with os.fdopen(os.open(unfinished, _NEW, 0o600), "wb") as file:
            file.write(_raw(text))
            file.flush()
            if owner and os.geteuid() == 0:
                os.fchown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        unfinished.replace(target)
    except OSError as wrong:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise Unavailable(f"{path}: {wrong.strerror}: it is as it was") from wrong


def is_planted(path: Path) -> bool:
    """Whether another user made a file or link in a directory that is open to all, as /tmp is.

    What the kernel keeps from being opened there, by proc(5)'s protected_symlinks and
    protected_regular, is not to be written by its path either.
    """
    try:
        made, directory = path.lstat(), path.parent.stat()
    except FileNotFoundError:
        return False
    shared = directory.st_mode & _SHARED == _SHARED
    return shared and made.st_uid not in (os.geteuid(), directory.st_uid)


def temporary(path: Path) -> Path:
    """Return the name under which :func:`write` writes a file first."""
    target = path.resolve()
    return target.with_name(f".{target.name}{UNFINISHED}")


def sha256(text: str) -> str:
    """Return the digest that tells whether a file is as we wrote it."""
    return hashlib.sha256(_raw(text)).hexdigest()


def _raw(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def _make(directory: Path) -> None:
    """Make a directory and those above it, where they are not there, open to everybody.

    An administrator's umask may be 077; slurmctld, pliantd and every user's sbatch look in there.
    """
    for missing in [path for path in (directory, *directory.parents) if not path.exists()][::-1]:
        missing.mkdir()
        missing.chmod(0o755)


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        directory.rmdir()
