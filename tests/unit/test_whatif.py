"""A site's own month: its cluster, what its jobs are taken to allow, and what came of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from slurm_recorded import recorded

from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.partition_rows import parse_partitions
from pliant.errors import BadInput
from pliant.model import Kind, Malleable, Node, Partition, Pool, Shape
from pliant.pages.model import Marked, plain
from pliant.policies import by_name
from pliant.simulator.jobs import Flow, JobChange, job_sides
from pliant.simulator.metrics import Task
from pliant.simulator.replay import Replay
from pliant.simulator.runs import Choice, Outcome, replayed
from pliant.simulator.tally import Figures, Tally, User
from pliant.simulator.traces import read_sacct
from pliant.simulator.traces.sacct import MONTH, left_out
from pliant.simulator.users import Change, sides
from pliant.simulator.whatif.cluster import PLENTY, SiteCluster, alike, from_slurm
from pliant.simulator.whatif.molding import Curve, Molding, Relative, curve, owners_words
from pliant.simulator.whatif.month import Month, happened
from pliant.simulator.whatif.report import page
from pliant.simulator.whatif.result import Fit, Result
from pliant.simulator.whatif.rooms import Room
from pliant.simulator.whatif.words import agreement, assumptions, seen, title
from pliant.simulator.workload import Arrival
from pliant.simulator.workloads.site import Site, on_site

LINEAR = Curve("power", 1.0)
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "month.txt"


def row(job: str = "7", gpus: int = 2, nodes: int = 1, **said: str) -> str:
    """A job that was submitted at 100 and ran from 130 to 190, with four CPUs for each GPU."""
    tres = f"billing=1,cpu={4 * gpus},gres/gpu={gpus},mem=8G,node={nodes}"
    fields = {
        **{"JobID": job, "User": "alice", "Submit": "100", "Start": "130", "End": "190"},
        **{"State": "COMPLETED", "TimelimitRaw": "30", "AllocTRES": tres, "Account": "lab"},
        **{"Partition": "gpu", **said},
    }
    return "|".join(fields[name] for name in MONTH.split(","))


CPU_ONLY = "cpu=20,mem=1G,node=2"


def month(
    folder: Path,
    *rows: str,
    cluster: SiteCluster | None = None,
    molds: bool = True,
    shrink: int = 2,
    grow: int = 2,
) -> Month:
    path = folder / "sacct.txt"
    path.write_text("\n".join((MONTH.replace(",", "|"), *rows)) + "\n")
    site = cluster or alike(2, 8, 64)
    molding = Molding(shrink, grow, LINEAR, restart_s=10.0)
    return Month(str(path), "sacct", site, molding, molds)


def only(of: Month) -> Arrival:
    (found,) = of.workload(1).arrivals
    return found


# --- what is assumed of a job ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("shrink", "grow", "own", "totals"),
    [
        (2, 2, 4, (2, 4, 8)),
        (4, 4, 4, (1, 2, 4, 8, 16)),
        (8, 1, 12, (3, 6, 12)),
        (1, 2, 3, (3, 6)),
        (3, 3, 4, (2, 4, 8)),
        (1, 1, 5, (5,)),
    ],
)
def test_sizes_are_halved_and_doubled(
    shrink: int, grow: int, own: int, totals: tuple[int, ...]
) -> None:
    assert Molding(shrink, grow).totals(own) == totals


def test_curves_are_read_as_users_write_them() -> None:
    assert curve("linear")(8) == 8
    assert curve("power:0.5")(4) == 2
    assert curve("amdahl:0.5")(2) == 1 / 0.75
    assert curve("amdahl:1")(8) == 8
    assert Relative(2, curve("power:0.5"))(Shape(2, 4)) == 2
    assert Relative(2, LINEAR)(Shape(2, 0, kind=Kind.CPU)) == 1


@pytest.mark.parametrize("text", ["", "power", "power:x", "power:2", "amdahl:-1", "cubic:1", "nan"])
def test_a_curve_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"^--speedup: '.*': power:0.8, amdahl:0.95 or linear, say"):
        curve(text)


def test_owners_may_say_how_often_a_job_is_resized() -> None:
    assert owners_words("") == Malleable()
    assert owners_words("max-resizes=5,min-run=2h") == Malleable(max_resizes=5, min_run_s=7200)
    assert owners_words("max-resizes=0") == Malleable(max_resizes=0)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("grace=2m", "--malleable: 'grace=2m': max-resizes=N, min-run=TIME or both are expected"),
        ("max-resizes=-1", "malleable max-resizes: '-1': a whole number from 0 to 4096"),
    ],
)
def test_what_owners_cannot_say_is_refused(text: str, right: str) -> None:
    with pytest.raises(BadInput, match=f"^{right}"):
        owners_words(text)


def test_a_job_may_have_its_gpus_halved_or_doubled(tmp_path: Path) -> None:
    found = only(month(tmp_path, row(gpus=4)))
    job = found.job
    assert job.spec is not None
    assert (job.shape, job.shapes) == (Shape(1, 4), (Shape(1, 2), Shape(1, 4), Shape(1, 8)))
    assert job.spec.request.gpus == (Fraction(2), Fraction(4), Fraction(8))
    assert (job.submit_s, job.user, job.partitions) == (100, "alice", ("all",))
    assert (found.work_s, found.speed(Shape(1, 8)), found.run_s(Shape(1, 2))) == (60, 2, 120)
    assert job.time_limit_s == 2 * 1800  # so that it holds for the smallest size
    assert job.demand(Shape(1, 8)).cpus == 32
    assert (found.save_s, found.restart_s, job.restart_s) == (5, 5, 10)


def test_rigid_it_is_as_it_was(tmp_path: Path) -> None:
    found = only(month(tmp_path, row(gpus=4), molds=False))
    assert (found.job.shape, found.job.shapes) == (Shape(1, 4), (Shape(1, 4),))
    assert (found.job.spec, found.job.time_limit_s, found.job.restart_s) == (None, 1800, 0)


def test_only_the_jobs_of_some_may_be_moldable(tmp_path: Path) -> None:
    rows = (row("7"), row("8", User="bob"))
    of = month(tmp_path, *rows)
    of = replace(of, molding=replace(of.molding, users=("bob",)))
    assert [len(one.job.shapes) for one in of.workload(1).arrivals] == [1, 3]


def test_a_job_that_ran_on_after_its_limit_is_not_ended_before(tmp_path: Path) -> None:
    found = only(month(tmp_path, row(TimelimitRaw="0"), molds=False))
    assert found.job.time_limit_s == 0
    found = only(month(tmp_path, row(End="9999", TimelimitRaw="1"), molds=False))
    assert found.job.time_limit_s == 9999 - 130


def test_a_job_on_cpus_keeps_its_size(tmp_path: Path) -> None:
    found = only(month(tmp_path, row(AllocTRES=CPU_ONLY)))
    assert found.job.shapes == (Shape(2, 0, kind=Kind.CPU),)
    assert found.job.demand(found.job.shape).cpus == 10


def test_where_there_are_no_gpus_cpus_are_divided(tmp_path: Path) -> None:
    found = only(month(tmp_path, row(AllocTRES=CPU_ONLY), cluster=alike(2, 0, 64)))
    assert found.job.shapes == (Shape(1, 10), Shape(2, 10), Shape(1, 40))


# --- the cluster -----------------------------------------------------------------------------


def test_a_cluster_of_equal_nodes() -> None:
    found = alike(12, 4, 0)
    assert found.words == "12 nodes with 4 GPUs each"
    assert (found.gpus, found.nodes[0].name, found.nodes[0].cpus) == (48, "n01", PLENTY)
    assert alike(1, 0, 64).words == "1 node with 64 CPUs"
    with pytest.raises(BadInput, match="--nodes goes with --gpus-per-node"):
        alike(2, 0, 0)


@pytest.fixture
def site() -> SiteCluster:
    rows = parse_nodes(recorded("22.05", "nodes.txt"))
    partitions = parse_partitions(recorded("22.05", "partitions.txt"))
    return from_slurm(rows, partitions)


def test_the_sites_cluster_is_as_scontrol_says(site: SiteCluster) -> None:
    assert next((node.name, node.cpus, node.free_cpus) for node in site.nodes) == ("n1", 16, 16)
    assert site.nodes[0].pools == (Pool("", 4, 4),)
    assert {partition.name for partition in site.partitions} == {"main", "big", "downp"}
    assert [partition.name for partition in site.partitions if partition.default] == ["main"]
    assert {partition.max_time_s for partition in site.partitions} == {0}


def test_a_job_of_a_partition_that_is_no_more_is_in_the_default_one(
    site: SiteCluster, tmp_path: Path
) -> None:
    of = month(tmp_path, row("7", Partition="big"), row("8"), cluster=site)
    assert [one.job.partitions for one in of.workload(1).arrivals] == [("big",), ("main",)]
    said = [*assumptions(seen([*of.records()], of, 0), of, "easy-backfill")]
    assert "Of partitions that are no more: 1 job, replayed in the default one." in said


def test_a_cluster_without_nodes_is_refused() -> None:
    with pytest.raises(BadInput, match="Slurm names no node that has CPUs"):
        from_slurm((), ())


def nodes(*gpus: int, cpus: int = 32) -> Room:
    return Room(Node(f"n{i}", cpus, cpus, 0, 0, (Pool("", g, g),)) for i, g in enumerate(gpus))


def test_a_shape_is_as_it_was_where_that_can_be() -> None:
    room = nodes(8, 8, 4)
    assert room.own(4, 2) == Shape(2, 2)
    assert room.own(8, 0) == Shape(1, 8)
    assert room.own(12, 3) == Shape(3, 4)
    assert room.own(3, 2) == Shape(1, 3)  # it had 2 and 1
    assert room.own(13, 2) == Shape(2, 7)
    assert room.own(99, 2) == Shape(3, 4)  # more than there is: all of it


def test_other_sizes_lie_on_the_fewest_nodes() -> None:
    room = nodes(8, 8, 4)
    assert room.other(16, 1) == Shape(2, 8)
    assert room.other(12, 1) == Shape(2, 6)
    assert room.other(32, 1) is None
    assert room.other(8, 8) == Shape(2, 4)  # for its CPUs
    assert nodes(0, 0).other(1, 1) is None


def test_cpus_follow_the_gpus_as_far_as_there_are_some() -> None:
    room = nodes(8, 4)
    assert room.cpus_per_gpu(Shape(1, 1), 32) == 32
    assert room.cpus_per_gpu(Shape(2, 4), 17) == 3
    assert room.cpus_per_gpu(Shape(1, 8), 64) == 4  # no node has 64


def test_jobs_on_cpus_lie_where_there_is_room() -> None:
    room = nodes(8, 4)
    assert room.on_cpus(20, 1) == (Shape(1, 0, kind=Kind.CPU), 20)
    assert room.on_cpus(40, 1) == (Shape(2, 0, kind=Kind.CPU), 20)
    assert room.on_cpus(99, 1) == (Shape(2, 0, kind=Kind.CPU), 32)


# --- what came of it -------------------------------------------------------------------------


def test_rigid_it_is_replayed_as_any_trace_is() -> None:
    of = Month(str(EXAMPLE), "sacct", alike(2, 8, 64), Molding(curve=LINEAR), molds=False)
    other = on_site(read_sacct(EXAMPLE), Site(2, 8, 64, limits=True), "")
    found, expected = (
        [*Replay(workload, by_name("easy-backfill")).run()] for workload in (of.workload(1), other)
    )
    assert found == expected
    assert len(found) == 120


def test_what_happened_is_what_sacct_says(tmp_path: Path) -> None:
    of = month(tmp_path, row(), row("8", AllocTRES=CPU_ONLY, Start="100"))
    found = [*happened(of.records(), of)]
    assert [(task.id, task.wait_s, task.flow_s, task.spans[0].gpus) for task in found] == [
        ("7", 30, 90, 2),
        ("8", 0, 90, 0),
    ]


def test_jobs_that_are_left_out_are_counted(tmp_path: Path) -> None:
    rows = (row(), row("7.batch"), row("8", Start="Unknown"), row("9", End="Unknown"), row("9.0"))
    of = month(tmp_path, *rows)
    records = [*of.records()]
    assert left_out(Path(of.trace), records) == 2
    what = seen(records, of, 2)
    assert title(what) == "1 job of 1 user, from 1970-01-01 00:01 to 1970-01-01 00:03 UTC"
    said = [*assumptions(what, of, "easy-backfill")]
    assert "Left out: 2 jobs that did not run for a second, or had not ended." in said


def test_a_trace_without_jobs_is_refused(tmp_path: Path) -> None:
    of = month(tmp_path, row(End="Unknown"))
    with pytest.raises(BadInput, match=r"sacct.txt: no job in it ran and has ended"):
        of.workload(1)


def test_assumptions_say_which_jobs_are_moldable_and_how_fast(tmp_path: Path) -> None:
    rows = (row(), row("8", User="bob"), row("9", AllocTRES=CPU_ONLY))
    of = month(tmp_path, *rows, shrink=4, grow=1)
    of = replace(of, molding=replace(of.molding, users=("bob",), curve=Curve("amdahl", 0.9)))
    _, molds, speed, *rest = assumptions(seen([*of.records()], of, None), of, "easy-backfill")
    assert molds == (
        "Moldable: 1 job with GPUs of bob: each may start with as many as it had, or that times 1/2 or"
        " 1/4 where that is a whole number and fits, and may be resized while it runs."
        " Of the others (2 jobs) each keeps its size."
    )
    assert speed.startswith("Speed: Amdahl's law, 90 % of the work in parallel: twice the GPUs run")
    assert "loses 10 s each time" in " ".join(rest)


def test_what_owners_say_of_running_jobs_is_said_and_kept_to(tmp_path: Path) -> None:
    of = month(tmp_path, row())
    of = replace(of, molding=replace(of.molding, malleable=owners_words("min-run=2h")))
    words = assumptions(seen([*of.records()], of, None), of, "easy-backfill")
    assert "Owners say --malleable=min-run=7200s: no policy resizes" in " ".join(words)
    spec = only(of).job.spec
    assert spec is not None and spec.request.malleable == Malleable(min_run_s=7200)


def test_agreement_is_judged() -> None:
    near, far = Fit(100, 130, 500, 530), Fit(1000, 400, 2000, 1400)
    assert near.is_close
    assert not far.is_close
    assert agreement(near, "easy-backfill") == (
        "Agreement: jobs waited 1 min 40 s on average; replayed, rigid, under easy-backfill they"
        " wait 2 min 10 s (flow time: 8 min 20 s and 8 min 50 s). That is close: within a minute,"
        " or a quarter."
    )
    assert "That is much shorter" in agreement(far, "easy-backfill")
    assert "no job ended" in agreement(None, "easy-backfill")


def figures(**flows: float) -> Figures:
    found = Tally().figures(gpus=1)
    return replace(found, users={name: User(1, flow_s, 1.0) for name, flow_s in flows.items()})


def test_users_are_told_apart() -> None:
    before = figures(ada=100, ben=100, cleo=100, dan=100)
    found = sides("p", figures(ada=50, ben=300, cleo=100.5, eva=7), before)
    assert (found.better, found.worse, found.same) == (1, 1, 1)
    assert found.worst == (Change("ben", 1, 100, 300),)
    assert found.best == (Change("ada", 1, 100, 50),)
    assert [one.part for one in found.changes] == [2.0, pytest.approx(0.005), -0.5]


def test_jobs_are_told_apart_and_ranked_by_seconds() -> None:
    before = {job: Flow("ada", 1000.0) for job in "abcde"} | {"short": Flow("ben", 10.0)}
    owner = {job: flow.user for job, flow in before.items()}
    now = {"a": 1400.0, "b": 1500.0, "c": 1009.0, "d": 400.0, "new": 7.0, "short": 100.0}
    found = job_sides("p", {job: Flow(owner.get(job, "eva"), s) for job, s in now.items()}, before)
    assert (found.better, found.worse, found.same) == (1, 3, 1)
    assert [(one.job, one.more_s) for one in found.worst] == [("b", 500), ("a", 400), ("short", 90)]
    assert found.best == (JobChange("d", "ada", 1000, 400),)
    assert found.best[0].part == pytest.approx(-0.6)


def test_a_result_is_a_table_against_the_rigid_replay(tmp_path: Path) -> None:
    rows = (row("1", 8), row("2", 8, User="bob"), row("3", 8, Submit="110"))
    of = month(tmp_path, *rows, cluster=alike(1, 8, 64), grow=1)
    truth = Tally()
    for task in happened(of.records(), of):
        truth.add(task)
    outcomes = {
        name: Outcome("", (), replayed(source.workload(1), Choice(name).policy_for(1)))
        for name, source in (
            ("easy-backfill", replace(of, molds=False)),
            ("moldable-equipartition", of),
        )
    }
    result = Result(Outcome("", (), truth.figures(8)), outcomes)
    rows_by_name = {row.figure: row for row in result.rows}
    waits = rows_by_name["wait, mean (s)"]
    assert (waits.happened, waits.replays[0].mean.mean) == (80 / 3, (0 + 60 + 110) / 3)
    assert waits.replays[1].change is not None
    assert waits.replays[1].change.mean < 0
    assert rows_by_name["GPUs held (%)"].replays[0].mean.mean == pytest.approx(100)
    assert result.fit == Fit(80 / 3, 170 / 3, 260 / 3, 350 / 3)
    assert [(one.policy, len(one.changes)) for one in result.sides] == [
        ("moldable-equipartition", 2)
    ]


def tasks(of: Month, policy: str) -> Iterator[Task]:
    return Replay(of.workload(1), by_name(policy)).run()


def test_a_partitions_jobs_stay_on_its_nodes(tmp_path: Path) -> None:
    one = alike(2, 8, 64)
    parts = (Partition("gpu", ("n1",), default=True), Partition("other", ("n2",)))
    cluster = SiteCluster(one.nodes, parts)
    rows = (row("1", 8), row("2", 8, Partition="other"), row("3", 8), row("4", 16))
    found = {
        task.id: task.wait_s for task in tasks(month(tmp_path, *rows, cluster=cluster), "fifo")
    }
    assert (found["1"], found["2"], found["3"]) == (0, 0, 60)


def test_jobs_that_never_start_are_said_before_the_figures(tmp_path: Path) -> None:
    of = month(tmp_path, row(), molds=False)
    truth = Outcome("", (), replayed(of.workload(1), by_name("fifo")))
    less = Outcome("", (), replace(truth.figures, never=3, never_example="9"))
    found = page(seen([*of.records()], of, None), of, Result(truth, {"fifo": truth, "mct": less}))
    words = "mct: jobs that never start, and are in none of its figures: 3, job 9 for one."
    assert Marked(words, "bad") in found.lead
    assert not any("fifo: jobs that never" in plain(words) for words in found.lead)


def test_that_jobs_grow_is_said_to_be_an_assumption(tmp_path: Path) -> None:
    for grow, said in ((1, False), (2, True)):
        of = month(tmp_path, row(), grow=grow)
        words = " ".join(assumptions(seen([*of.records()], of, None), of, "easy-backfill"))
        assert ("--grow 1 leaves it out" in words) is said
