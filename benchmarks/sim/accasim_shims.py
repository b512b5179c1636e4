"""What AccaSim 1.1.3 lacks on Python 3.11, mended from outside: none of its code is changed.

To be imported before ``accasim``.
"""

from __future__ import annotations

import collections
import collections.abc
from types import SimpleNamespace
from typing import Any

if not hasattr(collections, "Mapping"):
    # It is imported from its place of before Python 3.10.
    collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]  # gone


def without_nothing(job: Any) -> Any:
    """Return what a job asks for, without that of which it asks for none.

    AccaSim's EASY divides by each amount that is requested when it looks for a blocked job's slot.
    """
    asked = {name: amount for name, amount in job.requested_resources.items() if amount}
    return SimpleNamespace(requested_nodes=job.requested_nodes, requested_resources=asked)


def divides_by_no_zero(easy: type[Any]) -> type[Any]:
    """Return AccaSim's EASY as one that may be asked for nothing of a resource."""

    class Easy(easy):  # type: ignore[misc]  # AccaSim has no types
        def _calculate_slot(self, *arguments: Any) -> Any:
            *before, blocked, jobs = arguments
            return super()._calculate_slot(*before, without_nothing(blocked), jobs)

    return Easy
