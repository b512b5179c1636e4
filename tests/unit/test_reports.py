"""Reports of simulations: curves, pictures as data and as PNG, figures with their units."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pliant.errors import Unavailable
from pliant.pages.model import Changes, Distributions, Lengths
from pliant.simulator.comparison import Compared
from pliant.simulator.curves import PARTS, Curves, Trail, quantiles
from pliant.simulator.metrics import Span, Task
from pliant.simulator.report import plots
from pliant.simulator.report.papers import page as papers_page
from pliant.simulator.report.replays import picture_of_users, pictures_of
from pliant.simulator.report.said import changed, judged, mean, name_of, said
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Chart, Claim, Section
from pliant.simulator.reproduce.claims import Table as Behind
from pliant.simulator.seeds import Estimate

HOSTILE = "<script>alert(1)</script>\"'&\u202e\x1b[31m"
PNG = b"\x89PNG\r\n\x1a\n"


def task(number_: int, start_s: float, end_s: float, gpus: float = 2, submit_s: float = 0) -> Task:
    return Task(str(number_), "ada", submit_s, 1.0, (Span(start_s, end_s, gpus),))


def curves(*tasks: Task) -> Curves:
    trail = Trail()
    for one in tasks:
        trail.add(one)
    found = trail.curves()
    assert found is not None
    return found


def test_quantiles_run_from_the_least_to_the_most() -> None:
    assert quantiles([3, 1, 2], 2) == (1, 2, 3)
    assert quantiles([7], 3) == (7, 7, 7, 7)


def test_gpus_are_counted_for_as_long_as_they_are_held() -> None:
    found = curves(task(1, 0, 100), task(2, 50, 200, gpus=1))
    assert (found.begin_s, found.step_s) == (0, 200 / PARTS)
    assert sum(found.busy) * found.step_s == pytest.approx(2 * 100 + 150)
    assert found.busy[0] == pytest.approx(2)
    assert found.busy[PARTS // 4 + 1] == pytest.approx(3)
    assert found.busy[-1] == pytest.approx(1)
    assert found.flow_s[0] == 100
    assert found.wait_s[-1] == 50


def test_parts_of_a_step_count_as_parts() -> None:
    found = curves(task(1, 0.25, 199.5, gpus=4), task(2, 0, 200, gpus=0))
    assert found.busy[0] == pytest.approx(3)
    assert found.busy[1] == pytest.approx(4)
    assert found.busy[-1] == pytest.approx(2)


def test_no_task_has_no_curves() -> None:
    assert Trail().curves() is None
    assert [*pictures_of({}, 4)] == []


def test_plots_are_drawn_whatever_users_are_called() -> None:
    lines = {"_easy": curves(task(1, 0, 100)), "$x^{": curves(task(1, 50, 90), task(2, 0, 2e6))}
    found = [*pictures_of(lines, 4)]
    assert [picture.name for picture in found] == ["flow-time", "slowdown", "gpus-held"]
    found.append(picture_of_users("p", [(HOSTILE, 0.5), ("$\\frac{", -0.2), ("", -0.3)], "users-1"))
    assert all(plots.png(picture).startswith(PNG) for picture in found)
    assert "from <script>" in found[-1].text
    assert "Medians: _easy 1 min 40 s, $x^{" in found[0].text
    assert plots.png(found[0]) == plots.png(found[0])  # the same call draws the same


@pytest.mark.parametrize("line", [(0, 0), (1, 1), (3, 4e6), (1, float("inf")), (float("inf"),) * 2])
def test_distributions_are_drawn_whatever_is_in_them(line: tuple[float, float]) -> None:
    for times in (False, True):
        picture = Distributions("x", "x", "x", {"p": line}, "x", times=times)
        assert plots.png(picture).startswith(PNG)


def test_what_is_no_plot_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="Lengths is not drawn as PNG"):
        plots.png(Lengths("x", "x", "x", [("a", "other", 1.0, "1 s")]))


def test_many_users_are_cut_in_the_middle() -> None:
    changes = [(f"user{place}", 1 - place / 20) for place in range(40)]
    picture = picture_of_users("p", changes, "x")
    assert "16 users between them are not shown" in picture.title
    assert isinstance(picture, Changes)
    assert [name for name, _ in picture.changes][11:13] == ["user11", "user28"]


@pytest.mark.parametrize(
    ("figure", "value", "expected"),
    [
        ("flow time, mean (s)", 76476.0, ("flow time, mean", "21 h 15 min")),
        ("wait, mean (s)", 4.271, ("wait, mean", "4.27 s")),
        ("makespan (h)", 340.1, ("makespan", "14 d 4 h")),
        ("GPU time held (h)", 3546.2, ("GPU time held", "3546 GPU-h")),
        ("GPUs held (%)", 65.172, ("GPUs held", "65.17 %")),
        ("idle GPU time (part)", 0.208, ("idle GPU time", "20.80 %")),
        ("utilisation", 0.7917, ("utilisation", "79.17 %")),
        ("slowdown, p95", 537.84, ("slowdown, p95", "537.8")),
        ("restarts", 57.0, ("restarts", "57")),
    ],
)
def test_figures_are_written_with_their_units(
    figure: str, value: float, expected: tuple[str, str]
) -> None:
    assert (name_of(figure), said(figure, value)) == expected


def a_row(figure: str, value: float, change: Estimate | None = None) -> Compared:
    return Compared(figure, "p", (value,), Estimate(value, None), change)


@pytest.mark.parametrize(
    ("figure", "before", "after", "change", "mark"),
    [
        ("wait, mean (s)", 100, 50, Estimate(-0.5, None), "better"),
        ("wait, mean (s)", 100, 150, Estimate(0.5, None), "worse"),
        ("wait, mean (s)", 100, 100.9, Estimate(0.009, None), ""),
        ("wait, mean (s)", 100, 150, Estimate(0.5, 0.6), ""),  # it may be chance
        ("wait, mean (s)", 100, 150, Estimate(0.5, 0.4), "worse"),
        ("utilisation", 0.5, 0.4, Estimate(-0.2, None), "worse"),
        ("GPUs held (%)", 60, 50, Estimate(-0.2, None), ""),
        ("restarts", 0, 57, None, "worse"),
        ("restarts", 0, 0, None, ""),
    ],
)
def test_what_is_for_the_worse_is_told(
    figure: str, before: float, after: float, change: Estimate | None, mark: str
) -> None:
    assert judged(a_row(figure, after, change), a_row(figure, before)) == mark


def test_how_far_a_figure_may_be_off_is_written_beside_it() -> None:
    assert mean("wait, mean (s)", Estimate(170.3, 450.9)) == "2 min 50 s ± 7 min 31 s"
    assert changed(Estimate(-0.332, 0.525)) == "-33.2 % ± 52.5 %"
    assert (changed(Estimate(0.1, None)), changed(None)) == ("+10.0 %", "")


def test_claims_are_a_page() -> None:
    section = Section(
        "Somebody (009)",
        "3 runs.",
        [Claim("it is quick", "predicted", "2 s", "1 s", True)],
        [Behind("Numbers", ["what", "how much"], [["it", "1"]], "In all.")],
        ["it is chosen so"],
    )
    found = papers_page([section], Asked(quick=True))
    assert found.about[0] == "A quick look, first seed 0"
    assert found.lead == ["Somebody (009): 1 of 1 claims that could be tested hold."]
    (part,) = found.parts
    assert [table.title for table in part.tables] == ["Claims", "Numbers"]
    assert part.tables[0].rows == [("it is quick", "predicted", "2 s", "1 s", "yes", "–")]
    assert part.items == ["it is chosen so"]


def test_charts_are_pictures() -> None:
    flows = {"fcfs": [9000.0, 3.0], "fair": [40.0, 2.0]}
    lines = {"flow time, s": flows, "used": {"fcfs": [1.0, 0.0]}}
    section = Section(
        "It", "1 run.", [], charts=[Chart("it-1", "Figure 1", "GPUs", [6, 12], lines)]
    )
    (picture,) = papers_page([section], Asked()).pictures
    assert (picture.name, picture.title) == ("it-1", "Figure 1.")
    assert picture.text == "Figure 1: flow time, s and used by GPUs, of fcfs, fair."
    assert plots.png(picture).startswith(PNG)


def test_without_matplotlib_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    with pytest.raises(Unavailable, match=r"plots need matplotlib: pip install 'pliant\[plots\]'"):
        plots.check()


@pytest.mark.parametrize(
    "said",
    ["from pliant.daemon import main", "from pliant.cli import cli; cli.list_commands(None)"],
)
def test_nothing_of_it_is_loaded_where_it_is_not_asked_for(said: str, tmp_path: Path) -> None:
    large = "('matplotlib', 'numpy', 'pliant.pages.html', 'jinja2', 'pliant.simulator.replay')"
    code = f"import sys; {said}; print([name for name in sys.modules if name in {large}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
