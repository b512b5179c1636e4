"""Submissions that differ in their time limit or their memory alone, and are answered alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from test_filter import NAMES, NODES, SNAPSHOT, asked
from test_filter_partitions import PARTITIONS

from pliant.filter import Answer, Inventory, View, alike_to_mib, filter_submission
from pliant.model import Mode, Partition, Pool, Reservation, Snapshot
from pliant.placement import Free

SMALL = replace(NODES[0], name="n5", cpus=8, free_cpus=8, mem_mib=8000, free_mem_mib=8000)
UNKNOWN = replace(NODES[0], name="n6", mem_mib=0, free_mem_mib=0)
MORE = (
    *PARTITIONS,
    Partition("mixed", ("n1", "n5")),
    Partition("unknown", (*NAMES, "n6")),
    Partition("seen", NAMES, mode=Mode.OBSERVE),
    Partition("off", NAMES, mode=Mode.OFF),
)


def view(free: int = 0, until_s: float = 0.0) -> View:
    """A cluster with so many free GPUs on each node; until then, where that is said."""
    pools = (Pool("a100", 4, free, 4, told_mib=40_000),)
    nodes = tuple(replace(node, pools=pools) for node in (*NODES, SMALL, UNKNOWN))
    names = tuple(node.name for node in nodes)
    kept = (Reservation("later", names, until_s, 2 * until_s),) if until_s else ()
    snapshot = Snapshot(0.0, nodes, MORE, reservations=kept)
    return View(Inventory.of(snapshot), Free(snapshot))


FULL = view()
TWO = {"tres_per_node": "gres:gpu:2"}
BY_NODE = {**TWO, "min_mem_per_node": "100"}
BY_CPU = {**TWO, "min_mem_per_cpu": "100"}


@pytest.mark.parametrize(
    ("fields", "to_mib"),
    [
        (TWO, 0),
        (BY_NODE, 32000),
        (BY_CPU, 2000),  # a node has 16 CPUs
        (BY_NODE | {"partition": "mixed"}, 8000),
        (BY_NODE | {"partition": "gpu,mixed"}, 8000),
        (BY_NODE | {"partition": "unknown"}, 0),
        (BY_NODE | {"partition": "mem"}, 2000),
        (BY_NODE | {"partition": "big"}, 4000),
        (BY_CPU | {"partition": "big"}, 250),
        (BY_NODE | {"partition": "seen"}, 32000),
        (BY_NODE | {"partition": "off"}, 0),
        (BY_NODE | {"contiguous": "1"}, 0),  # its shape stays: why may have to do with memory
        (TWO | {"min_mem_per_node": "0"}, 0),
        (BY_NODE | BY_CPU, 0),
        (TWO | {"mem_per_tres": "gres:gpu:100"}, 0),
        (BY_NODE | {"mem_per_tres": "gres:gpu:100"}, 0),
    ],
)
def test_up_to_which_memory_the_same_is_answered(fields: dict[str, str], to_mib: int) -> None:
    assert alike_to_mib(asked("gpus=1-4", **fields), FULL) == to_mib


@pytest.mark.parametrize("fields", [TWO, BY_NODE, BY_CPU])
def test_where_one_of_its_shapes_could_start_time_matters(fields: dict[str, str]) -> None:
    assert alike_to_mib(asked("gpus=1-4", **fields), view(free=1)) is None
    assert alike_to_mib(asked("gpus=2-4", **fields), view(free=1)) is not None
    later = {"begin_time": "1700000000"}
    assert alike_to_mib(asked("gpus=1-4", **fields, **later), view(free=1)) is not None
    assert alike_to_mib(asked("gpus=1-4", **fields), View(Inventory.of(SNAPSHOT))) is not None


FOUR_TASKS = {"tres_per_node": "gres:gpu:4", "num_tasks": "4", "min_nodes": "1", "max_nodes": "1"}
FORMS: tuple[dict[str, str], ...] = (
    {},
    TWO,
    {"tres_per_job": "gres:gpu:4"},
    {"tres_per_task": "gres:gpu:1", "num_tasks": "4"},
    FOUR_TASKS,
    {"tres_per_node": "gres:gpu:2", "cpus_per_task": "8"},
    FOUR_TASKS | {"cpus_per_task": "8"},  # 32 CPUs as it is written: no node has so many
    {"tres_per_node": "gres:gpu:2", "cpus_per_tres": "gres:gpu:4"},
    {"tres_per_node": "gres:shard:1"},
    {"tres_per_node": "gres:gpu:2", "array_inx": "0-9"},
)
MOLDABLE = (
    *("gpus=1-4", "gpus=1:2:4,nodes=1-2", "gpus=1/4-2", "gpus=1-2,type=cpu:gpu,cores=all"),
    *("type=cpu:gpu", "gpus=3-9", "nodes=1-4", "gpus=x"),
)
WAYS = ("min_mem_per_node", "min_mem_per_cpu")


def but_for_its_memory(answer: Answer, way: str, mib: int) -> Answer:
    """The answer to a job that asks for other memory, in the same way."""
    spec = answer.spec
    if spec is None or spec.footprint is None:
        return answer
    other = {f"mem_per_{way.removeprefix('min_mem_per_')}_mib": mib}
    return replace(answer, spec=replace(spec, footprint=replace(spec.footprint, **other)))


@pytest.mark.parametrize("partition", [*(p.name for p in MORE), "gpu,mixed", "gpu,big"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_said_to_be_answered_alike_is(partition: str, way: str) -> None:
    """At both ends of the memory for which it is said; more memory never lets a job have more."""
    now = view()
    for moldable, form in product(MOLDABLE, FORMS):
        one = asked(moldable, partition=partition, time_limit="20", **form, **{way: "7"})
        answer, to_mib = filter_submission(one, now), alike_to_mib(one, now)
        if answer.started or to_mib is None:
            assert "cpu" in moldable or not form  # CPUs are free
            continue
        for mib in (1, to_mib) if to_mib > 7 else (7,):
            other = one | {"time_limit": "0", way: str(mib)}
            assert filter_submission(other, now) == but_for_its_memory(answer, way, mib), other


@pytest.mark.parametrize("minutes", ["0", "10", "30"])
def test_a_shorter_job_starts_where_a_longer_one_is_not_said_to_be_alike(minutes: str) -> None:
    """All GPUs are free for 20 minutes."""
    one = asked("gpus=1-4", time_limit=minutes, **BY_NODE)
    answer = filter_submission(one, view(free=4, until_s=1200.0))
    assert answer.started is (minutes == "10")
    assert answer.started or alike_to_mib(one, view(free=4, until_s=1200.0)) is None
