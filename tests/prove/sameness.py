"""Which moments are the same: those that differ only by when they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from prove.moves import wished
from prove.world import World

FORGOTTEN_S, FAR_S = 700.0, 5000.0
"""What is longer ago, or comes later, makes no difference: a hand-over is given up before."""
_INSTANTS = frozenset(
    (
        *("submit_s", "begin_s", "start_s", "end_s", "cleaned_s", "until_s", "asked_s"),
        *("saved_s", "refused_s", "back_s", "hindered_s"),
    )
)
_NAMES: dict[type, tuple[tuple[str, bool], ...]] = {}


def same_by(world: World) -> object:
    """Return what all worlds have in common that are the same, with instants as seen from now."""
    now_s = world.now_s

    def seen(at_s: float) -> float:
        if not at_s or at_s == float("inf"):
            return at_s
        return min(FAR_S, max(-FORGOTTEN_S, round(at_s - now_s, 2))) or 0.001

    earlier = world.earlier if world.faults else None  # nothing else asks for it
    return (
        _all_of(world.batch, seen),
        _stored(world, seen),
        _remembered(world, seen),
        _wrapped(world, seen),
        (world.has_saved, world.faults, world.free, world.guarded),
        tuple((name, seen(value) if name in _INSTANTS else value) for name, value in world.said),
        earlier and _all_of(earlier, seen),
    )


def _all_of(batch: Any, seen: Callable[[float], float]) -> object:
    """Return all that a batch system knows: its jobs by number, and instants by name."""

    def each(one: object) -> object:
        if isinstance(one, float):
            return seen(one)
        return _of(one, seen) if is_dataclass(one) else one

    return tuple(
        tuple((name, each(one)) for name, one in value.items())
        if isinstance(value := getattr(batch, part.name), Mapping)
        else value
        for part in fields(batch)
    )


def _of(what: object, seen: Callable[[float], float]) -> object:
    kind = type(what)
    if kind not in _NAMES:
        names = (one.name for one in fields(what))  # type: ignore[arg-type]  # each is a dataclass
        _NAMES[kind] = tuple((name, name in _INSTANTS) for name in names)
    return tuple(
        seen(getattr(what, name)) if is_instant else getattr(what, name)
        for name, is_instant in _NAMES[kind]
    )


def _stored(world: World, seen: Callable[[float], float]) -> object:
    return tuple(
        (row.run, row.after, *map(seen, (row.at_s, row.until_s, row.saved_s)), row.outcome)
        for row in world.store[-1:]
    )


def _remembered(world: World, seen: Callable[[float], float]) -> object:
    pliantd = world.pliantd
    if pliantd is None:
        return None
    # but for its number, the job as it was asked, and when it is looked at next
    about = (pliantd.resumed, pliantd.unwanted, pliantd.memory)
    return (about, tuple((_of(one[1], seen), *one[4:]) for one in pliantd.active))


def _wrapped(world: World, seen: Callable[[float], float]) -> object:
    wrapper, wish = world.wrapper, wished(world)
    if wrapper is None:
        return None
    told: Any = (wish is not None and wrapper.seen == wish.id, wrapper.wish is not None)
    return (wrapper.stage, wrapper.termed, told, seen(wrapper.until_s), seen(wrapper.most_s))
