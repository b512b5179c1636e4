"""In which tier a job's speed is measured, from what could be opened. Pure.

Speeds of different tiers are never mixed or compared: instructions per second, a program's own
steps per second and CPU seconds per second are not the same thing in three units. So a change of
tier is told, once, with its reason. Of tier 2, a program's own steps, no monitor knows: programs
tell them to pliantd (:mod:`pliant.daemon.beats`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from pliant.monitor.refusals import CannotCount, Way


class Tier(IntEnum):
    """How a speed was measured; the lower the number, the more it sees."""

    COUNTERS = 1  # instructions per second, of a PMU
    CPU = 3  # CPU seconds per second: blind to interference in caches and memory
    PSI = 4  # pressure stall information: an alarm, no speed


_WORDS = {
    Tier.COUNTERS: "counters",
    Tier.CPU: "CPU time alone, which does not see interference in caches and memory",
    Tier.PSI: "pressure stall information, an alarm alone",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A job's tier, the way its counters are read (None without), and why it is no better one."""

    tier: Tier
    way: Way | None
    why: str


def choose(way: Way | None, refusals: Sequence[CannotCount], *, partial: bool = False) -> Choice:
    """Return the tier in which a job's speed is measured.

    `way` and `refusals` are what came of the wish to count it (way None: nothing could be opened);
    `partial`: cycles are counted, but no instructions.
    """
    why = "; ".join(dict.fromkeys(refusal.why for refusal in refusals))
    if way:
        return Choice(Tier.COUNTERS, way, why)
    if partial:
        why = f"the PMU counts cycles but no instructions: {why}"
    return Choice(Tier.CPU, None, why)


def line(job: str, before: Choice | None, after: Choice) -> str | None:
    """Return the log's line where a job's tier or way changed, else None."""
    if before and (before.tier, before.way) == (after.tier, after.way):
        return None
    how = f"tier {after.tier}, {_WORDS[after.tier]}"
    by = f" by {after.way}" if after.tier is Tier.COUNTERS else ""
    was = f" (it was tier {before.tier})" if before and before.tier is not after.tier else ""
    return f"job {job}: speed in {how}{by}{was}{': ' + after.why if after.why else ''}"
