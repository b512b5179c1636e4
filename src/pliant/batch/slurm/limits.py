"""What limits of QOS and associations may bound a job: ``sacctmgr -n -P show`` (sacctmgr(1)).

Whether there are any, and what is too much for one job in any case: how much of a limit is left,
Slurm knows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from pliant.batch.slurm.values import duration_s, size_mib
from pliant.model import EVERYBODY, Amounts, Cap
from pliant.model.caps import ACCOUNT, JOB, JOBS, NODES, USER, WALL_S

_GROUP = ("GrpTRES", "GrpTRESMins", "GrpTRESRunMins")
_MOST = (*_GROUP, "MaxTRES", "MaxTRESPerNode", "MaxTRESMins")
_MOST_EACH = ("MaxTRESPU", "MaxTRESPA", "MaxTRESRunMinsPU", "MaxTRESRunMinsPA")
"""Of a user, and of an account. Minutes are TRES × time: of more GPUs there are more."""
_AT_ONCE = ("GrpTRES", "MaxTRES", "MaxTRESPU", "MaxTRESPA")
"""What no single job may have more of: of all jobs together, of one, of a user's, an account's."""
_COUNTED = {"gres/gpu": "ngpus", "cpu": "ncpus", "node": "nodect", "mem": "mem"}
"""What of these a shape changes, as :class:`pliant.model.Limits` calls it."""
_UNCOUNTED = re.compile(r"billing|gres/(gpu:|shard).*")
"""What else it does."""
_SIZE = re.compile(r"\d+[kmgtp]", re.ASCII)
_WAIVED = frozenset(("cpu", "mem", "node"))
_WALL = "GrpWall"
"""Minutes of jobs, however large they are: it bounds no shape."""
_QOS_CAPS = ("GrpJobs", "MaxJobsPU", "MaxJobsPA", "MaxWall")
_CAPS = ("User", "Partition", "GrpJobs", "MaxJobs", "MaxWall")
"""How many jobs may run at once, and for how long."""
_QOS_ROW = ("Name", "Flags", "MinTRES", "Preempt", *_MOST, *_MOST_EACH, _WALL, *_QOS_CAPS)
_ASSOCIATION_ROW = ("DefaultQOS", "Account", "ParentName", *_MOST, _WALL, *_CAPS, "QOS")
QOS = ("show", "qos", f"format={','.join(_QOS_ROW)}")
ASSOCIATIONS = ("show", "associations", f"format={','.join(_ASSOCIATION_ROW)}")

DEFAULT = "normal"
"""The QOS of a job that names none, where its association names none either."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``deny``: some QOS has DenyOnLimit: what is beyond a limit at submission is refused.

    ``qos``, ``least``, ``pools``, ``timed_qos``, ``timed_accounts``: as in Abilities, where the
    first two are called limited_qos and least_qos.
    ``most``: what one job of a QOS may have at most in all; "" as in ``qos``.
    ``preempting``: the QOS whose jobs may end those of others, named as in ``qos``. ``caps``: what
    keeps a job from starting that ran already. ``any_time_qos``, ``above``, ``qos_of``,
    ``waived``: as in Abilities.
    """

    deny: bool = False
    qos: frozenset[str] = frozenset()
    least: frozenset[str] = frozenset()
    preempting: frozenset[str] = frozenset()
    pools: tuple[tuple[str, str], ...] = ()
    timed_qos: frozenset[str] = frozenset()
    timed_accounts: frozenset[str] = frozenset()
    most: tuple[tuple[str, Amounts], ...] = ()
    caps: tuple[Cap, ...] = ()
    any_time_qos: frozenset[str] = frozenset()
    above: tuple[tuple[str, str], ...] | None = None
    qos_of: tuple[tuple[tuple[str, str], frozenset[str]], ...] | None = None
    waived: tuple[Cap, ...] = ()


NO_LIMITS = Limits()
_ALL = frozenset((EVERYBODY,))
UNKNOWN = Limits(
    deny=True,
    qos=_ALL,
    preempting=_ALL,
    pools=((EVERYBODY, EVERYBODY),),
    timed_qos=_ALL,
    waived=(Cap("a limit that is not known", (("mem", 0), ("ncpus", 0), ("nodect", 0))),),
)
"""To be careful where it cannot be known. What is too small is noticed, and given back, later."""

_Row = Mapping[str, str]


def parse_limits(qos: str, associations: str) -> Limits:
    """Read the answers to :data:`QOS` and :data:`ASSOCIATIONS`; to Slurm, case makes no name."""
    rows, of_accounts = _rows(qos, _QOS_ROW), _rows(associations, _ASSOCIATION_ROW)
    limited = {row["Name"] for row in rows if _any(row, (*_MOST, *_MOST_EACH))}
    least = {row["Name"] for row in rows if row["MinTRES"]}
    preempting = {row["Name"] for row in rows if row["Preempt"]}
    timed = {row["Name"] for row in rows if _counts_minutes(row)}
    any_time = {row["Name"] for row in rows if "partitiontimelimit" in row["Flags"]}
    named = {row["DefaultQOS"] for row in of_accounts}
    defaults = {name for name in named if name} | ({DEFAULT} if "" in named or not named else set())
    for found in (limited, least, preempting, timed, any_time):
        if found & defaults:
            found.add("")
    if any(_any(row, _MOST) for row in of_accounts):
        limited.add(EVERYBODY)
    return Limits(
        any("denyonlimit" in row["Flags"] for row in rows),
        frozenset(limited),
        frozenset(least),
        frozenset(preempting),
        _pools(of_accounts),
        frozenset(timed),
        _timed(of_accounts),
        tuple(_most(rows, defaults)),
        tuple(_caps(rows, of_accounts)),
        frozenset(any_time),
        tuple(_above(of_accounts).items()),
        tuple(_qos_of(of_accounts).items()),
        tuple(_waived(rows, of_accounts)),
    )


def _rows(text: str, names: Sequence[str]) -> list[_Row]:
    lines = (line.split("|")[: len(names)] for line in text.lower().splitlines() if line)
    return [dict(zip_longest(names, line, fillvalue="")) for line in lines]


def _any(row: _Row, names: Iterable[str]) -> bool:
    return any(row[name] for name in names)


def _most(rows: Iterable[_Row], defaults: Container[str]) -> Iterator[tuple[str, Amounts]]:
    """Yield what one job of a QOS may have; of jobs that name none where they all have the same."""
    for row in rows:
        amounts = _most_of_one(row)
        if amounts:
            yield row["Name"], amounts
            if defaults == {row["Name"]}:
                yield "", amounts


def _most_of_one(row: _Row) -> Amounts:
    """Return the least of the limits on GPUs, cores and nodes that a job alone would break."""
    return _least(row[name] for name in _AT_ONCE if name in row)


def _least(limits: Iterable[str]) -> Amounts:
    """Read ``gres/gpu=8,cpu=64``, several of them."""
    least: dict[str, int] = {}
    for tres, many in _amounts(limits):
        if tres in _COUNTED:
            name = _COUNTED[tres]
            least[name] = min(many, least.get(name, many))
    return tuple(least.items())


def _amounts(limits: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield what ``gres/gpu=8,mem=100G`` say; memory is in MiB."""
    for tres, _, many in (word.partition("=") for text in limits for word in text.split(",")):
        if many.isascii() and many.isdecimal():
            yield tres, int(many)
        elif tres == "mem" and _SIZE.fullmatch(many):
            yield tres, size_mib(many.upper())


_CAPS_OF_QOS = (
    ("", "GrpJobs", "", "GrpTRES"),
    (USER, "MaxJobsPU", "", "MaxTRESPU"),
    (ACCOUNT, "MaxJobsPA", "", "MaxTRESPA"),
    (JOB, "", "MaxWall", "MaxTRES"),
    (JOB, "", "", "MaxTRESPerNode"),
)
_CAPS_OF_USER = (
    ("", "GrpJobs", "", "GrpTRES"),
    (USER, "MaxJobs", "", ""),
    (JOB, "", "MaxWall", "MaxTRES"),
    (JOB, "", "", "MaxTRESPerNode"),
)
"""Which columns limit jobs, time and amounts, each of what; the first ones of accounts, too."""


def _caps(qos: Sequence[_Row], of_accounts: Sequence[_Row]) -> Iterator[Cap]:
    """Yield what is limited, but for minutes."""
    absolute = [row for row in qos if "relative" not in row["Flags"]]  # else: of a hundred parts
    for columns, of_whom in (
        (_CAPS_OF_QOS, _of_qos(absolute)),
        (_CAPS_OF_USER, _of_accounts(of_accounts)),
    ):
        for row, whose in of_whom:
            of_account = "Account" in row and not row["User"]
            for each, *names in columns[:1] if of_account else columns:
                limits = _limits(row, *names)
                if limits:
                    yield replace(whose, limits=limits, each=each)


def _waived(qos: Sequence[_Row], of_accounts: Sequence[_Row]) -> Iterator[Cap]:
    """Yield the limits, on minutes too, to which Slurm holds no job that Pliant has changed.

    An administrator's update of CPUs, memory or nodes makes it look over those (job_mgr.c).
    """
    for row, whose in chain(_of_qos(qos), _of_accounts(of_accounts)):
        said = (row[name] for name in (*_MOST, *_MOST_EACH) if name in row)
        names = {_COUNTED[tres] for tres, _ in _amounts(said) if tres in _WAIVED}
        if names:
            yield replace(whose, limits=tuple((name, 0) for name in sorted(names)))


def _of_qos(rows: Iterable[_Row]) -> Iterator[tuple[_Row, Cap]]:
    for row in rows:
        first = "overpartqos" in row["Flags"]
        yield row, Cap(f"QOS {row['Name']}", (), row["Name"], first=first)


def _of_accounts(rows: Sequence[_Row]) -> Iterator[tuple[_Row, Cap]]:
    """Yield for whom users have an account, and for whom an account has all below it.

    A user's rows say what it inherits. Who has one for a partition has no other one there.
    """
    below = _below(rows)
    elsewhere = defaultdict[tuple[str, str], set[str]](set)
    for row in rows:
        if row["Partition"]:
            elsewhere[row["Account"], row["User"]].add(row["Partition"])
    for row in rows:
        account, user, partition = row["Account"], row["User"], row["Partition"]
        here = elsewhere.get((account, user), set())
        yield (
            row,
            Cap(
                f"the limit of {f'user {user} of ' if user else ''}account {account}",
                (),
                user=user,
                accounts=frozenset({account} if user else {account, *below.get(account, ())}),
                partition=partition,
                elsewhere=frozenset() if partition else frozenset(here),
            ),
        )


def _limits(row: _Row, jobs: str, wall: str, tres: str) -> Amounts:
    """Return what the named columns limit."""
    said = ((JOBS, _number(row.get(jobs, ""))), (WALL_S, _wall_s(row.get(wall, ""))))
    of_each_node = tres.endswith("PerNode")
    found = _amounts([row.get(tres, "")])
    amounts = ((_named(name, of_each_node=of_each_node), many) for name, many in found)
    return tuple((name, many) for name, many in (*said, *amounts) if name and many is not None)


def _named(tres: str, *, of_each_node: bool) -> str:
    """What a limit on some TRES is called; "" for one of what no shape changes."""
    name = NODES if tres == "node" else _COUNTED.get(tres, "")
    if of_each_node or not name:
        return tres if name or _UNCOUNTED.fullmatch(tres) else ""
    return name


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _wall_s(text: str) -> int | None:
    return duration_s(text.upper()) or None if text else None


def _below(rows: Iterable[_Row]) -> Mapping[str, set[str]]:
    """Return all accounts below each one."""
    above, below = _above(rows), defaultdict[str, set[str]](set)
    for account in above:
        for one in _all_above(account, above):
            below[one].add(account)
    return below


def _all_above(account: str, above: Mapping[str, str]) -> Iterator[str]:
    for _ in range(len(above)):
        account = above.get(account, "")
        if not account:
            return
        yield account


def _qos_of(rows: Iterable[_Row]) -> Mapping[tuple[str, str], frozenset[str]]:
    """Return which QOS a user's jobs of an account may have."""
    found = defaultdict[tuple[str, str], frozenset[str]](frozenset)
    for row in rows:
        if row["User"]:
            names = filter(None, row["QOS"].replace("+", "").split(","))
            found[row["Account"], row["User"]] |= frozenset(names)
    return found


def _counts_minutes(row: _Row) -> bool:
    return _any(row, (name for name in row if "Mins" in name or name == _WALL))


def _timed(rows: Iterable[_Row]) -> frozenset[str]:
    """Return the accounts under a limit on minutes: their own, a user's, or of one above."""
    some = list(rows)
    above = _above(some)
    timed = {row["Account"] for row in some if _counts_minutes(row)}
    groups = {row["Account"] for row in some if _counts_minutes(row) and _is_account(row)}
    below = {name for name in above if _outermost(name, above, groups)}
    return frozenset(timed | below)


def _is_account(row: _Row) -> bool:
    """Whether it is an account's; those of users name no parent, nor does that of the root."""
    return bool(row["ParentName"]) or row["Account"] == "root"


def _above(rows: Iterable[_Row]) -> dict[str, str]:
    return {row["Account"]: row["ParentName"] for row in rows if row["ParentName"]}


def _pools(rows: Sequence[_Row]) -> tuple[tuple[str, str], ...]:
    """Return, for each account under another's group limit, the outermost account that has one."""
    above = _above(rows)
    limited = {row["Account"] for row in rows if _any(row, _GROUP) and _is_account(row)}
    return tuple(
        sorted((name, pool) for name in above if (pool := _outermost(name, above, limited)))
    )


def _outermost(account: str, above: Mapping[str, str], limited: Container[str]) -> str:
    return next(reversed([x for x in _all_above(account, above) if x in limited]), "")
