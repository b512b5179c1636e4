"""Which moments are the same: those that differ only by when they are, or by what nobody asks for.

An instant is seen from now, and is only known as far back as somebody asks how long ago it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from pliant.daemon.handing import HEARD_S, UNHEARD_S, name_of
from pliant.handover import GIVE_UP_S, SOON_S, Do, HandOver
from prove.moves import wished
from prove.world import LATELY_S, OF_ACTIVE, Machine, Seen, World

LONG_S = GIVE_UP_S + 1.0
"""How long ago its checkpoint may be for that to be known."""
_FAR_S = 5000.0
_NEVER = float("inf")
_DECIDED = attrgetter(
    *("job", "run", "shape", "guest", "end_s", "before", "made", "refused", "for_good"),
    *("stuck", "barred", "changed"),
)


def same_by(machine: Machine, world: World) -> object:
    """Return what all worlds have in common that are the same.

    But for how many faults may come, and for what only these ask (see faults_by).
    """
    seen = _seen_at(world.now_s)
    return (
        machine.known(world.batch, seen),
        _stored(world, seen),
        _remembered(machine, world, seen),
        _wrapped(world, seen),
        (world.has_saved, world.free, world.lost, _is_of_now(world)),
        (world.guarded, seen(world.alone_s, 0.0)),
        tuple([(name, seen(to) if name == "begin_s" else to) for name, to in world.said]),
        world.look and machine.known(world.look, seen),
    )


def faults_by(machine: Machine, world: World) -> object:
    """Return what they have in common besides by which the same faults lead to the same."""
    return world.earlier and machine.known(world.earlier, _seen_at(world.now_s))


def _is_of_now(world: World) -> bool | None:
    """Whether what its wrapper has yet to say is of the hand-over that is under way."""
    over = world.over
    return (over is not None and world.failing == name_of(over)) if world.failing else None


def _seen_at(now_s: float) -> Seen:
    def seen(at_s: float, asked_s: float = LATELY_S) -> float:
        """Return an instant in hundredths, above 0: of -1 and -2 Python makes the same hash.

        ``asked_s``: how long ago it may be at most for that to be known.
        """
        if not at_s or at_s == _NEVER:
            return at_s
        ahead_s = at_s - now_s
        if ahead_s < -asked_s:
            return 1
        return round(100 * ((ahead_s if ahead_s < _FAR_S else _FAR_S) + asked_s)) + 2

    return seen


def _stored(world: World, seen: Seen) -> object:
    if not world.store:
        return None
    row, job = world.store[-1], world.job
    if row.done_s:
        return (row.run, row.after, row.outcome)
    instants = (seen(row.until_s, 0.0), seen(row.saved_s, LONG_S))
    return (row.run, row.after, row.made, instants, job.submit_s > row.saved_s + GIVE_UP_S)


def _remembered(machine: Machine, world: World, seen: Seen) -> object:
    pliantd = world.pliantd
    if pliantd is None:
        return None
    return (
        *(pliantd.resumed, pliantd.unwanted, pliantd.gone, machine.recalled(pliantd.memory, seen)),
        *(pliantd.left, world.look and pliantd.ended),
        *[_under_way(machine, active, world, seen) for active in pliantd.active],
    )


def _under_way(machine: Machine, active: Sequence[Any], world: World, seen: Seen) -> object:
    known = dict(zip(OF_ACTIVE, active, strict=True))
    over, did = known["over"], known["did"]
    heard = (
        *(seen(known["heard_s"], HEARD_S), seen(known["withheld_s"], UNHEARD_S)),
        known["spoke_s"] >= known["withheld_s"],
    )
    return (
        *(_of_the_hand_over(over, seen), did is not None and did.do is Do.RESHAPE),
        *(known["requeued"], known["stays"], known["ready"], known["once_more"]),
        (known["job"].time_limit_s, known["job"].limit_shown_s),
        over.saved_s and world.job.runs and heard,
        world.job.waits and (over.told_s == world.job.begin_s, over.begin_s == world.job.begin_s),
        over.saved_s and machine.seen_to_run(over, world, seen),
        *[seen(float(int(known[name])), SOON_S) for name in ("ran_s", "waits_s")],
        over.guest and (seen(known["room_s"]), seen(known["unpinned_s"]), known["no_guest"]),
    )


def _of_the_hand_over(over: HandOver, seen: Seen) -> object:
    """All but when it was asked, and by when it must save once it has."""
    return (
        _DECIDED(over),
        over.saved_s == 0 and seen(over.until_s, 0.0),
        seen(over.saved_s, LONG_S),
        *[seen(at_s) for at_s in (over.refused_s, over.back_s)],
        seen(over.hindered_s, LONG_S),
    )


def _wrapped(world: World, seen: Seen) -> object:
    wrapper, wish = world.wrapper, wished(world)
    if wrapper is None:
        return None
    told = (wish is not None and wrapper.seen == wish.id, wrapper.wish is not None)
    until = (seen(wrapper.until_s, 0.0), seen(wrapper.most_s, 0.0))
    return (wrapper.stage, wrapper.termed, told, until)
