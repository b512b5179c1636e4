"""What may go wrong, or be said by others, at any moment of a hand-over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pliant.node.words import CHECKPOINTED
from prove.changed import changed
from prove.moves import Move, as_found, next_instant, unmanaged
from prove.world import Machine, Rejected, Said, World


def single(machine: Machine, world: World) -> Iterator[Move]:
    """Yield every fault that may come now."""
    yield from _of_pliantd(machine, world)
    yield from _refusals(machine, world)
    yield from machine.faults(world)
    yield from _of_its_wrapper(machine, world)
    yield from _of_its_owner(machine, world)


def _of_pliantd(machine: Machine, world: World) -> Iterator[Move]:
    if world.pliantd is None:
        return
    yield "pliantd is killed", partial(machine.killed, world)
    if world.pliantd.active:
        if world.look is None:
            yield "pliantd's look takes long", partial(machine.begins_to_look, world)
        yield "pliantd is killed before its command", partial(machine.acts, world, dies="before")
        yield "pliantd is killed after its command", partial(machine.acts, world, dies="after")
        yield f"{machine.name}'s answer is lost", partial(machine.acts, world, dies="unheard")
        yield f"{machine.name} is not reached", partial(machine.acts, world, dies="unreached")
        if machine.would_start(world):
            with suppress(Rejected):
                after = machine.acts(world, between=_schedules)
                yield "a job starts between pliantd's look and its step", partial(as_found, after)
    at_s = next_instant(machine, world)
    if at_s:
        yield "pliantd is slow", partial(machine.passes, world, at_s, looks=False)


def _schedules(fake: Any) -> None:
    fake.schedule()


def _refusals(machine: Machine, world: World) -> Iterator[Move]:
    if world.over is None:
        return
    name, for_now, for_good = machine.name, machine.temporary, machine.for_good
    yield f"{name} refuses for now", partial(_refused, machine, world, for_now)
    yield f"{name} refuses for good", partial(_refused, machine, world, for_good)
    for half in machine.halves:
        yield (
            f"{name} refuses all but {'+'.join(sorted(half))}",
            partial(_refused, machine, world, for_now, half=half),
        )


def _refused(
    machine: Machine, world: World, words: str, *, half: frozenset[str] = frozenset()
) -> World:
    """Nothing keeps the place of a job whose pin or fence is refused for good, nor is it kept from
    that of others where its fence is not put around those nodes. Half of what it had, put back,
    looks as if its owner had said the rest."""
    over = world.over
    after = machine.acts(world, refuse=words, half=half)
    barred = after.over is not None and after.over.barred
    aside = any(word.startswith("Nodes=") for word in machine.refused)
    by_half = bool(half) and over is not None and over.back_s > 0
    return changed(after, free=after.free or barred or aside or by_half)


def _of_its_wrapper(machine: Machine, world: World) -> Iterator[Move]:
    if world.wrapper is not None:
        yield "its wrapper is killed", partial(_loses_its_wrapper, machine, world)


def _loses_its_wrapper(machine: Machine, world: World) -> World:
    """Its guardian waits for its program; pliantd learns it by the closed connection."""
    asked = world.wrapper is not None and world.wrapper.wish is not None
    lost = changed(world, wrapper=None, guarded="asked" if asked else "runs", free=True)
    return unmanaged(machine, lost, CHECKPOINTED) if world.has_saved else machine.withdraws(lost)


def _of_its_owner(machine: Machine, world: World) -> Iterator[Move]:
    for name, words, said in machine.owners(world):
        if any(getattr(world.job, field) == value for field, value in said):
            continue
        told = _with(machine, world, said)
        with suppress(Rejected):
            after = machine.tells(told, *words, by_owner=True)
            yield f"its owner {name}", partial(as_found, after)
        between = partial(_says, words=words)
        with suppress(Rejected):
            after = machine.acts(told, between=between)
            yield f"its owner {name}, between pliantd's look and its step", partial(as_found, after)


def _says(fake: Any, *, words: Sequence[str]) -> None:
    fake.told(words, by_owner=True)


def _with(machine: Machine, world: World, said: Said) -> World:
    """Return a moment in which its owner is about to say something.

    Of each field what was said last is what stands. What a job had before may be what is left of
    pliantd's command, until it has noted what came of that.
    """
    others = tuple(one for one in world.said if one[0] not in dict(said))
    is_noted = bool(world.store) and world.store[-1].made
    stands = () if said == (("gpus", machine.kind.had.gpus),) and not is_noted else said
    free = world.free or said != (("limit_min", 7),)
    return changed(world, free=free, said=(*others, *stands))
