"""What the wrapper says to its user."""

from __future__ import annotations

import contextlib
import sys


def say(words: str) -> None:
    """Say one line to the user; a closed stderr is no reason to end, nor to say it on stdout."""
    if sys.stderr is None:
        return
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(words.split()))
    with contextlib.suppress(OSError, ValueError):
        print(f"pliant run: {line}", file=sys.stderr, flush=True)
