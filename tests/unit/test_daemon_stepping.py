"""The steps of hand-overs beside the loop: when they are due, at once where it is said, or never."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from limits import HANG_S
from pliant.daemon import stepping as module
from pliant.daemon.handing import HandOvers
from pliant.daemon.stepping import Stepping

FAR_S = 10 * HANG_S


class Overs:
    """Hand-overs of which it is only seen when they are stepped."""

    def __init__(self, does: Callable[[], None] = lambda: None) -> None:
        self.turns = 0
        self.thread: threading.Thread | None = None
        self.is_stopped = False
        self.woken: Callable[[], None] = lambda: None
        self._does = does

    def turn(self) -> float:
        self.turns += 1
        self.thread = threading.current_thread()
        self._does()
        return time.monotonic() + FAR_S

    def stop(self) -> None:
        self.is_stopped = True


def stepped(overs: Overs, until: Callable[[], bool], acts: Callable[[], bool]) -> None:
    """Step until something is so, and stop."""

    async def run() -> None:
        stepping = Stepping(cast("HandOvers", cast("Any", overs)), time.monotonic, acts)
        runs = asyncio.create_task(stepping.run())
        async with asyncio.timeout(HANG_S):
            while not until():
                await asyncio.sleep(0.001)
            stepping.stop()
            await runs

    asyncio.run(run())


def test_steps_are_done_in_a_thread_of_their_own() -> None:
    overs = Overs()
    stepped(overs, lambda: overs.turns > 0, lambda: True)
    assert overs.thread is not threading.main_thread()
    assert overs.is_stopped


def test_a_step_is_done_at_once_where_it_is_said_meanwhile_from_any_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def says() -> None:
        if overs.turns < 3:
            overs.woken()

    monkeypatch.setattr(module, "SLOW_S", FAR_S)  # nothing else makes it due before it hangs
    overs = Overs(says)
    stepped(overs, lambda: overs.turns == 3, lambda: True)
    assert overs.turns == 3


def test_no_step_is_done_while_another_host_acts() -> None:
    asked = 0

    def acts() -> bool:
        nonlocal asked
        asked += 1
        overs.woken()
        return False

    overs = Overs()
    stepped(overs, lambda: asked > 10, acts)
    assert overs.turns == 0
