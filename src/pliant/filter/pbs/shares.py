"""A part of one GPU as PBS counts it: so much of a float resource, of which each GPU has 1."""

from __future__ import annotations

from pliant.filter.fields import Fixed
from pliant.grammar.values import quoted

_DIGITS = 10_000
"""PBS cuts such a resource to four decimals: three times 0.3333 fit onto a GPU."""


def share_text(share: int) -> str:
    """Write 1/``share``, nothing more of it than that."""
    return f"0.{_DIGITS // share:04d}".rstrip("0")


def read_share(name: str, text: str) -> int:
    """Return the n of a 1/n.

    Raises Fixed for any other amount.
    """
    try:
        amount = float(text)
    except ValueError:
        amount = 0.0
    near = int(1 / amount) if 1 / _DIGITS < amount < 1.0 else 0
    for share in (near, near + 1):  # what is written of 1/n is less than that, if anything
        if share > 1 and abs(amount - 1 / share) <= 1 / _DIGITS:
            return share
    raise Fixed(f"{name}={quoted(text)} is no 1/n of a GPU: the shape stays")
