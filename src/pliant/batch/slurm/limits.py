"""What limits of QOS and associations may bound a job: ``sacctmgr -n -P show`` (sacctmgr(1)).

Only whether there are any: how much of one is left, Slurm knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pliant.model import EVERYBODY

_MOST = ("GrpTRES", "GrpTRESMins", "GrpTRESRunMins", "MaxTRES", "MaxTRESPerNode", "MaxTRESMins")
QOS = ("show", "qos", f"format=Name,Flags,{','.join(_MOST)},MaxTRESPU,MaxTRESPA")
ASSOCIATIONS = ("show", "associations", f"format=DefaultQOS,{','.join(_MOST)}")

DEFAULT = "normal"
"""The QOS of a job that names none, where its association names none either."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``deny``: some QOS has DenyOnLimit: what is beyond a limit at submission is refused.

    ``qos``: as in Abilities.limited_qos.
    """

    deny: bool = False
    qos: frozenset[str] = frozenset()


NO_LIMITS = Limits()
UNKNOWN = Limits(deny=True, qos=frozenset((EVERYBODY,)))
"""To be careful where it cannot be known."""


def parse_limits(qos: str, associations: str) -> Limits:
    """Read the answers to :data:`QOS` and :data:`ASSOCIATIONS`."""
    rows = [line.split("|") for line in qos.splitlines() if line]
    limited = {name for name, _, *limits in rows if any(limits)}
    named, bounded = _associations(associations.splitlines())
    defaults = {name for name in named if name} | ({DEFAULT} if "" in named or not named else set())
    if limited & defaults:
        limited.add("")
    if bounded:
        limited.add(EVERYBODY)
    return Limits(any("DenyOnLimit" in row[1] for row in rows), frozenset(limited))


def _associations(lines: Iterable[str]) -> tuple[set[str], bool]:
    """Their default QOS, and whether one of them has a limit."""
    rows = [line.split("|") for line in lines if line]
    return {row[0] for row in rows}, any(any(row[1:]) for row in rows)
