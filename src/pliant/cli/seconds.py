"""Seconds as an option's value."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click


class Seconds(click.FloatRange):
    """A range without nan and infinity, for which nobody can wait."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Fails in one line."""
        found = super().convert(value, param, ctx)
        if not isfinite(found):
            self.fail(f"{found} is not in the range {self._describe_range()}.", param, ctx)
        return found
