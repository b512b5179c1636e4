"""The file of the history: opened, written and read without ever raising, but for a newer file.

A broken file is moved aside and a new one begun; where the disk is full, memory takes over until
the disk can be written again, and what it has held of jobs is written there then. It begins with
what of the file is not over, and counts on from there. A file of a later release is none of both:
nothing is done to it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pliant.errors import Unavailable
from pliant.store.rows import COUNTED, LIVING
from pliant.store.schema import MIGRATIONS

log = logging.getLogger("pliant.store")

Step = tuple[str, Sequence[tuple[object, ...]]]
"""A statement, and the rows for each of which it is run."""
Values = tuple[object, ...] | Mapping[str, object]
Reads = Callable[[str, Values], list[tuple[Any, ...]]]
"""Returns what one statement finds."""

RETRY_S = 60.0
"""How long memory stands in before the file is tried again."""


class Database:
    """One SQLite file; safe to use from several threads."""

    def __init__(self, file: Path) -> None:
        """Open or begin a file.

        Raises Unavailable where a later release wrote it.
        """
        self.file = file
        self.trouble = ""
        """Why nothing is written to disk now; "" when all is well."""
        self._lock = threading.RLock()
        self._retry_at_s = 0.0
        self._db = self._open_file()

    def write(self, statement: str, *rows: tuple[object, ...], lasts: bool = False) -> int:
        """Run one statement for each row, in one transaction; return the last row's number.

        ``lasts``: once this returns it outlasts a loss of power, for some milliseconds of waiting
        for the disk; else only a crash of ours.
        """
        return self.write_all((statement, rows), lasts=lasts)

    def write_all(self, *steps: Step, lasts: bool = False) -> int:
        """Run several statements, each for each of its rows, as :meth:`write` does."""
        with self._lock:
            try:
                return _write_lasting(self._db, steps, lasts)
            except (sqlite3.Error, OSError) as error:
                kept = _kept(self._db)
                with suppress(sqlite3.Error):
                    self._db.close()
                if _is_damage(error):
                    with suppress(OSError):
                        _move_aside(self.file)
                self._db = self._to_memory(error, kept)
                return _write(self._db, steps)

    def read(self, statement: str, values: Values) -> list[tuple[Any, ...]]:
        """Return what one statement finds; nothing where the file cannot be read."""
        with self._lock:
            try:
                return self._db.execute(statement, values).fetchall()
            except (sqlite3.Error, OSError) as error:
                kept = _kept(self._db)
                with suppress(sqlite3.Error):
                    self._db.close()
                self._db = self._to_memory(error, kept)
                return []

    @contextmanager
    def reading(self) -> Iterator[Reads]:
        """Read as of one moment, for long, without keeping anybody from writing meanwhile."""
        try:
            db = None if self.trouble else _open_to_read(self.file)
        except sqlite3.Error:
            db = None
        if db is None:
            yield self.read
            return
        try:
            yield lambda statement, values: db.execute(statement, values).fetchall()
        finally:
            db.close()

    def heal(self, now_s: float) -> None:
        """Go back from memory to the file, where it can be written again."""
        with self._lock:
            if not self.trouble or now_s < self._retry_at_s:
                return
            self._retry_at_s = now_s + RETRY_S
            memory, trouble = self._db, self.trouble
            self.trouble = ""
            try:
                self._db = self._open_file()
            except Unavailable as error:
                self.trouble = f"{error}: the history is kept in memory only"
                return
            if self.trouble:
                self._db, self.trouble = memory, trouble
                return
            try:
                _carry(memory, self.file)
            except sqlite3.Error:
                self._db.close()
                self._db, self.trouble = memory, trouble
                return
            memory.close()

    def close(self) -> None:
        """Write all and close; later calls go nowhere."""
        with self._lock, suppress(sqlite3.Error):
            self._db.close()

    def _open_file(self) -> sqlite3.Connection:
        """Open the file; move a broken one aside; fall back to memory."""
        try:
            try:
                return _open(self.file)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                _move_aside(self.file)
                log.warning(
                    "%s: %s: kept as pliant.db.broken; a new one is begun", self.file, error
                )
                return _open(self.file)
        except (sqlite3.Error, OSError) as error:
            return self._to_memory(error, _kept_in(self.file))

    def _to_memory(self, error: Exception, kept: Sequence[Step]) -> sqlite3.Connection:
        self.trouble = f"{self.file}: {error}: the history is kept in memory only"
        memory = _open(None, 0 if kept else int(time.time()))  # beyond all that the file may hold
        _write(memory, kept)
        return memory


def _open(file: Path | None, beyond: int = 0) -> sqlite3.Connection:
    """Open and bring to the newest version; the first of its rows is numbered ``beyond`` that.

    Raises sqlite3.Error, OSError; Unavailable where a later release wrote it.
    """
    if file is not None:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        file.chmod(0o600)
    db = sqlite3.connect(str(file) if file else ":memory:", timeout=2, check_same_thread=False)
    db.create_function("beyond", 0, lambda: beyond)
    try:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > len(MIGRATIONS):
            raise Unavailable(_too_new(file, version))
        db.execute("PRAGMA journal_mode = WAL")
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            db.executescript(f"BEGIN; {script}; PRAGMA user_version = {number}; COMMIT;")
        if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("malformed")
    except BaseException:
        db.close()
        raise
    return db


_CARRIED = (
    "DELETE FROM file.refused",
    "INSERT INTO file.refused SELECT * FROM main.refused",
    "INSERT OR REPLACE INTO file.speeds SELECT * FROM main.speeds",
    "INSERT OR REPLACE INTO file.jobs SELECT * FROM main.jobs",
    "INSERT OR REPLACE INTO file.runs SELECT * FROM main.runs",
    "UPDATE file.runs SET end_s = (SELECT end_s FROM main.jobs AS j WHERE j.job = runs.job)"
    " WHERE end_s = 0 AND job IN (SELECT job FROM main.jobs WHERE end_s > 0)",
    "INSERT OR REPLACE INTO file.intentions SELECT * FROM main.intentions",
    "INSERT OR REPLACE INTO file.handovers SELECT * FROM main.handovers",
    "INSERT INTO file.decisions (at_s, job, what, shape, reason)"
    " SELECT at_s, job, what, shape, reason FROM main.decisions ORDER BY id",
    "INSERT INTO file.hours SELECT * FROM main.hours WHERE true ON CONFLICT (hour_s, partition)"  # noqa: S608  # our own names
    " DO UPDATE SET " + ", ".join(f"{name} = {name} + excluded.{name}" for name in COUNTED),
)
"""What memory has held for a while, into the file."""
_KEPT = (
    ("refused", "true"),
    ("handovers", f"done_s IS NULL OR {LIVING} OR id = (SELECT max(id) FROM handovers)"),  # noqa: S608  # our own words
    ("intentions", "done_s IS NULL OR id = (SELECT max(id) FROM intentions)"),
)
"""With which rows memory begins: what is not over, and the last ones, whose numbers go on."""


def _carry(memory: sqlite3.Connection, file: Path) -> None:
    """Write what memory holds into the file, all or nothing.

    Raises sqlite3.Error.
    """
    memory.execute("ATTACH ? AS file", (str(file),))
    try:
        with memory:
            for statement in _CARRIED:
                memory.execute(statement)
    finally:
        memory.execute("DETACH file")


def _too_new(file: Path | None, version: int) -> str:
    return (
        f"{file}: a later release of Pliant wrote it (version {version}, this one reads up to "
        f"{len(MIGRATIONS)}): install that release again, or move the file away to begin without it"
    )


def _open_to_read(file: Path, *, as_is: bool = False) -> sqlite3.Connection:
    """Open without writing; ``as_is``: without what SQLite writes beside it, for nobody writes."""
    how = "mode=ro&immutable=1" if as_is else "mode=ro"
    db = sqlite3.connect(f"{file.as_uri()}?{how}", timeout=2, uri=True)
    try:
        db.execute("BEGIN")
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1")  # from here on nothing new is seen
    except sqlite3.Error:
        db.close()
        raise
    return db


def _write(db: sqlite3.Connection, steps: Iterable[Step]) -> int:
    last = 0
    with db:
        for statement, rows in steps:
            for row in rows:
                last = db.execute(statement, row).lastrowid or 0
    return last


def _write_lasting(db: sqlite3.Connection, steps: Iterable[Step], lasts: bool) -> int:
    """In WAL mode only FULL syncs each commit (https://sqlite.org/pragma.html, synchronous)."""
    db.execute(f"PRAGMA synchronous = {'FULL' if lasts else 'NORMAL'}")
    return _write(db, steps)


def _kept(db: sqlite3.Connection) -> list[Step]:
    """Return what writes down elsewhere what memory begins with; nothing where not all is read."""
    steps: list[Step] = []
    try:
        if db.execute("PRAGMA user_version").fetchone()[0] != len(MIGRATIONS):
            return []
        for table, where in _KEPT:
            rows = db.execute(f"SELECT * FROM {table} WHERE {where}").fetchall()  # noqa: S608  # our own words
            values = ", ".join("?" * len(rows[0])) if rows else ""
            steps.append((f"INSERT INTO {table} VALUES ({values})", rows))  # noqa: S608  # our own words
    except sqlite3.Error:
        return []
    return steps


def _kept_in(file: Path) -> list[Step]:
    """Return the same of a file that cannot be written."""
    wal = file.with_name(f"{file.name}-wal")
    with suppress(sqlite3.Error, OSError):
        db = _open_to_read(file, as_is=not wal.exists() or not wal.stat().st_size)
        try:
            return _kept(db)
        finally:
            db.close()
    return []


def _is_damage(error: Exception) -> bool:
    """Whether the file itself is bad, not merely its disk, its rights or a lock."""
    return type(error) is sqlite3.DatabaseError


def _move_aside(file: Path) -> None:
    """Keep a broken file for whoever wants to look: the last one only."""
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    file.replace(file.with_name(file.name + ".broken"))
