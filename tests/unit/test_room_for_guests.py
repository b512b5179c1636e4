"""Whether a guest could start in the place of the job that has saved for it, as far as is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from build import job as waits
from build import node
from test_daemon_elastic import EFFORT, FOUR, GPUS, JOB, ONE, TRIAL, TWO, Bench, always, bench

from pliant.batch import FENCE
from pliant.cycle import cycle
from pliant.daemon.handing import REST_S, Wanted
from pliant.model import (
    Job,
    JobClass,
    JobState,
    Node,
    Partition,
    Request,
    Reservation,
    Shape,
    Snapshot,
    Spec,
)
from pliant.plan import Plan, Preempt
from pliant.policies.fitgpp import FitGpp
from pliant.store import HandOverRow

__all__ = ["bench"]  # a fixture

VICTIM = replace(EFFORT, shape=TWO, shapes=(TWO,), time_limit_s=36_000, start_s=1000.0)
GUEST = replace(TRIAL, shape=FOUR, shapes=(FOUR,), time_limit_s=600)


def decides(
    bench: Bench,
    free: int,
    *jobs: Job,
    gpus: int = 4,
    policy: FitGpp | None = None,
    ends_as: Node | None = None,
    **seen: Any,
) -> Plan:
    """Let a cycle see one node and these jobs, and decide; nothing is done of it."""
    nodes = (node("n1", gpus=gpus, free=free, free_cpus=8, once_ended=ends_as),)
    running = [job for job in jobs if job.state is not JobState.WAITING]
    left = [job for job in jobs if job.state is JobState.WAITING]
    parts = (Partition("gpu", ("n1",), default=True), Partition("high", ("n1",), tier=9))
    snapshot = Snapshot(bench.now_s, nodes, parts, tuple(left), tuple(running), **seen)
    bench.elastic.looking()
    bench.elastic.looked(snapshot, always)
    snapshot = bench.elastic.arriving(bench.elastic.known(snapshot))
    plan = cycle(snapshot, policy or FitGpp())
    bench.elastic.decided(snapshot, plan)
    return plan


def asks(bench: Bench, plan: Plan, *victims: str) -> None:
    """Let these be asked to make room, and nobody else."""
    assert [one.job.id for one in plan.preempts] == [*victims]
    assert [one.job for one in bench.elastic.begin(plan, always)] == [*victims]


def test_nodes_that_slurm_plans_for_others_are_no_less_its_room(bench: Bench) -> None:
    """They wait before it, and it is pinned before them: the policy has chosen its victim so."""
    victim = replace(VICTIM, shape=FOUR, shapes=(FOUR,), time_limit_s=1800)
    planned: dict[str, Any] = {"expected_nodes": ("n1",), "expected_s": bench.now_s + 1800}
    first, second = waits(20, "4"), waits(21, "4", reason="Priority", **planned)
    bench.listens(victim)
    plan = decides(bench, 0, victim, first, second, replace(GUEST, time_limit_s=1200))
    asks(bench, plan, "7")
    decides(bench, 0, victim, first, second, replace(GUEST, time_limit_s=1200))
    assert not bench.stays()


def test_it_needs_what_the_policy_has_chosen_for_it(bench: Bench) -> None:
    victim = replace(VICTIM, shape=ONE, shapes=(ONE,))
    request = Request(gpus=GPUS, job_class=JobClass.TRIAL)
    guest = replace(GUEST, shapes=(ONE, TWO, FOUR), spec=Spec(request, own=FOUR))
    policy = FitGpp(shape="smallest")
    bench.listens(victim)
    asks(bench, decides(bench, 0, victim, guest, policy=policy), "7")
    decides(bench, 0, victim, guest, policy=policy)
    assert not bench.stays()


def test_its_own_start_takes_nothing_from_it(bench: Bench) -> None:
    """The next plan lets it start in two free GPUs, which the first in the queue takes by itself."""
    victim, guest = replace(VICTIM, shape=ONE, shapes=(ONE,)), replace(GUEST, shape=TWO)
    guest, first = replace(guest, shapes=(TWO,)), waits(20, "1", time_limit_s=3600)
    bench.listens(victim)
    asks(bench, decides(bench, 2, victim, first, guest, gpus=3), "7")
    plan = decides(bench, 2, victim, first, guest, gpus=3)
    assert [start.job.id for start in plan.starts] == ["8"]
    assert not bench.stays()


def test_what_another_has_left_for_its_own_guest_is_none_of_its_room(bench: Bench) -> None:
    one = replace(VICTIM, shape=ONE, shapes=(ONE,))
    others = [replace(JOB, id=number, spec=None, shape=ONE, shapes=(ONE,)) for number in "45"]
    guest = replace(GUEST, id="9", shape=TWO, shapes=(TWO,))
    bench.listens(one)
    decides(bench, 1, one, others[0], guest)
    asks(bench, Plan(preempts=(Preempt(bench.one(one), "9", "it loses least"),)), "7")
    fence = Reservation(f"{FENCE}6", ("n1",), bench.now_s - 5, bench.now_s + 60)
    decides(bench, 1, one, *others, guest, reservations=(fence,))
    assert bench.stays()


@pytest.mark.parametrize(("free", "stays"), [(2, False), (1, True)])
def test_beside_a_fence_a_guest_has_its_room_but_for_what_that_is_for(
    bench: Bench, free: int, *, stays: bool
) -> None:
    """Both have two GPUs for two trial jobs; job 6 has left, and a fence is around the node."""
    other, guest = replace(VICTIM, id="6"), replace(GUEST, shape=TWO, shapes=(TWO,))
    guests = (guest, replace(guest, id="9"))
    bench.listens(VICTIM)
    bench.listens(other)
    asks(bench, decides(bench, 0, VICTIM, other, *guests), "6", "7")
    fence = Reservation(f"{FENCE}6", ("n1",), bench.now_s - 5, bench.now_s + 60)
    left = replace(other, state=JobState.WAITING, nodes=(), restarts=1)
    decides(bench, free, VICTIM, left, *guests, reservations=(fence,))
    assert bench.stays() is stays


THREE = Shape(1, 3)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(("shape", "stays"), [(TWO, False), (THREE, True)])
def test_beside_one_that_is_ending_a_guest_has_its_room_but_for_what_that_goes_on_with(
    bench: Bench, shape: Shape, *, stays: bool, waits: bool
) -> None:
    """On Slurm nothing starts there meanwhile, and nothing counts as free.

    Also where that waits by then, without a fence, for the end of another.
    """
    other, guest = replace(VICTIM, id="9"), replace(GUEST, shape=THREE, shapes=(THREE,))
    bench.listens(VICTIM)
    bench.listens(other)
    asks(bench, decides(bench, 1, VICTIM, other, guest, gpus=5), "7")
    bench.elastic.overs.begin(other, Wanted(shape, ("n1",)), bench.now_s + 60, "it is fair")
    ends = replace(other, state=JobState.ENDING, restarts=1)
    ends = replace(ends, state=JobState.WAITING, nodes=()) if waits else ends
    gone = node("n1", gpus=5, free=3, free_cpus=8)
    decides(bench, 0, VICTIM, ends, guest, gpus=5, ends_as=gone)
    assert bench.stays() is stays


def test_nobody_leaves_for_a_guest_that_starts_in_what_is_free_by_now(bench: Bench) -> None:
    guest = replace(GUEST, shape=TWO, shapes=(TWO,))
    bench.listens(VICTIM)
    asks(bench, decides(bench, 0, VICTIM, guest), "7")
    plan = decides(bench, 2, VICTIM, guest)
    assert [start.job.id for start in plan.starts] == ["8"]
    assert bench.stays()


def test_the_last_task_of_an_array_is_not_before_itself_by_its_tier(bench: Bench) -> None:
    array = replace(GUEST, partitions=("high",), array_tasks="4", tasks_waiting=1)
    bench.listens(VICTIM)
    asks(bench, decides(bench, 2, VICTIM, array), "7")
    wanted = bench.elastic.overs.all()["7"]
    assert wanted.guest == "8_4"
    decides(bench, 2, VICTIM, array)
    assert not bench.stays()


def test_of_what_0_1_0_asked_the_guest_is_known_by_its_number(bench: Bench) -> None:
    """It had asked two jobs for one guest, of which one has stayed."""
    row = HandOverRow(0, 970.0, "7", "alice", "lab", 0, "2", "2", "8", "room", bench.now_s + 60)
    bench.store.hand_over(row)
    bench.listens(VICTIM)
    decides(bench, 0, VICTIM, GUEST)
    assert bench.stays()


@pytest.mark.parametrize(
    ("now", "stays"),
    [({}, False), ({"shape": FOUR, "shapes": (FOUR,)}, True), ({"time_limit_s": 7200}, True)],
)
def test_a_late_checkpoint_makes_no_room_for_a_guest_that_asks_for_more_by_then(
    bench: Bench, now: dict[str, Any], stays: bool
) -> None:
    guest = replace(GUEST, shape=ONE, shapes=(ONE,))
    bench.listens(VICTIM)
    asks(bench, decides(bench, 0, VICTIM, guest), "7")
    name = bench.name()
    bench.slurm_has(VICTIM, guest)
    bench.elastic.overs.withdraw("7")
    bench.elastic.overs.turn()
    decides(bench, 0, VICTIM, replace(guest, **now))
    decides(bench, 0, VICTIM, replace(guest, **now))  # it is in no hand-over by this look
    assert bench.elastic.overs.saved_late(VICTIM, 0, name)
    assert bench.elastic.overs.stays("7", 0, name) is stays
    assert bench.elastic.overs.rests("7") is stays
    bench.now_s += REST_S
    assert not bench.elastic.overs.rests("7")


def test_who_has_saved_in_vain_twice_for_the_same_guest_is_the_last_one(bench: Bench) -> None:
    """Once others may have come before; more often it is something that we do not see."""
    bench.slurm_has(VICTIM, GUEST)
    for was_told in (True, True, False):
        bench.listens(VICTIM)
        plan = decides(bench, 2, VICTIM, GUEST)
        assert [one.job.id for one in plan.preempts] == ["7"] * was_told
        if was_told:
            asks(bench, plan, "7")
            decides(bench, 1, VICTIM, GUEST)
            assert bench.stays()
            bench.elastic.overs.turn()
            bench.now_s += REST_S + 1
            bench.elastic.runs.heard(VICTIM, 0, launched=True, step=100)
