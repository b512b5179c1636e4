"""The place that a job's owner wrote, while Pliant spreads the job over several nodes. Pure.

A job that was written as one chunk is spread by ``place=scatter``. PBS lets nobody take a place
away again (OpenPBS 23.06), and gives a job that is moved the place of its new queue only where it
has none of its own. So what the owner wrote stands in a variable of the job, and with it whether
the place that the job has is Pliant's: where Pliant does not spread it any more, it gets its
owner's place, or else that which its queue gives to jobs without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.filter.fields import Fixed
from pliant.filter.pbs.names import PLACE
from pliant.filter.pbs.select import SPREAD, read_place
from pliant.model.requests import Spec

FREE = "free"
"""The place that PBS gives to a job with select where no queue names one."""
_NONE = "-"
_OURS = "*"


@dataclass(frozen=True, slots=True)
class Place:
    """``own``: as the owner wrote it, "" where not at all. ``ours``: whether Pliant has set it."""

    own: str = ""
    ours: bool = False

    def __str__(self) -> str:
        return (self.own or _NONE) + (_OURS if self.ours else "")

    def wanted(self, default: str) -> str:
        """Return the place of a job that Pliant does not spread; ``default``: its queue's."""
        return self.own or default or FREE


def read_note(text: str) -> Place | None:
    """Return what the variable says, which is anybody's to write; None where nothing of ours."""
    bare = text[:-1] if text.endswith(_OURS) else text
    own = "" if bare == _NONE else bare
    try:
        read_place(own)
    except Fixed:
        return None
    return Place(own, text.endswith(_OURS)) if bare else None


def place_of(
    variables: Mapping[str, str], resources: Mapping[str, str], spec: Spec | None, default: str
) -> Place:
    """Return what is known of a job's place; jobs of earlier releases say nothing of it."""
    noted = read_note(variables.get(PLACE, ""))
    if noted:
        return noted
    has = resources.get("place", "")
    several = spec is not None and spec.set is not None and spec.set.nodes > 1
    if several and has.partition(":")[0] == SPREAD:
        return Place(ours=True)
    return Place("" if has in ("", FREE, default) else has)
