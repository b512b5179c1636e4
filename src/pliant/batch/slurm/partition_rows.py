"""``scontrol -o show partition`` and ``show reservation``: the same in 22.05 to 26.05, but that
26.05 says in ``Exclusive`` (NO, NODE, USER, TOPO) what stood in OverSubscribe and two other fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pliant.batch.slurm.records import records
from pliant.batch.slurm.values import NOTHING, duration_s, host_list, instant_s, size_mib, whole
from pliant.errors import BadAnswer
from pliant.model import Admits, Partition, Reservation

_KEYS = (
    *("Default", "MaxNodes", "MaxTime", "Nodes", "PriorityTier", "State", "MinNodes"),
    "DefaultTime",
    *("MaxCPUsPerNode", "MaxMemPerNode", "MaxMemPerCPU", "JobDefaults", "OverSubscribe"),
    *("Exclusive", "ExclusiveUser", "ExclusiveTopo", "DefMemPerCPU", "DefMemPerNode", "QoS"),
    *("AllowAccounts", "DenyAccounts", "AllowQos", "DenyQos"),
)
_RESERVATION_KEYS = ("StartTime", "EndTime", "Nodes")


def parse_partitions(text: str, site: Mapping[str, str] = MappingProxyType({})) -> list[Partition]:
    """Read all partitions; ``site`` is what slurm.conf says for those that say nothing themselves.

    Raises BadAnswer.
    """
    rows = []
    for fields in records(text, "PartitionName", _KEYS):
        name = fields["PartitionName"]
        try:
            per_gpu = _defaults(site) | _defaults(fields)
            per_node, per_cpu = _memory("Max", fields) or _memory("Max", site) or (0, 0)
            default = _memory("Def", fields) or _memory("Def", site) or (0, 0)
            qos = fields.get("QoS", "N/A")
            partition = Partition(
                name,
                host_list(fields["Nodes"]),
                max_time_s=duration_s(fields["MaxTime"]),
                default=fields["Default"] == "YES",
                max_nodes=_limit(fields["MaxNodes"]),
                up=fields["State"] == "UP",
                min_nodes=_limit(fields.get("MinNodes", "")),
                max_cpus_per_node=_limit(fields.get("MaxCPUsPerNode", "")),
                max_mem_per_node_mib=per_node,
                max_mem_per_cpu_mib=per_cpu,
                cpus_per_gpu=per_gpu.get("DefCpuPerGPU", 0),
                mem_per_gpu_mib=per_gpu.get("DefMemPerGPU", 0),
                mem_per_node_mib=default[0],
                mem_per_cpu_mib=default[1],
                qos="" if qos in NOTHING else qos.lower(),
                alone=_is_alone(fields),
                default_time_s=duration_s(fields.get("DefaultTime", "")),
                sharers=_sharers(fields.get("OverSubscribe", "")),
                tier=whole(fields["PriorityTier"]),
                admits=Admits(
                    *(_names(fields, name) for name in ("AllowAccounts", "DenyAccounts")),
                    *(_names(fields, name) for name in ("AllowQos", "DenyQos")),
                ),
            )
            rows.append(partition)
        except KeyError as missing:
            raise BadAnswer(f"partition {name}: scontrol names no {missing.args[0]}") from None
    return rows


def _names(fields: Mapping[str, str], name: str) -> frozenset[str]:
    """``AllowAccounts=lab,group``; none where it says ALL, or nothing."""
    text = fields.get(name, "ALL").lower()
    return frozenset() if text in ("all", "n/a", "(null)", "") else frozenset(text.split(","))


def _limit(text: str) -> int:
    return 0 if text in ("UNLIMITED", "") else whole(text)


def _memory(what: str, fields: Mapping[str, str]) -> tuple[int, int] | None:
    """``what`` MemPerNode and MemPerCPU, of which there is one at most; None: neither."""
    both = tuple(size_mib(fields.get(f"{what}MemPer{unit}", "")) for unit in ("Node", "CPU"))
    return (both[0], both[1]) if any(both) else None


def _defaults(fields: Mapping[str, str]) -> dict[str, int]:
    """``DefMemPerGPU=2000,DefCpuPerGPU=4``; memory in MiB."""
    pairs = (word.partition("=") for word in fields.get("JobDefaults", "").split(","))
    return {name: size_mib(value) for name, _, value in pairs if value}


def _is_alone(fields: Mapping[str, str]) -> bool:
    """Whether its jobs share their nodes with nobody, or with no other user."""
    exclusive = "YES" in (fields.get("ExclusiveUser"), fields.get("ExclusiveTopo"))
    exclusive = exclusive or fields.get("Exclusive", "NO") != "NO"
    return exclusive or fields.get("OverSubscribe", "").startswith("EXCLUSIVE")


def _sharers(text: str) -> int:
    """How many jobs that are marked so may share a CPU: ``YES:2``; others share by force or not."""
    word, _, number = text.partition(":")
    return max(1, whole(number)) if word == "YES" and number else 1


def parse_reservations(text: str) -> list[Reservation]:
    """Read all reservations that keep nodes; "No reservations in the system" is none.

    A reservation of some cores or GPUs of its nodes is taken as one of the whole nodes.
    Raises BadAnswer.
    """
    found = []
    for fields in records(text, "ReservationName", _RESERVATION_KEYS):
        try:
            nodes = host_list(fields["Nodes"])
            start_s, end_s = instant_s(fields["StartTime"]), instant_s(fields["EndTime"])
        except KeyError as missing:
            name = fields["ReservationName"]
            raise BadAnswer(f"reservation {name}: scontrol names no {missing.args[0]}") from None
        if nodes:
            found.append(Reservation(fields["ReservationName"], nodes, start_s, end_s))
    return found
