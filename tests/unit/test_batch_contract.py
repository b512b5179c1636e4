"""What every batch system promises the daemon (:class:`pliant.batch.Batch`), on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from batch_worlds import AWAY, OnMemory, OnPbs, OnSlurm, World

from pliant.batch import Change
from pliant.errors import BatchError, Refused, Unavailable
from pliant.model import ANYWHERE, Job, JobState, Shape, Snapshot, Spec
from pliant.plan import Mark

UNKNOWN = "99999"


@pytest.fixture(params=[OnSlurm, OnPbs, OnMemory])
def world(request: pytest.FixtureRequest) -> World:
    made: World = request.param()
    return made


@pytest.fixture
def first(world: World) -> Job:
    """A job that waits and may be changed, as it was seen first."""
    return world.waiting(world.moldable[0])


def other(job: Job) -> Shape:
    """Return another shape that a job may have."""
    return next(shape for shape in job.shapes if shape != job.shape)


def to(job: Job, shape: Shape) -> Change:
    return Change(job, shape, job.noted(shape))


def change(world: World, *changes: Change) -> list[str]:
    """Return what went wrong, in words; "" for what did not."""
    errors = world.batch.change(changes)
    assert all(isinstance(error, BatchError | None) for error in errors)
    return ["" if error is None else str(error) for error in errors]


def as_spec(job: Job) -> Spec:
    assert job.spec is not None
    return job.spec


def pinned(job: Job) -> Spec:
    return replace(as_spec(job), pinned=True)


def same(job: Job) -> Spec:
    return as_spec(job)


def by_id(jobs: Iterable[Job]) -> dict[str, Job]:
    return {job.id: job for job in jobs}


# A look


def test_the_jobs_of_a_look_have_names_places_and_shapes_of_their_own(world: World) -> None:
    seen = world.batch.observe()
    jobs = [*seen.waiting, *seen.running]
    assert len(by_id(jobs)) == len(jobs) > 1
    nodes, partitions = {one.name for one in seen.nodes}, seen.partition_by_name
    assert len(nodes) == len(seen.nodes)
    assert all({*one.nodes} <= nodes for one in seen.partitions)
    for job in jobs:
        assert job.shape in job.shapes, job.id
        assert {*job.partitions} <= partitions.keys(), job.id
        assert len(job.shapes) == 1 or (job.spec is not None and not job.frozen), job.id
    for job in seen.waiting:
        assert (job.state, job.nodes, job.start_s) == (JobState.WAITING, (), 0.0), job.id
        assert job.tasks_waiting >= 1, job.id
    for job in seen.running:
        assert job.state in (JobState.RUNNING, JobState.ENDING), job.id
        assert {*job.nodes} <= nodes, job.id
        assert job.nodes, job.id
        assert job.start_s <= seen.now_s, job.id


def test_a_node_has_no_more_free_than_it_has(world: World) -> None:
    for node in world.batch.observe().nodes:
        assert 0 <= node.free_cpus <= node.cpus
        assert 0 <= node.free_mem_mib <= node.mem_mib
        assert all(0 <= pool.free <= pool.total for pool in node.pools)


def test_where_nothing_happens_two_looks_are_the_same(world: World) -> None:
    assert said(world.batch.observe()) == said(world.batch.observe())


def said(seen: Snapshot) -> tuple[object, ...]:
    """All of a look that is no cache."""
    return (seen.now_s, [*seen.nodes], seen.partitions, [*seen.waiting], [*seen.running])


def test_where_nobody_answers_it_says_so(world: World, first: Job) -> None:
    world.goes_away()
    acts: list[Callable[[], object]] = [
        world.batch.observe,
        lambda: change(world, to(first, other(first))),
    ]
    for act in acts:
        with pytest.raises(Unavailable, match=AWAY):
            act()
    with pytest.raises(Unavailable, match=AWAY):
        world.batch.annotate(first, same)


# A change


def test_a_change_is_seen_at_the_next_look_and_nothing_else_is(world: World, first: Job) -> None:
    before = by_id(world.batch.observe().waiting)
    shape = other(first)
    assert change(world, to(first, shape)) == [""]
    after = by_id(world.batch.observe().waiting)
    now = after.pop(first.id)
    before.pop(first.id)
    assert (now.shape, now.spec, now.frozen) == (shape, first.noted(shape), "")
    assert {*now.shapes} == {*first.shapes}
    assert (now.footprint, now.time_limit_s) == (first.footprint, first.time_limit_s)
    assert after == before


def test_a_change_can_be_changed_back(world: World, first: Job) -> None:
    change(world, to(first, other(first)))
    now = world.waiting(first.id)
    assert change(world, to(now, first.shape)) == [""]
    back = world.waiting(first.id)
    assert (back.shape, {*back.shapes}, back.frozen) == (first.shape, {*first.shapes}, "")


def test_a_refused_change_is_told_in_the_batch_systems_words_and_changes_nothing(
    world: World, first: Job
) -> None:
    before = said(world.batch.observe())
    world.refuses("not today")
    (words,) = change(world, to(first, other(first)))
    assert words.startswith(f"job {first.id} to {other(first)}: ")
    assert "not today" in words
    assert said(world.batch.observe()) == before


def gone(world: World, job_id: str) -> None:
    world.ends(job_id)


def started(world: World, job_id: str) -> None:
    world.starts(job_id)


def unknown(_world: World, _job_id: str) -> None:
    """Nobody ever heard of it."""


@pytest.mark.parametrize("happens", [gone, started, unknown])
def test_a_job_that_does_not_wait_is_refused_and_the_others_are_changed(
    world: World, first: Job, happens: Callable[[World, str], None]
) -> None:
    second = world.waiting(world.moldable[1])
    happens(world, first.id)
    if happens is unknown:
        first = replace(first, id=UNKNOWN)
    words, fine = change(world, to(first, other(first)), to(second, other(second)))
    assert first.id in words
    assert "it does not wait any more" in words
    assert fine == ""
    with pytest.raises(Refused, match="it does not wait any more"):
        world.batch.annotate(first, same)
    if happens is not started:  # of what Slurm's jobs run on, more is asked than is recorded
        assert world.waiting(second.id).shape == other(second)


def test_an_owner_who_changed_it_meanwhile_wins(world: World, first: Job) -> None:
    world.is_touched(first.id)
    (words,) = change(world, to(first, other(first)))
    assert "its owner wins" in words
    now = world.waiting(first.id)
    assert (now.shape, now.spec) == (first.shape, first.spec)
    assert change(world, to(now, other(now))) == [""]  # seen so, it may be changed


# Hold and release


def test_a_job_that_is_held_does_not_take_part_until_it_is_released(
    world: World, first: Job
) -> None:
    assert first.eligible
    world.is_held(first.id, held=True)
    held = world.waiting(first.id)
    assert (held.eligible, held.reason) == (False, "JobHeldUser")
    assert (held.shape, held.spec) == (first.shape, first.spec)
    world.is_held(first.id, held=False)
    assert world.waiting(first.id).eligible


# What is not changed


def test_jobs_that_say_nothing_have_the_shape_that_they_carry_alone(world: World) -> None:
    seen = world.batch.observe()
    silent = [job for job in (*seen.waiting, *seen.running) if job.spec is None]
    assert silent
    assert all(job.shapes == (job.shape,) for job in silent)


def test_a_note_changes_nothing_else(world: World, first: Job) -> None:
    noted = world.batch.annotate(first, pinned)
    for one in (noted, world.waiting(first.id)):
        assert (one.spec, one.shape, one.footprint) == (pinned(first), first.shape, first.footprint)
        assert (one.time_limit_s, one.eligible) == (first.time_limit_s, first.eligible)


def test_a_note_that_is_refused_is_told(world: World, first: Job) -> None:
    world.refuses("not today")
    with pytest.raises(Refused, match=f"^job {first.id}: .*not today"):
        world.batch.annotate(first, pinned)
    assert world.waiting(first.id) == first


def test_marks_are_answered_one_by_one_and_none_is_made_of_a_job_that_is_gone(
    world: World, first: Job
) -> None:
    world.ends(first.id)
    (error,) = world.batch.mark([Mark(first, ANYWHERE, "")])
    assert str(error).startswith(f"job {first.id}: ")


# Rescue


def test_a_job_that_can_never_run_as_it_was_changed_gets_its_own_shape_back(
    world: World, first: Job
) -> None:
    own = as_spec(first).own
    shape = next(one for one in first.shapes if one not in (first.shape, own))
    change(world, to(first, shape))
    world.cannot_run(first.id)
    world.batch.rescue(world.waiting(first.id))
    back = world.waiting(first.id)
    assert (back.shape, as_spec(back).set, back.eligible) == (own, None, True)


def test_a_job_that_waits_for_something_else_is_not_rescued(world: World, first: Job) -> None:
    before = said(world.batch.observe())
    with pytest.raises(Refused, match=f"^job {first.id}: "):
        world.batch.rescue(first)
    assert said(world.batch.observe()) == before
