"""What a job could have in place of what running jobs hold."""

from __future__ import annotations

from dataclasses import replace

from build import HOUR_S, job, node, running, snapshot
from resizing import elastic, runs

from pliant.grammar import parse_shape
from pliant.model import Job, Node, Snapshot
from pliant.placement import Free
from pliant.placement.giving_up import certain_holders, settled, without
from pliant.placement.pick import Places


def room(free: Free, one: Job, shape: str, *givers: Job, beside: str = "") -> Places | None:
    wanted = parse_shape(shape)
    exempt = frozenset({beside} if beside else ())
    return free.room(one, (wanted, free.need(one, wanted)), givers, beside=exempt)


def free_gpus(view: Snapshot) -> list[int]:
    return [row.pools[0].free for row in view.nodes]


def test_a_job_may_have_what_is_free_and_its_own() -> None:
    busy = running(1, "2", "n1", HOUR_S)
    free = Free(snapshot([node("n1"), node("n2", free=1)], [], [busy]))
    assert [room(free, busy, shape, busy) for shape in ("3", "4")] == [(0,), (0,)]
    assert room(free, job(2), "4") is None  # all is as it was


def test_what_a_job_gives_up_is_free_for_nobody_yet() -> None:
    busy = running(1, "4", "n1", HOUR_S)
    free, shape = Free(snapshot([node("n1", cpus=5)], [], [busy])), parse_shape("1")
    free.trade(busy, (shape, free.need(busy, shape)), (0,), (busy,))
    assert free.fit(job(2), shape) is None


def test_what_a_job_takes_beyond_its_own_is_gone() -> None:
    busy = running(1, "1", "n1", HOUR_S)
    free, shape = Free(snapshot([node("n1")], [], [busy])), parse_shape("3")
    free.trade(busy, (shape, free.need(busy, shape)), (0,), (busy,))
    assert [free.fit(job(2), parse_shape(gpus)) for gpus in ("1", "2")] == [("n1",), None]


def test_a_trade_does_not_run_into_what_is_kept_for_others() -> None:
    """Job 3 is to have the whole node when job 1 is over; changed, that would run an hour more."""
    busy, first = running(1, "2", "n1", 600), job(3, "4")
    free = Free(snapshot([node("n1"), node("n2", free=2)], [first], [busy]))
    free.claim(first, (first.shape,))
    assert room(free, busy, "1", busy) == (1,)
    assert room(free, busy, "3", busy) is None
    assert room(free, busy, "3", busy, beside="3") == (0,)


def test_a_trade_may_use_what_its_job_would_have_held_beyond_the_claim() -> None:
    """Job 3 gets two GPUs when job 9 is over; job 1 has the others long after that."""
    busy, first = running(1, "2", "n1", 9000), job(3, "2")
    view = snapshot([node("n1", cpus=4)], [first], [busy, running(9, "2", "n1", 600)])
    free = Free(view)
    free.claim(first, (first.shape,))
    assert [room(free, busy, shape, busy) for shape in ("1", "2", "3")] == [(0,), (0,), None]


def test_without_jobs_their_gpus_cores_and_memory_are_free() -> None:
    busy = [running(1, "2", "n1", 600), running(2, "2x1", "n1 n2", 600)]
    view = snapshot([node("n1"), node("n2")], [], busy)
    gone = without(view, [busy[1]])
    assert (free_gpus(view), free_gpus(gone), gone.running) == ([1, 3], [2, 4], (busy[0],))
    assert without(view, busy).nodes == (node("n1"), node("n2"))


def test_what_is_under_way_is_settled_at_its_end() -> None:
    moves = replace(runs(elastic(1), "4", "n1"), next_shape=parse_shape("2"), next_nodes=("n2",))
    after = settled(snapshot([node("n1"), node("n2")], [], [moves]))
    assert free_gpus(after) == [4, 2]
    assert [(str(one.shape), one.nodes, one.next_shape) for one in after.running] == [
        ("2", ("n2",), None)
    ]


def test_which_gpu_a_share_lies_on_must_be_certain() -> None:
    """A quarter may lie on either GPU: what giving it back leaves is known where they are alike."""

    def certain(*parts: int) -> bool:
        shares = Node("n1", 16, 15, 0, 0, node("n1", gpus=2, shards=4, parts=parts).pools)
        view = replace(snapshot([shares], []), running=(running(1, "1/4", "n1", 600),))
        return bool(certain_holders(view, view.running))

    assert [certain(3), certain(2, 2), certain(3, 1)] == [True, True, False]
