"""The store: history that survives restarts, and a daemon that survives its loss."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pliant.errors import Unavailable
from pliant.model import Kind, Shape
from pliant.store import (
    ENDED,
    MIGRATIONS,
    RETRY_S,
    Decision,
    HandOverRow,
    JobRecord,
    RunRow,
    Store,
    Tally,
)

TWO = Shape(1, 2)
FOUR = Shape(1, 4)


def decision(number: int, job: str = "7", at_s: float = 100.0) -> Decision:
    return Decision(at_s, job, "mold", str(number), f"reason {number}")


def record(job: str, state: str, end_s: float = 0.0) -> JobRecord:
    words = (job, "alice", "physics", "gpu", "enforce", "moldable=gpus=1-4", "4", "")
    return JobRecord(
        *words, answered=True, seen_s=1.0, submit_s=1.0, state=state, start_s=2.0, end_s=end_s
    )


def run(job: str) -> RunRow:
    return RunRow(job, 0, "alice", "physics", "4", "n1", 1.0, 2.0, 0.0, gpus=4.0)


def test_decisions_are_read_back_latest_first_after_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.decide([decision(1), decision(2), decision(3, job="8")])
    store.close()
    again = Store(tmp_path)
    assert again.decisions("7") == (decision(2), decision(1))
    assert again.decisions("7", most=1) == (decision(2),)
    assert again.trouble == ""


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.decide([decision(1)])
    modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {0o600}


def test_an_intention_without_an_end_is_found_after_a_crash_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ended = store.intend(1.0, "7", FOUR, TWO, "fits")
    store.done(ended, 2.0, "done")
    store.intend(3.0, "8", FOUR, TWO, "fits")
    crashed = Store(tmp_path)  # the first was never closed
    assert crashed.unfinished() == ("8",)
    assert crashed.unfinished() == ()


def test_a_pause_survives_restarts_and_the_loss_of_the_history(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert not store.paused
    assert store.pause(True) == ""
    store.close()
    store.file.write_bytes(b"garbage" * 1000)
    again = Store(tmp_path)
    assert again.paused
    again.pause(False)
    assert not Store(tmp_path).paused


def test_a_refused_shape_is_left_out_for_longer_each_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    share, cpu = Shape(1, 1, share=4, gpu_type="a100"), Shape(2, 0, kind=Kind.CPU)
    assert store.refuse("7", share, now_s=0.0, for_s=10.0) == 10.0
    assert store.refuse("7", cpu, now_s=0.0, for_s=100.0) == 100.0
    assert store.refused(5.0) == {"7": {share, cpu}}
    assert store.refused(50.0) == {"7": {cpu}}
    assert store.refuse("7", share, now_s=50.0, for_s=10.0) == 70.0
    assert store.refuse("7", cpu, now_s=50.0, for_s=10.0, longer=False) == 60.0
    assert store.refuse("7", cpu, now_s=50.0, for_s=10.0) == 70.0
    store.forget_refused("7")
    assert store.refused(55.0) == {}


def test_what_is_older_than_the_retention_goes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.decide([decision(1, at_s=0.0), decision(2, at_s=1000.0)])
    store.prune(now_s=1100.0, retention_s=500.0)
    assert store.decisions("7") == (decision(2, at_s=1000.0),)


def test_a_reason_may_quote_anything(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.decide([Decision(1.0, "7", "failed", "2", "it's \udcff; DROP TABLE decisions\n\0")])
    assert store.decisions("7")[0].reason == "it's ?; DROP TABLE decisions\n\0"
    assert store.trouble == ""


@pytest.mark.parametrize("damage", [b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 8192])
def test_a_broken_file_is_moved_aside_and_a_new_one_begun(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "pliant.db").write_bytes(damage)
    store = Store(tmp_path)
    store.decide([decision(1)])
    assert store.trouble == ""
    assert (tmp_path / "pliant.db.broken").read_bytes() == damage
    store.close()
    assert Store(tmp_path).decisions("7") == (decision(1),)


def test_a_file_broken_while_in_use_costs_history_only(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(2000):
        store.decide([decision(number)])
    store.refuse("7", TWO, 0.0, 10.0)
    with store.file.open("r+b") as file:
        file.write(b"\xff" * 40_000)
    (tmp_path / "pliant.db-wal").write_bytes(b"")
    store.decide([decision(1)])
    store.decisions("7", most=5000)
    store.decide([decision(9)])
    assert store.decisions("7")[0] == decision(9)
    store.heal(RETRY_S * 10)
    store.decide([decision(10)])
    assert store.decisions("7")[0] == decision(10)


def test_a_file_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "pliant.db").close()  # version 0: nothing in it
    store = Store(tmp_path)
    store.decide([decision(1)])
    assert store.decisions("7") == (decision(1),)


def newer_file(directory: Path) -> Path:
    """The file as a later release leaves it where it is killed: what it wrote last is in its WAL."""
    scratch = directory / "scratch"
    scratch.mkdir()
    newer = sqlite3.connect(scratch / "pliant.db")
    newer.execute("PRAGMA journal_mode = WAL")
    newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer.execute("CREATE TABLE later (x)")
    newer.commit()
    for file in scratch.glob("pliant.db*"):
        shutil.copy(file, directory)
    newer.close()
    return directory / "pliant.db"


def test_a_file_of_a_later_release_is_said_in_one_line_and_nothing_of_it_is_lost(
    tmp_path: Path,
) -> None:
    file = newer_file(tmp_path)
    with pytest.raises(Unavailable) as told:
        Store(tmp_path)
    assert str(told.value) == (
        f"{file}: a later release of Pliant wrote it (version {len(MIGRATIONS) + 1}, this one reads"
        f" up to {len(MIGRATIONS)}): install that release again, or move the file away to begin"
        " without it"
    )
    assert not list(tmp_path.glob("*.broken"))
    kept = sqlite3.connect(file)
    assert kept.execute("SELECT count(*) FROM later").fetchall() == [(0,)]
    assert kept.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)


def test_a_file_of_a_later_release_that_appears_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path / "missing")
    (tmp_path / "missing").mkdir()
    newer_file(tmp_path / "missing")
    store.decide([decision(1)])
    store.heal(RETRY_S * 10)
    assert "a later release of Pliant wrote it" in store.trouble
    assert store.decisions("7") == (decision(1),)
    assert not list((tmp_path / "missing").glob("*.broken"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a disk of 256 KiB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)]
    if shutil.which("mount") is None or subprocess.call(mount, stderr=subprocess.DEVNULL):
        pytest.skip("mounting a small disk needs root")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_a_full_disk_leaves_the_history_in_memory_until_there_is_room(small_disk: Path) -> None:
    store = Store(small_disk)
    store.refuse("7", TWO, 0.0, 1000.0)
    ballast = small_disk / "ballast"
    with pytest.raises(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    for number in range(500):
        store.decide([decision(number)])
    assert "history is kept in memory only" in store.trouble
    assert store.decisions("7", most=1) == (decision(499),)
    assert store.refused(1.0) == {"7": {TWO}}
    ballast.unlink()
    store.heal(RETRY_S)
    assert store.trouble == ""
    assert store.refused(1.0) == {"7": {TWO}}
    store.decide([decision(1000)])
    assert Store(small_disk).decisions("7", most=1) == (decision(1000),)


def fill(disk: Path) -> Path:
    """Fill a disk, and return with what."""
    ballast = disk / "ballast"
    with pytest.raises(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return ballast


def resize(job: str) -> HandOverRow:
    return HandOverRow(0, 1.0, job, "ada", "ml", 0, "4", "2", "", "it fits better", 60.0)


def until_full(store: Store) -> None:
    """Write until that goes to memory: what the log holds may be written over."""
    for number in range(500):
        store.decide([decision(number)])
    assert "history is kept in memory only" in store.trouble


def test_resizes_that_are_under_way_while_the_disk_is_full_are_as_ever(small_disk: Path) -> None:
    store = Store(small_disk)
    running, over = (store.hand_over(resize(job)) for job in ("1", "2"))
    store.handed_over(over, 5.0, "done")
    ballast = fill(small_disk)
    until_full(store)
    begun = store.hand_over(resize("3"))
    assert len({running, over, begun}) == 3
    store.saved(begun, 7.0)
    store.handed_over(running, 8.0, "done")
    assert [(row.job, row.saved_s) for row in store.handovers()] == [("3", 7.0)]
    ballast.unlink()
    store.heal(RETRY_S)
    assert store.trouble == ""
    store.made(begun, made=True)
    store.close()
    (row,) = Store(small_disk).handovers()
    assert (row.id, row.job, row.saved_s, row.made) == (begun, "3", 7.0, True)
    ends = [Store(small_disk).handovers(job)[0].outcome for job in "12"]
    assert ends == ["done", "done"]


@pytest.mark.parametrize("killed", [False, True])
def test_what_is_under_way_is_known_to_who_starts_while_the_disk_is_full(
    small_disk: Path, killed: bool
) -> None:
    before = Store(small_disk)
    under_way = before.hand_over(resize("1"))
    before.saved(under_way, 7.0)
    if not killed:
        before.close()
    fill(small_disk)
    store = Store(small_disk)
    until_full(store)
    assert [(row.id, row.saved_s) for row in store.handovers()] == [(under_way, 7.0)]
    assert store.hand_over(resize("2")) == under_way + 1


@pytest.mark.parametrize("unreadable", ["away", "of an older version"])
def test_numbers_go_on_beyond_those_of_a_file_that_could_not_be_read(
    tmp_path: Path, unreadable: str
) -> None:
    here, away = tmp_path / "here", tmp_path / "away"
    here.mkdir()
    before = Store(here)
    before.saved(before.hand_over(resize("1")), 5.0)
    before.intend(1.0, "1", FOUR, TWO, "it fits")
    before.close()
    if unreadable == "away":
        here.rename(away)
        store = Store(here)
        away.rename(here)
    else:
        with sqlite3.connect(here / "pliant.db") as db:
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS) - 1}")
        store = Store(here)  # where that column is, it cannot be added
        with sqlite3.connect(here / "pliant.db") as db:
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    assert store.handovers() == ()
    begun, meant = store.hand_over(resize("2")), store.intend(3.0, "2", FOUR, TWO, "it fits")
    store.heal(RETRY_S)
    assert store.trouble == ""
    store.saved(begun, 9.0)
    store.done(meant, 9.0, "done")
    store.close()
    again = Store(here)
    assert [(row.job, row.saved_s) for row in again.handovers()] == [("1", 5.0), ("2", 9.0)]
    assert again.unfinished() == ("1",)
    again.prune(10.0, 1000.0)
    assert len(again.handovers()) == 2


def test_of_jobs_that_live_memory_knows_what_they_came_to(small_disk: Path) -> None:
    """A checkpoint may come late, for one that was given up."""
    store = Store(small_disk)
    store.jobs.keep([record("1", "running")], [run("1")], [], [])
    store.handed_over(store.hand_over(resize("1")), 5.0, "its checkpoint did not come in time")
    store.hand_over(resize("2"))
    fill(small_disk)
    until_full(store)
    assert [row.job for row in store.handovers("1")] == ["1"]


def test_shapes_that_are_tried_again_while_the_disk_is_full_are_so_later(small_disk: Path) -> None:
    store = Store(small_disk)
    store.refuse("7", TWO, 0.0, 1000.0)
    ballast = fill(small_disk)
    until_full(store)
    store.forget_refused("7")
    ballast.unlink()
    store.heal(RETRY_S)
    assert (store.trouble, store.refused(1.0)) == ("", {})


def test_what_memory_held_of_jobs_meanwhile_goes_to_the_file(tmp_path: Path) -> None:
    here, away = tmp_path / "here", tmp_path / "away"
    here.mkdir()
    before = Store(here)
    before.jobs.keep([record("1", "running")], [run("1")], [], [Tally(0.0, "gpu", answered=2)])
    before.decide([decision(1)])
    before.close()
    here.rename(away)
    store = Store(here)
    ended = [record("1", ENDED, end_s=60.0), record("2", ENDED, end_s=70.0)]
    ends = [(60.0, "1", 0), (70.0, "2", 0)]
    store.jobs.keep(ended, [run("2")], ends, [Tally(0.0, "gpu", answered=3)], [decision(2)])
    assert "history is kept in memory only" in store.trouble
    away.rename(here)
    store.heal(RETRY_S)
    assert store.trouble == ""
    store.close()
    again = Store(here)
    assert [again.jobs.job(job) for job in "12"] == ended
    assert [[row.end_s for row in again.runs(job, silent=True)] for job in "12"] == [[60.0], [70.0]]
    assert again.decisions("7") == (decision(2), decision(1))
    assert again.report(0.0, 100.0).total.counted.answered == 5


def test_memory_stands_in_for_longer_where_the_file_cannot_take_all_of_it(
    small_disk: Path,
) -> None:
    (small_disk / "there").mkdir()
    store = Store(small_disk / "here")
    store.jobs.keep([record(str(number), ENDED, end_s=60.0) for number in range(9000)])
    (small_disk / "there").rename(small_disk / "here")
    store.heal(RETRY_S)
    assert "history is kept in memory only" in store.trouble
    assert store.jobs.job("8999") == record("8999", ENDED, end_s=60.0)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    store.heal(2 * RETRY_S)
    assert store.trouble == ""
    store.close()
    assert Store(small_disk / "here").jobs.job("8999") == record("8999", ENDED, end_s=60.0)


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    store = Store(tmp_path / "missing")
    store.decide([decision(1)])
    assert store.trouble == (
        f"{tmp_path}/missing/pliant.db: [Errno 2] No such file or directory: "
        f"'{tmp_path}/missing/pliant.db': the history is kept in memory only"
    )
    assert store.decisions("7") == (decision(1),)
    assert store.pause(True) == f"{tmp_path}/missing/paused: No such file or directory"
    assert store.paused


def test_of_what_was_measured_of_programs_the_latest_are_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep_speeds([("a", 10.0, 40.0, 5.0), ("b", 10.0, 20.0, 7.0), ("c", 1.0, 1.0, 1.0)])
    store.keep_speeds([("a", 20.0, 60.0, 9.0)])
    store.close()
    again = Store(tmp_path)
    assert again.speeds(2) == (("b", 10.0, 20.0, 7.0), ("a", 20.0, 60.0, 9.0))
    again.prune(10.0, 2.0)
    assert again.speeds(9) == (("a", 20.0, 60.0, 9.0),)


def rows_after_power_loss(program: str, directory: Path) -> tuple[HandOverRow, ...]:
    """Run a program that uses a store and dies; return what a store says of what was synced."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    shim, source = directory / "power_loss.so", Path(__file__).parent / "power_loss.c"
    compiles = [compiler, "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", str(shim), str(source), "-ldl"]
    subprocess.run(compiles, check=True, timeout=60)
    env = {**os.environ, "LD_PRELOAD": str(shim)}
    subprocess.run([sys.executable, "-c", program, str(directory)], env=env, check=True, timeout=60)
    for name in ("pliant.db", "pliant.db-wal", "pliant.db-shm"):
        (directory / name).unlink()
        with suppress(FileNotFoundError):
            (directory / f"{name}.disk").rename(directory / name)
    return Store(directory).handovers("7")


LOSES_POWER = """
import os, sys
from pathlib import Path
from pliant.store import HandOverRow, Store
store = Store(Path(sys.argv[1]))
row = HandOverRow(0, 1.0, "7", "alice", "", 0, "4", "2", "", "it fits", 60.0)
{steps}
os._exit(0)
"""


@pytest.mark.parametrize(
    ("steps", "saved_s", "outcome"),
    [
        ("store.hand_over(row)", 0.0, ""),
        ("store.saved(store.hand_over(row), 5.0)", 5.0, ""),
        ("n = store.hand_over(row)\nstore.saved(n, 5.0)\nstore.made(n, True)", 5.0, ""),
        ("store.handed_over(store.hand_over(row), 9.0, 'done')", 0.0, "done"),
        ("n = store.hand_over(row)\nstore.handed_over(n, 9.0, 'late')\n"
         "store.reopened(n, 7.0, '2', '')", 7.0, ""),
    ],
)  # fmt: skip
def test_what_is_done_of_a_hand_over_outlasts_a_loss_of_power(
    tmp_path: Path, steps: str, saved_s: float, outcome: str
) -> None:
    """Else its job's next run would be ended for a checkpoint of long ago, or a third job let in."""
    (row,) = rows_after_power_loss(LOSES_POWER.format(steps=steps), tmp_path)
    assert (row.saved_s, row.outcome, row.made) == (saved_s, outcome, "made" in steps)
