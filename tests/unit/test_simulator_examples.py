"""Replays that can be worked out by hand, or by a loop of a few lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import ClassVar

import pytest
from build import job, node
from hypothesis import given
from hypothesis import strategies as st
from replaying import replayed
from resizing import elastic

from pliant.grammar import parse_shape
from pliant.model import ALL_CORES, Node, Partition, Shape, Snapshot
from pliant.plan import Plan, Policy, Reshape, Start
from pliant.policies import by_name
from pliant.policies.easy import EasyBackfill
from pliant.policies.rigid import RigidFcfs
from pliant.simulator.metrics import Span, Task
from pliant.simulator.replay import Replay
from pliant.simulator.traces import Record
from pliant.simulator.workload import Arrival, Workload
from pliant.simulator.workloads.records import Linear, Machine, from_records

# --- one machine, first come first served ---------------------------------------------------------

SIX = [
    Record("1", 0, 100, 6, 6, 100),
    Record("2", 10, 50, 7, 7, 60),
    Record("3", 20, 30, 4, 4, 40),
    Record("4", 30, 200, 4, 4, 300),
    Record("5", 40, 10, 1, 1, 10),
    Record("6", 110, 5, 10, 10, 10),
]
"""Of 10 processors."""


def starts(trace: list[Record], processors: int, policy: RigidFcfs | EasyBackfill) -> list[float]:
    workload = from_records(trace, Machine(processors, limits=True), "trace")
    begun = {task.id: task.start_s for task in Replay(workload, policy).run()}
    return [begun[record.id] for record in trace]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (RigidFcfs("own"), [0, 100, 150, 150, 150, 350]),
        (RigidFcfs("own", overtaking=True), [0, 250, 20, 50, 100, 300]),
        (EasyBackfill("own"), [0, 100, 20, 150, 50, 350]),
    ],
    ids=repr,
)
def test_six_jobs_by_hand(policy: RigidFcfs | EasyBackfill, expected: list[float]) -> None:
    """The second does not fit beside the first: who goes before it is what tells them apart."""
    assert starts(SIX, 10, policy) == expected


def by_hand(trace: list[Record], processors: int, rule: str) -> list[float]:
    """The same by counting processors: ``strict``, ``list`` or ``easy``."""
    free, ends = processors, list[tuple[float, float, int]]()  # end, latest end, width
    queue, begun = list[Record](), dict[str, float]()
    coming = list(trace)
    while coming or ends:
        now_s = min([record.submit_s for record in coming[:1]] + [end[0] for end in ends[:1]])
        while ends and ends[0][0] <= now_s:
            free += heappop(ends)[2]
        while coming and coming[0].submit_s <= now_s:
            queue.append(coming.pop(0))
        latest_s, spare = float("inf"), processors
        for record in list(queue):
            width, latest = record.width, now_s + max(record.limit_s, record.run_s)
            if width <= free and (latest <= latest_s or width <= spare):
                free -= width
                spare -= width if latest > latest_s else 0
                begun[record.id] = now_s
                queue.remove(record)
                heappush(ends, (now_s + record.run_s, latest, width))
            elif rule == "strict":
                break
            elif rule == "easy" and latest_s == float("inf"):
                latest_s, spare = opening(sorted(end[1:] for end in ends), free, width)
    return [begun[record.id] for record in trace]


def opening(ends: list[tuple[float, int]], free: int, width: int) -> tuple[float, int]:
    """When so many processors are free at the latest, and how many more are free then."""
    for at_s, more in ends:
        free += more
        if free >= width:
            return at_s, free - width
    raise AssertionError("no job is wider than the machine")


@st.composite
def traces(draw: st.DrawFn) -> list[Record]:
    found, at_s = [], 0
    for number in range(draw(st.integers(1, 14))):
        at_s += draw(st.integers(0, 30))
        run_s, width = draw(st.integers(1, 90)), draw(st.integers(1, 8))
        limit_s = run_s + draw(st.sampled_from([0, 0, 7, 100]))
        found.append(Record(str(number), at_s, run_s, width, width, limit_s))
    return found


@pytest.mark.parametrize(
    ("rule", "policy"),
    [
        ("strict", RigidFcfs("own")),
        ("list", RigidFcfs("own", overtaking=True)),
        ("easy", EasyBackfill("own")),
    ],
)
@given(trace=traces())
def test_one_machine_is_filled_as_a_loop_that_counts_would_fill_it(
    rule: str, policy: RigidFcfs | EasyBackfill, trace: list[Record]
) -> None:
    assert starts(trace, 8, policy) == by_hand(trace, 8, rule)


# --- what becomes of single jobs ------------------------------------------------------------------

GPU_NODE = node("n1")


def replay(nodes: list[Node], arrivals: list[Arrival], policy: Policy) -> list[Task]:
    parts = (Partition("gpu", tuple(one.name for one in nodes), default=True),)
    return replayed(Workload("by hand", tuple(nodes), parts, tuple(arrivals)), policy)[1]


def spans(tasks: list[Task]) -> dict[str, list[Span]]:
    return {
        task.id: [Span(s.start_s, s.end_s, s.gpus, s.lost_s) for s in task.spans] for task in tasks
    }


@dataclass(frozen=True)
class Script:
    """Start all that wait as ``first``, and change job 1 at 50 s."""

    first: str
    then: str
    name: ClassVar[str] = "script"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot) -> Plan:
        first, then = parse_shape(self.first), parse_shape(self.then)
        waiting = (Start(job, first, ("n1",), "") for job in snapshot.waiting)
        changing = (
            Reshape(job, then, ("n1",), "")
            for job in snapshot.running
            if (job.id, job.shape, job.next_shape) == ("1", first, None) and snapshot.now_s >= 50.0
        )
        return Plan(tuple(waiting), reshapes=tuple(changing))


@pytest.mark.parametrize(
    ("gpus", "shards", "first", "then"),
    [
        (1, 4, "1/4", "1/2"),  # with what is left of its own GPU
        (1, 4, "1/2", "1/4"),
        (1, 4, "1/4", "1"),
        (4, 0, "1", "2"),
        (4, 0, "2", "1"),
        (4, 0, "1", "2@both"),  # all cores beside its own
        (4, 0, "2@both", "1"),
        (4, 4, "1/4", "2"),
        (4, 4, "2", "1/4"),
    ],
)
def test_a_job_keeps_what_it_has_and_takes_only_what_is_more(
    gpus: int, shards: int, first: str, then: str
) -> None:
    """On a node that it alone would fill otherwise; saving takes 10 s and a restart 5 s."""
    changes = elastic(1, "1", "gpus=1/4-4", time_limit_s=0)
    assert changes.spec is not None
    request = replace(changes.spec.request, cores=ALL_CORES)
    changes = replace(changes, spec=replace(changes.spec, request=request))
    knocks = Arrival(replace(changes, id="2", submit_s=50.0), 0.0)  # and takes nothing
    arrivals = [Arrival(changes, 100.0, save_s=10.0, restart_s=5.0), knocks]
    found = spans(replay([node("n1", gpus, cpus=4, shards=shards)], arrivals, Script(first, then)))
    amounts = [float(parse_shape(word).amount) for word in (first, then)]
    assert found["1"] == [Span(0.0, 60.0, amounts[0], 10.0), Span(60.0, 115.0, amounts[1], 5.0)]


def test_the_tasks_of_an_array_are_numbered() -> None:
    tasks = replay([GPU_NODE], [Arrival(job(1, "2", tasks_waiting=3), 60.0)], RigidFcfs())
    assert [(task.id, task.start_s) for task in tasks] == [
        ("1_0", 0.0),
        ("1_1", 0.0),
        ("1_2", 60.0),
    ]


def test_a_job_that_makes_no_progress_ends_by_its_time_limit_or_not_at_all() -> None:
    def stands(_: Shape) -> float:
        return 0.0

    arrivals = [Arrival(job(n, time_limit_s=n), 60.0, stands) for n in (0, 90)]
    tasks = replay([GPU_NODE], arrivals, RigidFcfs())
    assert [(task.id, task.end_s, task.timed_out) for task in tasks] == [("90", 90.0, True)]


@pytest.mark.parametrize(
    ("limit_s", "expected"),
    [
        (55, [Span(0.0, 55.0, 1.0, 5.0)]),  # of the ten seconds that it takes to save
        (60, [Span(0.0, 60.0, 1.0, 10.0), Span(60.0, 115.0, 2.0, 5.0)]),
    ],
)
def test_a_time_limit_ends_a_job_that_has_not_saved_yet(limit_s: int, expected: list[Span]) -> None:
    changes = elastic(1, "1", time_limit_s=limit_s)
    knocks = Arrival(replace(elastic(2), submit_s=50.0), 0.0)
    arrivals = [Arrival(changes, 100.0, save_s=10.0, restart_s=5.0), knocks]
    tasks = replay([GPU_NODE], arrivals, Script("1", "2"))
    assert spans(tasks)["1"] == expected
    assert [task.timed_out for task in tasks if task.id == "1"] == [limit_s == 55]


def test_a_job_that_never_fits_waits_for_ever_and_delays_nobody() -> None:
    arrivals = [Arrival(job(1, "5"), 60.0), Arrival(job(2, "4"), 60.0)]
    parts = (Partition("gpu", ("n1",), default=True),)
    whole = Replay(Workload("by hand", (GPU_NODE,), parts, arrivals), EasyBackfill())
    assert [task.id for task in whole.run()] == ["2"]
    assert [left.id for left in whole.cluster.queue] == ["1"]


def test_what_a_change_costs_is_the_jobs_own() -> None:
    """Paper 003: nothing is taken from a job for three times its launch."""
    arrivals = [
        Arrival(elastic(1, time_limit_s=0, volume_s=4000.0), 4000.0, Linear(1), 20.0, 10.0, 5.0),
        Arrival(
            replace(elastic(2, time_limit_s=0, volume_s=800.0), submit_s=15.0), 800.0, Linear(1)
        ),
    ]
    found = spans(replay([GPU_NODE], arrivals, by_name("malleable-equipartition")))
    # Four GPUs from 10 s on; at 40 s it is told to halve, and at 60 s it has saved.
    assert found["1"][0] == Span(0.0, 60.0, 4.0, 30.0)
    assert found["2"][0].start_s == 60.0
    assert [one.start_s for one in found["1"]][:2] == [0.0, 60.0]
    assert found["1"][1].gpus == 2.0
