"""Which policies have golden plans: each by its paper, and as a real cluster has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pliant.plan import Policy
from pliant.policies import by_name, live, live_names, names

OTHERS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("moldable-equipartition", {"votes": "equal"}),
    ("malleable-equipartition", {"votes": "equal"}),
    ("easy-backfill", {"shape": "best"}),
    ("rigid-fcfs", {"overtaking": True}),
    ("fitgpp", {"several": True, "p": 2}),
    ("fms", {"sizes": "all", "times": "limits", "order": "queue"}),
    ("fms", {"beside": "later"}),
    ("torque", {"overtaking": True}),
)
"""Options that change what is decided."""


def cases() -> dict[str, Policy]:
    """Return each policy by the name that its golden plans have."""
    found: dict[str, Policy] = {name: by_name(name) for name in names()}
    found |= {f"{name}, live": live(name, {}) for name in live_names()}
    found |= {
        f"{name}, {' '.join(f'{key}={value}' for key, value in options.items())}": by_name(
            name, **options
        )
        for name, options in OTHERS
    }
    once: dict[str, Policy] = {}
    for case, policy in found.items():
        if policy not in once.values():
            once[case] = policy
    return once


def live_cases() -> dict[str, Policy]:
    """Return those of a real cluster."""
    those = [live(name, {}) for name in live_names()]
    return {case: policy for case, policy in cases().items() if policy in those}
