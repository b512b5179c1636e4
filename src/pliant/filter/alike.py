"""Which submissions are answered alike.

Many differ in nothing but their time limit, or their memory. A time limit matters only where one of
their shapes could start now; memory also where a node could have too little of it, or a limit
stands in its way. Beside that it is noted in the token.
"""

from __future__ import annotations

from collections.abc import Mapping

from pliant.filter.case import Case
from pliant.filter.choose import none_starts_now
from pliant.filter.decide import known_case
from pliant.filter.fields import number
from pliant.filter.inventory import Inventory
from pliant.filter.view import View
from pliant.model import Footprint, Kind, Shape


def alike_to_mib(submission: Mapping[str, str], view: View) -> int | None:
    """Return up to how much memory the same is answered as to this submission, but for the token.

    By node or by CPU, as this one asks for it, whatever the time limits, and as long as nothing of
    ``view`` becomes free. 0: only where as much is asked for, or nothing; None: only where all is
    the same.
    """
    known = known_case(submission, view.inventory)
    if isinstance(known, Case):
        if not none_starts_now(known, submission, view):
            return None
        own, footprint = known.own, known.written.footprint
    elif known.spec is not None and known.spec.footprint is not None:
        own, footprint = known.spec.own, known.spec.footprint
    else:
        return 0
    return _unnoticed_mib(submission, view.inventory, own, footprint)


def _unnoticed_mib(
    submission: Mapping[str, str], inventory: Inventory, own: Shape | None, footprint: Footprint
) -> int:
    """Return up to how much memory, as a submission asks for it, decides nothing; 0: not known."""
    names = submission.get("partition", "")
    by_node, by_cpu = (number(submission, f"min_mem_per_{way}") for way in ("node", "cpu"))
    if submission.get("mem_per_tres") or bool(by_node) is bool(by_cpu):
        return 0
    on_node_mib = inventory.unnoticed_mib(names)
    if by_node:
        return on_node_mib
    written = footprint.demand(own or Shape(1, 0, kind=Kind.CPU))
    return on_node_mib // max(inventory.most_cpus(names), written.cpus)
