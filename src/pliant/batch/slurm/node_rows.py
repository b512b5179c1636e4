"""``scontrol -o -d show node``: what each node has, what is used, whether it would start jobs.

The same in 22.05, 24.11 and 26.05 but for shards in GresUsed (see gres.py) and CPUEfctv, which
22.05 added. Memory counts as allocated (AllocMem), not as the operating system sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.batch.slurm.gres import Gres, gres_list
from pliant.batch.slurm.records import records
from pliant.batch.slurm.values import NOTHING, whole
from pliant.errors import BadAnswer

_KEYS = (
    *("CPUAlloc", "CPUEfctv", "CPUTot", "ActiveFeatures", "Gres", "GresUsed", "RealMemory"),
    *("AllocMem", "MemSpecLimit", "State", "Partitions", "ThreadsPerCore"),
)
_RUNS = frozenset(("IDLE", "ALLOCATED", "MIXED", "ALLOC"))
_HARMLESS = frozenset(
    ("COMPLETING", "PLANNED", "CLOUD", "POWERED_DOWN", "POWERING_UP", "RESERVED", "DYNAMIC_NORM")
)
"""What may stand beside the state without keeping jobs away; reservations are read on their own."""
_MARKS = "*$@^!~#-+%"  # not responding, maintenance, reboot, ...: "*$@^!%" keep jobs away
_AWAY = frozenset("*$@^!%")


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node as scontrol prints it."""

    name: str
    cpus: int
    free_cpus: int
    mem_mib: int
    free_mem_mib: int
    gres: tuple[Gres, ...]
    used: tuple[Gres, ...]
    features: frozenset[str]
    up: bool
    completing: bool = False
    threads: int = 1  # of a core


def is_up(state: str) -> bool:
    """Whether Slurm starts jobs on a node in this state: ``MIXED+PLANNED`` yes, ``IDLE*`` no."""
    base, *flags = state.split("+")
    marks = base[len(base.rstrip(_MARKS)) :]
    return (
        base.rstrip(_MARKS) in _RUNS
        and not _AWAY.intersection(marks)
        and all(flag in _HARMLESS for flag in flags)
    )


def parse_nodes(text: str) -> list[NodeRow]:
    """Read all nodes. A node that is named twice is taken as down: one of the two is not Slurm's.

    Raises BadAnswer.
    """
    rows: dict[str, NodeRow] = {}
    for fields in records(text, "NodeName", _KEYS):
        row = _row(fields["NodeName"], fields)
        if row.name in rows:
            row = NodeRow(row.name, 0, 0, 0, 0, (), (), frozenset(), up=False)
        rows[row.name] = row
    return list(rows.values())


def _row(name: str, fields: Mapping[str, str]) -> NodeRow:
    try:
        cpus = whole(fields["CPUEfctv"] if "CPUEfctv" in fields else fields["CPUTot"])
        mem = max(0, whole(fields["RealMemory"]) - whole(fields.get("MemSpecLimit", "")))
        free_mem = max(0, mem - whole(fields["AllocMem"]))
        free_cpus = max(0, cpus - whole(fields["CPUAlloc"]))
        features, gres = fields["ActiveFeatures"], fields["Gres"]
        up = is_up(fields["State"])
    except KeyError as missing:
        raise BadAnswer(f"node {name}: scontrol names no {missing.args[0]}") from None
    return NodeRow(
        name,
        cpus,
        free_cpus,
        mem,
        free_mem,
        gres_list(gres),
        gres_list(fields.get("GresUsed", "")),
        frozenset(features.split(",")) if features not in NOTHING else frozenset(),
        up,
        "COMPLETING" in fields["State"].split("+"),
        max(1, whole(fields.get("ThreadsPerCore", ""))),
    )
