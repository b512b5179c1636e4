"""Who could start in a running job's place, whatever its priority: jobs of a higher PriorityTier."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build import job, node, running, snapshot
from resizing import elastic

from pliant.cycle import kept_within_limits
from pliant.grammar import parse_shape
from pliant.model import Job, Partition, Snapshot
from pliant.placement import Tiers

TOP = Partition("top", ("n1", "n2"), tier=10)
OVERTAKEN = "job 9, of a partition of a higher PriorityTier, could start in its place"
FOUR, TWO = parse_shape("4"), parse_shape("2")
HERE = replace(running(7, "4", "n1", 3600.0), partitions=("gpu",))


def seen(*waiting: Job, here: Job = HERE, top: Partition = TOP) -> Snapshot:
    """Jobs that wait while one runs on the first of two full nodes."""
    there = running(8, "4", "n2", 3600.0)
    found = snapshot([node("n1"), node("n2")], [*waiting], [here, there])
    return replace(found, partitions=(replace(found.partitions[0], tier=1), top))


@pytest.mark.parametrize(
    ("waiting", "stays"),
    [
        ((job(9, "4", partitions=("top",)),), True),
        ((job(9, "3", partitions=("gpu", "top")),), True),
        ((job(9, "2", partitions=("top",)),), False),  # it has what is given up
        ((job(9, "1", partitions=("top",)), job(10, "1", partitions=("top",))), False),
        ((job(9, "2", partitions=("top",)), job(10, "1", partitions=("top",))), True),
        ((job(9, "1", partitions=("top",), tasks_waiting=3),), True),
        ((job(9, "8", partitions=("top",)),), False),  # it could not start there
        ((job(9, "4", partitions=("gpu",)),), False),
        ((job(9, "4", partitions=("top",), eligible=False),), False),
    ],
)
def test_a_job_is_not_resized_where_one_of_a_higher_tier_would_start_in_its_place(
    waiting: tuple[Job, ...], stays: bool
) -> None:
    whole = seen(*waiting)
    words = OVERTAKEN if stays else ""
    assert Tiers(whole).overtaken(HERE, TWO) == words
    assert Tiers(replace(whole, partitions=whole.partitions[:1])).overtaken(HERE, TWO) == ""
    elsewhere = replace(TOP, nodes=("n2",))
    assert Tiers(seen(*waiting, top=elsewhere)).overtaken(HERE, TWO) == ""


def test_a_gpu_that_is_free_in_part_may_be_had_but_is_no_room_for_all() -> None:
    found = seen(job(9, "1/2", partitions=("top",)), job(10, "5", partitions=("top",)))
    assert Tiers(found).overtaken(HERE, TWO) == ""
    shared = replace(found.nodes[0].pools[0], parts=(1,), shards_per_gpu=2)
    found = replace(found, nodes=(replace(found.nodes[0], pools=(shared,)), found.nodes[1]))
    assert Tiers(found).overtaken(HERE, TWO) == OVERTAKEN


def test_what_is_free_beside_it_counts_and_so_do_cpus() -> None:
    here = replace(HERE, shape=TWO, shapes=(TWO,))
    wants = job(9, "4", partitions=("top",))
    assert Tiers(seen(wants, here=here)).overtaken(here, TWO) == OVERTAKEN
    narrow = seen(wants, here=here)
    narrow = replace(narrow, nodes=tuple(replace(n, free_cpus=0) for n in narrow.nodes))
    many = replace(wants, footprint=replace(wants.footprint, cpus_per_task=9))
    assert Tiers(replace(narrow, waiting=(many,))).overtaken(here, TWO) == ""


def test_on_another_number_of_nodes_nothing_counts_as_given_up() -> None:
    small = job(9, "1", partitions=("top",))
    assert Tiers(seen(small)).overtaken(HERE, parse_shape("2x1")) == OVERTAKEN


def test_of_its_shapes_those_are_left_as_which_it_would_come_back() -> None:
    may = elastic(7, "4", "gpus=1-4")
    may = replace(may, state=HERE.state, nodes=("n1",), start_s=-100.0)
    kept = kept_within_limits(seen(job(9, "2", partitions=("top",)), here=may))
    assert [str(shape) for shape in kept.running[0].shapes] == ["1", "2", "4"]
    kept = kept_within_limits(seen(job(9, "3", partitions=("top",)), here=may))
    assert [str(shape) for shape in kept.running[0].shapes] == ["1", "4"]


def test_nobody_makes_room_for_a_guest_that_would_not_have_it() -> None:
    guest, first = job(1, "2", partitions=("gpu",)), job(9, "2", partitions=("top",))
    assert Tiers(seen(guest)).overtaken(HERE, FOUR, "1") == ""
    assert Tiers(seen(guest, first)).overtaken(HERE, FOUR, "1") == OVERTAKEN
    assert Tiers(seen(first)).overtaken(HERE, FOUR, "9") == ""  # it is the guest
    above = replace(HERE, partitions=("top",))
    words = "its partition has a higher PriorityTier than those of job 1"
    assert Tiers(seen(guest, here=above)).overtaken(above, FOUR, "1") == words


def test_of_an_array_one_task_is_the_guest_and_the_others_are_not() -> None:
    array = job(9, "4", partitions=("top",), tasks_waiting=2, array_tasks="1-2")
    assert Tiers(seen(array)).overtaken(HERE, FOUR, "9") == OVERTAKEN
    last = replace(array, tasks_waiting=1, array_tasks="2")
    assert Tiers(seen(last)).overtaken(HERE, FOUR, "9") == ""
