"""The papers' claims: how they are written down, and a small run of each paper."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pliant.cli import main
from pliant.errors import BadInput
from pliant.simulator.reproduce import cosched, papers, ravi, ravi_multi
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Chart, Claim, Section, Table, percent
from pliant.simulator.reproduce.cosched_search import Count, Search, lowest
from pliant.simulator.reproduce.papers import PAPERS, chosen, document, reproduce
from pliant.simulator.sweep import Processes

SECTION = Section(
    "Somebody (009): something",
    "Sizes: 3 runs. Seeds count up from 7.",
    [
        Claim("it is quick", "predicted", "≤ 2 s", "1 s", True),
        Claim("it is small", "fitted", "3 | 4", "5", False, "it is not"),
        Claim("it is green", "not testable", "yes", why="there is no light"),
    ],
    [Table("Numbers", ["what", "how much"], [["it", "1"]], "In all.")],
    ["it is chosen so"],
)


def pliant(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_a_section_says_what_was_claimed_what_came_out_and_why_not() -> None:
    assert "\n".join(SECTION.markdown()) == (
        "## Somebody (009): something\n\n"
        "Sizes: 3 runs. Seeds count up from 7.\n\n"
        "1 of 2 claims that could be tested hold; 1 not testable.\n\n"
        "| claim | kind | paper | ours | holds | why |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| it is quick | predicted | ≤ 2 s | 1 s | yes | – |\n"
        "| it is small | fitted | 3 \\| 4 | 5 | **no** | it is not |\n"
        "| it is green | not testable | yes | – | – | there is no light |\n\n"
        "### Numbers\n\nIn all.\n\n"
        "| what | how much |\n| --- | ---: |\n| it | 1 |\n\n"
        "### What the paper leaves open, as chosen here\n\n- it is chosen so\n"
    )


def test_what_does_not_hold_has_a_reason_and_what_cannot_be_tested_no_answer() -> None:
    with pytest.raises(AssertionError):
        Claim("it is small", "predicted", "yes", "no", holds=False)
    with pytest.raises(AssertionError):
        Claim("it is green", "not testable", "yes", "no", holds=False, why="it is dark")
    with pytest.raises(AssertionError):
        Claim("it is green", "predicted", "yes", why="it is dark")


def test_per_cent() -> None:
    assert (percent(1.08), percent(0.206, 1), percent(-0.5)) == ("108 %", "20.6 %", "-50 %")


def test_papers_come_in_their_order_and_each_once() -> None:
    assert chosen(["ravi", "cosched", "ravi"]) == ["cosched", "ravi"]
    assert chosen(["ravi", "all"]) == list(PAPERS)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "paper: none is given: one of "),
        (["ravi", "ravy"], "paper: 'ravy': one of "),
    ],
)
def test_an_unknown_paper_and_none_list_what_there_is(names: list[str], said: str) -> None:
    with pytest.raises(BadInput) as wrong:
        chosen(names)
    assert str(wrong.value).startswith(said)
    assert str(wrong.value).endswith(", all is expected")


def test_a_document_names_its_size_and_seed() -> None:
    text = "\n".join(document([SECTION, SECTION], Asked(quick=True, seed=7)))
    assert text.startswith("# The papers' claims, run again\n\nPliant ")
    assert ", a quick look, first seed 7.\n" in text
    assert text.count("## Somebody") == 2


def square(number: int) -> int:
    return number * number


@pytest.mark.parametrize("processes", [1, 2])
def test_runs_come_in_their_order_however_many_at_once(processes: int) -> None:
    told: list[tuple[str, int, int]] = []
    asked = Asked(seed=3, sweep=Processes(processes), progress=lambda *now: told.append(now))
    assert asked.spread("squares", square, asked.seeds(3)) == [9, 16, 25]
    assert told == [("squares", done, 3) for done in range(4)]


def test_pi_is_lowest_only_where_it_is_in_most_rows_that_differ() -> None:
    low, same, high = ({"pi": pi, "ei": 1.2, "ucb": 1.3} for pi in (1.1, 1.2, 1.25))
    assert Count.of([low, same, high, high]) == Count(1, 1, 2)
    assert lowest("it is", [*[low] * 4, high, same]).holds is True
    assert lowest("it is", [*[low] * 3, high, same]).holds is False
    assert lowest("it is", [same]).holds is False


def test_speeds_as_equation_1_is_printed_rise_in_company() -> None:
    table = cosched.as_printed(10.0).table
    assert all(
        table[some][task] <= table[more][task]
        for some in table
        for more in table
        if some <= more
        for task in some
    )


# --- each paper, small ----------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosched, "QUICK", cosched.Sizes(20, (Search(3, 1, 1),), 1))
    monkeypatch.setattr(ravi, "QUICK", ravi.Sizes(1, 1, 1, (10,), ((8.0, 0.38),)))


def claims_of(section: Section) -> dict[str, bool | None]:
    return {claim.text: claim.holds for claim in section.claims}


@pytest.mark.usefixtures("small")
def test_cosched_is_run_again_and_says_the_same(tmp_path: Path) -> None:
    section = reproduce("cosched", Asked(quick=True))
    assert reproduce("cosched", Asked(quick=True, data=tmp_path)).claims[:7] == section.claims[:7]
    held = claims_of(section)
    assert held["FCS takes at most twice the optimum, on 20 random instances"] is True
    assert held['the same on every instance ("we have analytically shown")'] is False
    assert held["FCS takes at most twice the optimum, on measured pairs of programs"] is None
    assert [claim.why for claim in section.claims if "--data" in claim.why] != []
    assert "Seeds count up from 0." in section.sizes


@pytest.mark.usefixtures("small")
def test_ravi_is_run_again() -> None:
    section = reproduce("ravi", Asked(quick=True, seed=1))
    held = claims_of(section)
    assert held["RSC's ANL is always 0"] is True
    assert {len(table.header) for table in section.tables} == {
        len(row) for table in section.tables for row in table.rows
    }
    assert [claim.kind for claim in section.claims].count("fitted") == 1


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
def test_the_command_prints_markdown_or_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("reproduce", "cosched", "--quick", "--processes", "1")
    assert pliant(*words) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert re.search(r"^## Kuchumov & Korkhov \(002\)", told.out, re.MULTILINE)
    assert pliant(*words, "--out", str(tmp_path / "claims.md")) == 0
    assert capsys.readouterr() == ("", "")
    assert (tmp_path / "claims.md").read_text() == told.out


def test_the_command_writes_a_report_and_plots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = Chart("somebody-1", "Figure 1", "GPUs", (1, 2), {"time, s": {"fcfs": (2.0, 1.0)}})
    monkeypatch.setattr(cosched, "reproduce", lambda _: replace(SECTION, charts=[chart]))
    html, plots = tmp_path / "claims.html", tmp_path / "plots"
    assert pliant("reproduce", "cosched", "--html", str(html), "--plots", str(plots)) == 0
    assert "it is quick" in capsys.readouterr().out
    assert [path.name for path in plots.iterdir()] == ["somebody-1.png"]
    assert 'aria-label="Figure 1: time, s by GPUs, of fcfs."' in html.read_text()


@pytest.mark.usefixtures("small")
def test_a_terminal_is_told_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    assert pliant("reproduce", "cosched", "--quick", "--processes", "1") == 0
    assert "figure 1" in terminal.getvalue()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("reproduce",), "pliant: paper: none is given: one of "),
        (("reproduce", "seoo"), "pliant: paper: 'seoo': one of "),
        (("reproduce", "ravi", "--data", "/no"), "pliant: /no: a directory is expected"),
        (("reproduce", "ravi", "--processes", "0"), "pliant: Invalid value for '--processes'"),
        (("reproduce", "ravi", "--out", "/tmp"), "pliant: --out: '/tmp': a file is expected, not"),
        (("reproduce", "ravi", "--out", "/no/x"), "pliant: --out: '/no/x': its directory is not"),
        (("reproduce", "ravi", "--out", "/proc/x"), "pliant: --out: '/proc/x': /proc cannot be"),
        (("reproduce", "ravi", "--html", "/proc/x"), "pliant: --html: '/proc/x': /proc cannot be"),
        (("reproduce", "ravi", "--plots", "/proc/x"), "pliant: --plots: '/proc/x': /proc cannot"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant(*words) == 2
    told = capsys.readouterr().err
    assert told.startswith(said)
    assert told.count("\n") == 1


def test_what_is_finished_is_kept_where_a_later_paper_cannot_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cannot(_: Asked) -> Section:
        raise BadInput("curves.csv: line 3: a number is expected")

    monkeypatch.setattr(cosched, "reproduce", lambda _: SECTION)
    monkeypatch.setattr(ravi, "reproduce", cannot)
    out = tmp_path / "claims.md"
    assert pliant("reproduce", "cosched", "ravi", "--out", str(out)) == 2
    assert capsys.readouterr() == ("", "pliant: curves.csv: line 3: a number is expected\n")
    assert "## Somebody" in out.read_text()


def test_a_solver_that_is_missing_is_said_before_anything_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(papers, "find_spec", lambda _: None)
    assert pliant("reproduce", "all", "--quick") == 2
    said = "pliant: cosched: scipy is not installed: pip install 'pliant[solvers]'\n"
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ((1.3, 1.2, 1.1), ""),
        ((1.3, 1.0, 1.1), "it falls from 75 SR/25 LR to 50 SR/50 LR; the load is not printed"),
        ((0.9, 0.8, 0.7), "the load is not printed"),
    ],
)
def test_what_grows_with_a_ratio_grows_at_every_step(times: tuple[float, ...], why: str) -> None:
    draws = {
        mix: [{"fms-nodes": of, "fms-type": 1.0}]
        for mix, of in zip(ravi_multi.SIZE, times, strict=True)
    }
    claim = ravi_multi._contention(ravi_multi.Several((2.0, 1.0), draws, {}))
    assert claim.holds is not bool(why)
    assert claim.why.startswith(why)
