"""Reports: curves, plots, and pages as HTML that shows what anybody wrote as it is."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pliant.errors import Unavailable
from pliant.simulator.curves import PARTS, Curves, Trail, quantiles
from pliant.simulator.metrics import Span, Task
from pliant.simulator.report import plots
from pliant.simulator.report.html import html
from pliant.simulator.report.page import Page, Part, Plot, Table, number, percent
from pliant.simulator.report.papers import page as papers_page
from pliant.simulator.report.replays import plot_of_users, plots_of
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Chart, Claim, Section
from pliant.simulator.reproduce.claims import Table as Behind

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
    assert [*plots_of({}, 4)] == []


def test_plots_are_drawn_whatever_users_are_called() -> None:
    lines = {"_easy": curves(task(1, 0, 100)), "$x^{": curves(task(1, 50, 90), task(2, 0, 2e6))}
    found = [*plots_of(lines, 4)]
    assert [plot.name for plot in found] == ["flow-time", "slowdown", "gpus-held"]
    found.append(plot_of_users("p", [(HOSTILE, 0.5), ("$\\frac{", -0.2), ("", -0.3)], "users-1"))
    assert all(plot.png.startswith(PNG) for plot in found)
    assert "from <script>" in found[-1].text
    assert found[0].png == next(plots_of(lines, 4)).png  # the same call draws the same


@pytest.mark.parametrize("line", [(0, 0), (1, 1), (3, 4e6), (1, float("inf")), (float("inf"),) * 2])
def test_distributions_are_drawn_whatever_is_in_them(line: tuple[float, float]) -> None:
    for times in (False, True):
        assert plots.distributions({"p": line}, "x", times=times).startswith(PNG)


def test_many_users_are_cut_in_the_middle() -> None:
    changes = [(f"user{place}", 1 - place / 20) for place in range(40)]
    assert "16 users between them are not shown" in plot_of_users("p", changes, "x").title


def test_figures_are_written_with_four_digits() -> None:
    assert (number(123456.7), number(0.123456), number(12.0)) == ("123457", "0.1235", "12")
    assert (percent(-0.1), percent(0.1234), percent(None)) == ("-10.0 %", "+12.3 %", "")


class Reader(HTMLParser):
    """What a browser would see: the tags, and the text in some of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.said.append(data.strip())


PAGE = Page(
    f"Title {HOSTILE}",
    [f"Lead {HOSTILE}"],
    [
        Part(
            HOSTILE,
            [HOSTILE],
            [HOSTILE],
            [Table(["user", HOSTILE], [[HOSTILE, "1"], ["bob", "2"]], HOSTILE, HOSTILE)],
            [Plot("x", HOSTILE, HOSTILE, PNG)],
        )
    ],
)


def test_a_page_shows_what_anybody_wrote_as_it_is() -> None:
    text = html(PAGE, HOSTILE)
    read = Reader(text)
    shown = HOSTILE.replace("\u202e", "?").replace("\x1b", "?")
    assert "script" not in {tag for tag, _ in read.tags}
    assert read.said.count(shown) == 8  # each of its places once
    image = next(attributes for tag, attributes in read.tags if tag == "img")
    assert image["alt"] == shown
    assert image["src"] == "data:image/png;base64,iVBORw0KGgo="


def test_a_page_loads_nothing_and_runs_nothing() -> None:
    text = html(PAGE)
    assert re.findall(r"https?:|@import|url\(|<script|<link|<iframe| on\w+=\"", text) == []
    assert "default-src 'none'" in text
    read = Reader(text)
    assert [tag for tag, _ in read.tags].count("h1") == 1
    assert ("html", {"lang": "en"}) in read.tags
    assert next(at for tag, at in read.tags if tag == "th")["scope"] == "col"
    assert "prefers-color-scheme: dark" in text


def test_claims_are_a_page() -> None:
    section = Section(
        "Somebody (009)",
        "3 runs.",
        [Claim("it is quick", "predicted", "2 s", "1 s", True)],
        [Behind("Numbers", ["what", "how much"], [["it", "1"]], "In all.")],
        ["it is chosen so"],
    )
    found = papers_page([section], Asked(quick=True))
    assert found.lead == [
        "A quick look, first seed 0.",
        "Somebody (009): 1 of 1 claims that could be tested hold.",
    ]
    (part,) = found.parts
    assert [table.title for table in part.tables] == ["Claims", "Numbers"]
    assert part.tables[0].rows == [("it is quick", "predicted", "2 s", "1 s", "yes", "–")]
    assert "it is chosen so" in html(found)


def test_charts_are_drawn_where_that_is_wanted() -> None:
    flows = {"fcfs": [9000.0, 3.0], "fair": [40.0, 2.0]}
    lines = {"flow time, s": flows, "used": {"fcfs": [1.0, 0.0]}}
    section = Section(
        "It", "1 run.", [], charts=[Chart("it-1", "Figure 1", "GPUs", [6, 12], lines)]
    )
    assert papers_page([section], Asked()).plots == []
    (plot,) = papers_page([section], Asked(), drawn=True).plots
    assert (plot.name, plot.title) == ("it-1", "Figure 1.")
    assert plot.text == "Figure 1: flow time, s and used by GPUs, of fcfs, fair."
    assert plot.png.startswith(PNG)


def test_without_matplotlib_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    with pytest.raises(Unavailable, match=r"plots need matplotlib: pip install 'pliant\[plots\]'"):
        plots.check()


@pytest.mark.parametrize(
    "said",
    ["from pliant.daemon import main", "from pliant.cli import cli; cli.list_commands(None)"],
)
def test_nothing_of_it_is_loaded_where_it_is_not_asked_for(said: str, tmp_path: Path) -> None:
    large = "('matplotlib', 'numpy', 'pliant.simulator.report.html', 'pliant.simulator.replay')"
    code = f"import sys; {said}; print([name for name in sys.modules if name in {large}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
