"""How `pliant run` finds pliantd, with two threads that ask first and at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from pliant.cli import run_door
from pliant.cli.door import client_config
from pliant.cli.run_door import RunDoor
from pliant.daemon.config import Config
from pliant.errors import Unavailable
from pliant.wire import Message, ok

ANSWER = ok(json='{"wish": "", "why": "", "until_s": 0.0, "several": false, "run": 0}')
MEETING_S = 1.0
"""How long a thread that reads waits for another one: in vain, as that one waits for the first."""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was read as pliant.toml, each time; whoever reads it lets the others come."""
    path, files, meeting = tmp_path / "pliant.toml", list[Path](), threading.Barrier(2)
    path.write_text('[daemon]\nlisten = "127.0.0.1:1"\n')
    monkeypatch.setenv("PLIANT_CONFIG", str(path))
    monkeypatch.setenv("PLIANT_HOST", "127.0.0.1")

    def config(at: Path) -> Config:
        files.append(at)
        with suppress(threading.BrokenBarrierError):
            meeting.wait(MEETING_S)
        return client_config(at)

    monkeypatch.setattr(run_door, "client_config", config)
    return files


def answers(*said: Message | Unavailable) -> object:
    """What pliantd answers, one after the other, and then always the last."""
    left = list(said)

    def ask(*_: object, **_more: object) -> Message:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Unavailable):
            raise answer
        return answer

    return ask


def test_the_configuration_is_read_once_whichever_thread_asks_first(
    read: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_door, "ask_over_tcp", answers(ANSWER))
    door, together = RunDoor(), threading.Barrier(2)

    def first(_: int) -> int:
        together.wait()
        return door.ask("run-begin", {}, 1.0).run

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(first, range(2))) == [0, 0]
    assert read == [tmp_path / "pliant.toml"]


def test_it_is_read_again_only_after_pliantd_was_not_reached(
    read: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        run_door, "ask_over_tcp", answers(ANSWER, ANSWER, Unavailable("it is gone"), ANSWER)
    )
    door, counts = RunDoor(), []
    for _ in range(4):
        with suppress(Unavailable):
            door.ask("run-begin", {}, 1.0)
        counts.append(len(read))
    assert counts == [1, 1, 1, 2]
