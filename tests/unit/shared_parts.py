"""What jobs of a workload share: equal parts of them are one object."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from pliant.simulator.workload import Arrival


def assert_shared(arrivals: Iterable[Arrival], *parts: str) -> None:
    """Fail where two jobs have equal parts that are two objects."""
    found = [*arrivals]
    for part in parts:
        values = [attrgetter(part)(one) for one in found]
        assert len({id(value) for value in values}) == len(set(values)), part
