"""What one submission may cost the door, whatever its words: nobody else's is to wait for it."""

from __future__ import annotations

import time

import pytest

from pliant.filter import Inventory, View, filter_submission
from pliant.model import Node, Partition, Pool, Snapshot
from pliant.placement import Free

TEXT = 1024
"""The most bytes that pliant.lua tells of one field."""
MOST_S = 0.025
"""Half of what pliant.lua waits for, as CPU time."""

NAMES = tuple(f"n{n}" for n in range(1024))
LARGE = Snapshot(
    now_s=0.0,
    nodes=tuple(
        Node(name, 128, 128, 512_000, 512_000, (Pool("a100", 8, 8, 8, told_mib=80_000),))
        for name in NAMES
    ),
    partitions=(Partition("gpu", NAMES, default=True),),
)


def repeated(item: str, start: str = "", between: str = ":") -> str:
    """As many of an item as the field holds."""
    return start + between.join([item] * ((TEXT - len(start)) // (len(item) + len(between))))


HOSTILE = (
    repeated("1-4096", "gpus="),
    repeated("1/64-4096", "gpus="),
    repeated("1-4096", "nodes="),
    repeated("1", "gpus="),
    repeated("x", "gpus="),
    ":".join(f"{low}-4096" for low in range(1, 110)).join(("gpus=", "")),
    "gpus=1-4096",
    "gpus=1/64-4033",
    "gpus=1-64,nodes=1-64",
    "gpus=1-4,nodes=1-1024",
    "nodes=1-4096",
    "nodes=1-1024,gpu-type=a100:b:c:d",
    "nodes=1-1024,type=cpu:gpu:both",
    "gpus=1-1024,gpu-type=a100:b:c:d,type=cpu:gpu:both",
    repeated("cpu", "type="),
    repeated("a", "gpu-type="),
    repeated("b+", "gpus=1+gpu-type=", ""),
    repeated("gpus=1", "", ","),
)


@pytest.mark.parametrize("moldable", HOSTILE, ids=lambda text: text[:24])
@pytest.mark.parametrize("own", ["gres:gpu:1", "", "gres:gpu:8"])
def test_no_moldable_costs_the_door_much(moldable: str, own: str) -> None:
    fields = {"option.moldable": moldable, "tres_per_node": own, "batch": "1", "min_cpus": "1"}
    assert len(moldable) <= TEXT
    costs_s = []
    for limit in range(3):  # the first also fills what is kept; the machine may be busy
        view = View(Inventory.of(LARGE), Free(LARGE))
        before_s = time.process_time()
        filter_submission({**fields, "time_limit": str(limit)}, view)
        costs_s.append(time.process_time() - before_s)
    assert min(costs_s) < MOST_S, f"{1000 * min(costs_s):.1f} ms"
