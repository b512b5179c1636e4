"""What Pliant remembers: intentions before actions, decisions with reasons, refused shapes.

One SQLite file (WAL, mode 0600) in the state directory, and beside it ``paused``, an empty file
that is there while an administrator has paused Pliant. Losing all of it loses history, never a
job: what matters about a job stands in the batch system. So nothing here raises: where the file is
broken it is moved aside and a new one begun; where the disk is full, memory takes over until the
disk can be written again, and :attr:`Store.trouble` says so.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pliant.errors import BadSpec
from pliant.grammar import parse_shape
from pliant.model import Shape, shape_text

log = logging.getLogger("pliant.store")

MIGRATIONS = (
    """
    CREATE TABLE intentions (
        id INTEGER PRIMARY KEY, at_s REAL NOT NULL, job TEXT NOT NULL, before TEXT NOT NULL,
        after TEXT NOT NULL, reason TEXT NOT NULL, done_s REAL, outcome TEXT);
    CREATE INDEX intentions_of_job ON intentions (job);
    CREATE TABLE decisions (
        id INTEGER PRIMARY KEY, at_s REAL NOT NULL, job TEXT NOT NULL, what TEXT NOT NULL,
        shape TEXT NOT NULL, reason TEXT NOT NULL);
    CREATE INDEX decisions_of_job ON decisions (job);
    CREATE TABLE refused (
        job TEXT NOT NULL, shape TEXT NOT NULL, times INTEGER NOT NULL, until_s REAL NOT NULL,
        PRIMARY KEY (job, shape));
    """,
    """
    CREATE TABLE handovers (
        id INTEGER PRIMARY KEY, at_s REAL NOT NULL, job TEXT NOT NULL, user TEXT NOT NULL,
        account TEXT NOT NULL, run INTEGER NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
        guest TEXT NOT NULL, reason TEXT NOT NULL, until_s REAL NOT NULL,
        saved_s REAL NOT NULL DEFAULT 0, done_s REAL, outcome TEXT);
    CREATE INDEX handovers_of_job ON handovers (job);
    CREATE TABLE runs (
        job TEXT NOT NULL, run INTEGER NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL,
        shape TEXT NOT NULL, nodes TEXT NOT NULL, submit_s REAL NOT NULL, start_s REAL NOT NULL,
        at_s REAL NOT NULL, launched_s REAL NOT NULL DEFAULT 0,
        step INTEGER NOT NULL DEFAULT 0, rate REAL NOT NULL DEFAULT 0, saved_took_s REAL NOT NULL
        DEFAULT 0, code INTEGER, PRIMARY KEY (job, run));
    """,
    """
    ALTER TABLE runs ADD COLUMN name TEXT NOT NULL DEFAULT '';
    CREATE INDEX runs_of_name ON runs (user, name);
    ALTER TABLE handovers ADD COLUMN end_s REAL NOT NULL DEFAULT 0;
    """,
)
"""Each brings the file from one version (PRAGMA user_version) to the next; only ever append."""

RETRY_S = 60.0
"""How long memory stands in before the file is tried again."""
MOST_ROWS = 200_000
"""Of each kind, whatever the retention."""
LONGEST_REASON = 2000
MOST_MEASURED = 200
"""Of how many earlier runs the speeds count."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing decided about a job: ``what`` is start, keep, mold, would, refused or failed."""

    at_s: float
    job: str
    what: str
    shape: str
    reason: str


@dataclass(frozen=True, slots=True)
class HandOverRow:
    """One hand-over; ``saved_s`` and ``done_s`` are 0 while that has not come."""

    id: int
    at_s: float
    job: str
    user: str
    account: str
    run: int
    before: str
    after: str
    guest: str
    reason: str
    until_s: float
    saved_s: float = 0.0
    done_s: float = 0.0
    outcome: str = ""
    end_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of a job whose program speaks; instants are 0 while they have not come.

    ``at_s``: when it first spoke; ``step`` and ``rate`` (steps/s): what it last said;
    ``saved_took_s``: from the wish to its checkpoint's end; ``code``: how it ended by itself.
    """

    job: str
    run: int
    user: str
    account: str
    shape: str
    nodes: str
    submit_s: float
    start_s: float
    at_s: float
    launched_s: float = 0.0
    step: int = 0
    rate: float = 0.0
    saved_took_s: float = 0.0
    code: int | None = None
    name: str = ""


class Store:
    """The history; safe to use from several threads; never raises for its disk."""

    def __init__(self, directory: Path) -> None:
        """Open or begin the history in ``directory``."""
        self.trouble = ""
        """Why nothing is written to disk now; "" when all is well."""
        self._directory = directory
        self._lock = threading.RLock()
        self._paused = self._marker.exists()
        self._retry_at_s = 0.0
        self._db = self._open_file()

    @property
    def file(self) -> Path:
        """Where the history lies."""
        return self._directory / "pliant.db"

    @property
    def _marker(self) -> Path:
        return self._directory / "paused"

    @property
    def paused(self) -> bool:
        """Whether an administrator has paused Pliant."""
        return self._paused

    def pause(self, paused: bool) -> str:
        """Pause or resume; return "" or why a restart would forget it."""
        self._paused = paused
        try:
            if paused:
                self._marker.touch(mode=0o600)
            else:
                self._marker.unlink(missing_ok=True)
        except OSError as error:
            return f"{self._marker}: {error.strerror}"
        return ""

    # What was meant and what was done

    def intend(self, now_s: float, job: str, before: Shape, after: Shape, reason: str) -> int:
        """Note a change that is about to be made; return its number."""
        row = (now_s, job, shape_text(before), shape_text(after), _clean(reason))
        return self._write(
            "INSERT INTO intentions (at_s, job, before, after, reason) VALUES (?, ?, ?, ?, ?)", row
        )

    def done(self, intention: int, now_s: float, outcome: str) -> None:
        """Note how a change ended: "done", or the batch system's words."""
        self._write(
            "UPDATE intentions SET done_s = ?, outcome = ? WHERE id = ?",
            (now_s, _clean(outcome), intention),
        )

    def unfinished(self) -> tuple[str, ...]:
        """Return the jobs whose last change has no known end, and forget that it has none."""
        rows = self._read("SELECT DISTINCT job FROM intentions WHERE done_s IS NULL", ())
        self._write("UPDATE intentions SET done_s = at_s, outcome = ? WHERE done_s IS NULL", ("?",))
        return tuple(str(row[0]) for row in rows)

    def decide(self, decisions: Iterable[Decision]) -> None:
        """Keep decisions, all at once."""
        rows = [(d.at_s, d.job, d.what, d.shape, _clean(d.reason)) for d in decisions]
        if rows:
            self._write(
                "INSERT INTO decisions (at_s, job, what, shape, reason) VALUES (?, ?, ?, ?, ?)",
                *rows,
            )

    def decisions(self, job: str, most: int = 10) -> tuple[Decision, ...]:
        """Return the last decisions about a job, latest first."""
        rows = self._read(
            "SELECT at_s, job, what, shape, reason FROM decisions"
            " WHERE job = ? ORDER BY id DESC LIMIT ?",
            (job, most),
        )
        return tuple(Decision(*row) for row in rows)

    # Hand-overs

    def hand_over(self, row: HandOverRow) -> int:
        """Note a hand-over before anything is done for it; return its number."""
        return self._write(
            "INSERT INTO handovers (at_s, job, user, account, run, before, after, guest, reason,"
            " until_s, end_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(row.at_s, row.job, row.user, row.account, row.run, row.before, row.after),
                *(row.guest, _clean(row.reason), row.until_s, row.end_s),
            ),
        )

    def saved(self, handover: int, saved_s: float) -> None:
        """Note that its checkpoint is written."""
        self._write("UPDATE handovers SET saved_s = ? WHERE id = ?", (saved_s, handover))

    def reopened(self, handover: int, saved_s: float, after: str, guest: str) -> None:
        """Note that one goes on that had ended: its checkpoint came after all."""
        self._write(
            "UPDATE handovers SET saved_s = ?, done_s = NULL, outcome = NULL, after = ?, guest = ?"
            " WHERE id = ?",
            (saved_s, after, guest, handover),
        )

    def handed_over(self, handover: int, now_s: float, outcome: str) -> None:
        """Note how it ended."""
        self._write(
            "UPDATE handovers SET done_s = ?, outcome = ? WHERE id = ?",
            (now_s, _clean(outcome), handover),
        )

    def handovers(self, job: str = "") -> tuple[HandOverRow, ...]:
        """Return a job's hand-overs, oldest first; or those of all jobs that have not ended."""
        rows = self._read(
            "SELECT id, at_s, job, user, account, run, before, after, guest, reason, until_s,"
            " saved_s, coalesce(done_s, 0), coalesce(outcome, ''), end_s FROM handovers"
            " WHERE job = ?1 OR (?1 = '' AND done_s IS NULL) ORDER BY id",
            (job,),
        )
        return tuple(HandOverRow(*row) for row in rows)

    # Runs

    def run_began(self, row: RunRow) -> None:
        """Note that a job's program runs; once for each run."""
        self._write(
            "INSERT OR IGNORE INTO runs (job, run, user, account, shape, nodes, submit_s, start_s,"
            " at_s, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(row.job, row.run, row.user, row.account, row.shape, row.nodes),
                *(row.submit_s, row.start_s, row.at_s, row.name),
            ),
        )

    def run_told(self, row: RunRow) -> None:
        """Note what a run's program has said since."""
        self._write(
            "UPDATE runs SET launched_s = ?, step = ?, rate = ?, saved_took_s = ?, code = ?"
            " WHERE job = ? AND run = ?",
            (
                *(row.launched_s, row.step, row.rate, row.saved_took_s, row.code),
                *(row.job, row.run),
            ),
        )

    def runs(self, job: str) -> tuple[RunRow, ...]:
        """Return a job's runs in which its program spoke, oldest first."""
        rows = self._read(
            "SELECT job, run, user, account, shape, nodes, submit_s, start_s, at_s, launched_s,"
            " step, rate, saved_took_s, code, name FROM runs WHERE job = ? ORDER BY run",
            (job,),
        )
        return tuple(RunRow(*row) for row in rows)

    def rates(self, user: str, name: str) -> Mapping[Shape, float]:
        """Return how fast a user's jobs of one name ran, by shape, in steps per second.

        What was measured last counts.
        """
        rows = self._read(
            "SELECT shape, rate FROM runs WHERE user = ? AND name = ? AND rate > 0"
            " ORDER BY at_s DESC LIMIT ?",
            (user, name, MOST_MEASURED),
        )
        found: dict[Shape, float] = {}
        for shape, rate in rows:
            with suppress(BadSpec):
                found.setdefault(parse_shape(str(shape)), float(rate))
        return found

    # Shapes that the batch system did not start

    def refuse(
        self, job: str, shape: Shape, now_s: float, for_s: float, *, longer: bool = True
    ) -> float:
        """Leave a shape out for ``for_s``, twice as long each further time; return until when.

        Where it is not for ``longer``, this time does not count.
        """
        name = shape_text(shape)
        known = self._read("SELECT times FROM refused WHERE job = ? AND shape = ?", (job, name))
        times = int(known[0][0]) if known else 0
        until_s = now_s + for_s * (1 << min(times if longer else 0, 10))
        self._write(
            "INSERT OR REPLACE INTO refused (job, shape, times, until_s) VALUES (?, ?, ?, ?)",
            (job, name, times + longer, until_s),
        )
        return until_s

    def refused(self, now_s: float) -> Mapping[str, frozenset[Shape]]:
        """Return the shapes left out now, by job."""
        rows = self._read("SELECT job, shape FROM refused WHERE until_s > ?", (now_s,))
        found: dict[str, set[Shape]] = {}
        for job, shape in rows:
            with suppress(BadSpec):
                found.setdefault(str(job), set()).add(parse_shape(str(shape)))
        return {job: frozenset(shapes) for job, shapes in found.items()}

    def forget_refused(self, job: str) -> None:
        """Try all shapes of a job again: its owner or an administrator changed something."""
        self._write("DELETE FROM refused WHERE job = ?", (job,))

    def forget_before(self, jobs: Iterable[tuple[str, float]]) -> None:
        """Drop what was told of jobs before an instant each: it was of others of these numbers."""
        rows = list(jobs)
        for table in ("runs", "handovers", "decisions") if rows else ():
            self._write(f"DELETE FROM {table} WHERE job = ? AND at_s < ?", *rows)  # noqa: S608  # our own names

    def prune(self, now_s: float, retention_s: float) -> None:
        """Drop what is older than the retention, and the oldest above MOST_ROWS."""
        for table in ("intentions", "decisions", "handovers"):
            self._write(f"DELETE FROM {table} WHERE at_s < ?", (now_s - retention_s,))  # noqa: S608  # our own names
            self._write(
                f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - ?",  # noqa: S608  # our own names
                (MOST_ROWS,),
            )
        self._write("DELETE FROM runs WHERE at_s < ?", (now_s - retention_s,))
        self._write("DELETE FROM refused WHERE until_s < ?", (now_s - retention_s,))

    def heal(self, now_s: float) -> None:
        """Go back from memory to the file, where it can be written again."""
        with self._lock:
            if not self.trouble or now_s < self._retry_at_s:
                return
            self._retry_at_s = now_s + RETRY_S
            memory, trouble = self._db, self.trouble
            self.trouble = ""
            self._db = self._open_file()
            if self.trouble:
                self._db, self.trouble = memory, trouble
                return
            with suppress(sqlite3.Error), memory:
                rows = memory.execute("SELECT job, shape, times, until_s FROM refused").fetchall()
                with self._db:
                    self._db.executemany("INSERT OR REPLACE INTO refused VALUES (?, ?, ?, ?)", rows)
            memory.close()

    def close(self) -> None:
        """Write all and close; later calls go nowhere."""
        with self._lock, suppress(sqlite3.Error):
            self._db.close()

    # The file

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
            return self._to_memory(error)

    def _to_memory(self, error: Exception) -> sqlite3.Connection:
        self.trouble = f"{self.file}: {error}: the history is kept in memory only"
        return _open(None)

    def _write(self, statement: str, *rows: tuple[object, ...]) -> int:
        """Run one statement for each row, in one transaction; return the last row's number."""
        with self._lock:
            try:
                return _write(self._db, statement, rows)
            except (sqlite3.Error, OSError) as error:
                refused = _copy_refused(self._db)
                with suppress(sqlite3.Error):
                    self._db.close()
                if _is_damage(error):
                    with suppress(OSError):
                        _move_aside(self.file)
                self._db = self._to_memory(error)
                _write(self._db, "INSERT INTO refused VALUES (?, ?, ?, ?)", refused)
                return _write(self._db, statement, rows)

    def _read(self, statement: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(statement, values).fetchall()
            except (sqlite3.Error, OSError) as error:
                with suppress(sqlite3.Error):
                    self._db.close()
                self._db = self._to_memory(error)
                return []


def _open(file: Path | None) -> sqlite3.Connection:
    """Open and bring to the newest version.

    Raises sqlite3.Error, OSError.
    """
    if file is not None:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        file.chmod(0o600)
    db = sqlite3.connect(str(file) if file else ":memory:", timeout=2, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > len(MIGRATIONS):
            raise sqlite3.DatabaseError(f"version {version} was written by a newer Pliant")
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            db.executescript(f"BEGIN; {script}; PRAGMA user_version = {number}; COMMIT;")
        if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("malformed")
    except BaseException:
        db.close()
        raise
    return db


def _write(db: sqlite3.Connection, statement: str, rows: Iterable[tuple[object, ...]]) -> int:
    last = 0
    with db:
        for row in rows:
            last = db.execute(statement, row).lastrowid or 0
    return last


def _clean(text: str) -> str:
    """Cut a reason, and replace what no UTF-8 can say: it may quote a user."""
    return text[:LONGEST_REASON].encode("utf-8", "replace").decode()


def _copy_refused(db: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Save what can be read of the refused shapes from a database that cannot be written."""
    try:
        return db.execute("SELECT job, shape, times, until_s FROM refused").fetchall()
    except sqlite3.Error:
        return []


def _is_damage(error: Exception) -> bool:
    """Whether the file itself is bad, not merely its disk, its rights or a lock."""
    return type(error) is sqlite3.DatabaseError


def _move_aside(file: Path) -> None:
    """Keep a broken file for whoever wants to look: the last one only."""
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    file.replace(file.with_name(file.name + ".broken"))
