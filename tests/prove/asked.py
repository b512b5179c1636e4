"""Numbers as a command line has them: anything else is said to be wrong, and what would be right."""

from __future__ import annotations

import argparse


def some(text: str) -> int:
    """Return a number of 1 or more. Raises ArgumentTypeError."""
    return _from(text, 1)


def many(text: str) -> int:
    """Return a number of 0 or more. Raises ArgumentTypeError."""
    return _from(text, 0)


def _from(text: str, least: int) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) >= least):
        raise argparse.ArgumentTypeError(f"{text!r}: a number from {least} on is expected")
    return int(text)
