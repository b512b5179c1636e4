"""``dataclasses.replace`` for what a move changes, four times as fast: there are millions of moves.

Only for classes without slots, and without anything that they do when they are made.
"""

from __future__ import annotations

from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any

__all__ = ["changed"]

if not TYPE_CHECKING:

    def changed(old: Any, **fields: Any) -> Any:
        """Return the same with other values of some fields."""
        mine = old.__dict__
        new = object.__new__(old.__class__)
        both = new.__dict__
        both.update(mine)
        both.update(fields)
        assert len(both) == len(mine), fields.keys() - mine.keys()
        return new
