"""What Slurm's partitions say of a job's shape: read, and kept to while jobs wait."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build import job, node, running, snapshot
from slurm_recorded import NONCE, recorded

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import parse_jobs
from pliant.batch.slurm.jobs import waiting_job
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.partition_rows import parse_partitions
from pliant.batch.slurm.request import asked
from pliant.batch.slurm.site import parse_config
from pliant.batch.slurm.snapshot import snapshot_of
from pliant.cycle import kept_within_limits
from pliant.grammar import parse, parse_shape, token_text
from pliant.model import Admits, Partition, Snapshot, Spec
from pliant.placement import Free, why_not

NOW_S = 1795207380.0
ROWS = {row.key: row for row in parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))}
NODES = {row.name: row for row in parse_nodes(recorded("22.05", "nodes.txt"))}
PARTITIONS = {row.name: row for row in parse_partitions(recorded("22.05", "partitions.txt"))}


# As 22.05 prints one; the test changes words of it.
LINE = (
    "PartitionName=p Default=NO ExclusiveUser=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0"
    " MaxCPUsPerNode=UNLIMITED Nodes=n[1-2] PriorityTier=1 OverSubscribe=NO State=UP"
    " JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n"
)
PLAIN = Partition("p", ("n1", "n2"), tier=1)


@pytest.mark.parametrize(
    ("words", "account", "qos", "what"),
    [
        ("AllowAccounts=ALL AllowQos=ALL", "lab", "normal", ""),
        ("AllowAccounts=Lab,group AllowQos=ALL", "lab", "normal", ""),
        ("AllowAccounts=group AllowQos=ALL", "lab", "normal", "account"),
        ("DenyAccounts=lab AllowQos=ALL", "lab", "normal", "account"),
        ("AllowAccounts=ALL AllowQos=long", "lab", "normal", "QOS"),
        ("AllowAccounts=ALL DenyQos=normal", "lab", "Normal", "QOS"),
        ("AllowAccounts=group AllowQos=long", "", "", ""),  # there is no accounting
    ],
)
def test_whose_jobs_a_partition_does_not_start_is_said(
    words: str, account: str, qos: str, what: str
) -> None:
    (found,) = parse_partitions(LINE.replace(" MaxTime", f" {words} MaxTime"))
    closed = f"partition p is closed to its {what}" if what else ""
    assert found.shuts_out([account] if account else [], qos) == closed


def test_a_partition_that_was_closed_or_narrowed_since_its_start_keeps_a_job_where_it_is() -> None:
    runs = running(7, "2", "n1", 3600.0)
    runs = replace(
        runs,
        account="lab",
        spec=Spec(parse("gpus=1-2;malleable"), parse_shape("2"), parse_shape("2")),
        partitions=("p",),
    )
    for narrow in (
        replace(PLAIN, admits=Admits(accounts=frozenset({"other"}))),
        replace(PLAIN, max_time_s=60),
        replace(PLAIN, min_nodes=2),
    ):
        (kept,) = kept_within_limits(Snapshot(0.0, (), (narrow,), (), (runs,))).running
        assert kept.frozen.startswith("requeued, it might not start again: partition p ")
        both, other = replace(runs, partitions=("p", "q")), replace(PLAIN, name="q")
        (free,) = kept_within_limits(Snapshot(0.0, (), (narrow, other), (), (both,))).running
        assert free.frozen == ""


@pytest.mark.parametrize(
    ("was", "now", "read"),
    [
        ("", "", PLAIN),
        ("MinNodes=0", "MinNodes=2", replace(PLAIN, min_nodes=2)),
        ("Node=UNLIMITED Nodes", "Node=8 Nodes", replace(PLAIN, max_cpus_per_node=8)),
        ("MaxMemPerNode=UNLIMITED", "MaxMemPerNode=5000", replace(PLAIN, max_mem_per_node_mib=5000)),
        ("MaxMemPerNode=UNLIMITED", "MaxMemPerCPU=2000", replace(PLAIN, max_mem_per_cpu_mib=2000)),
        (
            "(null)", "DefMemPerGPU=2000,DefCpuPerGPU=4",
            replace(PLAIN, cpus_per_gpu=4, mem_per_gpu_mib=2000),
        ),
        ("OverSubscribe=NO", "OverSubscribe=EXCLUSIVE", replace(PLAIN, alone=True)),
        ("OverSubscribe=NO", "OverSubscribe=FORCE:4", PLAIN),
        ("ExclusiveUser=NO", "ExclusiveUser=YES", replace(PLAIN, alone=True)),
        ("ExclusiveUser=NO", "Exclusive=NO", PLAIN),  # as 26.05 writes it
        ("ExclusiveUser=NO", "Exclusive=NODE", replace(PLAIN, alone=True)),
        ("ExclusiveUser=NO", "Exclusive=USER", replace(PLAIN, alone=True)),
    ],
)  # fmt: skip
def test_a_partitions_limits_and_defaults_are_read(was: str, now: str, read: Partition) -> None:
    assert parse_partitions(LINE.replace(was, now, 1)) == [read]


def test_what_a_partition_does_not_say_is_said_by_slurm_conf() -> None:
    site = {"JobDefaults": "DefCpuPerGPU=2,DefMemPerGPU=500", "MaxMemPerCPU": "3000"}
    wide = replace(PLAIN, cpus_per_gpu=2, mem_per_gpu_mib=500, max_mem_per_cpu_mib=3000)
    assert parse_partitions(LINE, site) == [wide]
    own = LINE.replace("(null)", "DefCpuPerGPU=4").replace("PerNode=UNLIMITED\n", "PerNode=9000\n")
    assert parse_partitions(own, site) == [
        replace(PLAIN, cpus_per_gpu=4, mem_per_gpu_mib=500, max_mem_per_node_mib=9000)
    ]


def test_memory_per_gpu_that_only_the_partition_says_is_not_that_of_a_job_with_its_own() -> None:
    cluster = Cluster((22, 5), NODES, PARTITIONS)
    shown = replace(ROWS["316"], mem_per_tres="gpu:2000")  # as Slurm shows DefMemPerGPU
    own, by_gpu = (
        waiting_job(row, cluster, NOW_S) for row in (shown, replace(shown, min_memory="0"))
    )
    assert (own.frozen, own.footprint.mem_per_gpu_mib) == ("", 0)
    assert (by_gpu.frozen, by_gpu.footprint.mem_per_gpu_mib) == ("", 2000)


def test_memory_per_gpu_that_slurm_writes_as_the_jobs_own_follows_its_gpus() -> None:
    """24.11 and 26.05 do so with DefMemPerGPU once they have looked at the waiting job."""
    row = replace(
        ROWS["316"],
        tres="cpu=16,mem=2000M,node=1,billing=16,gres/gpu=4",
        tres_per_node="gres/gpu:4",
        mem_per_tres="gres/gpu:500",
        min_memory="500M",
    )
    told = asked(row)
    assert (told.gpus, told.mem_mib, told.per_cpu, told.odd) == (4, 2000, False, "")


def test_a_partitions_memory_per_gpu_is_known_where_the_total_is_still_that_of_a_cpu() -> None:
    """24.11 does so: DefMemPerGPU=500, DefMemPerCPU=1000, and nothing asked for."""
    row = replace(
        ROWS["316"],
        **{"tres": "cpu=1,mem=1000M,node=1,billing=1,gres/gpu=4", "num_cpus": "1"},
        **{"tres_per_node": "gres/gpu:4", "mem_per_tres": "gpu:500", "min_memory": "500M"},
    )
    assert asked(row, None, 1000).mem_mib == 2000


# Where a waiting job may start


def limited(**limits: int) -> Free:
    here = snapshot([node("n1"), node("n2")], [])
    return Free(replace(here, partitions=(replace(here.partitions[0], **limits),)))  # type: ignore[arg-type]  # any field


def test_a_shape_below_min_nodes_or_above_the_cpus_of_a_node_fits_nowhere() -> None:
    one, two = parse_shape("1"), parse_shape("2x1")
    may = job(1, "1", "gpus=1-2,nodes=1-2")
    free = limited(min_nodes=2)
    assert (free.fit(may, one), free.fit(may, two)) == (None, ("n1", "n2"))
    assert why_not(free, may, one) == "it needs 1 node, fewer than its partition allows a job"
    many = replace(may, footprint=replace(may.footprint, cpus_per_task=9))
    free = limited(max_cpus_per_node=8)
    assert (free.fit(many, one), free.fit(may, one)) == (None, ("n1",))
    assert "9 CPUs on a node, more than its partition allows" in why_not(free, many, one)


def test_a_job_whose_shape_stays_was_let_in_with_it_and_keeps_its_claim() -> None:
    one = parse_shape("1")  # Slurm raises its nodes itself, and spreads its tasks
    for stays in (job(1, "1"), job(2, "1", "gpus=1-2", frozen="it has its nodes alone")):
        assert limited(min_nodes=2).fit(stays, one) == ("n1",)


# Preemption


@pytest.mark.parametrize(
    ("preempt", "tier", "expected"),
    [
        ("preempt/partition_prio", 2, ["4"]),
        ("preempt/partition_prio", 1, ["1", "2", "3", "4"]),  # nobody of a lower tier runs there
        ("preempt/none", 2, ["1", "2", "3", "4"]),
        ("preempt/qos", 2, ["1", "2", "3", "4"]),
    ],
)
def test_where_others_would_be_preempted_a_job_becomes_nothing_smaller(
    preempt: str, tier: int, expected: list[str]
) -> None:
    config = recorded("22.05", "config.txt").replace("preempt/none", preempt)
    high = replace(PARTITIONS["main"], tier=tier, name="high")
    cluster = Cluster(
        (22, 5), NODES, PARTITIONS | {"high": high}, preempts=parse_config(config).preempts
    )
    low = [row for row in ROWS.values() if not row.waits and row.partition == "main"]
    seen = snapshot_of([*low, replace(ROWS["316"], partition="high")], cluster, {}, NOW_S)
    assert [str(shape) for shape in seen.waiting[0].shapes] == expected
    assert seen.partition_by_name["high"].preempts is (expected == ["4"])


# What else holds for all


def test_a_job_from_another_cluster_tells_of_a_federation() -> None:
    cluster = Cluster((22, 5), NODES, PARTITIONS)
    alone = snapshot_of([ROWS["316"]], cluster, {}, NOW_S)
    joined = snapshot_of([replace(ROWS["316"], origin="other")], cluster, {}, NOW_S)
    assert (alone.abilities.federated, joined.abilities.federated) == (False, True)


@pytest.mark.parametrize(("word", "of_all"), [("NO", False), ("ANY", False), ("ALL", True)])
def test_enforce_part_limits_is_read(word: str, of_all: bool) -> None:
    config = f"SLURM_VERSION = 22.05.8\nEnforcePartLimits       = {word}\n"
    assert parse_config(config).limits_of_all is of_all


TRIAL = token_text(Spec(parse("job-class=trial"), parse_shape("1")))


@pytest.mark.parametrize(
    ("says", "partition", "why"),
    [
        ({}, {}, ""),
        ({"oversubscribe": "NO"}, {}, "it has its nodes alone"),
        ({"oversubscribe": "USER"}, {}, "it has its nodes alone"),
        ({}, {"alone": True}, "it has its nodes alone"),
        ({"het_id": "30"}, {}, "it is a component of a heterogeneous job"),
        ({"reservation": "work"}, {}, "it belongs to a reservation"),
        ({"contiguous": "1"}, {}, "it asks for contiguous nodes"),
        ({"features": "[a*2&b*1]"}, {}, "its constraint is more than a list of features"),
        ({"batch": "0"}, {}, ""),  # it stays as it is, and starts where there is room
    ],
)
def test_no_room_is_made_for_a_trial_job_that_takes_more_than_room_of_its_shape(
    says: dict[str, str], partition: dict[str, bool], why: str
) -> None:
    plain = replace(ROWS["316"], admin_comment=TRIAL, partition="main", oversubscribe="OK")
    plain = replace(plain, features="", reservation="", tres_per_node="gres:gpu:1")
    main = replace(PARTITIONS["main"], **partition)  # type: ignore[arg-type]  # a field of bool
    cluster = Cluster((22, 5), NODES, PARTITIONS | {"main": main})
    found = waiting_job(replace(plain, **says), cluster, NOW_S)
    assert (found.ordinary, found.is_trial) == (why, why == "")
    other = token_text(Spec(parse("job-class=best-effort"), parse_shape("1")))
    ordinary = replace(plain, admin_comment=other, **says)
    assert waiting_job(ordinary, cluster, NOW_S).ordinary == ""
