"""PBS's schedulers, as ``qmgr -c "list sched"`` tells of them, and what orders their jobs. Pure.

Each but the default one starts the jobs of the queues of one partition. A change of the server's
``scheduling`` starts a cycle of the default one alone (poke_scheduler in src/server/sched_func.c,
OpenPBS 23.06); every other one has an attribute of that name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pliant.filter.pbs.limits import SHAPED

LIST = ("-c", "list sched")
"""What qmgr is told to list them."""
WAKE = ("-c", "set server scheduling = True")
"""What starts a cycle of the default one, which a qalter does not do."""
DEFAULT = "pbs-default"
"""The partition of the default scheduler, as PBS writes it where it does."""
_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)


def listed(out: str) -> dict[str, dict[str, str]]:
    """Read what qmgr lists of schedulers: ``Sched default``, then ``    sched_host = head``.

    A long value goes on behind a tab in the next line.
    """
    found: dict[str, dict[str, str]] = {}
    said: dict[str, str] = {}
    for line in out.replace("\n\t", "").splitlines():
        kind, _, name = line.strip().partition(" ")
        if kind == "Sched" and line[:1] == "S":
            said = found.setdefault(name, {})
        else:
            key, equals, value = line.strip().partition(" = ")
            said.update({key: value} if equals else {})
    return found


def own_partition(name: str) -> str:
    """Return the partition of a queue, vnode or scheduler; "" for that of the default one."""
    return "" if name == DEFAULT else name


def schedules(said: Mapping[str, str]) -> bool:
    """Whether nobody has stopped a scheduler."""
    return said.get("scheduling", "True").lower() == "true"


def kicks(schedulers: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """Return what qmgr is told to start a cycle of each scheduler but the default one.

    A scheduler that somebody has stopped stays so.
    """
    return [
        ("-c", f"set sched {name} scheduling = True")
        for name, said in schedulers.items()
        if own_partition(said.get("partition", "")) and schedules(said)
    ]


def shaped_in(text: str, share_resource: str = "") -> str:
    """Return a resource that a shape changes and that a formula or a sort key names; "": none."""
    names = set(_VARIABLE.findall(text.lower()))
    known = (*SHAPED, *([share_resource.lower()] if share_resource else []))
    return next((name for name in known if name in names), "")
