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
    guest_strays,
    has_room,
    leftover,
    starts_anyway,
    strays,
)
from pliant.cycle.let_through import STRAYS
from pliant.cycle.running import ITSELF, why_stays
from pliant.cycle.trials import capped, trials_held

__all__ = [
    "DEFAULT_LIMIT",
    "Explanation",
    "Gate",
    "ITSELF",
    "STRAYS",
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
    "guest_strays",
    "has_room",
    "caps_of",
    "kept_within_limits",
    "leftover",
    "molded_from",
    "some_wait_for_all",
    "starts_anyway",
    "strays",
    "taken_back",
    "trials_held",
    "view",
    "why_left",
    "why_stays",
]
