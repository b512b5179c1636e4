"""What may happen next where nothing goes wrong, and when something else is so than before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from pliant.daemon.handing import HEARD_S, UNHEARD_S
from pliant.handover import BLOCKED_S, GIVE_UP_S, PUT_BACK_S, REFUSED_S, START_S
from pliant.node import words
from pliant.node.words import CHECKPOINTED, Stage
from prove.changed import changed
from prove.world import GUEST, OF_ACTIVE, RIVAL, RUNS, Machine, Rejected, World, Wrong

NEVER_S = float("inf")
JUST_S = 0.05
"""By how much something is over that lasts until an instant."""
HEARD, WITHHELD, ROOM = map(OF_ACTIVE.index, ("heard_s", "withheld_s", "room_s"))
Move = tuple[str, Callable[[], World]]


def moves(machine: Machine, world: World, key: object) -> Iterator[Move]:
    """Yield what may happen; time goes on once nothing is left that happens at once.

    ``key``: what the world is the same by.
    """
    soon = [*of_pliantd(machine, world, key)]
    yield from soon
    yield from of_the_job(machine, world)
    yield from of_the_batch_system(machine, world)
    at_s = next_instant(machine, world)
    is_busy = _is_told(world) or machine.hurries(world)
    if at_s and not any(name in AT_ONCE for name, _ in soon) and not is_busy:
        yield TIME, partial(machine.passes, world, at_s)


TIME = "time"
IN_VAIN = "program cannot be started again"
AT_ONCE = frozenset(("pliantd acts", "pliantd looks"))


def of_pliantd(machine: Machine, world: World, key: object) -> Iterator[Move]:
    if world.pliantd is None:
        yield "pliantd starts", partial(machine.started, world)
        return
    for name, does in (("pliantd acts", machine.acts), ("pliantd looks", machine.looks)):
        if does == machine.acts and not world.pliantd.active:
            continue  # there is nothing that it could do
        if does == machine.looks and world.look is not None:
            yield "pliantd has looked", partial(does, world)
            continue
        told, after = machine.told, does(world)
        if machine.same_by(after) != key:
            yield name, partial(as_found, after)
        elif world.is_settled and machine.told > told:
            raise Wrong(f"it goes on telling {machine.name} what changes nothing")


def as_found(world: World) -> World:
    return world


def of_the_job(machine: Machine, world: World) -> Iterator[Move]:
    for name, move in _of_its_wrapper(machine, world):
        yield name, move
        with suppress(Rejected):
            yield IN_VAIN, partial(as_found, machine.starts_in_vain(move))
    if _fails_unheard(world):
        yield "wrapper says again that there is none", partial(machine.fails, world)
    if world.guarded:
        yield "program completes unmanaged", partial(unmanaged, machine, world, 0)
    if world.guarded == "asked":
        yield "program saves unmanaged", partial(unmanaged, machine, world, CHECKPOINTED)
    if acts_alone(world):
        yield "guardian requeues", partial(machine.requeues_alone, world)


def of_the_batch_system(machine: Machine, world: World) -> Iterator[Move]:
    yield from machine.moves(world)
    if machine.would_start(world):
        yield f"{machine.name} schedules", partial(machine.schedules, world)
    for name, number in (("rival", RIVAL), ("guest", GUEST)):
        job = world.batch.jobs.get(number)
        if job is not None and job.runs:
            yield f"{name} ends", partial(machine.does, world, partial(_ends, number))


def _ends(number: int, fake: Any) -> None:
    fake.end(number)


def _of_its_wrapper(machine: Machine, world: World) -> Iterator[Move]:
    for name, event in _events(world):
        yield name, partial(machine.happens, world, event)
    wrapper = world.wrapper
    if wrapper is not None and wrapper.wish is not None and _is_unheard(world):
        yield "wrapper says it again", partial(machine.reports, world, wrapper.wish)


def _events(world: World) -> Iterator[tuple[str, words.Event]]:
    wrapper, now_s = world.wrapper, world.now_s
    if wrapper is None:
        return
    if _hears(world):
        yield "wrapper hears", words.Wished(now_s, wished(world))
    if wrapper.stage in RUNS:
        if wrapper.wish is not None:
            yield "program saves", words.Ended(now_s, CHECKPOINTED, saved=True)
        yield "program completes", words.Ended(now_s, 0, saved=False)
        yield "program fails", words.Ended(now_s, 1, saved=False)
    if now_s >= wrapper.until_s:
        yield "wrapper's time is over", words.Ticked(now_s)


def _hears(world: World) -> bool:
    """Whether pliantd tells the wrapper something that it does not know."""
    wrapper, wish = world.wrapper, wished(world)
    if wrapper is None or world.pliantd is None:
        return False
    if wrapper.stage is Stage.ASKED:
        return wish is None or wish.id != wrapper.seen
    return wrapper.stage is Stage.RUNNING and wish is not None and wish.id != wrapper.seen


def _is_unheard(world: World) -> bool:
    """Whether it has saved, and pliantd lives and does not know, or has not heard it for a while."""
    waits = world.wrapper is not None and world.wrapper.stage is Stage.HANDING
    knows = world.over is not None and world.over.saved_s > 0
    if world.pliantd is None or not (waits and world.pliantd.resumed):
        return False
    return not knows or world.now_s > world.pliantd.active[0][HEARD] + HEARD_S


def _fails_unheard(world: World) -> bool:
    """Whether it has yet to say that there is no checkpoint, and pliantd hears it."""
    return world.failing != "" and world.pliantd is not None and world.pliantd.resumed


def acts_alone(world: World) -> bool:
    """Whether the guardian of a program that has saved has waited for pliantd for long enough."""
    return 0 < world.alone_s <= world.now_s


def _is_told(world: World) -> bool:
    """Whether the wrapper does something at once."""
    wrapper = world.wrapper
    does = wrapper is not None and (_hears(world) or world.now_s >= wrapper.until_s)
    return does or _fails_unheard(world) or acts_alone(world)


def wished(world: World) -> words.Wish | None:
    """What pliantd tells the wrapper."""
    over = world.over
    if over is None or over.saved_s or over.run != world.job.run:
        return None
    left_s = max(0.0, over.until_s - world.now_s)
    return words.Wish(f"{over.run}.{over.asked_s:.3f}", "resize", "2", left_s)


def unmanaged(machine: Machine, world: World, code: int) -> World:
    """The program ends whose wrapper was killed."""
    return machine.goes_unmanaged(changed(world, guarded=""), code)


def next_instant(machine: Machine, world: World) -> float:
    """When something else is so than now; 0 where nothing is any more."""
    every = (*machine.instants(world), *_of_the_wrapper(world), *_of_the_hand_over(machine, world))
    return min((at_s for at_s in every if world.now_s < at_s < NEVER_S), default=0.0)


def _of_the_wrapper(world: World) -> Iterator[float]:
    if world.wrapper is not None and world.wrapper.until_s != float("inf"):
        yield world.wrapper.until_s
    yield world.alone_s


def _of_the_hand_over(machine: Machine, world: World) -> Iterator[float]:
    over, job = world.over, world.job
    if over is None or world.pliantd is None:
        return
    if not over.saved_s:
        yield over.until_s + JUST_S
        return
    if job.runs:
        active = world.pliantd.active[0]
        yield active[HEARD] + HEARD_S + JUST_S
        if active[WITHHELD]:
            yield active[WITHHELD] + UNHEARD_S + JUST_S
    yield over.saved_s + GIVE_UP_S + JUST_S
    if job.waits:
        room_s = world.pliantd.active[0][ROOM]
        yield max(job.begin_s, over.back_s, room_s) + START_S + JUST_S
        yield job.begin_s + BLOCKED_S + JUST_S
    for since_s, lasts_s in (
        *((over.refused_s, REFUSED_S), (over.hindered_s, REFUSED_S)),
        *((over.back_s, PUT_BACK_S), (job.has_failed and over.hindered_s, GIVE_UP_S)),
    ):
        if since_s:
            yield since_s + lasts_s + JUST_S
