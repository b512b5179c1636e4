"""Marks let jobs share a node on a real cluster: only pairs that are right can come of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from build import HOUR_S, node
from hypothesis import given
from hypothesis import strategies as st

from pliant.cycle import cycle, explain
from pliant.model import (
    UNMARKED,
    Company,
    Footprint,
    Job,
    JobState,
    Kind,
    Malleable,
    Node,
    Partition,
    Pool,
    Request,
    Shape,
    Snapshot,
    Spec,
    Together,
)
from pliant.policies import live
from pliant.policies.marks import WINDOW

CPUS = Shape(1, 0, kind=Kind.CPU)
FCS, UCB = "cosched-fcs", "cosched-ucb"


def sharing(number: int, *, mark: str = "", colocate: bool | None = True, **fields: Any) -> Job:
    """A waiting job that takes all four CPUs of a node."""
    spec = Spec(Request(colocate=colocate), CPUS, mark=mark)
    given = {
        **{"reason": "Priority", "time_limit_s": HOUR_S, "partitions": ("main",)},
        **{"shape": CPUS, "shapes": (CPUS,), "footprint": Footprint(cpus_per_task=4)},
        **{"spec": spec, "shares": mark not in ("", UNMARKED), "user": "ada", "account": "lab"},
    }
    return Job(str(number), **{**given, **fields})


def here(number: int, on: str, *, mark: str = "*", **fields: Any) -> Job:
    """Such a job, running with its mark."""
    found = sharing(number, mark=mark, state=JobState.RUNNING, nodes=(on,), **fields)
    return replace(found, start_s=-100.0 + number)


def seen(waiting: list[Job], *running: Job, speeds: str = "", nodes: int = 2) -> Snapshot:
    """``speeds``: "1.9 2.8; 3" is job 1 at .9 with 2 at .8, and 3 known alone."""
    rows = [node(f"n{at + 1}", 0, cpus=4) for at in range(nodes)]
    rows = [replace(row, mem_mib=1000, free_mem_mib=1000) for row in rows]
    busy = {name for job in running for name in job.nodes}
    rows = [replace(row, free_cpus=0) if row.name in busy else row for row in rows]
    partition = Partition("main", tuple(row.name for row in rows), default=True, sharers=2)
    snapshot = Snapshot(0.0, rows, (partition,), tuple(waiting), running)
    return replace(snapshot, company=known(speeds))


def known(text: str) -> Company:
    parts = [part.split() for part in text.split(";") if part.strip()]
    return Company(tuple(Together(tuple(_speed(word) for word in part)) for part in parts))


def _speed(word: str) -> tuple[str, float]:
    job, _, speed = word.partition(".")
    return job, float(f"0.{speed}") if speed else 1.0


def marks(snapshot: Snapshot, name: str = FCS, **options: Any) -> dict[str, str]:
    return {mark.job.id: mark.mark for mark in cycle(snapshot, live(name, options)).marks}


def parted(snapshot: Snapshot, **options: Any) -> dict[str, str]:
    plan = cycle(snapshot, live(FCS, options))
    return {reshape.job.id: reshape.reason for reshape in plan.reshapes}


def test_a_pair_that_is_fast_is_marked() -> None:
    waiting = [sharing(1), sharing(2), sharing(3)]
    full = (here(8, "n1", mark=""), here(9, "n2", mark=""))
    assert marks(seen(waiting, *full, speeds="1.9 2.9; 1.4 3.4; 2.4 3.4")) == {"1": "*", "2": "*"}
    assert marks(seen(waiting, *full)) == {"1": "*"}  # alone, to be joined later


def test_one_that_is_right_beside_one_alone_is_marked_for_its_node() -> None:
    running = (here(8, "n1"), here(9, "n2"))
    speeds = "1.9 8.9; 1.4 9.4"
    assert marks(seen([sharing(1)], *running, speeds=speeds)) == {"1": "n1"}
    assert marks(seen([sharing(1)], *running, speeds="1.9 8.9; 1.8 9.8")) == {"1": "*"}
    pair = (here(8, "n1"), here(7, "n1"), here(9, "n2"))
    assert marks(seen([sharing(1)], *pair, speeds=f"{speeds}; 1.9 7.9")) == {}


def test_who_could_start_alone_is_not_sent_to_a_partner() -> None:
    running = (here(8, "n1"), here(9, "n2"))
    speeds = "1.9 8.9; 1.4 9.4"
    assert marks(seen([sharing(1)], *running, speeds=speeds, nodes=3)) == {}
    uncounted = seen([sharing(1)], *running, speeds=speeds)
    nodes = tuple(replace(row, mem_mib=0, free_mem_mib=0) for row in uncounted.nodes)
    assert marks(replace(uncounted, nodes=nodes)) == {}


def test_two_are_not_marked_for_one_place() -> None:
    waiting, running = [sharing(1), sharing(2)], (here(8, "n1"), here(9, "n2"))
    speeds = "1.8 8.8; 2.9 8.9; 1.3 9.3; 2.3 9.3; 1.3 2.3"
    assert marks(seen(waiting, *running, speeds=speeds)) == {"2": "n1"}


@pytest.mark.parametrize(
    "other",
    [
        {"spec": None},
        {"account": "other"},
        {"footprint": Footprint(cpus_per_task=2)},
        {"shape": Shape(1, 1)},
        {"array_tasks": "1-3", "tasks_waiting": 3},
        {"eligible": False},
        {"frozen": "it belongs to a reservation"},
        {"nodes_required": ("n1",)},
        {"partitions": ("main", "elsewhere")},
    ],
)
def test_who_did_not_agree_or_is_not_alike_is_not_marked(other: dict[str, Any]) -> None:
    one = replace(sharing(1), **other)
    assert marks(seen([one], here(8, "n1"), speeds="1.9 8.9")) == {}


@pytest.mark.parametrize(
    ("mib", "needs", "pair"),
    [
        (40_960, (20, 20), True),
        (40_960, (20, 21), False),
        (40_960, (0, 20), True),
        (40_960, (0, 21), False),  # it may take half of the memory
        (0, (0, 0), True),
        (0, (0, 1), False),  # where it is not known nobody counts on it
    ],
)
def test_two_share_a_gpu_only_where_it_has_the_memory_for_both(
    mib: int, needs: tuple[int, int], *, pair: bool
) -> None:
    half = Shape(1, 1, 2)
    takes: dict[str, Any] = {"shape": half, "shapes": (half,)}

    def needing(job: Job, gib: int) -> Job:
        spec = replace(job.spec or Spec(Request()), own=half)
        request = replace(spec.request, gpu_mem_mib=gib * 1024)
        return replace(job, spec=replace(spec, request=request))

    snapshot = seen(
        [needing(sharing(1, **takes), needs[0])],
        needing(here(8, "n1", **takes), needs[1]),
        here(9, "n2", mark=""),
        speeds="1.9 8.9",
    )
    pools = {
        "n1": (Pool("", 1, 0, 4, (2,), told_mib=mib),),
        "n2": (Pool("", 1, 0, 4, (), told_mib=mib),),
    }
    nodes = tuple(replace(row, pools=pools[row.name]) for row in snapshot.nodes)
    assert bool(marks(replace(snapshot, nodes=nodes))) is pair


def test_an_owner_who_said_no_shares_with_nobody() -> None:
    no = sharing(1, colocate=False)
    assert marks(seen([no], here(8, "n1"), speeds="1.9 8.9")) == {}
    disagreed = here(8, "n1", colocate=False)
    assert marks(seen([sharing(1)], disagreed, speeds="1.9 8.9")) == {}


def test_accounts_share_where_the_administrator_says_so() -> None:
    other = seen([sharing(1, account="other")], here(8, "n1"), speeds="1.9 8.9")
    assert marks(other) == {}
    assert marks(other, across_accounts=True) == {"1": "*"}


def test_without_accounts_a_user_shares_with_nobody_else() -> None:
    def two(user: str) -> Snapshot:
        running = here(8, "n1", account="")
        return seen([sharing(1, account="", user=user)], running, speeds="1.9 8.9")

    assert (marks(two("ada")), marks(two("ben"))) == ({"1": "*"}, {})


def test_one_that_its_owner_marked_and_that_is_smaller_is_no_partner() -> None:
    small = here(8, "n1", footprint=Footprint(cpus_per_task=2))
    assert marks(seen([sharing(1)], small, speeds="1.9 8.9")) == {}


def test_a_job_that_its_owner_marked_is_left_alone_and_keeps_others_from_a_mark() -> None:
    own = replace(sharing(7), shares=True)
    assert marks(seen([own, sharing(1)], speeds="1.9 7.9")) == {"1": "*"}
    foreign = replace(own, spec=None)
    assert marks(seen([foreign, sharing(1)])) == {}


def test_a_partition_that_lets_three_share_or_none_has_no_marks() -> None:
    snapshot = seen([sharing(1)])
    for sharers in (1, 3):
        partition = replace(snapshot.partitions[0], sharers=sharers)
        assert marks(replace(snapshot, partitions=(partition,))) == {}


def test_marks_that_should_not_be_are_taken_away_by_every_policy() -> None:
    marked = seen([sharing(1, mark="*"), sharing(2, mark="n1")], here(8, "n1"))
    assert marks(marked) == {"1": UNMARKED, "2": UNMARKED}
    plan = cycle(marked, live("easy-backfill", {}))
    assert {mark.job.id: mark.mark for mark in plan.marks} == {"1": UNMARKED, "2": UNMARKED}


def test_no_node_is_named_where_an_earlier_job_is_expected() -> None:
    first = sharing(5, colocate=None, expected_nodes=("n1",), expected_s=60.0)
    running = (here(8, "n1"), here(9, "n2"))
    speeds = "1.9 8.9; 1.4 9.4"
    assert marks(seen([first, sharing(1)], *running, speeds=speeds)) == {}
    later = replace(first, expected_s=2.0 * HOUR_S)
    assert marks(seen([later, sharing(1)], *running, speeds=speeds)) == {"1": "n1"}


def test_one_that_learns_tries_only_who_is_measured_alone() -> None:
    running = here(8, "n1")
    assert marks(seen([sharing(1)], running, speeds="1; 8"), UCB) == {"1": "*"}
    assert marks(seen([sharing(1)], running, speeds="1"), UCB) == {}
    assert marks(seen([sharing(1)], running, speeds="1; 8"), FCS) == {}
    assert marks(seen([sharing(1)], running, speeds="1; 8; 1.4 8.4"), UCB) == {}


def test_of_two_programs_one_pair_is_tried_at_a_time() -> None:
    """Should it be a bad one, it is one: a whole cluster of them could not be parted any more."""

    def jobs(*numbers: int, name: str = "train") -> list[Job]:
        return [sharing(number, name=name) for number in numbers]

    alone = [here(10 + n, f"n{n}", name="train") for n in (1, 2, 3)]
    known = "; ".join(map(str, (*range(1, 6), 11, 12, 13)))
    assert marks(seen(jobs(1, 2, 3), speeds=known), UCB) == {"1": "*", "2": "*"}
    assert marks(seen(jobs(1, 2), *alone, speeds=known, nodes=3), UCB) == {"1": "*"}
    others = [*jobs(1, 2), *jobs(3, name="eval")]
    assert marks(seen(others, *alone, speeds=known, nodes=3), UCB) == {"1": "*", "3": "*"}
    tried = (*alone, here(4, "n1", name="train"))
    assert marks(seen(jobs(1), *tried, speeds=known, nodes=3), UCB) == {}
    good = f"{known}; 4.9 11.9; 1.9 11.9; 1.9 12.9; 1.9 13.9; 1.9 4.9"
    assert marks(seen(jobs(1), *tried, speeds=good, nodes=3), UCB) == {"1": "*"}


def leaving(number: int, **fields: Any) -> Job:
    """A running job that may be asked for a checkpoint."""
    job = here(number, "n1", grace_s=30.0, **fields)
    assert job.spec is not None
    request = replace(job.spec.request, malleable=Malleable(30))
    return replace(job, spec=replace(job.spec, request=request))


def test_of_a_slow_pair_the_later_one_leaves_if_it_may() -> None:
    slow = "7.3 8.4"
    words = "it is parted from job 7: together they do 0.70 of what one does alone (job 7 at"
    found = parted(seen([], leaving(7), leaving(8), speeds=slow))
    assert found == {"8": f"{words} 0.30, job 8 at 0.40)"}
    assert set(parted(seen([], leaving(7), here(8, "n1"), speeds=slow))) == {"7"}
    assert parted(seen([], here(7, "n1"), here(8, "n1"), speeds=slow)) == {}
    assert parted(seen([], leaving(7), leaving(8), speeds="7.6 8.6")) == {}
    assert set(parted(seen([], leaving(7), leaving(8), speeds="7.6 8.6"), least=1.3)) == {"8"}
    assert parted(seen([], leaving(7), leaving(8))) == {}


def test_nobody_leaves_a_pair_whose_owner_has_said_how_often_it_may_be_moved() -> None:
    resting = leaving(8, changes=1)
    assert resting.spec is not None
    request = replace(resting.spec.request, malleable=Malleable(30, max_resizes=1))
    resting = replace(resting, spec=replace(resting.spec, request=request))
    assert [*places(seen([], leaving(7), resting, speeds="7.3 8.4"))] == ["7"]


def places(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Where jobs that are parted go."""
    return {one.job.id: one.nodes for one in cycle(snapshot, live(FCS, {})).reshapes}


def test_one_that_is_parted_goes_to_an_idle_node_that_nobody_waits_for() -> None:
    pair, slow = (leaving(7), leaving(8)), "7.3 8.4"
    assert places(seen([], *pair, speeds=slow)) == {"8": ("n2",)}
    going = replace(here(9, "n3"), next_shape=CPUS, next_nodes=("n2",))
    assert places(seen([], *pair, going, speeds=slow, nodes=4)) == {"8": ("n4",)}
    first = sharing(1, colocate=None, expected_nodes=("n2",), expected_s=HOUR_S - 1.0)
    first = replace(first, nodes_required=("n9",))  # so that no claim of ours keeps it
    assert places(seen([first], *pair, speeds=slow)) == {}
    assert places(seen([first], *pair, speeds=slow, nodes=3)) == {"8": ("n3",)}
    later = replace(first, expected_s=2.0 * HOUR_S)
    assert places(seen([later], *pair, speeds=slow)) == {"8": ("n2",)}


def test_two_are_parted_only_where_it_gains_more_than_leaving_may_cost() -> None:
    def found(left_s: float, restart_s: float = 0.0) -> list[str]:
        pair = [replace(leaving(n), start_s=left_s - HOUR_S, restart_s=restart_s) for n in (7, 8)]
        return [*places(seen([], *pair, speeds="7.3 8.4"))]

    assert found(40.0) == ["8"]  # gains 1.3 * 40 s, and may cost 30 s of grace, and 10 s
    assert found(30.0) == []
    assert found(40.0, restart_s=50.0) == []


def test_a_bad_pair_that_cannot_be_parted_ends_with_one_of_the_two_and_comes_about_no_more() -> (
    None
):
    """Of programs that were slow together no two are paired again: neither of these, nor others."""
    slow = "7.3 8.4; 1; 7.3 1.4; 8.3 1.4"
    stuck = (here(7, "n1"), here(8, "n1"), here(9, "n2", mark=""))
    assert parted(seen([sharing(1)], *stuck, speeds=slow)) == {}
    for name in (FCS, UCB):
        assert marks(seen([sharing(1)], *stuck, speeds=slow), name) == {}
        left = seen([sharing(1)], *stuck[1:], speeds=slow)
        assert (marks(left, name), parted(left)) == ({}, {})


def test_a_pair_whose_other_half_did_not_agree_or_that_changes_is_left() -> None:
    slow, busy = "7.3 8.4", replace(leaving(8), next_shape=CPUS)
    plain = replace(here(7, "n1"), spec=None)
    assert parted(seen([], plain, leaving(8), speeds=slow)) == {}
    assert parted(seen([], leaving(7), busy, speeds=slow)) == {}


def says(snapshot: Snapshot, job: str) -> str:
    return explain(snapshot, live(FCS, {}), job).says


def test_why_tells_who_shares_a_node_and_who_may() -> None:
    pair = seen([], here(8, "n1"), here(7, "n1"), speeds="7.9 8.8")
    assert says(pair, "8") == (
        "it runs as 1x0@cpu; it shares n1 with job 7 at 0.80 of its speed alone"
    )
    assert says(seen([], here(8, "n1"), here(7, "n1")), "8").endswith("it shares n1 with job 7")
    alone = "it runs as 1x0@cpu; it has its node alone"
    assert says(seen([], here(8, "n1")), "8") == f"{alone}, which is being measured"
    assert says(seen([], here(8, "n1", mark=""), speeds="8"), "8") == (
        f"{alone}; its speed alone is known; nobody can join it: it had no mark when it started"
    )
    assert says(seen([], here(8, "n1", colocate=None)), "8") == "it runs as 1x0@cpu"
    waits = seen([sharing(1, mark="n1"), sharing(2, mark="*")], here(8, "n1"), here(9, "n2"))
    assert says(waits, "1").endswith("; it may start beside another job, on n1")
    assert says(waits, "2").endswith(
        "; it may start beside another job, wherever another is that is marked"
    )


# --- whatever waits and runs ---------------------------------------------------------------------


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    some = st.sampled_from(["", "*", "n1", UNMARKED])
    waiting = [
        sharing(
            number,
            mark=draw(some),
            colocate=draw(st.sampled_from([True, True, True, None])),
            account=draw(st.sampled_from(["lab", "lab", "other"])),
        )
        for number in range(draw(st.integers(0, 5)))
    ]
    running = [
        here(10 + at, f"n{1 + at // 2}", mark=draw(st.sampled_from(["*", "n1", ""])))
        for at in range(draw(st.integers(0, 5)))
    ]
    jobs = [*waiting, *running]
    numbers = st.sampled_from([0.3, 0.5, 0.8, 0.9])
    pairs = [pair for pair in combinations(jobs, 2) if draw(st.booleans())]
    company = Company(
        (
            *(Together(((job.id, 1.0),)) for job in jobs),
            *(Together(tuple((job.id, draw(numbers)) for job in pair)) for pair in pairs),
        )
    )
    return replace(seen(waiting, *running, nodes=3), company=company)


def carried_out(snapshot: Snapshot, name: str) -> Snapshot:
    given = {mark.job.id: mark.mark for mark in cycle(snapshot, live(name, {})).marks}
    return replace(snapshot, waiting=tuple(_with(job, given) for job in snapshot.waiting))


def _with(job: Job, given: dict[str, str]) -> Job:
    mark = given.get(job.id)
    if mark is None or job.spec is None:
        return job
    return replace(job, spec=replace(job.spec, mark=mark), shares=mark != UNMARKED)


def _meet(snapshot: Snapshot) -> Iterator[tuple[Job, Job]]:
    """Yield all that are marked and could come together by the batch system's own choice."""
    every = frozenset(node.name for node in snapshot.nodes)
    could = {
        job.id: every if job.mark == "*" else frozenset((job.mark,))
        for job in snapshot.waiting
        if job.mark
    } | {job.id: frozenset(job.nodes) for job in snapshot.running if job.shares}
    jobs = {job.id: job for job in (*snapshot.waiting, *snapshot.running)}
    for one, two in combinations(could, 2):
        runs = all(jobs[name].state is JobState.RUNNING for name in (one, two))
        if not runs and could[one] & could[two]:
            yield jobs[one], jobs[two]


@given(clusters(), st.sampled_from([FCS, UCB, "cosched-pi", "cosched-ei"]))
def test_whatever_the_batch_system_pairs_is_a_pair_that_is_right(
    before: Snapshot, name: str
) -> None:
    """So it stays right when nobody looks any more; and a second look changes nothing."""
    after = carried_out(before, name)
    assert marks(after, name) == {}
    assert sum(job.mark != "" for job in after.waiting) <= min(len(after.nodes), WINDOW)
    table = after.company.table
    for one, two in _meet(after):
        assert one.colocates
        assert two.colocates
        assert one.account == two.account
        speeds = table.get(frozenset((one.id, two.id)))
        assert speeds is None or sum(speeds.values()) > 1
        assert speeds is not None or name != FCS


def test_cpus_of_nodes_that_differ_are_not_shared() -> None:
    snapshot = seen([sharing(1)])
    rows: list[Node] = [replace(snapshot.nodes[0], cpus=8), snapshot.nodes[1]]
    assert marks(replace(snapshot, nodes=rows)) == {}
