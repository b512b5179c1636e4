"""What may go wrong, or be said by others, at any moment of a hand-over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pliant.handover import FRESH_S, OURS
from pliant.node.words import CHECKPOINTED
from prove.fake_slurm import HELD, FakeSlurm, Rejected
from prove.moves import Move, next_instant, unmanaged
from prove.world import JOB, OLD, Machine, World

TEMPORARY = "Requested operation is presently disabled"
FOR_GOOD = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
LATER_S = 100.0
Said = tuple[tuple[str, float], ...]
"""Fields of a job, and what its owner wants of them."""


def single(machine: Machine, world: World) -> Iterator[Move]:
    """Yield every fault that may come now."""
    yield from _of_pliantd(machine, world)
    yield from _refusals(machine, world)
    yield from _of_slurm(world)
    yield from _of_its_start(machine, world)
    yield from _of_the_job(machine, world)
    yield from _of_its_owner(machine, world)


def _of_pliantd(machine: Machine, world: World) -> Iterator[Move]:
    if world.pliantd is None:
        return
    yield "pliantd is killed", lambda: replace(world, pliantd=None)
    if world.pliantd.active:
        yield "pliantd is killed before its command", partial(machine.acts, world, dies="before")
        yield "pliantd is killed after its command", partial(machine.acts, world, dies="after")
    at_s = next_instant(world)
    if at_s:
        yield "pliantd is slow", partial(machine.passes, world, at_s)


def _refusals(machine: Machine, world: World) -> Iterator[Move]:
    if world.over is None:
        return
    yield "Slurm refuses for now", partial(_refused, machine, world, TEMPORARY)
    yield "Slurm refuses for good", partial(_refused, machine, world, FOR_GOOD)
    yield "Slurm refuses halfway", partial(_refused, machine, world, TEMPORARY, half=True)


def _refused(machine: Machine, world: World, words: str, *, half: bool = False) -> World:
    """Nothing keeps the place of a job whose pin or fence is refused for good."""
    after = machine.acts(world, refuse=words, half=half)
    barred = after.over is not None and after.over.barred
    return replace(after, free=after.free or barred)


def _of_slurm(world: World) -> Iterator[Move]:
    earlier, job = world.earlier, world.job
    if earlier is not None:
        then = earlier.jobs[JOB]
        if (then.state, then.run) == (job.state, job.run):
            yield "slurmctld forgets", lambda: replace(world, slurm=earlier, earlier=None)
    if job.waits and job.priority in OURS:
        unpinned = world.slurm.with_job(replace(job, priority=job.own_priority))
        yield (
            "backfill writes its priority back",
            lambda: replace(world, slurm=unpinned, free=_is_free(world)),
        )


def _of_its_start(machine: Machine, world: World) -> Iterator[Move]:
    """Its next start fails, which may come with what pliantd does, or with the scheduler's pass.

    A kill that was meant for its run before comes within seconds (measured).
    """
    free, ways = replace(world, free=True), [("refused by its node", HELD)]
    if world.now_s < world.job.submit_s + FRESH_S:
        ways.append(("killed by a kill of before", "0:15"))
    for name, how in ways:
        for move in (machine.acts, machine.schedules):
            after = move(free, start_fails=how)
            if after.job.state == "FAILED" or after.job.reason == HELD:
                yield f"its start is {name}", partial(replace, after)


def _of_the_job(machine: Machine, world: World) -> Iterator[Move]:
    if world.wrapper is not None:
        yield "its wrapper is killed", partial(_loses_its_wrapper, machine, world)
    if world.job.state == "RUNNING":
        unkept = replace(world, free=_is_free(world))
        yield "its node fails", partial(machine.does, unkept, _node_fails)


def _is_free(world: World) -> bool:
    """Whether nothing keeps its place where it is sent back now."""
    return world.free or not world.slurm.fences


def _node_fails(slurm: FakeSlurm) -> None:
    slurm.sends_back(slurm.state.jobs[JOB])


def _loses_its_wrapper(machine: Machine, world: World) -> World:
    """Its guardian waits for its program; pliantd learns it by the closed connection."""
    lost = replace(world, wrapper=None, guarded=True, free=True)
    return unmanaged(machine, lost, CHECKPOINTED) if world.has_saved else machine.withdraws(lost)


def _of_its_owner(machine: Machine, world: World) -> Iterator[Move]:
    begin_s = float(int(world.now_s + LATER_S))
    begin = f"StartTime={datetime.fromtimestamp(begin_s, UTC):%Y-%m-%dT%H:%M:%S}"
    update = ("update", f"jobid={JOB}")
    every: Sequence[tuple[str, tuple[str, ...], Said]] = (
        ("holds it", ("hold", str(JOB)), ()),
        ("requeues it", ("requeue", str(JOB)), ()),
        ("asks three GPUs", (*update, "Gres=gpu:3"), (("gpus", 3),)),
        ("asks what it had", (*update, f"Gres=gpu:{OLD.gpus}"), (("gpus", OLD.gpus),)),
        ("lets it begin later", (*update, begin), (("begin_s", begin_s),)),
        ("gives it less time", (*update, "TimeLimit=7"), (("limit_min", 7),)),
    )
    for name, words, said in every:
        after = _says(machine, world, words, said)
        if after is not None:
            yield f"its owner {name}", partial(replace, after)


def _says(machine: Machine, world: World, words: Sequence[str], said: Said) -> World | None:
    """Let its owner say it; None where Slurm refuses, or it is so."""
    if any(getattr(world.job, name) == value for name, value in said):
        return None
    over = world.over
    if said == (("gpus", OLD.gpus),) and over is not None and not over.made:
        said = ()  # until pliantd has seen what came of its command, that may be Slurm's doing
    told = replace(world, free=world.free or said != (("limit_min", 7),), said=said or world.said)
    try:
        return machine.tells(told, *words, by_owner=True)
    except Rejected:
        return None
