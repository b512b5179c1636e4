"""What the batch system has: nodes, partitions, reservations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from pliant.model.footprints import ALL_CORES, Demand
from pliant.model.limits import NO_LIMITS, Limits


class Mode(StrEnum):
    """What Pliant may do in a partition."""

    OFF = "off"
    OBSERVE = "observe"  # decide, record, explain
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True)
class Pool:
    """The GPUs of one type on one node.

    ``free`` counts whole free GPUs. ``parts`` holds, for each GPU that is partly used as shards,
    how many of its ``shards_per_gpu`` are free (descending).
    """

    gpu_type: str
    total: int
    free: int
    shards_per_gpu: int = 0  # 0: this pool cannot be shared
    parts: tuple[int, ...] = ()
    mem_mib: int = 0  # of one GPU; 0: not known
    sharers: tuple[int, ...] = ()  # jobs on each GPU of ``parts``; (): not known
    counts_mem: bool = False  # whether it is known what jobs take of a shared GPU's memory
    parts_mem_mib: tuple[int, ...] = ()  # free of each GPU not wholly free: of ``parts``, then rest
    told_mib: int = 0  # of one GPU, as monitors or people tell: where nobody can be placed by it
    in_parts_alone: bool = False  # its GPUs are lent in parts and never whole: ``free`` is 0


@dataclass(frozen=True, slots=True)
class Node:
    """One node as it is now. ``up``: the batch system would start a job there.

    ``once_ended``: the node once those are gone that are ending there, where nothing starts before;
    None: nobody is, or that is not so.
    """

    name: str
    cpus: int
    free_cpus: int
    mem_mib: int
    free_mem_mib: int
    pools: tuple[Pool, ...] = ()
    features: frozenset[str] = frozenset()
    up: bool = True
    threads_per_core: int = 1
    once_ended: Node | None = None


@dataclass(frozen=True, slots=True)
class Admits:
    """Whose jobs a partition starts: of these accounts and QOS alone, where there are any, and not
    of those. In small letters."""

    accounts: frozenset[str] = frozenset()
    not_accounts: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    not_qos: frozenset[str] = frozenset()

    def shuts_out(self, accounts: Collection[str], qos: str) -> str:
        """Return which of a job's it is closed to, "account" or "QOS"; "" for neither.

        ``accounts``: its own and those above it that count, too; none where nobody looks at them.
        """
        allowed = not self.accounts or not self.accounts.isdisjoint(accounts)
        if accounts and not (allowed and self.not_accounts.isdisjoint(accounts)):
            return "account"
        if qos and (qos in self.not_qos or qos not in (self.qos or {qos})):
            return "QOS"
        return ""


ALL_JOBS = Admits()


@dataclass(frozen=True, slots=True)
class Partition:
    """A queue and the nodes it may use, and what it says of a job's shape; 0: no limit, not said.

    ``cpus_per_gpu`` and ``mem_per_gpu_mib`` go to jobs that say nothing of CPUs or memory, and
    where there is no memory per GPU, ``mem_per_cpu_mib`` or ``mem_per_node_mib``. ``qos``: the
    quality of service whose limits hold for all its jobs.
    ``alone``: its jobs share their nodes with nobody, or with no other user. ``preempts``: to start
    its jobs the batch system would end others that run now. ``default_time_s``: the time limit of
    jobs that name none, where it is another than ``max_time_s``. ``sharers``: how many jobs that
    were marked so may share a CPU; 1: none shares. ``limits``: of what one job has in all.
    ``sets``: what parts its nodes into sets that a job on several nodes does not leave, in words:
    none is spread over nodes but as its owner wrote; "": nothing. ``keeps_shapes``: why no job in
    it is given another shape, in words; "": they are. ``tier``: jobs of a higher one start first,
    whatever their priority. ``admits``: whose jobs alone it starts, and not whose.
    """

    name: str
    nodes: tuple[str, ...]
    max_time_s: int = 0
    default: bool = False
    max_nodes: int = 0
    up: bool = True
    mode: Mode = Mode.ENFORCE
    min_nodes: int = 0
    max_cpus_per_node: int = 0
    max_mem_per_node_mib: int = 0
    max_mem_per_cpu_mib: int = 0
    cpus_per_gpu: int = 0
    mem_per_gpu_mib: int = 0
    mem_per_cpu_mib: int = 0
    mem_per_node_mib: int = 0
    qos: str = ""
    alone: bool = False
    preempts: bool = False
    default_time_s: int = 0
    sharers: int = 1
    limits: Limits = NO_LIMITS
    sets: str = ""
    keeps_shapes: str = ""
    tier: int = 0
    admits: Admits = ALL_JOBS

    def shuts_out(self, accounts: Collection[str], qos: str) -> str:
        """Return why no job of an account and a QOS starts in it; "" where one does.

        ``accounts``: as in :meth:`Admits.shuts_out`.
        """
        what = self.admits.shuts_out(accounts, qos.lower())
        return f"partition {self.name} is closed to its {what}" if what else ""

    def keeps_from(self, nodes: int) -> str:
        """Return why no job in it is given a shape of so many nodes; "" where one is.

        A job may have the shape that its owner wrote all the same.
        """
        several = self.sets if nodes > 1 else ""
        words = f"{several}: over several nodes only as its owner wrote" if several else ""
        return self.keeps_shapes or words

    def allows(self, demand: Demand, nodes: int) -> bool:
        """Whether its limits let a job take ``demand`` on each of ``nodes`` nodes."""
        return (
            self.min_nodes <= nodes <= (self.max_nodes or nodes)
            and demand.cpus <= (self.max_cpus_per_node or demand.cpus)
            and not self.exceeds_memory(demand)
        )

    def refuses(self, demand: Demand, nodes: int, limit_s: float) -> str:
        """Return why it starts no job of that size and time limit; "" where it does."""
        if 0 < self.max_time_s < limit_s < float("inf"):
            return f"partition {self.name} lets a job run for {self.max_time_s // 60} min at most"
        fits = self.allows(demand, nodes)
        return "" if fits else f"partition {self.name} lets no job have as much as it has"

    def exceeds_memory(self, demand: Demand) -> bool:
        """Whether ``demand`` is more memory than it gives a node or a CPU of a job."""
        per_node, per_cpu = self.max_mem_per_node_mib, self.max_mem_per_cpu_mib
        counted = per_cpu and demand.cpus != ALL_CORES
        return (0 < per_node < demand.mem_mib) or bool(
            counted and demand.mem_mib > per_cpu * demand.cpus
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that only jobs of this reservation may use from ``start_s`` to ``end_s``."""

    name: str
    nodes: tuple[str, ...]
    start_s: float
    end_s: float
