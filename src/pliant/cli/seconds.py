"""Seconds as an option's value."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

import click

from pliant.errors import BadInput
from pliant.grammar import quoted

_SPAN = re.compile(r"([0-9]{1,7})(s|m|h|d|w|days?|hours?)", re.ASCII)
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
LONGEST_S = 3650 * 86_400


def span_s(option: str, text: str) -> int:
    """Read a time up to now: 90m, 12h, 1d, 30days, 2w.

    Raises BadInput.
    """
    match = _SPAN.fullmatch(text)
    seconds = int(match[1]) * _UNIT_S[match[2][0]] if match else 0
    if not 0 < seconds <= LONGEST_S:
        right = "a time like 90m, 12h, 1d or 2w, at most ten years, is expected"
        raise BadInput(f"{option}: {quoted(text)}: {right}")
    return seconds


class Seconds(click.FloatRange):
    """A range without nan and infinity, for which nobody can wait."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Fails in one line."""
        found = super().convert(value, param, ctx)
        if not isfinite(found):
            self.fail(f"{found} is not in the range {self._describe_range()}.", param, ctx)
        return found
