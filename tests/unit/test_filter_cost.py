"""What one submission may cost the door, whatever its words: nobody else's is to wait for it."""

from __future__ import annotations

import sys

import pytest

from pliant.filter import Answer, Inventory, View, filter_submission
from pliant.grammar import shapes
from pliant.grammar.values import every_amount
from pliant.model import Node, Partition, Pool, Snapshot
from pliant.placement import Free

TEXT = 1024
"""The most bytes that pliant.lua tells of one field."""
MOST_CALLS = 100_000
"""Of functions, which take some 20 ms here: pliant.lua waits for 50."""

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
    "gpus=1-256,nodes=1-16,type=cpu:gpu:both",
    "gpus=1-16,nodes=1-64,gpu-type=a100:b:c:d",
    "gpus=8-263,nodes=1:2:4:8,gpu-type=a100:b:c:d",
    repeated("cpu", "type="),
    repeated("a", "gpu-type="),
    repeated("b+", "gpus=1+gpu-type=", ""),
    repeated("gpus=1", "", ","),
)


def calls(submission: dict[str, str]) -> int:
    """How many functions are called for one submission that nothing is known of yet."""
    view = View(Inventory.of(LARGE), Free(LARGE))
    shapes.cache_clear()
    made = 0

    def count(_frame: object, event: str, _of: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        filter_submission(submission, view)
    finally:
        sys.setprofile(None)
    return made


def asked(moldable: str, own: str) -> dict[str, str]:
    """A submission as pliant.lua hands it over."""
    assert len(moldable) <= TEXT
    return {"option.moldable": moldable, "tres_per_node": own, "batch": "1", "min_cpus": "1"}


@pytest.mark.parametrize("moldable", HOSTILE, ids=lambda text: text[:24])
@pytest.mark.parametrize("own", ["gres:gpu:1", "", "gres:gpu:8"])
def test_no_moldable_costs_the_door_much(moldable: str, own: str) -> None:
    every_amount()  # once in a pliantd's life
    assert calls(asked(moldable, own)) < MOST_CALLS


@pytest.mark.parametrize(
    ("moldable", "is_away"),
    [
        ("nodes=1-256", False),
        ("nodes=1-257", True),
        ("gpus=1-256", False),
        ("gpus=1-257", True),
        ("gpus=1-48,nodes=1-48", False),
        ("gpus=1-4,nodes=1-1024", True),
    ],
)
def test_what_has_too_many_shapes_is_looked_into_while_it_waits(
    moldable: str, is_away: bool
) -> None:
    answer = filter_submission(asked(moldable, "gres:gpu:1"), View(Inventory.of(LARGE)))
    assert (answer == Answer(away=True)) is is_away
    assert (answer.as_fields == {"away": "1"}) is is_away
