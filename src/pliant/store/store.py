"""What is remembered, table by table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pliant.errors import BadSpec
from pliant.grammar import parse_shape
from pliant.model import Shape, shape_text
from pliant.store.database import Database
from pliant.store.remembered import DECIDES, NOT_LIVING, Remembered, decision_values
from pliant.store.report import report
from pliant.store.reported import Report
from pliant.store.rows import Decision, HandOverRow, RunRow, clean

MOST_ROWS = 200_000
"""Of each kind, whatever the retention."""
MOST_MEASURED = 200
"""Of how many earlier runs the speeds count."""

Speed = tuple[str, float, float, float]
"""A program's name in the speed table, and its mean: weight, sum, and when it was measured last."""


class Store:
    """The history; safe to use from several threads; never raises for its disk."""

    def __init__(self, directory: Path) -> None:
        """Open or begin the history in ``directory``.

        Raises Unavailable where a later release wrote it.
        """
        self._marker = directory / "paused"
        self._paused = self._marker.exists()
        self._db = Database(directory / "pliant.db")
        self.jobs = Remembered(self._db)

    @property
    def file(self) -> Path:
        """Where the history lies."""
        return self._db.file

    @property
    def trouble(self) -> str:
        """Why nothing is written to disk now; "" when all is well."""
        return self._db.trouble

    def heal(self, now_s: float) -> None:
        """Go back from memory to the file, where it can be written again."""
        self._db.heal(now_s)

    def close(self) -> None:
        """Write all and close; later calls go nowhere."""
        self._db.close()

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

    def report(self, since_s: float, until_s: float) -> Report:
        """Add up what is known of a time; nobody is kept from writing meanwhile."""
        with self._db.reading() as read:
            return report(read, since_s, until_s)

    # What was meant and what was done

    def intend(self, now_s: float, job: str, before: Shape, after: Shape, reason: str) -> int:
        """Note a change that is about to be made; return its number."""
        row = (now_s, job, shape_text(before), shape_text(after), clean(reason))
        return self._db.write(
            "INSERT INTO intentions (id, at_s, job, before, after, reason) VALUES"
            " ((SELECT coalesce(max(id), beyond()) + 1 FROM intentions), ?, ?, ?, ?, ?)",
            row,
        )

    def done(self, intention: int, now_s: float, outcome: str) -> None:
        """Note how a change ended: "done", or the batch system's words."""
        self._db.write(
            "UPDATE intentions SET done_s = ?, outcome = ? WHERE id = ?",
            (now_s, clean(outcome), intention),
        )

    def intended(self, job: str, shape: str) -> str:
        """Return why a job was last to become a shape; "" where that is not known."""
        rows = self._db.read(
            "SELECT reason FROM intentions WHERE job = ? AND after = ? ORDER BY id DESC LIMIT 1",
            (job, shape),
        )
        return str(rows[0][0]) if rows else ""

    def unfinished(self) -> tuple[str, ...]:
        """Return the jobs whose last change has no known end, and forget that it has none."""
        rows = self._db.read("SELECT DISTINCT job FROM intentions WHERE done_s IS NULL", ())
        self._db.write(
            "UPDATE intentions SET done_s = at_s, outcome = ? WHERE done_s IS NULL", ("?",)
        )
        return tuple(str(row[0]) for row in rows)

    def decide(self, decisions: Iterable[Decision]) -> None:
        """Keep decisions, all at once."""
        rows = [decision_values(decision) for decision in decisions]
        if rows:
            self._db.write(DECIDES, *rows)

    def decisions(self, job: str, most: int = 10) -> tuple[Decision, ...]:
        """Return the last decisions about a job, latest first."""
        rows = self._db.read(
            "SELECT at_s, job, what, shape, reason FROM decisions"
            " WHERE job = ? ORDER BY id DESC LIMIT ?",
            (job, most),
        )
        return tuple(Decision(*row) for row in rows)

    # Hand-overs: each row outlasts a loss of power. By one that is older than what the cluster has
    # come to, a run would be ended that has not saved, or a job's place given to another.

    def hand_over(self, row: HandOverRow) -> int:
        """Note a hand-over before anything is done for it; return its number."""
        return self._db.write(
            "INSERT INTO handovers (id, at_s, job, user, account, run, before, after, guest,"
            " reason, until_s, end_s, asked, guest_asks) VALUES"
            " ((SELECT coalesce(max(id), beyond()) + 1 FROM handovers),"
            " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(row.at_s, row.job, row.user, row.account, row.run, row.before, row.after),
                *(row.guest, clean(row.reason), row.until_s, row.end_s, row.asked),
                row.guest_asks,
            ),
            lasts=True,
        )

    def saved(self, handover: int, saved_s: float) -> None:
        """Note that its checkpoint is written."""
        self._db.write(
            "UPDATE handovers SET saved_s = ? WHERE id = ?", (saved_s, handover), lasts=True
        )

    def ends(self, handover: int, end_s: float, asked: str) -> None:
        """Note that its run has another time limit than when it was asked, and so the job."""
        self._db.write(
            "UPDATE handovers SET end_s = ?, asked = ? WHERE id = ?",
            (end_s, asked, handover),
            lasts=True,
        )

    def made(self, handover: int, made: bool) -> None:
        """Note whether its job was seen to ask for what it is to become."""
        self._db.write("UPDATE handovers SET made = ? WHERE id = ?", (made, handover), lasts=True)

    def reopened(self, handover: int, saved_s: float, after: str, guest: str) -> None:
        """Note that one goes on that had ended: its checkpoint came after all."""
        self._db.write(
            "UPDATE handovers SET saved_s = ?, done_s = NULL, outcome = NULL, after = ?, guest = ?"
            " WHERE id = ?",
            (saved_s, after, guest, handover),
            lasts=True,
        )

    def handed_over(self, handover: int, now_s: float, outcome: str) -> None:
        """Note how it ended."""
        self._db.write(
            "UPDATE handovers SET done_s = ?, outcome = ? WHERE id = ?",
            (now_s, clean(outcome), handover),
            lasts=True,
        )

    def handovers(self, job: str = "") -> tuple[HandOverRow, ...]:
        """Return a job's hand-overs, oldest first; or those of all jobs that have not ended."""
        rows = self._db.read(
            "SELECT id, at_s, job, user, account, run, before, after, guest, reason, until_s,"
            " saved_s, coalesce(done_s, 0), coalesce(outcome, ''), end_s, asked, made, guest_asks"
            " FROM handovers WHERE job = ?1 OR (?1 = '' AND done_s IS NULL) ORDER BY id",
            (job,),
        )
        found = (HandOverRow(*row) for row in rows)
        return tuple(replace(row, made=bool(row.made)) for row in found)

    # Runs

    def run_began(self, row: RunRow) -> None:
        """Note that a job's program runs; once for each run.

        A number that is given a second time is of another run: nothing is known of that.
        """
        self._db.write(
            "INSERT INTO runs (job, run, user, account, shape, nodes, submit_s, start_s, at_s,"
            " name) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job, run) DO UPDATE SET"
            " at_s = excluded.at_s, name = excluded.name, shape = excluded.shape,"
            " nodes = excluded.nodes, submit_s = excluded.submit_s, start_s = excluded.start_s,"
            " launched_s = 0, step = 0, rate = 0, saved_took_s = 0, code = NULL, end_s = 0"
            " WHERE at_s = 0 OR start_s < excluded.start_s",
            (
                *(row.job, row.run, row.user, row.account, row.shape, row.nodes),
                *(row.submit_s, row.start_s, row.at_s, row.name),
            ),
        )

    def run_told(self, row: RunRow) -> None:
        """Note what a run's program has said since."""
        self._db.write(
            "UPDATE runs SET launched_s = ?, step = ?, rate = ?, saved_took_s = ?, code = ?"
            " WHERE job = ? AND run = ?",
            (
                *(row.launched_s, row.step, row.rate, row.saved_took_s, row.code),
                *(row.job, row.run),
            ),
        )

    def runs(self, job: str, *, silent: bool = False) -> tuple[RunRow, ...]:
        """Return a job's runs, oldest first; not the ``silent`` ones unless they are asked for."""
        rows = self._db.read(
            "SELECT job, run, user, account, shape, nodes, submit_s, start_s, at_s, launched_s,"
            " step, rate, saved_took_s, code, name, end_s, gpus FROM runs"
            " WHERE job = ? AND at_s > ? ORDER BY run",
            (job, -1 if silent else 0),
        )
        return tuple(RunRow(*row) for row in rows)

    def rates(self, user: str, name: str) -> Mapping[Shape, float]:
        """Return how fast a user's jobs of one name ran, by shape, in steps per second.

        What was measured last counts.
        """
        rows = self._db.read(
            "SELECT shape, rate FROM runs WHERE user = ? AND name = ? AND rate > 0"
            " ORDER BY at_s DESC LIMIT ?",
            (user, name, MOST_MEASURED),
        )
        found: dict[Shape, float] = {}
        for shape, rate in rows:
            with suppress(BadSpec):
                found.setdefault(parse_shape(str(shape)), float(rate))
        return found

    # How fast programs run, alone and beside others: see pliant.speed_table

    def keep_speeds(self, rows: Iterable[Speed]) -> None:
        """Keep what was measured of programs, in place of what was known of the same before."""
        found = [*rows]
        if found:
            self._db.write("INSERT OR REPLACE INTO speeds VALUES (?, ?, ?, ?)", *found)

    def speeds(self, most: int) -> tuple[Speed, ...]:
        """Return what was measured of programs, ``most`` at most, that measured last at the end."""
        rows = self._db.read(
            "SELECT key, weight_s, total, end_s FROM speeds ORDER BY end_s DESC LIMIT ?", (most,)
        )
        return tuple((str(row[0]), row[1], row[2], row[3]) for row in reversed(rows))

    # Shapes that the batch system did not start

    def refuse(
        self, job: str, shape: Shape, now_s: float, for_s: float, *, longer: bool = True
    ) -> float:
        """Leave a shape out for ``for_s``, twice as long each further time; return until when.

        Where it is not for ``longer``, this time does not count.
        """
        name = shape_text(shape)
        known = self._db.read("SELECT times FROM refused WHERE job = ? AND shape = ?", (job, name))
        times = int(known[0][0]) if known else 0
        until_s = now_s + for_s * (1 << min(times if longer else 0, 10))
        self._db.write(
            "INSERT OR REPLACE INTO refused (job, shape, times, until_s) VALUES (?, ?, ?, ?)",
            (job, name, times + longer, until_s),
        )
        return until_s

    def refused(self, now_s: float) -> Mapping[str, frozenset[Shape]]:
        """Return the shapes left out now, by job."""
        rows = self._db.read("SELECT job, shape FROM refused WHERE until_s > ?", (now_s,))
        found: dict[str, set[Shape]] = {}
        for job, shape in rows:
            with suppress(BadSpec):
                found.setdefault(str(job), set()).add(parse_shape(str(shape)))
        return {job: frozenset(shapes) for job, shapes in found.items()}

    def forget_refused(self, job: str) -> None:
        """Try all shapes of a job again: its owner or an administrator changed something."""
        self._db.write("DELETE FROM refused WHERE job = ?", (job,))

    def forget_before(self, jobs: Iterable[tuple[str, float]]) -> None:
        """Drop what was told of jobs before an instant each: it was of others of these numbers."""
        rows = list(jobs)
        for table in ("handovers", "decisions", "intentions") if rows else ():
            self._db.write(f"DELETE FROM {table} WHERE job = ? AND at_s < ?", *rows)  # noqa: S608  # our own names
        if rows:
            self._db.write("DELETE FROM runs WHERE job = ? AND max(at_s, start_s) < ?", *rows)

    def prune(self, now_s: float, retention_s: float) -> None:
        """Drop what is older than the retention, and the oldest above MOST_ROWS.

        The runs and resizes of a job that has not ended stay: its owner may have said how many
        there may be, and is told what they have cost.
        """
        for table in ("intentions", "decisions", "handovers"):
            kept = f" AND {NOT_LIVING}" if table == "handovers" else ""
            self._db.write(f"DELETE FROM {table} WHERE at_s < ?{kept}", (now_s - retention_s,))  # noqa: S608  # our own names
            self._db.write(
                f"DELETE FROM {table} WHERE id <="  # noqa: S608  # our own names
                f" (SELECT id FROM {table} ORDER BY id DESC LIMIT 1 OFFSET ?)",
                (MOST_ROWS,),
            )
        old_s = now_s - retention_s
        self._db.write(
            f"DELETE FROM runs WHERE max(at_s, start_s, end_s) < ? AND {NOT_LIVING}",  # noqa: S608  # our own words
            (old_s,),
        )
        self.jobs.prune(old_s)
        self._db.write("DELETE FROM speeds WHERE end_s < ?", (now_s - retention_s,))
        self._db.write(
            "DELETE FROM speeds WHERE key NOT IN"
            " (SELECT key FROM speeds ORDER BY end_s DESC LIMIT ?)",
            (MOST_ROWS,),
        )
        self._db.write("DELETE FROM refused WHERE until_s < ?", (now_s - retention_s,))
