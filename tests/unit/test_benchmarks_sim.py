"""The simulator's benchmark: what is given to both simulators, and what is said of a run."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.section import Section
from benchmarks.sim import __main__ as frame
from benchmarks.sim import peers, sizes, trace
from benchmarks.sim.accasim_run import system
from benchmarks.sim.accasim_shims import divides_by_no_zero
from benchmarks.sim.memory import peak_mib
from benchmarks.sim.points import Came, Point, run
from benchmarks.sim.processes import Peer

from pliant.simulator.traces import read_swf

# Three jobs of 240 processors, one after the other: they run 100 s, 50 s and 10 s.
LINES = """\
; a header
1 0 0 100 240 -1 -1 240 60 1024 1 7 3 -1 1 1 -1 -1
2 10 0 50 240 -1 -1 240 500 -1 1 8 3 -1 1 1 -1 -1
3 20 0 10 240 -1 -1 240 -1 -1 5 7 3 -1 1 1 -1 -1
"""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    source = tmp_path / "source.swf"
    source.write_text(LINES)
    return trace.written(source, tmp_path / "plain.swf")


def test_both_simulators_read_jobs_that_no_time_limit_ends(plain: Path) -> None:
    first = plain.read_text().splitlines()[0]
    assert first == "1 0 0 100 240 -1 -1 240 100 -1 1 7 3 -1 1 -1 -1 -1"
    assert [(job.run_s, job.limit_s) for job in read_swf(plain)] == [
        (100, 100),
        (50, 500),
        (10, 10),
    ]


@pytest.mark.parametrize(
    ("policy", "wait_s"),
    [("fifo", (0 + 90 + 130) / 3), ("easy", (0 + 90 + 130) / 3), ("list", (0 + 90 + 130) / 3)],
)
def test_a_point_is_replayed_to_its_end(plain: Path, policy: str, wait_s: float) -> None:
    came = run(Point("rigid", policy, str(plain), clocked=True))
    assert (came.jobs, came.of, came.finished) == (3, 3, True)
    assert came.wait_s == pytest.approx(wait_s)
    assert 0 < came.policy_s < came.wall_s
    assert 0 < came.read_s < came.wall_s
    assert 1 < came.peak_mib < 4096


def test_a_point_whose_time_is_over_says_how_far_it_came(plain: Path) -> None:
    ticks = itertools.count(0.0, 10.0)
    came = run(Point("rigid", "fifo", str(plain), cap_s=25.0), lambda: next(ticks))
    assert (came.jobs, came.of, came.finished) == (2, 3, False)
    row = sizes._row("rigid FCFS", came, 20.0)
    assert (row[1], row[-1]) == ("> 40", "not finished after 40 s: 2 of 3 jobs")


def test_a_goal_is_reached_only_in_time() -> None:
    came = Came(100, 100, 50.0, 1.0, 0.0, 30.0, 1.0, 1.0)
    assert sizes._row("", came, 60.0) == ["", "50", "60", "2", "30", "reached"]
    assert sizes._row("", came, 50.0)[-1] == "**not reached**"


def test_ratios_and_peaks_are_of_the_medians() -> None:
    own = [Came(100, 100, wall_s, 1.0, 0.0, 30.0, 5.0, 2.0) for wall_s in (1.0, 2.0, 50.0)]
    other = [Peer(100, wall_s, 20.0, 5.0, 2.0) for wall_s in (30.0, 20.0, 20.0)]
    name = peers.RIVALS[1].name
    section = peers.section({("easy", peers.OWN): own, ("easy", name): other}, 100, 3)
    assert section.rows[1][2:] == [*("10.0", "reached", "20", "**not reached**", "5.00", "2.00")]


def test_without_accasim_that_is_said() -> None:
    own = [Came(100, 100, 1.0, 1.0, 0.0, 30.0, 5.0, 2.0)]
    assert "its environment is missing" in peers.section({("easy", peers.OWN): own}, 100, 1).result


def test_the_machines_are_the_same_size() -> None:
    for nodes in (rival.nodes for rival in peers.RIVALS):
        said = system(nodes)
        assert said["groups"]["node"]["core"] * said["resources"]["node"] == 240


def test_accasims_easy_divides_by_no_zero() -> None:
    class Easy:
        def _calculate_slot(self, now: float, blocked: Any, jobs: Any) -> list[float]:
            assert jobs == {}
            return [now / amount for amount in blocked.requested_resources.values()]

    blocked = SimpleNamespace(requested_nodes=2, requested_resources={"core": 2, "mem": 0})
    assert divides_by_no_zero(Easy)()._calculate_slot(8.0, blocked, {}) == [4.0]


def test_the_peak_of_memory_is_known() -> None:
    before = peak_mib()
    assert 1 < before <= peak_mib()


def test_a_folder_without_the_trace_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        frame.main(["--data", str(tmp_path)])
    assert ended.value.code == 2
    assert "HPC2N's trace is expected there" in capsys.readouterr().err


def test_a_part_that_is_measured_anew_leaves_the_others_as_they_are(
    tmp_path: Path, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "benchmarks.md"
    monkeypatch.setattr(trace, "found", lambda _data: plain)
    numbers = count(1)

    def measured(part: str, _chosen: argparse.Namespace) -> Iterator[Section]:
        yield Section(part, f"run {next(numbers)}", [], [])

    monkeypatch.setattr(frame, "measured", measured)
    frame.main(["--data", "data", "--out", str(out), "growth", "peers"])
    frame.main(["--data", "data", "--out", str(out), "peers", "fitgpp"])
    told = [line for line in out.read_text().splitlines() if line.startswith(("## ", "run "))]
    assert told == ["## peers", "run 3", "## fitgpp", "run 4", "## growth", "run 1"]
