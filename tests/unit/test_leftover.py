"""What a plan leaves: who could start in the place of a job that makes room for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from build import HOUR_S, job, node, running, snapshot

from pliant.cycle import could_follow, starts_anyway
from pliant.model import Job, Shape, Snapshot
from pliant.plan import Claim, Plan, Start

TWO, FOUR = Shape(1, 2), Shape(1, 4)
FIRST = job(5, "4")
GUEST = job(9, "2", time_limit_s=10 * HOUR_S)
CLAIM = Claim(FIRST, FOUR, 180.0, ("n2",), "it is first")


def seen(busy: int, *waiting: Job, victim: int = 1, **fields: Any) -> Snapshot:
    """The victim is on n1 beside others with so many GPUs; half of n2 is free after 180 s."""
    nodes = [node("n1", gpus=4), node("n2", gpus=4)]
    others = [running(1, str(busy), "n1", HOUR_S)] if busy else []
    others.append(running(3, "2", "n2", 180.0))
    return snapshot(nodes, [*waiting], [running(2, str(victim), "n1", HOUR_S), *others])


def follows(busy: int, *waiting: Job, **plan: Any) -> bool:
    found = seen(busy, *waiting)
    return could_follow(found, Plan(**plan), GUEST, found.running[0])


def test_a_guest_has_what_its_victim_leaves_whoever_waits_for_that() -> None:
    assert follows(2, FIRST, GUEST, claims=(CLAIM, replace(CLAIM, nodes=("n1",))))


def test_elsewhere_it_has_what_is_kept_for_nobody_before_it() -> None:
    """Somebody has taken what it needs beside its victim's place."""
    assert not follows(3, FIRST, GUEST, claims=(CLAIM,))
    assert follows(3, GUEST, FIRST, claims=(CLAIM,))
    assert follows(3, FIRST, GUEST)


def test_of_several_nodes_of_a_victim_one_is_enough() -> None:
    found = seen(2, FIRST, GUEST)
    both = replace(found.running[0], shape=Shape(2, 1), nodes=("n2", "n1"))
    assert could_follow(found, Plan(claims=(CLAIM,)), GUEST, both)


@pytest.mark.parametrize(
    ("first", "planned", "anyway"),
    [
        ("", False, True),
        ("2", False, False),  # the batch system starts that one before it
        ("2", True, True),  # it has its place already
    ],
)
def test_a_guest_starts_anyway_where_there_is_room_after_those_before_it(
    first: str, *, planned: bool, anyway: bool
) -> None:
    ahead = [job(6, first)] if first else []
    found = seen(0, *ahead, GUEST, victim=2)
    plan = Plan(starts=(Start(GUEST, TWO, ("n1",), "it has its turn"),))
    if planned:
        plan = replace(plan, starts=(*plan.starts, Start(ahead[0], TWO, ("n2",), "it is first")))
    elif ahead:  # nowhere else
        found = replace(found, nodes=(found.nodes[0], replace(found.nodes[1], up=False)))
    assert starts_anyway(found, plan, GUEST) is anyway
    assert not starts_anyway(found, Plan(), GUEST)
