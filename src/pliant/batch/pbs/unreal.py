"""Numbers below zero, or beyond all sense, which PBS takes in a request (``ngpus=-3``).

PBS counts a job with -3 GPUs as one that gives 3: it prints a full vnode as one with 3 free. Such a
job takes no part here, and its vnode has what it would have without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pliant.batch.pbs.job_rows import JobRow
from pliant.batch.pbs.node_rows import NodeRow
from pliant.batch.pbs.values import real

MOST = 1_000_000_000
"""The highest number of anything but bytes in a request that is one."""
WORDS = "it asks for a number below 0 or beyond all sense"
_NUMBER = r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?"
_COUNT = re.compile(rf"(?:^|\+)({_NUMBER})(?=[:+]|$)", re.ASCII | re.IGNORECASE)
_GIVEN = re.compile(rf":([^:=+()]+)=({_NUMBER})(?=[:+()]|$)", re.ASCII | re.IGNORECASE)
_VNODE = re.compile(r"([^:()+]+)((?::[^:()+]+)*)")


def is_unreal(row: JobRow) -> bool:
    """Whether a job asks for less than nothing of something, or for more than there is."""
    select = row.resources.get("select", "")
    numbers = [found[1] for found in _COUNT.finditer(select)]
    numbers += [found[2] for found in _GIVEN.finditer(f":{row.exec_vnode}:{select}")]
    numbers += [row.resources.get(name, "") for name in ("ncpus", "ngpus", "mpiprocs", "nodect")]
    return row.resources.get("mem", "").startswith("-") or any(
        not 0 <= real(number) <= MOST for number in numbers
    )


def without(rows: Iterable[JobRow], nodes: Sequence[NodeRow]) -> list[NodeRow]:
    """Return vnodes without what jobs have of them that is less than nothing."""
    back: dict[str, dict[str, float]] = {}
    for row in rows:
        if "=-" in row.exec_vnode:
            for found in _VNODE.finditer(row.exec_vnode):
                of_vnode = back.setdefault(found[1], {})
                for name, many in _GIVEN.findall(found[2]):
                    of_vnode[name] = of_vnode.get(name, 0.0) + max(0.0, -real(many))
    return [_raised(node, back[node.name]) if node.name in back else node for node in nodes]


def _raised(node: NodeRow, back: Mapping[str, float]) -> NodeRow:
    more = {name: str(real(node.given.get(name)) + many) for name, many in back.items() if many}
    return replace(node, given={**node.given, **more})
