"""Whole replays, worked out by hand: every figure of a run, and what several seeds say together."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import pytest
from scipy.stats import t as exact_t

from pliant import policies
from pliant.errors import BadInput
from pliant.model import Job, JobClass, Node, Partition, Pool, Request, Shape, Spec
from pliant.simulator.comparison import WorstHit, compare, worst_hit
from pliant.simulator.metrics import Spread
from pliant.simulator.runs import Case, Choice, replayed, run_case
from pliant.simulator.seeds import Estimate, change, estimate, student_t
from pliant.simulator.sources import SOURCES, Asked, workload_of
from pliant.simulator.sweep import HERE, Processes
from pliant.simulator.tally import Bags, Figures, User
from pliant.simulator.traces import Record
from pliant.simulator.workload import Arrival, Workload
from pliant.simulator.workloads.site import Site, on_site


def swf(path: Path, *jobs: tuple[int, int, int, int], header: str = "; MaxProcs: 4\n") -> Path:
    """A trace of (submit, run, processors, user)."""
    lines = [
        f"{number} {submit} -1 {run} {width} -1 -1 {width} -1 -1 1 {user} 1 1 1 -1 -1 -1\n"
        for number, (submit, run, width, user) in enumerate(jobs, 1)
    ]
    path.write_text(header + "".join(lines))
    return path


JOBS = ((0, 100, 3, 1), (10, 50, 2, 2), (20, 30, 1, 1))
"""On four processors, in order: 0 to 100, then both others from 100 to 150 and to 130."""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return swf(tmp_path / "trace.swf", *JOBS)


def figures_of(trace: Path, policy: str, **options: bool | int | str) -> Figures:
    asked = Asked(trace=str(trace))
    return run_case(Case(Choice(policy, tuple(options.items())), asked)).figures


def test_every_figure_of_three_jobs_in_order(trace: Path) -> None:
    found = figures_of(trace, "rigid-fcfs", shape="own")
    assert found.tasks is not None
    assert found.tasks.tasks == 3
    assert found.tasks.flow_s == Spread(350 / 3, 110, 140, 140, 140)
    assert found.tasks.wait_s == Spread(170 / 3, 80, 90, 90, 90)
    assert found.tasks.slowdown.median == 1 + 90 / 50
    assert found.tasks.slowdown.most == 1 + 80 / 30
    assert found.tasks.stretch.most == 110 / 30
    assert found.bags == Bags(
        2, Spread(135, 130, 140, 140, 140), Spread((130 / 330 + 1.4) / 2, 130 / 330, 1.4, 1.4, 1.4)
    )
    assert (found.gpus, found.makespan_s, found.capacity_gpu_s) == (4, 150, 600)
    assert (found.utilisation, found.idle_gpu_s) == (430 / 600, 170)
    assert found.avoidable_gpu_s == 80  # the third would have fitted from 20 to 100
    assert (found.lost_gpu_s, found.preemptions, found.restarts, found.away_s) == (0, 0, 0, None)
    assert (found.never, found.timed_out) == (0, 0)
    assert found.users["1"].tasks == 2
    assert found.worst_off == ("2", User(1, 140, 2.8))


def test_who_starts_whatever_fits_leaves_nothing_avoidably_idle(trace: Path) -> None:
    found = figures_of(trace, "rigid-fcfs", shape="own", overtaking=True)
    assert (found.avoidable_gpu_s, found.idle_gpu_s) == (0, 170)
    assert found.tasks is not None
    assert found.tasks.flow_s == Spread((100 + 140 + 30) / 3, 100, 140, 140, 140)


def test_idle_time_needs_not_be_measured(trace: Path) -> None:
    case = Case(Choice("rigid-fcfs"), Asked(trace=str(trace)), idle=False)
    assert run_case(case).figures.avoidable_gpu_s is None


def one_node(*arrivals: Arrival) -> Workload:
    nodes = (Node("n1", 8, 8, 0, 0, (Pool("", 2, 2),)),)
    return Workload("two GPUs", nodes, (Partition("all", ("n1",), default=True),), arrivals)


BOTH = Shape(1, 2)


def job(name: str, submit_s: float, of: JobClass, shape: Shape = BOTH) -> Job:
    spec = Spec(Request(job_class=of), own=shape)
    return Job(id=name, partitions=("all",), submit_s=submit_s, shape=shape, spec=spec)


def test_every_figure_of_a_preemption() -> None:
    """Told at 40, gone at 50; the trial runs to 70; again from 70, working from 75 to 135."""
    workload = one_node(
        Arrival(job("be", 0, JobClass.BEST_EFFORT), 100, save_s=10, restart_s=5),
        Arrival(job("te", 40, JobClass.TRIAL), 20),
    )
    found = replayed(workload, policies.by_name("fitgpp"))
    assert found.tasks is not None
    assert found.tasks.flow_s == Spread((135 + 30) / 2, 30, 135, 135, 135)
    assert found.tasks.wait_s == Spread((35 + 10) / 2, 10, 35, 35, 35)
    assert found.away_s == Spread(20, 20, 20, 20, 20)
    assert (found.preempted, found.preemptions, found.restarts) == (1, 1, 1)
    assert (found.lost_gpu_s, found.idle_gpu_s, found.avoidable_gpu_s) == (30, 0, 0)
    assert [*found.classes] == ["best-effort", "trial"]
    assert found.classes["trial"].slowdown.mean == 1.5
    assert (found.users, found.bags, found.worst_off) == ({}, None, None)


def test_what_never_starts_is_counted() -> None:
    huge = Arrival(job("huge", 0, JobClass.TRIAL, Shape(1, 3)), 10)
    found = replayed(one_node(huge), policies.by_name("easy-backfill"))
    assert (found.tasks, found.never, found.never_example, found.makespan_s) == (None, 1, "huge", 0)


def test_a_share_of_a_gpu_is_a_part_of_its_idle_time() -> None:
    half = Shape(1, 1, share=2)
    nodes = (Node("n1", 8, 8, 0, 0, (Pool("", 1, 1, shards_per_gpu=2),)),)
    jobs = [
        Job(id=str(n), partitions=("all",), submit_s=0, shape=shape)
        for n, shape in enumerate((half, Shape(1, 1), half))
    ]
    arrivals = tuple(Arrival(one, 10) for one in jobs)
    workload = Workload("half", nodes, (Partition("all", ("n1",), default=True),), arrivals)
    found = replayed(workload, policies.by_name("rigid-fcfs", shape="own"))
    assert found.avoidable_gpu_s == 0.5 * 10  # beside the first, and not beside the second


# --- several replays --------------------------------------------------------------------------

RAVI = [
    Case(Choice(policy), Asked("ravi", jobs=6), seed)
    for policy in ("torque", "rsa")
    for seed in (1, 2)
]


def test_the_same_cases_come_to_the_same_here_and_in_other_processes() -> None:
    told: list[int] = []
    here = HERE.each(run_case, RAVI, told.append)
    assert here == HERE.each(run_case, RAVI, told.append)
    assert Processes(2).each(run_case, RAVI, told.append) == here
    assert told == [1, 2, 3, 4] * 3


def test_a_policy_that_draws_does_so_by_the_seed_unless_told() -> None:
    assert Choice("rand").policy_for(3) == policies.by_name("rand", seed=3)
    assert Choice("rand", (("seed", 7),)).policy_for(3) == policies.by_name("rand", seed=7)


def test_a_mean_and_its_confidence_interval() -> None:
    assert estimate([5]) == Estimate(5, None)
    found = estimate([10, 12, 14])
    assert found.mean == 12
    assert found.within == pytest.approx(4.3027 * 2 / sqrt(3), rel=1e-4)
    with pytest.raises(ValueError, match="no values"):
        estimate([])


def test_changes_are_paired_seed_by_seed() -> None:
    found = change([11, 24], [10, 20])
    assert found is not None
    assert found.mean == pytest.approx(0.15)
    assert found.within == pytest.approx(12.7062 * 0.05)  # of 0.1 and 0.2
    assert change([1, 1], [0, 1]) is None


def test_students_t_is_that_of_the_tables() -> None:
    for freedom in (*range(1, 40), 60, 100, 1000):
        assert student_t(freedom) == pytest.approx(exact_t.ppf(0.975, freedom), abs=1e-4)


def test_policies_are_compared_figure_by_figure_and_user_by_user(trace: Path) -> None:
    results = {
        "strict": [figures_of(trace, "rigid-fcfs", shape="own")],
        "list": [figures_of(trace, "rigid-fcfs", shape="own", overtaking=True)],
    }
    rows = {(row.figure, row.policy): row for row in compare(results)}
    assert rows["flow time, mean (s)", "strict"].mean == Estimate(350 / 3, None)
    changed = rows["flow time, mean (s)", "list"].change
    assert changed == Estimate(90 / (350 / 3) - 1, None)
    assert rows["avoidably idle (part)", "list"].values == (0,)
    assert ("preemptions", "list") not in rows  # nobody has any
    assert worst_hit(results, [1]) == [WorstHit("list", 1, "2", 1.0)]


# --- workloads by name ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, of in SOURCES.items() if "trace" not in of.said])
def test_each_workload_that_reads_nothing_comes_to_an_end(name: str) -> None:
    asked = Asked(name, jobs=100 if name == "fujiwara" else 4)
    outcome = run_case(Case(Choice("mct" if "ravi" in name else "easy-backfill"), asked))
    assert outcome.figures.tasks is not None
    assert outcome.figures.never == 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Asked("nope"), "workload: 'nope': one of trace, hpc2n, fujiwara, "),
        (Asked("hpc2n"), "workload hpc2n reads a trace: --trace FILE is missing"),
        (Asked("seo", (("load", 2),)), r"workload seo: option 'load': one of launch_s \(27.4\)"),
        (Asked("ravi", (("bias", "x"),)), "workload ravi: bias: 'x': uniform or cpu or gpu is"),
        (Asked("seo", trace="x"), "--trace: workload seo has no use for it"),
        (Asked("fitgpp", nodes=3), "--nodes: workload fitgpp has no use for it"),
        (Asked("fitgpp", (("mix", "x"),)), "workload fitgpp: mix: 'x': one of deviations as"),
        (Asked(trace="x", format="csv"), "--format: 'csv': one of swf, sacct, sacct-json, gpus is"),
        (Asked(trace="x", nodes=1, processors=1), "--processors and --nodes exclude each other"),
        (Asked(trace="x", gpus_per_node=1), "--gpus-per-node and --cpus-per-node go with --nodes"),
        (Asked(trace="x", nodes=1), "--nodes goes with --gpus-per-node or --cpus-per-node"),
        (Asked(trace="/nonexistent/x"), "/nonexistent/x: No such file"),
    ],
)
def test_what_is_wrong_with_a_workload_is_said(asked: Asked, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        workload_of(asked, 1)


SACCT = (
    "JobID|User|Submit|Start|End|State|TimelimitRaw|AllocTRES|NNodes\n"
    "7|ann|100|110|160|COMPLETED|60|cpu=8,node=2,gres/gpu=4|2\n"
    "8|bob|120|130|150|COMPLETED||cpu=3,node=1|1\n"
)


def test_a_trace_is_known_by_how_it_begins(tmp_path: Path) -> None:
    sacct, other, empty = (tmp_path / name for name in ("sacct", "other", "empty"))
    sacct.write_text(SACCT)
    other.write_text("name,run\n")
    empty.write_text("\n")
    assert len(workload_of(Asked(trace=str(sacct), processors=9), 1).arrivals) == 2
    with pytest.raises(BadInput, match="line 1: no trace that is known begins so"):
        workload_of(Asked(trace=str(other), processors=9), 1)
    with pytest.raises(BadInput, match="an empty file is no trace"):
        workload_of(Asked(trace=str(empty), processors=9), 1)
    with pytest.raises(BadInput, match="how large is the machine"):
        workload_of(Asked(trace=str(sacct)), 1)


def test_a_trace_without_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"empty\.swf: no job"):
        workload_of(Asked(trace=str(swf(tmp_path / "empty.swf"))), 1)


def test_jobs_of_sacct_on_nodes(tmp_path: Path) -> None:
    path = tmp_path / "sacct"
    path.write_text(SACCT)
    asked = Asked(trace=str(path), nodes=3, gpus_per_node=4, cpus_per_node=8)
    on_gpus, on_cpus = (arrival.job for arrival in workload_of(asked, 1).arrivals)
    assert (on_gpus.shape, on_gpus.demand(on_gpus.shape).cpus) == (Shape(2, 2), 4)
    assert (on_gpus.time_limit_s, on_cpus.time_limit_s) == (3600, 0)
    assert on_cpus.shape.amount == 0
    assert on_cpus.demand(on_cpus.shape).cpus == 3
    found = run_case(Case(Choice("easy-backfill"), asked)).figures
    assert (found.gpus, found.makespan_s, found.idle_gpu_s) == (12, 50, 600 - 200)


@pytest.mark.parametrize(
    ("units", "nodes", "shape"),
    [
        (1, 0, Shape(1, 1)),
        (4, 0, Shape(1, 4)),
        (4, 2, Shape(2, 2)),
        (4, 3, Shape(1, 4)),  # does not divide
        (6, 0, Shape(2, 3)),
        (7, 0, Shape(2, 4)),  # no number of nodes divides 7
        (99, 0, Shape(3, 4)),
    ],
)
def test_gpus_spread_over_the_nodes(units: int, nodes: int, shape: Shape) -> None:
    assert Site(3, 4).shape(units, nodes) == shape


def test_jobs_on_nodes_may_be_moldable() -> None:
    records = [Record("1", 0, 60, 2, 2)]
    site = Site(2, 4, bounds=(1, 8), by_processor=True)
    (arrival,) = on_site(records, site, "x").arrivals
    assert Shape(2, 4) in arrival.job.shapes
    assert arrival.run_s(Shape(2, 4)) == 15
    found = replayed(on_site(records, site, "x"), policies.by_name("moldable-equipartition"))
    assert found.makespan_s == 15
