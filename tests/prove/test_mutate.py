"""What is tried without a decision ends at a limit of CPU time, and the page says what came of it."""

from __future__ import annotations

import logging
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import pytest

from prove import mutate
from prove.noted import PAGE, Noted, decision_at, noted_of, read_page, write_page
from prove.unneeded import UNNEEDED


def _works_for_ever(_told: Connection) -> NoReturn:
    while True:
        pass


def _waits_for_ever(_told: Connection) -> NoReturn:
    while True:
        signal.pause()


def _dies(_told: Connection) -> NoReturn:
    os._exit(1)


def _waits_and_tells(told: Connection) -> None:
    time.sleep(1.5)
    told.send("test_that.py::test_it")


def test_what_works_for_ever_ends_after_its_cpu_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate, "MOST_S", 1)
    monkeypatch.setattr(mutate, "WAITS", 1000)
    assert mutate._apart(_works_for_ever) == "no end in 1 CPU seconds"


def test_what_is_slow_by_the_clock_alone_comes_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate, "MOST_S", 1)
    monkeypatch.setattr(mutate, "WAITS", 1000)
    assert mutate._apart(_waits_and_tells) == "test_that.py::test_it"


def test_what_waits_for_ever_ends_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate, "MOST_S", 1)
    monkeypatch.setattr(mutate, "WAITS", 1)
    assert mutate._apart(_waits_for_ever) == "no end in 1 seconds"


def test_what_dies_is_no_limit() -> None:
    assert mutate._apart(_dies) == "it dies"


@pytest.mark.parametrize(
    ("body", "waits", "by"),
    [
        ("while True: pass", 1000, "no end of a test in 1 CPU seconds"),
        ("__import__('threading').Event().wait()", 1, "no end of a test in 1 seconds"),
        ("assert False", 1000, "test_it.py::test_one"),
        ("pass", 1000, ""),
    ],
)
def test_a_test_that_reaches_a_limit_is_not_one_that_fails(
    body: str, waits: int, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = tmp_path / "unit"
    unit.mkdir()
    (unit / "test_it.py").write_text(f"def test_one():\n    {body}\n")
    monkeypatch.setattr(mutate, "UNIT", unit)
    monkeypatch.setattr(mutate, "TEST_S", 1)
    monkeypatch.setattr(mutate, "WAITS", waits)
    monkeypatch.setitem(mutate.PARTS, "it", ("it",))
    assert mutate._apart(mutate._unit_tests, "it").rpartition("/")[2] == by


def test_an_exploration_of_too_many_states_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate, "MOST", 10)
    monkeypatch.setattr(logging, "disable", lambda _level: None)
    assert mutate._by_exploring("pliant.handover") == "no end in 10 states"


MISSED = (decision_at("pliant.a.f: if x == '`|': never", 12), decision_at("pliant.a.f: g()", 13))


def test_what_was_noticed_missed_or_need_not_be_is_counted_and_named() -> None:
    told = [
        ("", "unit/test_a.py::test_one[case]", ""),
        ("", "Slurm, a resize explored: no end", ""),
        ("", "no end in 1,200 CPU seconds", ""),
        ("", "", "it is quicker"),
        *((one, "", "") for one in MISSED),
    ]
    by = ("test_a.py::test_one", "the exploration", "no end in 1,200 CPU seconds")
    assert noted_of("pliant.a.f", told) == Noted("pliant.a.f", 3, 1, 2, by, MISSED)


def test_the_page_says_all_that_is_noted(tmp_path: Path) -> None:
    ends = ("it dies", "no end in 1,200 CPU seconds", "no end of a test in 2,400 seconds")
    noted = [
        Noted(
            "pliant.a.f",
            5,
            1,
            2,
            ("test_a.py::test_one", *ends, "the exploration"),
            MISSED,
            "1a2b3c4d",
        ),
        Noted("pliant.a.g", 1, by=("no end in 200,000 states",)),
        Noted("pliant.b.f", missed=1, unnoticed=(decision_at("pliant.b.f: x in X", 3),)),
    ]
    page = tmp_path / "mutants.md"
    write_page(["pliant.a", "pliant.b"], noted, {"pliant.a.f: x": "it is quicker"}, page)
    assert [*read_page(page)] == noted
    said = page.read_text().splitlines()
    assert [line for line in said if line.endswith(("line 12", "line 13", "line 3"))] == [
        f"- {one}" for each in noted for one in each.unnoticed
    ]


def test_of_what_was_not_noticed_before_it_was_named_the_page_says_how_many(tmp_path: Path) -> None:
    page = tmp_path / "mutants.md"
    write_page(["pliant.a"], [Noted("pliant.a.f", missed=3, unnoticed=MISSED)], {}, page)
    assert "- `pliant.a.f`: 1, to be tried again: not named before" in page.read_text().splitlines()


def test_the_page_is_as_it_would_be_written(tmp_path: Path) -> None:
    again = tmp_path / "mutants.md"
    write_page([*mutate.PARTS], [*read_page()], UNNEEDED, again)
    assert again.read_text() == PAGE.read_text()
