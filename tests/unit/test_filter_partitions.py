"""What partitions say of a job's shape, and what must keep the one that its owner wrote."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import pytest
from slurm_recorded import NONCE, recorded
from test_filter import NAMES, NODES, ONE_NODE, asked, token

from pliant.batch.slurm import request, requested
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow, parse_jobs
from pliant.batch.slurm.jobs import waiting_job
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.partition_rows import parse_partitions
from pliant.filter import Answer, Inventory, View, filter_submission
from pliant.grammar import parse, put_token
from pliant.model import (
    ALL_CORES,
    ONE_OF_ARRAY,
    Abilities,
    Demand,
    Footprint,
    Partition,
    Shape,
    Snapshot,
    Spec,
)
from pliant.placement import Free

PARTITIONS = (
    Partition("gpu", NAMES, default=True),
    Partition("two", NAMES, min_nodes=2),
    Partition("few", NAMES, max_cpus_per_node=8),
    Partition("mem", NAMES, max_mem_per_cpu_mib=2000),
    Partition("big", NAMES, max_mem_per_node_mib=4000),
    Partition("given", NAMES, cpus_per_gpu=4, mem_per_gpu_mib=2000),
    Partition("alone", NAMES, alone=True),
    Partition("high", NAMES, preempts=True),
)
TWO_NODES = {"min_nodes": "2", "max_nodes": "2"}


def view(*free: int) -> View:
    """The nodes with so many free GPUs each; all of them where none are said."""
    nodes = tuple(
        replace(node, pools=(replace(node.pools[0], free=count),))
        for node, count in zip(NODES, free or (4, 4, 4, 4), strict=True)
    )
    snapshot = Snapshot(0.0, nodes, PARTITIONS)
    return View(Inventory.of(snapshot), Free(snapshot))


def answer_for(moldable: str, *free: int, **fields: str) -> Answer:
    return filter_submission(asked(moldable, **fields), view(*free))


# Limits


def test_no_shape_takes_more_cpus_of_a_node_than_its_partition_gives_a_job() -> None:
    per_gpu = {"tres_per_job": "gres:gpu:2", "cpus_per_tres": "gres:gpu:4", **ONE_NODE}
    answer = answer_for("gpus=1-4", partition="few", **per_gpu)
    assert (str(answer.shape), answer.fields["cpus_per_task"]) == ("2", "8")
    assert "gpus=3:4: no node here could ever give it" in answer.lines[0]
    assert str(answer_for("gpus=1-4", **per_gpu).shape) == "4"
    every = answer_for("type=cpu,cores=all", partition="few", num_tasks="1")
    assert every.fields["cpus_per_task"] == "8"


def test_no_shape_has_fewer_nodes_than_its_partition_asks_for() -> None:
    fixed = answer_for("gpus=2-4,nodes=1", partition="two", tres_per_node="gres:gpu:2", **TWO_NODES)
    assert (fixed.fields, fixed.spec) == ({}, None)
    assert "could ever give 2, 3, 4" in fixed.lines[0]
    both = answer_for("gpus=2-8,nodes=1-2", partition="two", tres_per_node="gres:gpu:1")
    assert str(both.shape) == "2x4"


@pytest.mark.parametrize(
    ("fields", "own"),
    [
        ({"tres_per_node": "gres:gpu:2"}, "own=2x2"),  # as Slurm: on two nodes, with 4 GPUs
        ({"tres_per_job": "gres:gpu:4"}, "own=2x2"),
        ({"tres_per_job": "gres:gpu:4", "min_nodes": "1", "max_nodes": "4"}, "own=2x2"),
        ({"tres_per_node": "gres:gpu:2", "min_nodes": "3", "max_nodes": "3"}, "own=3x2"),
    ],
)
def test_a_job_that_says_no_nodes_has_those_that_its_partition_gives(
    fields: dict[str, str], own: str
) -> None:
    assert own in token(answer_for("gpus=2-12", 0, 0, 0, 0, partition="two", **fields))


def test_where_all_partitions_are_enforced_no_shape_is_beyond_a_limit_of_any() -> None:
    here = replace(
        view(), inventory=replace(view().inventory, abilities=Abilities(limits_of_all=True))
    )
    submission = asked(
        "gpus=2:4,nodes=1-2", partition="gpu,two", tres_per_node="gres:gpu:1", **TWO_NODES
    )
    assert str(filter_submission(submission, here).shape) == "2x2"
    assert str(filter_submission(submission, view()).shape) == "4"


def test_jobs_of_a_federation_keep_their_shapes() -> None:
    tight = view(1, 1, 1, 1)
    here = replace(tight, inventory=replace(tight.inventory, abilities=Abilities(federated=True)))
    answer = filter_submission(asked("gpus=1-4", tres_per_node="gres:gpu:4"), here)
    assert (answer.fields, answer.spec) == ({}, None)


# What a partition gives for each GPU


def test_the_partitions_cpus_and_memory_follow_the_gpus() -> None:
    answer = answer_for("gpus=1-4", 3, 0, 0, 0, partition="given", tres_per_node="gres:gpu:4")
    assert token(answer) == "moldable=gpus=1-4;own=4;set=3;fp=1,0,1,4,0,0,2000"
    assert answer.fields == {
        "gres": "gpu:3", "min_cpus": "12", "cpus_per_task": "12", "min_mem_per_node": "6000",
        **ONE_NODE,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "footprint"),
    [
        ({"cpus_per_task": "1"}, "1,0,1,0,0,0,2000"),
        ({"num_tasks": "2"}, "1,1,1,4,0,0,2000"),
        ({"cpus_per_tres": "gres:gpu:1"}, "1,0,1,1,0,0,2000"),
        ({"min_mem_per_node": "1000"}, "1,0,1,4,1000,0,0"),
        ({"min_mem_per_cpu": "300"}, "1,0,1,4,0,300,0"),
        ({"mem_per_tres": "gres:gpu:700"}, "1,0,1,4,0,0,700"),
    ],
)
def test_what_the_owner_says_goes_before_the_partition(
    fields: dict[str, str], footprint: str
) -> None:
    answer = answer_for("gpus=1-2", partition="given", tres_per_node="gres:gpu:2", **fields)
    assert token(answer).endswith(f"fp={footprint}")


def test_one_cpu_a_task_is_written_out_where_the_partition_would_give_more() -> None:
    one = {"tres_per_node": "gres:gpu:1", "cpus_per_tres": "gres:gpu:1"}
    assert answer_for("gpus=1", partition="given", **one).fields["cpus_per_task"] == "1"
    assert "cpus_per_task" not in answer_for("gpus=1", **one).fields


# What keeps its shape


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"partition": "alone"}, "lets no others on a job's nodes"),
        ({"partition": "gpu,alone"}, "lets no others on a job's nodes"),
        ({"reboot": "1"}, "--reboot"),
        ({"partition": "gpu,given"}, "different CPUs or memory"),
        ({"partition": "given", "ntasks_per_tres": "1"}, "DefCpuPerGPU"),
        ({"partition": "given", "tres_per_node": "gres:shard:1"}, "a share of a GPU"),
        ({"partition": "gpu,two"}, "different numbers of nodes"),
        ({"partition": "mem", "min_mem_per_cpu": "3000"}, "MaxMemPerCPU"),
        ({"partition": "mem", "min_mem_per_node": "3000", **ONE_NODE}, "MaxMemPerCPU"),
        ({"partition": "big", "min_mem_per_node": "5000"}, "MaxMemPerNode"),
    ],
)
def test_what_slurm_would_treat_by_rules_of_its_own_is_left_as_written(
    fields: dict[str, str], why: str
) -> None:
    answer = answer_for("gpus=1-4", 1, 1, 1, 1, **{"tres_per_node": "gres:gpu:4"} | fields)
    assert (answer.fields, answer.spec) == ({}, None)
    assert why in answer.lines[0]


FROZEN: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "it is a component of a heterogeneous job": ({"het_id": "7"}, {"het_job_offset": "0"}),
    "it belongs to a federation of clusters": ({"origin": "other"}, {"clusters": "other,here"}),
    "it has its nodes alone": ({"oversubscribe": "NO"}, {"shared": "0"}),
    "it belongs to a reservation": ({"reservation": "mine"}, {"reservation": "mine"}),
    "it asks for contiguous nodes": ({"contiguous": "1"}, {"contiguous": "1"}),
    "it was not submitted with sbatch": ({"batch": "0"}, {"batch": "0"}),
    "it asks for several GPUs per task": (
        {"tres_per_task": "gres:gpu:2", "tres_per_node": "N/A"},
        {"tres_per_task": "gres:gpu:2", "tres_per_node": ""},
    ),
    "it asks for GPUs per socket": (
        {"tres_per_socket": "gres:gpu:1", "tres_per_node": "N/A"},
        {"tres_per_socket": "gres:gpu:1"},
    ),
    "it asks for tmpfs too": (
        {"tres_per_node": "gres:gpu:4,gres:tmpfs:1"},
        {"tres_per_node": "gres:gpu:4,gres:tmpfs:1"},
    ),
    "it asks for several kinds of GPUs": (
        {"tres_per_node": "gres:gpu:a100:1,gres:gpu:v100:1"},
        {"tres_per_node": "gres:gpu:a100:1,gres:gpu:v100:1"},
    ),
    "its GPUs do not divide over its nodes": (
        {"tres_per_job": "gres:gpu:3", "tres_per_node": "N/A", "tres": "cpu=2,node=2"},
        {"tres_per_job": "gres:gpu:3", "tres_per_node": "", **TWO_NODES},
    ),
    "its tasks do not divide over its nodes": (
        {"num_tasks": "3", "tres": "cpu=4,node=2", "num_nodes": "2"},
        {"num_tasks": "3", **TWO_NODES},
    ),
    "its constraint is more than a list of features": (
        {"features": "[a*2&b]"},
        {"features": "[a*2&b]"},
    ),
}
"""Words of a frozen waiting job: what squeue shows of it, and what the filter was given."""

NORMAL = {
    "it is a single waiting task of an array",  # only later
    "it was requeued and held",  # only later
    "it asks for GPUs per task and in another way",  # the filter writes the per-node form
    "it asks for 0 GPUs, which Slurm does not honour",  # the filter clears it
}

ROWS = {row.key: row for row in parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))}
CLUSTER = Cluster(
    (22, 5),
    {row.name: row for row in parse_nodes(recorded("22.05", "nodes.txt"))},
    {row.name: row for row in parse_partitions(recorded("22.05", "partitions.txt"))},
)


def test_whatever_would_be_frozen_while_it_waits_is_known_here() -> None:
    readers = (requested._unplaced, requested._left, request._odd, requested._constraint)
    source = "".join(inspect.getsource(reader) for reader in readers)
    words = {requested.ALONE, ONE_OF_ARRAY, *re.findall(r'f?"(it(?:s| or its)? [^"]+)"', source)}
    known = {re.sub(r"tmpfs", "{', '.join(others)}", text) for text in FROZEN}
    assert words == known | NORMAL


@pytest.mark.parametrize("words", FROZEN)
def test_what_is_frozen_while_it_waits_keeps_its_shape_at_submission(words: str) -> None:
    in_squeue, submitted = FROZEN[words]
    told = _frozen(replace(ROWS["316"], **in_squeue))
    assert told.partition(" (")[0] == words  # the option, and what to write instead
    answer = answer_for("gpus=1-4", 1, 1, 1, 1, **{"tres_per_node": "gres:gpu:4"} | submitted)
    assert (answer.fields, answer.spec) == ({}, None)


@pytest.mark.parametrize(("told", "shared"), [("USER", "2"), ("MCS", "3"), ("TOPO", "4")])
def test_so_it_is_with_neighbours_of_ones_choice(told: str, shared: str) -> None:
    assert _frozen(replace(ROWS["316"], oversubscribe=told)) == "it has its nodes alone"
    answer = answer_for("gpus=1-4", 1, 1, 1, 1, tres_per_node="gres:gpu:4", shared=shared)
    assert (answer.fields, answer.spec) == ({}, None)


def _frozen(row: JobRow) -> str:
    return waiting_job(row, CLUSTER, 1795207380.0).frozen


# Preemption


def test_no_hole_is_worth_what_a_higher_tier_would_get_by_preemption() -> None:
    small = {"tres_per_node": "gres:gpu:3"}
    kept = answer_for("gpus=1-4", 1, 1, 1, 1, partition="high", **small)
    assert (str(kept.shape), kept.started) == ("3", False)
    assert str(answer_for("gpus=1-4", 1, 1, 1, 1, **small).shape) == "1"
    assert str(answer_for("gpus=1-4", partition="high", **small).shape) == "4"


# The same limits, while a job waits


@pytest.mark.parametrize(
    ("limits", "demand", "nodes", "allowed"),
    [
        ({}, Demand(cpus=16, mem_mib=9000), 1, True),
        ({"max_nodes": 1}, Demand(), 2, False),
        ({"min_nodes": 2}, Demand(), 1, False),
        ({"max_cpus_per_node": 8}, Demand(cpus=8), 1, True),
        ({"max_cpus_per_node": 8}, Demand(cpus=9), 1, False),
        ({"max_mem_per_node_mib": 500}, Demand(mem_mib=501), 1, False),
        ({"max_mem_per_cpu_mib": 500}, Demand(cpus=2, mem_mib=1000), 1, True),
        ({"max_mem_per_cpu_mib": 500}, Demand(cpus=2, mem_mib=1001), 1, False),
    ],
)
def test_a_waiting_job_becomes_nothing_that_its_partition_forbids(
    limits: dict[str, int], demand: Demand, nodes: int, allowed: bool
) -> None:
    row = CLUSTER.partitions["main"]
    limited = replace(row, **limits)  # type: ignore[arg-type]  # any field
    assert replace(CLUSTER, partitions={"main": limited}).could_hold(("main",), demand, nodes) is (
        allowed
    )


@pytest.mark.parametrize(
    ("demand", "threads", "splits"),
    [
        (Demand(gpus=2, cpus=6, tasks=2), 2, True),
        (Demand(gpus=2, cpus=6, tasks=2), 1, False),
        (Demand(gpus=2, cpus=8, tasks=2), 2, False),
        (Demand(gpus=2, cpus=3, tasks=3), 2, False),
        (Demand(gpus=1, cpus=3), 2, False),
        (Demand(cpus=ALL_CORES, tasks=3), 2, True),  # of 16
    ],
)
def test_nor_anything_whose_tasks_would_have_no_whole_cores(
    demand: Demand, threads: int, splits: bool
) -> None:
    assert cluster_with(threads).splits_cores(("main",), demand) is splits


def cluster_with(threads: int) -> Cluster:
    nodes = {name: replace(row, threads=threads) for name, row in CLUSTER.nodes.items()}
    return Cluster((22, 5), nodes, CLUSTER.partitions)


FOLLOWING = Footprint(tasks_per_node=2, cpus_per_gpu=3)


@pytest.mark.parametrize(
    ("noted", "asks", "threads", "shapes"),
    [
        (FOLLOWING, (2, 6), 1, ["1", "2", "4"]),
        (FOLLOWING, (2, 6), 2, ["4"]),
        (None, (4, 3), 1, ["1", "2", "4"]),  # noted by its token only, while pliantd was away
        (None, (4, 3), 2, ["1", "4"]),  # what it carries it may keep; one task is as it likes
        (None, (4, 4), 2, ["1", "2", "4"]),
        (None, (4, 1), 2, ["1", "2", "4"]),
    ],
)
def test_a_waiting_job_becomes_nothing_whose_tasks_would_have_no_whole_cores(
    noted: Footprint | None, asks: tuple[int, int], threads: int, shapes: list[str]
) -> None:
    spec = Spec(parse("gpus=1:2:4"), Shape(1, 4) if noted else None, None, noted)
    tasks, per_task = asks
    row = replace(
        ROWS["316"],
        **{"num_tasks": str(tasks), "num_cpus": str(tasks * per_task), "tres": ""},
        **{"cpus_per_task": str(per_task), "min_cpus": str(per_task), "min_memory": "0"},
        **{"tres_per_node": "gres:gpu:4", "admin_comment": put_token("", spec)},
    )
    job = waiting_job(row, cluster_with(threads), 1795207380.0)
    assert (job.frozen, sorted(map(str, job.shapes))) == ("", shapes)


def with_memory(**defaults: int) -> View:
    """The nodes, idle, in a partition that gives memory to jobs that say nothing of it."""
    partitions = (replace(PARTITIONS[0], **defaults), *PARTITIONS[1:])  # type: ignore[arg-type]  # any field
    snapshot = Snapshot(0.0, NODES, partitions)
    return View(Inventory.of(snapshot), Free(snapshot))


@pytest.mark.parametrize(
    ("defaults", "fields", "shape"),
    [
        ({"mem_per_cpu_mib": 3000}, {}, "2"),  # 4 GPUs: 12 CPUs, 36000 MiB
        ({"mem_per_cpu_mib": 2000}, {}, "4"),
        ({"mem_per_cpu_mib": 3000}, {"min_mem_per_cpu": "100"}, "4"),
        ({"mem_per_cpu_mib": 3000}, {"min_mem_per_node": "100"}, "4"),
        ({"mem_per_cpu_mib": 3000, "mem_per_gpu_mib": 100}, {}, "4"),
        ({"mem_per_node_mib": 30_000}, {}, "4"),
        ({"mem_per_cpu_mib": 1000, "max_mem_per_node_mib": 7000}, {}, "2"),
    ],
)
def test_memory_that_slurm_adds_by_cpu_or_node_is_counted_and_not_written(
    defaults: dict[str, int], fields: dict[str, str], shape: str
) -> None:
    job = asked("gpus=1:2:4", tres_per_node="gres:gpu:2", cpus_per_tres="gres:gpu:3", **fields)
    answer = filter_submission(job, with_memory(**defaults))
    assert str(answer.shape) == shape
    assert "min_mem_per_node" not in answer.fields or "mem_per_gpu_mib" in defaults
    assert answer.spec is not None and answer.spec.footprint is not None
    said = (answer.spec.footprint.mem_per_cpu_mib, answer.spec.footprint.mem_per_node_mib)
    assert said == (int(fields.get("min_mem_per_cpu", 0)), int(fields.get("min_mem_per_node", 0)))


def test_all_cores_with_memory_by_the_cpu_need_the_memory_of_all_cores() -> None:
    job = asked("type=gpu:cpu,cores=all", tres_per_node="gres:gpu:1")
    for per_cpu, shape in ((1000, "1x0@cpu"), (3000, "1")):
        waits = replace(with_memory(mem_per_cpu_mib=per_cpu), free=None)
        assert str(filter_submission(job, waits).shape) == shape


@pytest.mark.parametrize(
    ("defaults", "fields"),
    [
        ({"mem_per_node_mib": 16_000, "max_mem_per_cpu_mib": 4000}, {}),
        ({"mem_per_cpu_mib": 1000, "max_mem_per_cpu_mib": 800}, {}),
        ({}, {"min_mem_per_node": "0"}),
    ],
)
def test_a_job_that_slurm_gives_more_cpus_for_its_memory_keeps_its_shape(
    defaults: dict[str, int], fields: dict[str, str]
) -> None:
    job = asked("gpus=1-4", tres_per_node="gres:gpu:2", **fields)
    answer = filter_submission(job, with_memory(**defaults))
    assert (answer.fields, answer.spec) == ({}, None)
    assert "as written" in answer.lines[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"ntasks_per_socket": "1"},
        {"ntasks_per_core": "1"},
        {"sockets_per_node": "2"},
        {"cores_per_socket": "8"},
        {"threads_per_core": "1"},
        {"core_spec": "1"},
        {"pn_min_tmp_disk": "20000"},
    ],
)
def test_a_job_that_asks_for_more_of_a_node_than_is_known_here_keeps_its_shape(
    fields: dict[str, str],
) -> None:
    unset = {name: "65535" for name in fields if name != "pn_min_tmp_disk"}
    for given, shape in ((fields, None), (unset, "4")):
        answer = filter_submission(asked("gpus=1-4", tres_per_node="gres:gpu:2", **given), view())
        assert (str(answer.shape) if answer.shape else None) == shape


@pytest.mark.parametrize(
    ("cpus", "threads", "kept"), [("3", 2, True), ("4", 2, False), ("3", 1, False)]
)
def test_a_job_whose_cpus_are_no_whole_cores_keeps_its_shape(
    cpus: str, threads: int, kept: bool
) -> None:
    job = asked("gpus=1-2", tres_per_task="gres:gpu:1", num_tasks="2", cpus_per_task=cpus)
    answer = filter_submission(job, with_threads(threads))
    assert (answer.spec is None) is kept


def with_threads(threads: int, gpu_to_cpu: bool = False) -> View:
    """The nodes, idle, with so many threads a core, in a partition that gives 3 CPUs a GPU too."""
    nodes = tuple(replace(node, threads_per_core=threads) for node in NODES)
    partitions = (*PARTITIONS, Partition("odd", NAMES, cpus_per_gpu=3))
    snapshot = Snapshot(0.0, nodes, partitions, abilities=Abilities(gpu_to_cpu=gpu_to_cpu))
    return View(Inventory.of(snapshot), Free(snapshot))


@pytest.mark.parametrize(
    ("fields", "threads", "kept"),
    [
        ({"num_tasks": "2", "cpus_per_tres": "gres:gpu:3"}, 2, True),
        ({"num_tasks": "2", "cpus_per_tres": "gres:gpu:3"}, 1, False),
        ({"num_tasks": "2", "cpus_per_tres": "gres:gpu:4"}, 2, False),
        ({"num_tasks": "4", "cpus_per_tres": "gres:gpu:6"}, 4, True),  # 3 CPUs a task
        ({"num_tasks": "3", "cpus_per_tres": "gres:gpu:2"}, 2, True),  # 4 CPUs for 3 tasks
        ({"num_tasks": "1", "cpus_per_tres": "gres:gpu:3"}, 2, False),  # as many as one task likes
        ({"num_tasks": "3"}, 2, False),  # one CPU a task
        ({"num_tasks": "2", "partition": "odd"}, 2, True),
        ({"num_tasks": "1", "partition": "odd"}, 2, False),
        ({"num_tasks": "2", "partition": "odd", "cpus_per_task": "1"}, 2, False),
        ({"ntasks_per_tres": "1", "cpus_per_tres": "gres:gpu:3"}, 2, True),
    ],
)
def test_so_does_one_whose_tasks_would_have_no_whole_cores_once_it_is_written_out(
    fields: dict[str, str], threads: int, kept: bool
) -> None:
    job = asked("gpus=1:2:4", tres_per_node="gres:gpu:2", **ONE_NODE, **fields)
    answer = filter_submission(job, with_threads(threads))
    assert (answer.spec is None, answer.fields == {}) == (kept, kept)
    assert ("CPUs that are no whole cores here: the shape stays" in str(answer.lines)) is kept


def test_other_shapes_whose_tasks_would_have_no_whole_cores_are_left_out() -> None:
    job = asked(
        "gpus=1:2:4",
        **{"tres_per_node": "gres:gpu:4", "num_tasks": "2", "cpus_per_tres": "gres:gpu:3"},
        **ONE_NODE,
    )
    some = with_threads(2)
    answer = filter_submission(job, some)
    assert (str(answer.shape), answer.fields["cpus_per_task"]) == ("4", "6")
    assert answer.lines == (
        "pliant: gpus=1:2: its tasks would have CPUs that are no whole cores here, left out",
    )
    assert str(filter_submission(job | {"num_tasks": "1"}, some).shape) == "4"


def test_cores_of_a_cpu_shape_are_whole_for_each_task_where_it_carries_a_gres() -> None:
    job = asked("type=gpu:cpu,cores=6", tres_per_node="gres:gpu:2", num_tasks="2", **ONE_NODE)
    bare = replace(with_threads(2), free=None)
    assert str(filter_submission(job, bare).shape) == "1x0@cpu"  # waits so: 22.05 takes no GPU away
    with_dummy = replace(with_threads(2, gpu_to_cpu=True), free=None)
    assert str(filter_submission(job, with_dummy).shape) == "2"
    no_gpu = job | {"tres_per_node": ""}
    assert str(filter_submission(no_gpu, bare).shape) == "1x0@cpu"
    assert filter_submission(no_gpu, with_dummy).fields == {}  # as written: one CPU a task
    every = asked("type=gpu:cpu,cores=all", tres_per_node="gres:gpu:2", num_tasks="3", **ONE_NODE)
    assert str(filter_submission(every, with_dummy).shape) == "2"  # 16 CPUs for 3 tasks
