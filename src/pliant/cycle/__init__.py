"""The decision: one pure function from a snapshot and a policy to a plan."""

from pliant.cycle.bounds import caps_of, kept_within_limits, some_wait_for_all
from pliant.cycle.decide import DEFAULT_LIMIT, cycle, taken_back
from pliant.cycle.explain import Explanation, Tried, explain, molded_from
from pliant.cycle.gate import (
    Gate,
    allowed_shapes,
    carries_ours,
    forbidden,
    gate,
    gate_of,
    grown,
    view,
    why_left,
)
from pliant.cycle.leftover import (
    could_follow,
    could_start,
    has_room,
    kept_from,
    leftover,
    starts_anyway,
)
from pliant.cycle.running import why_stays
from pliant.cycle.trials import capped, trials_held

__all__ = [
    "DEFAULT_LIMIT",
    "Explanation",
    "Gate",
    "Tried",
    "allowed_shapes",
    "capped",
    "carries_ours",
    "could_follow",
    "could_start",
    "cycle",
    "explain",
    "forbidden",
    "gate",
    "gate_of",
    "grown",
    "has_room",
    "caps_of",
    "kept_from",
    "kept_within_limits",
    "leftover",
    "molded_from",
    "some_wait_for_all",
    "starts_anyway",
    "taken_back",
    "trials_held",
    "view",
    "why_left",
    "why_stays",
]
