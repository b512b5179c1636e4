"""`pliant jobs`: which jobs, in which order, and one line each on a terminal."""

from __future__ import annotations

import json
import os
import pty
import pwd
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from test_cli_daemon import WAITING, FakeDaemon, daemon, pliant

from pliant.cli.jobs import SPARED, job_columns
from pliant.cli.one_line import lines
from pliant.cli.pager import paged
from pliant.daemon.answers import JobsAnswer
from pliant.daemon.flagged import JobRow

__all__ = ["daemon"]  # a fixture

RUNNING = replace(
    WAITING, id="9", user="bob", partitions=("short", "gpu"), state="running", started_s=980.0
)
TASK = replace(WAITING, id="10_10", user="bob", submitted_s=990.0)
JOBS = (WAITING, replace(TASK, id="10_9", submitted_s=980.0), TASK, RUNNING)


def shown(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    daemon.answers["jobs"] = JobsAnswer(1000.0, JOBS)
    assert pliant("jobs", "--noheader", "-o", "job", *words) == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "4711 10_9 10_10 9"),
        ("--user bob", "10_9 10_10 9"),
        ("--user ann,bob --state running", "9"),
        ("-p short", "9"),
        ("-p gpu -n 2", "4711 10_9"),
        ("--sort job", "9 10_9 10_10 4711"),
        ("--sort -job -n 1", "4711"),
        ("--sort for", "10_10 10_9 9 4711"),
        ("--sort state --user bob", "10_9 10_10 9"),
    ],
)
def test_jobs_are_chosen_and_ordered(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], words: str, expected: str
) -> None:
    assert shown(daemon, capsys, *words.split()) == expected.split()


def test_ones_own_are_those_of_ones_name(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = replace(WAITING, id="1", user=pwd.getpwuid(os.getuid()).pw_name)
    daemon.answers["jobs"] = JobsAnswer(1000.0, (mine, WAITING))
    assert pliant("jobs", "--mine", "--json") == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)["jobs"]] == ["1"]
    daemon.answers["jobs"] = JobsAnswer(1000.0, (WAITING,))
    assert pliant("jobs", "--mine") == 0
    assert capsys.readouterr().err == "no such job carries Pliant's options now\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--state", "done"), "--state: 'done': one of waiting, running, ending is expected"),
        (
            ("--sort", "x"),
            "--sort: 'x': one of job, user, partition, state, for, tasks is expected",
        ),
    ],
)
def test_what_is_not_known_is_one_line(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    assert pliant("jobs", *words) == 2
    assert capsys.readouterr().err == f"pliant: {told}\n"
    assert daemon.asked == []


def drawn(rows: tuple[JobRow, ...], width: int) -> list[str]:
    columns = [column for column in job_columns(1000.0) if column.usual]
    return lines(columns, [[c.text(row) for c in columns] for row in rows], SPARED, width)


def test_at_80_letters_each_job_is_one_line_with_its_note() -> None:
    long = replace(
        WAITING, id="1234567_1234", user="a" * 40, allowed=tuple("12345678"), last="x" * 99
    )
    found = drawn((WAITING, long, RUNNING), 80)
    assert len(found) == 4
    assert all(len(line) <= 80 for line in found)
    assert found[0].split()[0] == "JOB" and found[0].split()[-1] == "NOTE"
    assert "can start as 2: 2 GPUs" in found[1]
    assert found[2].endswith("xx…")


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120, 200])
def test_the_note_is_never_lost_and_no_line_is_longer_than_the_terminal(width: int) -> None:
    found = drawn((WAITING, RUNNING), width)
    assert all(len(line) <= width for line in found)
    assert "can s" in found[1] and "4711" in found[1]
    if width >= 120:
        assert "2 GPUs are free on n1" in found[1] and "1 2 3 4" in found[1]


SCREEN = """
import sys
from pliant.cli.pager import paged
paged([f"line {n}" for n in range(int(sys.argv[1]))], 5)
"""


@pytest.mark.parametrize(("count", "expected"), [(4, "line 0"), (5, "paged 5")])
def test_more_lines_than_the_screen_has_go_through_the_pager(
    tmp_path: Path, count: int, expected: str
) -> None:
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho paged $(wc -l) "$1"\n')
    pager.chmod(0o755)
    here, there = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "PAGER": f"'{pager}' '$(touch {tmp_path}/x)'"}
    done = subprocess.run(
        [sys.executable, "-c", SCREEN, str(count)],
        env=env, stdin=there, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    os.close(here)
    os.close(there)
    assert done.stdout.splitlines()[0].startswith(expected)
    assert not (tmp_path / "x").exists()  # no shell reads it


@pytest.mark.parametrize("pager", ["", "'", "/none/such"])
def test_without_a_pager_all_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pager: str
) -> None:
    monkeypatch.setenv("PAGER", pager)
    paged(["one", "two"], 1)
    assert capsys.readouterr().out == "one\ntwo\n"


@pytest.mark.parametrize("terminal", ["dumb", ""])
def test_no_pager_waits_for_a_key_on_a_terminal_that_cannot_be_drawn_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: str
) -> None:
    monkeypatch.setenv("PAGER", "true")
    monkeypatch.setenv("TERM", terminal)
    paged(["one", "two"], 1)
    assert capsys.readouterr().out == "one\ntwo\n"
