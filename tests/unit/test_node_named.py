"""The checkpoint that an owner names: what counts as new and whole, and what cannot be told."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from limits import HANG_S
from pliant.node import named
from pliant.node.named import NamedCheckpoint
from pliant.node.ranks import Ranks


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(named, "WAIT_S", 0.0)
    monkeypatch.setattr(named, "BEFORE_S", HANG_S)
    return tmp_path


def test_a_file_that_was_written_anew_in_its_place_is_new(here: Path) -> None:
    file = here / "ckpt"
    file.write_text("1234")
    os.utime(file, ns=(1, 1))
    checkpoint = NamedCheckpoint(None)
    checkpoint.remember("ckpt")
    assert checkpoint.trouble("ckpt") == "ckpt is no newer than the request"
    file.write_text("4321")
    assert checkpoint.trouble("ckpt") == ""


def test_a_clock_that_another_host_has_makes_nothing_old(here: Path) -> None:
    checkpoint = NamedCheckpoint(None)
    checkpoint.remember("ckpt")
    (here / "ckpt").write_text("1234")
    os.utime(here / "ckpt", ns=(1, 1))
    assert checkpoint.trouble("ckpt") == ""


def test_a_path_is_looked_for_beside_the_program_and_among_its_checkpoints(here: Path) -> None:
    checkpoint = NamedCheckpoint(here / "all")
    (here / "ckpt").write_text("old")
    checkpoint.remember("ckpt")
    assert checkpoint.trouble("ckpt") == "ckpt is no newer than the request"
    (here / "all").mkdir()
    (here / "all" / "ckpt").write_text("new")
    assert checkpoint.trouble("ckpt") == ""
    checkpoint.remember(str(here / "ckpt"))
    assert checkpoint.trouble(str(here / "ckpt")).endswith("/ckpt is no newer than the request")


def test_a_link_to_the_last_one_is_followed_and_one_in_a_circle_is_not(here: Path) -> None:
    checkpoint = NamedCheckpoint(None)
    checkpoint.remember("last")
    (here / "step7").mkdir()
    (here / "last").symlink_to("step7")
    (here / "step7" / "up").symlink_to("..")
    assert checkpoint.trouble("last") == "last is empty"
    (here / "step7" / "model").write_text("weights")
    assert checkpoint.trouble("last") == ""


def test_what_tasks_tell_each_other_among_checkpoints_is_none(here: Path) -> None:
    checkpoint = NamedCheckpoint(here / "all")
    checkpoint.remember("all")
    ranks = Ranks(here / "all", "7-0-0", 0, 2)
    ranks.prepare()
    ranks.ended(85, "w1")
    assert checkpoint.trouble("all") == "all is empty"
    (here / "all" / "ckpt").write_text("weights")
    assert checkpoint.trouble("all") == ""


def test_what_nobody_looked_at_before_is_not_known_to_be_new(here: Path) -> None:
    (here / "ckpt").write_text("7")
    assert (
        NamedCheckpoint(None).trouble("ckpt") == "ckpt could not be looked at before: nobody looked"
    )


def test_a_file_system_that_does_not_answer_keeps_nobody_waiting(here: Path) -> None:
    (here / "ckpt").write_text("7")
    checkpoint, answers = NamedCheckpoint(None), threading.Event()

    def hangs(_place: Path) -> str:
        answers.wait(HANG_S)
        return "is not there"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(named, "BEFORE_S", 0.01)
        patch.setattr(named, "_seen", hangs)
        checkpoint.remember("ckpt")
        soon = checkpoint.trouble_soon("ckpt")
    answers.set()
    assert soon == "ckpt could not be looked at within 0 s"
    assert checkpoint.trouble("ckpt").startswith("ckpt could not be looked at before: it took")


def test_more_files_than_can_be_looked_at_are_said(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named, "MOST_FILES", 3)
    checkpoint = NamedCheckpoint(None)
    checkpoint.remember("ckpt")
    (here / "ckpt").mkdir()
    for number in range(4):
        (here / "ckpt" / str(number)).write_text("7")
    assert checkpoint.trouble("ckpt") == "ckpt has more than 3 files: name one of them"
