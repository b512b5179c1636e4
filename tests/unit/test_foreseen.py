"""What is seen as it will be once what ends is gone, and who is between two runs is there again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from build import HOUR_S, job, node, running, snapshot

from pliant.batch import FENCE
from pliant.daemon.foreseen import foreseen
from pliant.daemon.handing import Wanted
from pliant.model import Job, JobState, Reservation, Shape, Snapshot

ONE, TWO, FOUR = Shape(1, 1), Shape(1, 2), Shape(1, 4)
OWN = "7"
VICTIM = running(8, "2", "n1", HOUR_S)
GUEST = job(20, "2")
N1 = Wanted(TWO, ("n1",), "20", asks=GUEST)


def fences(*names: str) -> tuple[Reservation, ...]:
    return tuple(Reservation(name, ("n1",), 0.0, HOUR_S) for name in names)


def seen(*jobs: Job, waiting: tuple[Job, ...] = (), fenced: tuple[str, ...] = ()) -> Snapshot:
    """Two nodes with four GPUs each, and the fences of these."""
    found = snapshot([node("n1"), node("n2")], [*waiting], [*jobs])
    return replace(found, reservations=fences(*(f"{FENCE}{one}" for one in fenced)))


def runs(found: Snapshot) -> dict[str, tuple[Shape, tuple[str, ...]]]:
    """What runs: as what, and where."""
    assert len({one.id for one in found.running}) == len(found.running)
    return {one.id: (one.shape, one.nodes) for one in found.running}


def free(found: Snapshot) -> dict[str, float]:
    return {one.name: float(one.pools[0].free) for one in found.nodes}


def test_a_fence_falls_once_its_job_is_there_and_its_own_is_in_nobodys_way() -> None:
    found = replace(seen(VICTIM), reservations=fences("pliant_7", "pliant_8", "pliant_9", "site"))
    left = foreseen(found, {"8": Wanted(TWO)}, OWN).reservations
    assert [one.name for one in left] == ["pliant_9", "site"]


@pytest.mark.parametrize(
    ("under_way", "fenced", "guest", "victim"),
    [
        (N1, "8", ("20", TWO), False),
        (N1, "", None, True),  # its victim has not saved yet
        (replace(N1, asks=replace(GUEST, shape=FOUR, next_shape=ONE)), "8", ("20", ONE), False),
        (replace(N1, nodes=("n1", "n2")), "8", ("20", Shape(2, 2)), False),  # on any of them
        (replace(N1, asks=replace(GUEST, shape=Shape(2, 1))), "8", None, True),  # it needs two
        (replace(N1, asks=replace(GUEST, shape=Shape(1, 5))), "8", None, True),  # more than are
        (replace(N1, asks=None), "8", None, True),  # 0.1.0 did not note it
    ],
)
def test_a_guest_is_in_the_place_of_its_victim_where_it_has_room(
    under_way: Wanted, fenced: str, guest: tuple[str, Shape] | None, *, victim: bool
) -> None:
    found = foreseen(seen(VICTIM, fenced=(*fenced,)), {"8": under_way}, OWN)
    there = {one: shape for one, (shape, _) in runs(found).items()}
    assert there == {**({"8": TWO} if victim else {}), **(dict([guest]) if guest else {})}
    stays = guest is None and fenced  # who has no room there waits behind the fence
    assert [one.name for one in found.reservations] == (["pliant_8"] if stays else [])


def test_of_ones_own_guest_nothing_is_foreseen() -> None:
    assert runs(foreseen(seen(VICTIM, fenced=("8",)), {"8": N1}, "8")) == {"8": (TWO, ("n1",))}


def test_a_guest_that_runs_has_its_room_already() -> None:
    guest = running(20, "1", "n2", HOUR_S)
    found = foreseen(seen(VICTIM, guest, fenced=("8",)), {"8": N1}, OWN)
    assert runs(found) == {"8": (TWO, ("n1",)), "20": (ONE, ("n2",))}


def ending(number: int, own: str, nodes: str) -> Job:
    return replace(running(number, own, nodes, HOUR_S), state=JobState.ENDING)


def test_what_ends_is_gone_and_who_goes_on_is_where_it_is_to_be() -> None:
    found = seen(ending(8, "4", "n1"), ending(10, "1", "n2"), running(9, "2", "n2", HOUR_S))
    found = replace(found, waiting=(job(11, "1"), job(12, "1")))
    nodes = [replace(found.nodes[0], once_ended=node("n1")), found.nodes[1]]
    found = replace(found, nodes=tuple(nodes))
    under_way = {"8": Wanted(TWO, ("n1",)), "9": Wanted(ONE, ("n2",)), "11": Wanted(ONE, ("n1",))}
    after = foreseen(found, under_way, OWN)
    assert runs(after) == {"9": (TWO, ("n2",)), "8": (TWO, ("n1",)), "11": (ONE, ("n1",))}
    assert (free(after), [one.id for one in after.waiting]) == ({"n1": 1.0, "n2": 1.0}, ["12"])


@pytest.mark.parametrize(
    "wanted", [Wanted(Shape(2, 1), ("n1",)), Wanted(TWO, ("n1",), "20"), Wanted(TWO)]
)
def test_who_goes_on_nobody_knows_where_or_after_a_guest_is_not_there_yet(wanted: Wanted) -> None:
    found = seen(ending(8, "4", "n1"))
    nodes = tuple(replace(one, once_ended=node(one.name)) for one in found.nodes)
    assert runs(foreseen(replace(found, nodes=nodes), {"8": wanted}, OWN)) == {}


def test_where_nothing_ends_who_waits_for_its_own_is_as_it_was_seen() -> None:
    found = seen(waiting=(job(8, "2"),))
    under_way: Any = {"8": Wanted(TWO, ("n1",))}
    assert runs(foreseen(found, under_way, OWN)) == {}
