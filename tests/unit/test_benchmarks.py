"""The benchmarks' frame: statistics that are right, a document that holds what was measured."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import __main__ as frame
from benchmarks import bench_cycle, bench_idle, bench_native, bench_pbs_hook, bench_pbs_runjob
from benchmarks.bench_submission import row_of
from benchmarks.section import Section, verdict
from benchmarks.stats import Estimate, difference, estimate, quantile

from pliant.daemon.publishing import MOST_SORTS
from pliant.policies import live_names

SDIAG = """\
Remote Procedure Call statistics by message type
\tREQUEST_PARTITION_INFO                  ( 2009) count:4      ave_time:181    total_time:727
\tREQUEST_SUBMIT_BATCH_JOB                ( 4003) count:21     ave_time:912    total_time:19152

Remote Procedure Call statistics by user
\troot            (       0) count:54     ave_time:333    total_time:17995
\tpliant-alice    (     997) count:17     ave_time:912    total_time:15517
"""


def test_a_quantile_interpolates_between_neighbours() -> None:
    assert quantile(0.5)([4.0, 1.0, 3.0, 2.0]) == 2.5
    assert quantile(0.9)([float(number) for number in range(11)]) == 9.0
    assert quantile(1.0)([1.0, 2.0]) == 2.0


def test_an_interval_holds_the_value_and_is_the_same_every_time() -> None:
    values = [float(number % 7) for number in range(100)]
    found = estimate(values)
    assert found.low <= found.value == 3.0 <= found.high
    assert found == estimate(values)


def test_a_difference_that_is_there_is_seen() -> None:
    less = [1.0 + 0.01 * (number % 10) for number in range(50)]
    found = difference([value + 0.5 for value in less], less)
    assert found.value == pytest.approx(0.5)
    assert 0.4 < found.low <= found.value <= found.high < 0.6


def test_an_estimate_is_written_with_its_interval() -> None:
    assert Estimate(1.234, 1.2, 1.31).text() == "1.23 (1.20 to 1.31)"
    assert Estimate(1.234, 1.2, 1.31).text(0) == "1 (1 to 1)"


def test_sdiags_own_time_of_a_submission_is_read() -> None:
    found = row_of("pliant-alice").search(SDIAG)
    assert found is not None
    assert found.groups() == ("17", "15517")
    assert row_of("alice").search(SDIAG) is None


def test_a_section_is_a_table_with_its_result() -> None:
    section = Section("Title", "How.", ("", "ms"), [("this", "1.0")], "Goal: reached.")
    assert list(section.markdown()) == [
        "## Title",
        "",
        "How.",
        "",
        "|  | ms |",
        "| --- | ---: |",
        "| this | 1.0 |",
        "",
        "Goal: reached.",
        "",
    ]
    assert verdict(False) == "**not reached**"


def test_what_is_measured_alone_leaves_the_rest_of_the_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(frame, "DOCUMENT", tmp_path / "benchmarks.md")
    monkeypatch.setattr(frame, "measure", lambda part, _quick: [Section(part, "", ("",), [])])
    frame.main(["--quick", "cycle"])
    shown = capsys.readouterr().out
    assert "## cycle" in shown
    assert "A quick run" in shown
    assert not frame.DOCUMENT.exists()
    frame.main([])
    titles = [f"## {part}" for part in frame.PARTS]
    assert [line for line in frame.DOCUMENT.read_text().splitlines() if line[:3] == "## "] == titles
    monkeypatch.setattr(frame, "measure", lambda part, _quick: [Section("new", part, ("",), [])])
    frame.main(["native"])
    titles[frame.PARTS.index("native")] = "## new"
    assert [line for line in frame.DOCUMENT.read_text().splitlines() if line[:3] == "## "] == titles


def test_an_unknown_part_is_told_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        frame.main(["speed"])
    assert stopped.value.code == 2
    assert (
        "speed: of cycle, pbs-hook, pbs-runjob, guardian, ranks, submission, attack, start, idle, native, monitor,"
        " monitors, sharing, history, remembered is expected" in capsys.readouterr().err
    )


@pytest.mark.parametrize("part", frame.PARTS)
def test_every_part_has_a_module_that_takes_quick(part: str) -> None:
    module = importlib.import_module(f"benchmarks.bench_{part.replace('-', '_')}")
    assert list(inspect.signature(module.measure).parameters) == ["quick"]


@pytest.mark.parametrize("policy", live_names())
def test_a_cycle_is_measured(policy: str) -> None:
    case = bench_cycle.Case(nodes=4, jobs=8, free=0.5, kept=2, policy=policy, repeats=2)
    answer = bench_cycle.run(case)
    assert len(answer["times"]) == 2
    assert answer["starts"] > 0
    assert bench_cycle._row(case, answer)[:3] == ("4, 8, 50 %, 2", policy, str(answer["starts"]))


def test_the_hook_of_pbs_is_measured_for_every_sort_of_job() -> None:
    (section,) = bench_pbs_hook.measure(quick=True)
    assert [row[0] for row in section.rows] == list(bench_pbs_hook._SORTS)
    files = [name.partition(":")[0] for name in section.header[1::2]]
    assert files == ["no state file", "20 sorts", f"{MOST_SORTS} sorts"]
    assert {len(row) for row in section.rows} == {len(section.header)}
    assert "**under a double**" in section.how


def test_the_hook_of_pbs_before_a_start_is_measured_behind_fences() -> None:
    (section,) = bench_pbs_runjob.measure(quick=True)
    assert [row[0] for row in section.rows] == [
        "on one vnode",
        "on 16 vnodes",
        "into the first fence",
    ]
    assert {len(row) for row in section.rows} == {len(section.header)}
    assert "**under a double**" in section.how


def test_idle_time_is_measured_in_simulation() -> None:
    section = bench_idle._simulated([1, 2])
    assert [row[0] for row in section.rows] == ["Pliant off", "Pliant enforce"]
    assert all(len(row) == len(section.header) for row in section.rows)


def test_where_pyslurm_cannot_be_measured_the_section_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench_native, "installed", lambda: "")
    (section,) = bench_native.measure(quick=True)
    assert section.how == "Not measured here: pyslurm is not installed."
