"""What limits of QOS and associations may bound a job: ``sacctmgr -n -P show`` (sacctmgr(1)).

Only whether there are any: how much of one is left, Slurm knows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pliant.model import EVERYBODY

_GROUP = ("GrpTRES", "GrpTRESMins", "GrpTRESRunMins")
_MOST = (*_GROUP, "MaxTRES", "MaxTRESPerNode", "MaxTRESMins")
_MOST_EACH = ("MaxTRESPU", "MaxTRESPA", "MaxTRESRunMinsPU", "MaxTRESRunMinsPA")
"""Of a user, and of an account. Minutes are TRES × time: of more GPUs there are more."""
QOS = ("show", "qos", f"format=Name,Flags,MinTRES,Preempt,{','.join((*_MOST, *_MOST_EACH))}")
ASSOCIATIONS = ("show", "associations", f"format=DefaultQOS,Account,ParentName,{','.join(_MOST)}")

DEFAULT = "normal"
"""The QOS of a job that names none, where its association names none either."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``deny``: some QOS has DenyOnLimit: what is beyond a limit at submission is refused.

    ``qos``, ``least`` and ``pools``: as in Abilities.limited_qos, least_qos and pools.
    ``preempting``: the QOS whose jobs may end those of others, named as in ``qos``.
    """

    deny: bool = False
    qos: frozenset[str] = frozenset()
    least: frozenset[str] = frozenset()
    preempting: frozenset[str] = frozenset()
    pools: tuple[tuple[str, str], ...] = ()


NO_LIMITS = Limits()
_ALL = frozenset((EVERYBODY,))
UNKNOWN = Limits(deny=True, qos=_ALL, preempting=_ALL, pools=((EVERYBODY, EVERYBODY),))
"""To be careful where it cannot be known. What is too small is noticed, and given back, later."""


def parse_limits(qos: str, associations: str) -> Limits:
    """Read the answers to :data:`QOS` and :data:`ASSOCIATIONS`; to Slurm, case makes no name."""
    rows = [line.lower().split("|") for line in qos.splitlines() if line]
    limited = {name for name, _, _, _, *most in rows if any(most)}
    least = {name for name, _, fewest, *_ in rows if fewest}
    preempting = {name for name, _, _, others, *_ in rows if others}
    of_accounts = [line.split("|") for line in associations.lower().splitlines() if line]
    named = {default for default, *_ in of_accounts}
    defaults = {name for name in named if name} | ({DEFAULT} if "" in named or not named else set())
    for found in (limited, least, preempting):
        if found & defaults:
            found.add("")
    if any(any(most) for _, _, _, *most in of_accounts):
        limited.add(EVERYBODY)
    deny = any("denyonlimit" in row[1] for row in rows)
    return Limits(
        deny,
        frozenset(limited),
        frozenset(least),
        frozenset(preempting),
        _pools(of_accounts),
    )


def _pools(rows: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Return, for each account under another's group limit, the outermost account that has one.

    Rows of users name no parent; nor does that of the root.
    """
    above: dict[str, str] = {}
    limited = set()
    for _, account, parent, *most in rows:
        if parent:
            above[account] = parent
        if any(most[: len(_GROUP)]) and (parent or account == "root"):
            limited.add(account)
    return tuple(
        sorted((name, pool) for name in above if (pool := _outermost(name, above, limited)))
    )


def _outermost(account: str, above: Mapping[str, str], limited: Container[str]) -> str:
    pool, name = "", account
    for _ in range(len(above)):
        name = above.get(name, "")
        pool = name if name in limited else pool
    return pool
