"""Work that may hang, done beside those who must not."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from limits import HANG_S
from pliant.node.aside import Aside


def test_it_is_done_in_order_and_nobody_waits() -> None:
    aside, goes_on, done = Aside(), threading.Event(), list[int]()
    aside.do(lambda: goes_on.wait(HANG_S))
    for number in range(3):
        aside.do(partial(done.append, number))
    assert (aside.wait(0.0), done) == (False, [])
    goes_on.set()
    assert (aside.wait(HANG_S), done) == (True, [0, 1, 2])


def test_what_does_not_come_in_time_is_none_and_holds_up_what_follows_alone() -> None:
    aside, goes_on = Aside(), threading.Event()
    assert aside.within(0.01, lambda: goes_on.wait(HANG_S)) is None
    assert aside.within(0.01, lambda: 7) is None
    goes_on.set()
    assert aside.within(HANG_S, lambda: 7) == 7


def test_a_mistake_in_it_ends_nothing_that_follows(capfd: pytest.CaptureFixture[str]) -> None:
    aside = Aside()
    assert aside.within(HANG_S, lambda: 1 // 0) is None
    assert aside.within(HANG_S, lambda: 7) == 7
    assert "a mistake of Pliant's own (ZeroDivisionError: " in capfd.readouterr().err


def test_where_no_thread_can_be_made_it_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuses)
    assert Aside().within(0.0, threading.get_ident) == threading.get_ident()
    assert Aside().wait(0.0)
