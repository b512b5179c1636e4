"""What limits of QOS and associations may bound a job: ``sacctmgr -n -P show`` (sacctmgr(1)).

Only whether there are any: how much of one is left, Slurm knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pliant.model import EVERYBODY

_MOST = ("GrpTRES", "GrpTRESMins", "GrpTRESRunMins", "MaxTRES", "MaxTRESPerNode", "MaxTRESMins")
_MOST_EACH = ("MaxTRESPU", "MaxTRESPA", "MaxTRESRunMinsPU", "MaxTRESRunMinsPA")
"""Of a user, and of an account. Minutes are TRES × time: of more GPUs there are more."""
QOS = ("show", "qos", f"format=Name,Flags,MinTRES,{','.join((*_MOST, *_MOST_EACH))}")
ASSOCIATIONS = ("show", "associations", f"format=DefaultQOS,{','.join(_MOST)}")

DEFAULT = "normal"
"""The QOS of a job that names none, where its association names none either."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``deny``: some QOS has DenyOnLimit: what is beyond a limit at submission is refused.

    ``qos`` and ``least``: as in Abilities.limited_qos and least_qos.
    """

    deny: bool = False
    qos: frozenset[str] = frozenset()
    least: frozenset[str] = frozenset()


NO_LIMITS = Limits()
UNKNOWN = Limits(deny=True, qos=frozenset((EVERYBODY,)))
"""To be careful where it cannot be known. What is too small is noticed, and given back, later."""


def parse_limits(qos: str, associations: str) -> Limits:
    """Read the answers to :data:`QOS` and :data:`ASSOCIATIONS`; to Slurm, case makes no name."""
    rows = [line.lower().split("|") for line in qos.splitlines() if line]
    limited = {name for name, _, _, *most in rows if any(most)}
    least = {name for name, _, fewest, *_ in rows if fewest}
    named, bounded = _associations(associations.lower().splitlines())
    defaults = {name for name in named if name} | ({DEFAULT} if "" in named or not named else set())
    for found in (limited, least):
        if found & defaults:
            found.add("")
    if bounded:
        limited.add(EVERYBODY)
    deny = any("denyonlimit" in row[1] for row in rows)
    return Limits(deny, frozenset(limited), frozenset(least))


def _associations(lines: Iterable[str]) -> tuple[set[str], bool]:
    """Their default QOS, and whether one of them has a limit."""
    rows = [line.split("|") for line in lines if line]
    return {row[0] for row in rows}, any(any(row[1:]) for row in rows)
