"""The live experiments' own parts: workload, state logs, the stand-in for training."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.live import __main__ as frame
from benchmarks.live import fitgpp, seo
from benchmarks.live.arms import attempt, told
from benchmarks.live.jobs import STAND_IN, Change, Event, read_log
from benchmarks.live.phases import parts, phases
from benchmarks.live.workload import BEST_EFFORT, GRACE, TRIAL, Asked, workload
from benchmarks.section import Section

from pliant.daemon.answers import HandOverHistory, HistoryAnswer, RunHistory
from pliant.lifecycle import Phase


def test_a_workload_is_drawn_within_its_bounds_and_by_its_seed() -> None:
    drawn = workload(200, 1)
    assert drawn == workload(200, 1) != workload(200, 2)
    assert sum(one.trial for one in drawn) == 60
    for one in drawn:
        kind = TRIAL if one.trial else BEST_EFFORT
        assert kind.minutes.low <= one.exec_s <= kind.minutes.high
        assert 1 <= one.gpus <= 8
        assert 1 <= one.cpus <= 32
        assert one.mem_mib <= 64_000
        assert one.grace_s == 0 if one.trial else GRACE.low <= one.grace_s <= GRACE.high


RESIZED = HistoryAnswer(
    job="7",
    user="alice",
    runs=(
        RunHistory(0, "4", start_s=110, launched_s=112),
        RunHistory(1, "2", start_s=144, launched_s=146),
    ),
    handovers=(
        HandOverHistory(138, 0, "4", "2", "", "why", saved_s=140, done_s=144.5, outcome="done"),
    ),
)


def test_a_state_log_is_put_together_from_runs_and_hand_overs() -> None:
    changes = [Change(110.2, "RUNNING"), Change(141, "COMPLETING"), Change(142, "PENDING")]
    log = phases(RESIZED, 100, 200, changes, promised_s=105)
    assert log == [
        (Phase.WAITING_FOR_INITIAL_CONTACT, 100),
        (Phase.WAITING_FOR_INITIAL_RESOURCE, 100),
        (Phase.STANDBY, 105),
        (Phase.LAUNCHING, 110),
        (Phase.RUNNING_PROTECTED, 112),
        (Phase.RUNNING, 118),
        (Phase.CHECKPOINTING, 138),
        (Phase.STOPPING, 140),
        (Phase.STANDBY, 142),
        (Phase.LAUNCHING, 144),
        (Phase.RUNNING_PROTECTED, 146),
        (Phase.RUNNING, 152),
        (Phase.FINISHED, 200),
    ]
    assert parts(log) == (5, 5 + 2 + 2 + 2 + 2 + 2, 26 + 54)


def test_a_run_begins_when_the_one_before_has_stopped() -> None:
    """Though Slurm's start is a whole second, and was seen to have stopped within it."""
    changes = [Change(110.2, "RUNNING"), Change(141, "COMPLETING"), Change(144.3, "PENDING")]
    log = phases(RESIZED, 100, 200, changes, promised_s=105)
    assert log[7:] == [
        (Phase.STOPPING, 140),
        (Phase.STANDBY, 144.3),
        (Phase.LAUNCHING, 144.3),
        (Phase.RUNNING_PROTECTED, 146),
        (Phase.RUNNING, 152),
        (Phase.FINISHED, 200),
    ]


def test_a_checkpoint_that_failed_leaves_a_job_running() -> None:
    failed = HandOverHistory(138, 0, "4", "2", "", "why", done_s=150, outcome="not in time")
    history = HistoryAnswer(job="7", user="", runs=RESIZED.runs[:1], handovers=(failed,))
    log = phases(history, 110, 200, [], promised_s=float("inf"))
    assert log[-4:] == [
        (Phase.RUNNING, 118),
        (Phase.CHECKPOINTING, 138),
        (Phase.RUNNING, 150),
        (Phase.FINISHED, 200),
    ]


def test_a_programs_log_is_read_and_half_a_line_left_out() -> None:
    text = "start 12.5 0 2 0\nsaved 13.0 5 2 0\nend 1"
    assert [*read_log(text)] == [Event("start", 12.5, 0, 2), Event("saved", 13.0, 5, 2)]


def test_sections_that_are_not_measured_anew_stay_in_the_document() -> None:
    whole = frame.document({"seo": "## Seo\n\none", "fitgpp": "## FitGpp\n\ntwo"})
    kept = frame.told(whole, {"seo": 1, "fitgpp": 1})
    assert frame.document(kept) == whole
    assert "three" in frame.document({**kept, "seo": "three"})
    assert frame.told("", {"seo": 1}) == {}


def test_an_arm_that_fails_is_told_and_ends_no_other() -> None:
    def fails() -> int:
        raise subprocess.CalledProcessError(1, ["sbatch"], stderr="sbatch: error:\n no\n")

    failed: dict[str, str] = {}
    assert [attempt("a", fails, failed), attempt("b", lambda: 2, failed)] == [None, 2]
    assert told(failed) == (
        "**Not measured**: a (CalledProcessError: Command '['sbatch']' returned non-zero exit "
        "status 1. sbatch: error: no)."
    )
    assert told({}) == ""


def test_what_could_not_be_measured_is_told_in_its_place() -> None:
    def fails() -> Iterator[Section]:
        yield Section("One", "how", ("a",), [])
        raise ValueError("no cluster")

    assert "**Not measured**: seo (ValueError: no cluster)." in frame.measured("seo", fails)


@pytest.mark.parametrize("missing", [(), ("FIFO",), ("FitGpp",), ("FIFO", "FitGpp")])
def test_fitgpps_tables_are_told_without_the_arms_that_failed(
    missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(way: fitgpp.Way, asked: Sequence[Asked], at_s: list[float]) -> list[fitgpp.Ran]:
        at_s.extend([0.0] * (len(asked) - len(at_s)))
        if way.name in missing:
            raise ValueError("no cluster")
        return [fitgpp.Ran(one, 0.0, 9.0, 0, 0.0, 0.0, (), "COMPLETED", True) for one in asked]

    monkeypatch.setattr(fitgpp, "run", run)
    first, _ = fitgpp.sections(20, 1)
    assert first.header == ("", *(w.name for w in fitgpp.WAYS if w.name not in missing))
    for name in missing:
        assert f"**Not measured**: {name} (ValueError: no cluster)." in first.result


@pytest.mark.parametrize("missing", [(), ("F",), ("n=6",)])
def test_seos_tables_are_told_without_the_arms_that_failed(
    missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str, _scale: float) -> list[seo.Ran]:
        if name in missing:
            raise ValueError("no cluster")
        end_s = float(seo.PAPER_S.get(name, 1))
        return [seo.Ran(model, 0.0, end_s, 0, [], [], True) for model in seo.WORKLOAD]

    monkeypatch.setattr(seo, "run", run)
    first, *_ = seo.sections(1.0)
    assert len(first.rows) == len(seo.PAPER_S) + 1 - len(missing)
    assert ("**Not measured**" in first.result) is bool(missing)
    assert ("**not reached**" in first.result) is bool(missing)


def stand_in(folder: Path, steps: int) -> subprocess.Popen[bytes]:
    """Start the stand-in for training."""
    asked = {"steps": steps, "speeds": [200], "launch_s": 0, "save_s": 0}
    text = json.dumps({**asked, "file": str(folder / "work")})
    return subprocess.Popen([sys.executable, str(STAND_IN), text])


def logged(folder: Path) -> list[Event]:
    """What it has said so far."""
    path = folder / "work.log"
    return [*read_log(path.read_text())] if path.exists() else []


def test_the_stand_in_saves_at_a_term_and_goes_on_from_there(tmp_path: Path) -> None:
    first = stand_in(tmp_path, 10**6)
    while not (tmp_path / "work.now").exists():
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGTERM)
    assert first.wait(30) == 85
    saved = logged(tmp_path)[-1].step
    assert stand_in(tmp_path, saved + 20).wait(30) == 0
    assert [(one.what, one.step, one.lost) for one in logged(tmp_path)] == [
        ("start", 0, 0),
        ("saved", saved, 0),
        ("start", saved, 0),
        ("end", saved + 20, 0),
    ]


def test_the_stand_in_tells_what_a_kill_has_cost(tmp_path: Path) -> None:
    first = stand_in(tmp_path, 10**6)
    now = tmp_path / "work.now"
    while not (now.exists() and now.read_text() not in {"", "0"}):
        assert first.poll() is None
        time.sleep(0.01)
    first.kill()
    first.wait(30)
    lost = int(now.read_text())
    assert stand_in(tmp_path, 1).wait(30) == 0
    assert [one.lost for one in logged(tmp_path)] == [0, lost, 0]


@pytest.mark.parametrize("kind", [TRIAL, BEST_EFFORT])
def test_no_job_is_larger_than_a_node(kind: object) -> None:
    assert isinstance(kind, type(TRIAL))
    assert kind.gpus.high <= 8
    assert kind.cpus.high <= 32
    assert kind.memory.high <= 256
