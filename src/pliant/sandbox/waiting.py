"""Wait for what others do, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable

from pliant.errors import Unavailable

_POLL_S = 0.05


def until(
    is_so: Callable[[], bool],
    what: str,
    timeout_s: float,
    is_hopeless: Callable[[], str | None] = lambda: None,
) -> None:
    """Ask again and again until it is so.

    Raises Unavailable when the time is over, or with the reason why it is hopeless.
    """
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if reason := is_hopeless():
            raise Unavailable(reason)
        if time.monotonic() > deadline:
            raise Unavailable(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(_POLL_S)
