"""The figure of measured over true speeds: pairs, ratios, their agreement, programs that count."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from limits import HANG_S

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import slowdown
from benchmarks.speed import __main__ as speed_main
from benchmarks.speed import pages, programs
from benchmarks.speed.measuring import ON_ALL, ONE, REPEATS, TWO, plans
from benchmarks.speed.plot import figure
from benchmarks.speed.points import CPU, Point, Seen, agreement, point

from pliant.monitor.speed import Parts, Speed
from pliant.monitor.tier import Tier

COUNTED, PAPERS = "tier 1: instructions/s", "tier 1: IPC × CPU-time fraction"


def seen(units: float, cpu: float, instructions: float | None = None, name: str = "a") -> Seen:
    parts = Parts(cpu, cpu, cpu, ipc_cpu=instructions and 2 * instructions)
    if instructions is None:
        return Seen(name, units, Speed(cpu, Tier.CPU, 2.0, parts))
    return Seen(name, units, Speed(instructions, Tier.COUNTERS, 2.0, parts))


def pair(*ratios: tuple[float, float], setting: str = ONE) -> list[Point]:
    return [Point(setting, "a", "b", true, {CPU: told}) for true, told in ratios]


def test_a_point_is_relative_to_the_program_alone() -> None:
    found = point(ONE, seen(30, 0.5), "b", [seen(50, 0.9), seen(70, 1.1)])
    assert found.true == 0.5
    assert found.measured == {CPU: 0.5, "run ÷ (run + wait)": 0.5}


def test_counters_make_points_of_their_own_where_both_windows_have_them() -> None:
    found = point(TWO, seen(30, 1.0, 3e9), "b", [seen(60, 1.0, 6e9)])
    assert (found.measured[COUNTED], found.measured[PAPERS], found.measured[CPU]) == (0.5, 0.5, 1)
    assert COUNTED not in point(TWO, seen(30, 1.0, 3e9), "b", [seen(60, 1.0)]).measured


def test_agreement_tells_correlation_bias_and_error() -> None:
    found = agreement([pair((0.5, 0.6), (0.4, 0.5)), pair((1.0, 1.1))], CPU)
    assert found is not None
    assert found.points == 3
    assert found.r.value == pytest.approx(1.0)
    assert found.bias.value == found.error.value == pytest.approx(0.1)
    assert found.worst == pytest.approx(0.1)
    opposite = agreement([pair((0.2, 0.8)), pair((0.8, 0.2))], CPU)
    assert opposite is not None
    assert opposite.r.value == pytest.approx(-1.0)
    assert opposite.bias.value == pytest.approx(0.0)
    assert opposite.error.value == pytest.approx(0.6)


def test_a_bootstrap_draws_whole_pairs() -> None:
    found = agreement([pair((0.0, 0.2), (1.0, 1.0))] * 5, CPU)
    assert found is not None
    assert found.error.low == found.error.value == found.error.high == pytest.approx(0.1)


def test_what_was_not_measured_has_no_agreement() -> None:
    assert agreement([pair((0.5, 0.5), (0.6, 0.6))], COUNTED) is None
    assert agreement([pair((0.5, 0.5))], CPU) is None


def test_every_pair_is_planned_and_all_of_it_alone_too() -> None:
    names = ["integer", "chase", ON_ALL]
    planned = plans(names, (2, 5))
    pairs = [plan for plan in planned if plan.setting]
    assert Counter(plan.setting for plan in pairs) == {ONE: 6, TWO: 6}
    kinds = {(p.setting, p.who[0][0], p.who[1][0] - len(names)) for p in pairs}
    assert len(kinds) == len(pairs)
    alone = Counter(plan.who[0] for plan in planned if not plan.setting)
    assert alone == dict.fromkeys({each for plan in pairs for each in plan.who}, REPEATS)
    for plan in pairs:
        (one, first), (two, last) = plan.who
        both = [names[one], names[two - len(names)]]
        assert first | last == ({2} if plan.setting == ONE else {2, 5})
        assert plan.setting == ONE or bool(first & last) == (ON_ALL in both)


def test_pairs_are_held_against_the_same_copy_on_the_same_cpus() -> None:
    planned = {(plan.setting, plan.who): plan for plan in plans(["integer"], (0, 1))}
    found = [
        (plan, tuple(seen(40.0 if setting else 100.0 + 100 * place, 1.0) for place, _ in who))
        for (setting, who), plan in planned.items()
    ]
    points = {p.setting: [p.true for p in both] for both in speed_main.paired(found) for p in both}
    assert points == {ONE: [0.4, 0.2], TWO: [0.4, 0.2]}


def test_a_tier_that_is_not_there_is_said_to_be_missing() -> None:
    section = pages.agreements([pair((0.5, 0.6), (0.4, 0.5))], "no PMU")
    rows = {row[0]: row[2:4] for row in section.rows}
    assert rows[COUNTED] == rows[PAPERS] == ("0", "not available")
    assert rows[CPU][0] == "2"
    assert "no PMU" in section.result
    assert not pages.agreements([pair((0.5, 0.6), (0.4, 0.5))], "").result


def test_what_kept_its_cpu_and_was_slower_is_shown() -> None:
    section = pages.blind([pair((0.6, 0.99), (0.97, 0.98)), pair((0.5, 0.5), (0.5, 0.6))])
    assert [row[3:] for row in section.rows] == [("0.600", "0.990"), ("0.970", "0.980")]
    assert "it is below 0.85 for 1 of them" in section.result
    assert pages.blind([pair((0.5, 0.5))]).result == "There are none."


def test_a_table_has_every_pair_of_its_setting() -> None:
    points = [
        Point(TWO, "a", "b", 0.5, {CPU: 1.0}),
        Point(TWO, "b", "a", 0.9, {CPU: 0.8}),
        Point(TWO, "a", "a", 0.7, {CPU: 0.7}),
    ]
    (section,) = pages.all_points([points[:2], [points[2], points[2]]], ["a", "b"])
    assert [list(row) for row in section.rows] == [
        ["a", "0.70 / 0.70, 0.70 / 0.70", "0.50 / 1.00"],
        ["b", "0.90 / 0.80", ""],
    ]


def test_what_drifts_evenly_slows_nothing_down() -> None:
    ratio, apart = slowdown.compared([False, True, True, False], [10.0, 11.0, 12.0, 13.0])
    assert ratio == 1.0
    assert apart == pytest.approx(0.3)
    assert slowdown.compared([True, False, False, True], [8.0, 10.0, 10.0, 8.0]) == (1.25, 0.0)


def test_the_figure_is_a_png() -> None:
    assert figure(pair((0.5, 0.6), (1.0, 0.9))).startswith(b"\x89PNG")


def test_every_program_counts(tmp_path: Path) -> None:
    binary = programs._compiled(tmp_path)
    files = {name: tmp_path / name for name in programs.PROGRAMS}
    running = [
        subprocess.Popen(programs._command(binary, name, file)) for name, file in files.items()
    ]
    try:
        deadline_s = time.monotonic() + HANG_S
        while silent := [name for name, file in files.items() if not programs._units(file)]:
            assert time.monotonic() < deadline_s, silent
            time.sleep(0.02)
    finally:
        for process in running:
            process.kill()
            process.wait()


def test_without_a_compiler_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(speed_main, "plans", lambda *_: [])
    monkeypatch.setattr(speed_main, "two_cpus", lambda: (0, 1))
    with pytest.raises(SystemExit) as stopped:
        speed_main.main(["--quick"])
    assert stopped.value.code == 2
    assert "install gcc" in capsys.readouterr().err
