"""What can be changed on a waiting job at a site."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pliant.model.caps import Cap
from pliant.model.cluster import Partition
from pliant.model.footprints import Demand
from pliant.model.limits import WORDS, Amounts, totals

EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Abilities:
    """What can be changed on a waiting job here (facts differ by release and site).

    ``limited_qos``: where a limit may bound how much a job gets: by QOS in small letters, "" being
    jobs that name none, and :data:`EVERYBODY`. ``least_qos``: where a job must have so much.
    ``pools``: the account whose limit several accounts share, by account; by :data:`EVERYBODY`
    where that is not known. ``timed_qos`` and ``timed_accounts``: whose jobs a limit on minutes may
    stop from starting again, in small letters too. ``most``: what one job of a QOS, named as in
    ``limited_qos``, may have at most in all. ``caps``: what else keeps a job from starting again.
    ``any_time_qos``: whose jobs may run for longer than a partition says. ``above``: which account
    each one is below, where that counts for whom a partition is closed to; None: nobody looks.
    ``qos_of``: which QOS a user may have of an account; None: any. ``waived``: limits on what the
    batch system holds no job to that Pliant has changed in that.
    """

    share_to_whole: bool = False  # shard -> gpu on a waiting job (Slurm 24.11+)
    whole_to_share: bool = False
    gpu_to_cpu: bool = False  # needs a dummy GRES on every node
    cpu_to_gpu: bool = True
    claims_whole_nodes: bool = False  # nobody starts on what a claim leaves free on its nodes
    limits_deny: bool = False  # a submission beyond a limit is refused, not left to wait
    limited_qos: frozenset[str] = frozenset()
    least_qos: frozenset[str] = frozenset()
    pools: tuple[tuple[str, str], ...] = ()
    limits_of_all: bool = False  # so is one beyond a limit of any of the partitions that it names
    federated: bool = False  # jobs belong to several clusters, and keep their shapes
    timed_qos: frozenset[str] = frozenset()
    timed_accounts: frozenset[str] = frozenset()
    most: tuple[tuple[str, Amounts], ...] = ()
    caps: tuple[Cap, ...] = ()
    any_time_qos: frozenset[str] = frozenset()
    above: tuple[tuple[str, str], ...] | None = ()
    qos_of: tuple[tuple[tuple[str, str], frozenset[str]], ...] | None = None
    waived: tuple[Cap, ...] = ()
    judges_again: bool = True  # what a partition lets one job have holds at each start
    preempts: str = ""  # why no job makes room for another here, in words, and what is right

    def may_be_limited(self, qos: str, partitions: Iterable[Partition]) -> bool:
        """Whether more than its owner wrote may be more than a job of this QOS may have there.

        MaxCPUsPerNode counts for all of a partition's jobs on a node together.
        """
        known = tuple(partitions)
        return _is_of(self.limited_qos, qos, known) or any(p.max_cpus_per_node for p in known)

    def may_be_too_small(self, qos: str, partitions: Iterable[Partition]) -> bool:
        """Whether less than its owner wrote may be less than a job of this QOS must have there."""
        return _is_of(self.least_qos, qos, tuple(partitions))

    def counts_minutes(self, account: str, qos: str, partitions: Iterable[Partition]) -> bool:
        """Whether a limit on minutes may hold for a job of this account and QOS there."""
        timed = account.lower() in self.timed_accounts
        return timed or _is_of(self.timed_qos, qos, tuple(partitions))

    def beyond(self, qos: str, partition: Partition, nodes: int, demand: Demand) -> str:
        """Return the limit that a job of this QOS would break there, in words; "" for none.

        A limit of its partition's QOS counts instead of one of its own, or the other way round: so
        where both have one, the larger is taken.
        """
        asked, most_of = totals(nodes, demand), dict(self.most)
        own = dict(most_of.get(qos.lower(), ()))
        there = dict(most_of.get(partition.qos, ())) if partition.qos else {}
        for name in there | own:
            most = max(own.get(name, 0), there.get(name, 0))
            if asked[name] > most:
                return f"its QOS lets one job have {most} {WORDS[name]} at most"
        return ""


def _is_of(some: frozenset[str], qos: str, partitions: tuple[Partition, ...]) -> bool:
    if not some.isdisjoint((EVERYBODY, qos.lower())):
        return True
    return any(p.qos and p.qos in some for p in partitions)
