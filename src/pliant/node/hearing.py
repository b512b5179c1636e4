"""What the door's threads say, as events for the wrapper."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from pliant.errors import BadInput
from pliant.node import words as w
from pliant.node.door import Heard
from pliant.node.logs import cut_on_requeue
from pliant.node.run import signal_number
from pliant.node.saying import say


class Hearing:
    """Turns what is heard into events; each call comes from a thread of the door's."""

    def __init__(self, post: Callable[[w.Event], None], *, typed: bool) -> None:
        """``post`` takes an event from any thread; ``typed``: the user has named a signal."""
        self._post, self._typed = post, typed
        self._said_trouble = False

    def heard(self) -> Heard:
        """Return what the door is to call."""
        return Heard(
            *(self._wished, self._answered, self._stays),
            beside=self._beside,
            trouble=self._trouble,
            first=self._first,
            signal=self._signal,
        )

    def _wished(self, wish: w.Wish | None) -> None:
        self._post(w.Wished(time.monotonic(), wish))

    def _answered(self) -> None:
        self._post(w.Answered(time.monotonic()))

    def _stays(self) -> None:
        self._post(w.Stays(time.monotonic()))

    def _beside(self, others: bool) -> None:
        self._post(w.Beside(time.monotonic(), others))

    def _signal(self, name: str) -> None:
        if self._typed:
            return
        with contextlib.suppress(BadInput):  # of a later release
            self._post(w.Learnt(time.monotonic(), signal_number(name)))

    def _first(self) -> None:
        words = cut_on_requeue(os.environ)
        if words:
            say(words)

    def _trouble(self, words: str) -> None:
        if not self._said_trouble:
            self._said_trouble = True
            say(f"{words}; the program runs all the same")
