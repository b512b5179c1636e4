"""Resources as PBS's objects take them."""

from __future__ import annotations

from typing import Any

from pliant.filter.pbs.decide import Answer
from pliant.filter.pbs.names import COUNTED


def typed(answer: Answer) -> list[tuple[str, Any]]:
    """Return the resources that are to be set, each as what PBS has for it; None unsets one."""
    import pbs  # noqa: PLC0415  # it is there in a hook alone

    made = {"select": pbs.select, "place": pbs.place, "mem": pbs.size}
    made.update(dict.fromkeys(COUNTED, int))
    some = answer.resources
    return [(name, None if text is None else made.get(name, str)(text)) for name, text in some]
