"""One look at a real Slurm 22.05, recorded, as policies see it.

The recording: four nodes, three of them with four v100 in four shards each, one (drained) with two
a100 and two v100; shares, a job of two nodes, one completing, one suspended, and waiting jobs of
every kind, some with hostile names and comments.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from slurm_recorded import NONCE, Recorded, recorded

from pliant.batch.slurm import Slurm
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import parse_jobs
from pliant.batch.slurm.jobs import running_job
from pliant.batch.slurm.node_rows import is_up, parse_nodes
from pliant.batch.slurm.nodes import node_of
from pliant.grammar import parse
from pliant.model import (
    Abilities,
    Footprint,
    Job,
    JobState,
    Node,
    Partition,
    Pool,
    Reservation,
    Shape,
    Snapshot,
    Spec,
)

NOW_S = 1795207380.0
FAST = frozenset({"fast", "v100"})
CHANGED = "its owner or another tool has changed it: "


@pytest.fixture(scope="module")
def seen() -> Snapshot:
    return Slurm(Recorded("22.05"), clock=lambda: NOW_S).observe()


def v100(free: int, *parts: int, sharers: tuple[int, ...] = ()) -> tuple[Pool, ...]:
    return (Pool("v100", 4, free, 4, parts, sharers=sharers),)


def test_nodes_have_what_is_free_on_them(seen: Snapshot) -> None:
    assert seen.nodes == (
        # shares of 2 + 1 shards on one GPU, of 3 on another, a whole GPU taken, one left
        Node("n1", 16, 10, 32000, 31500, v100(1, 1, 1, sharers=(2, 1)), FAST),
        # something is completing on these two: Slurm starts nothing there until it is gone
        Node(*("n2", 16, 0, 32000, 0, v100(0), FAST), once_ended=seen.nodes[1].once_ended),
        Node(*("n3", 16, 0, 32000, 0, v100(0), FAST), once_ended=seen.nodes[2].once_ended),
        Node(
            *("n4", 16, 15, 32000, 31900, (Pool("a100", 2, 0), Pool("v100", 2, 2))),
            features=frozenset({"mixed"}),
            up=False,
        ),
    )


def test_nodes_on_which_something_is_ending_say_what_will_be_free_on_them(seen: Snapshot) -> None:
    assert [node.once_ended for node in seen.nodes] == [
        None,
        Node("n2", 16, 6, 32000, 31800, v100(0), FAST),
        Node("n3", 16, 12, 32000, 31700, v100(1), FAST),
        None,
    ]


def test_partitions_and_reservations_are_as_configured(seen: Snapshot) -> None:
    assert seen.partitions == (
        Partition("main", ("n1", "n2", "n3", "n4"), 86400, default=True, tier=1),
        Partition("big", ("n1", "n2"), max_nodes=2, sharers=2, tier=10),
        Partition("downp", ("n4",), up=False, tier=1),
    )
    assert seen.reservations == (Reservation("maint|x", ("n1", "n2"), 1795215345.0, 1795216345.0),)


def test_this_release_can_neither_take_gpus_away_nor_split_them(seen: Snapshot) -> None:
    assert seen.abilities == Abilities(
        share_to_whole=False,
        whole_to_share=False,
        gpu_to_cpu=False,
        cpu_to_gpu=True,
        claims_whole_nodes=True,
        above=None,
    )


def test_waiting_jobs_stand_in_slurms_order_with_what_they_may_become(seen: Snapshot) -> None:
    told = [
        (
            *(job.id, str(job.shape), " ".join(map(str, job.shapes)), job.eligible),
            job.frozen.partition(" (")[0],  # without what to write instead
        )
        for job in seen.waiting
    ]
    v100s = "1@v100 2@v100 3@v100 4@v100"
    assert told == [
        ("319", "4", "1 2 3 4", True, ""),  # a partition of a higher tier
        ("298", "1", "1 2 3 4", True, ""),
        ("301", "1", "1", True, ""),
        ("302", "4@v100", v100s, True, ""),
        ("303", "4@v100", v100s, True, ""),
        ("304", "4@v100", "4@v100", True, f"{CHANGED}it carries 4@v100 instead of 3"),
        ("305", "4@v100", "4@v100", True, f"{CHANGED}3 CPUs a node instead of 4"),
        ("306", "4", "1 2 2x1 3 4 2x2", True, ""),
        ("307", "4", "4", True, "its owner pinned it"),
        ("308", "4", "1 2 3 4", True, ""),  # an array: its nodes cannot be changed
        ("310", "2x2", "2x2", True, "it asks for several GPUs per task"),
        ("311", "4", "1 2 3 4", True, ""),
        ("312", "4", "1 2 3 4", True, ""),  # --cpus-per-gpu
        ("313", "1", "1", True, ""),
        ("314", "1", "1", True, ""),
        ("315", "4", "4", True, "it has its nodes alone"),
        ("316", "4", "1 2 3 4", True, ""),
        ("317", "4", "1 2 3 4", True, ""),
        ("318", "2x4", "2x4", True, "its constraint is more than a list of features"),
        ("320", "4", "1 2 3 4", False, ""),  # begin time
        ("321", "4", "1 2 3 4", False, ""),  # dependency
        ("323", "4", "4", False, "it belongs to a reservation"),
        ("324", "4", "4", True, ""),
        ("325", "4", "4", True, ""),
        ("326", "4", "4", True, ""),
        ("327", "4", "4", True, ""),
        ("328", "4", "4", True, ""),
        ("329", "4", "4", True, ""),
        ("308_5", "4", "4", False, "it is a single waiting task of an array"),
        ("322", "4", "1 2 3 4", False, ""),  # held
    ]


def test_running_jobs_hold_what_they_were_given_until_their_limits(seen: Snapshot) -> None:
    told = [
        (job.id, job.state, str(job.shape), job.nodes, job.demand(job.shape).cpus, job.end_s)
        for job in seen.running
    ]
    running, forever = JobState.RUNNING, float("inf")
    assert told == [
        ("330", JobState.ENDING, "1x0@cpu", ("n2",), 2, 1795207357.0),
        ("295", running, "1x0@cpu", ("n1",), 2, 1795210940.0),
        ("296", JobState.ENDING, "1", ("n3",), 1, 1795207349.0),
        ("289", running, "1/2", ("n1",), 1, 1795210938.0),
        ("290", running, "1/4", ("n1",), 1, 1795210938.0),
        ("291", running, "1", ("n1",), 1, 1795210938.0),  # 3 of 4 shards: counted as the GPU
        ("292", running, "1", ("n1",), 1, 1795210938.0),  # --gpus=1
        ("293", running, "2x2@v100", ("n2", "n3"), 6, 1795210938.0),
        ("294", running, "2@a100", ("n4",), 1, 1795210938.0),  # of two types, as only details say
        ("299", running, "2", ("n2",), 1, 1795210944.0),
        ("300", running, "1", ("n3",), 1, 1795210944.0),
        ("297", running, "1x0@cpu", ("n3",), 1, forever),  # suspended
    ]


@pytest.mark.parametrize(
    ("priority", "frozen"), [("0", "it is held, and would not start again"), ("1", "")]
)
def test_a_job_that_is_held_while_it_runs_is_left_alone(priority: str, frozen: str) -> None:
    row = parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))[1]
    job = running_job(replace(row, priority=priority), Cluster((22, 5), {}, {}))
    assert (job.frozen, job.shapes) == (frozen, (job.shape,))


def test_a_whole_job_is_read(seen: Snapshot) -> None:
    request = parse("gpus=1-4,gpu-type=v100")
    carried, footprint = Shape(1, 4, gpu_type="v100"), Footprint(1, 0, 4, 0, 100)
    assert next(job for job in seen.waiting if job.id == "303") == Job(
        id="303",
        user="pliant-bob",
        partitions=("main",),
        reason="ReqNodeNotAvail, UnavailableNodes:n2",
        priority=4294901501,
        submit_s=1795207345.0,
        shape=carried,
        shapes=tuple(Shape(1, gpus, gpu_type="v100") for gpus in (1, 2, 3, 4)),
        name="wrap",
        footprint=footprint,
        spec=Spec(request, Shape(1, 2, gpu_type="v100"), carried, footprint),
        time_limit_s=3600,
        nodes_required=("n2",),
    )


def test_constraints_arrays_and_memory_are_read(seen: Snapshot) -> None:
    by_id = {job.id: job for job in seen.waiting}
    assert by_id["317"].features == FAST  # fast&v100
    assert by_id["316"].nodes_excluded == {"n1", "n3"}  # -x n1,n3; all have fast|mixed
    assert by_id["308"].tasks_waiting == 2  # of six, with %2 and none of them running
    assert by_id["308"].array_tasks == "3-4,6-9"  # 308_5 has a record of its own
    assert by_id["322"].time_min_s == 600
    assert by_id["326"].footprint.mem_per_node_mib == 32000  # --mem=0: all of a node's
    assert by_id["327"].footprint.mem_per_cpu_mib == 50
    assert by_id["328"].footprint.mem_per_gpu_mib == 50


def test_a_job_that_only_its_token_knows_gets_own_shape_and_footprint_from_its_request(
    seen: Snapshot,
) -> None:
    job = next(job for job in seen.waiting if job.id == "306")
    footprint = Footprint(1, 0, 2, 0, 100)
    request = parse("gpus=1-4,nodes=1:2")
    assert (job.spec, job.footprint) == (Spec(request, Shape(1, 4), None, footprint), footprint)


def test_the_site_is_read() -> None:
    site = Slurm(Recorded("22.05"), clock=lambda: NOW_S).site()
    assert (site.version, site.release, site.slurm_user) == ((22, 5), "22.05.8", "root")
    assert site.slurm_uid == 0
    assert (site.gres_types, site.counts_memory) == (("gpu", "shard", "nogpu"), True)
    assert site.backfill_interval_s == 2
    assert site.submit_plugins == ()


@pytest.mark.parametrize(
    ("state", "up"),
    [
        ("IDLE", True),
        ("MIXED+PLANNED", True),
        ("ALLOCATED+COMPLETING", True),
        ("IDLE+CLOUD+POWERED_DOWN", True),
        ("IDLE+DYNAMIC_NORM", True),
        ("IDLE*", False),
        ("IDLE+DRAIN", False),
        ("MIXED+DRAIN", False),
        ("DOWN*+NOT_RESPONDING", False),
        ("IDLE+MAINT", False),
        ("IDLE+MAINT+RESERVED", False),
        ("IDLE+REBOOT_REQUESTED", False),
        ("FUTURE", False),
        ("", False),
    ],
)
def test_a_node_is_up_where_slurm_would_start_a_job(state: str, up: bool) -> None:
    assert is_up(state) is up


def test_a_node_that_is_named_twice_is_taken_as_down() -> None:
    text = recorded("22.05", "nodes.txt")
    forged = text + "NodeName=n1 State=IDLE CPUTot=99 CPUAlloc=0 RealMemory=1 AllocMem=0"
    rows = {row.name: row for row in parse_nodes(forged + " ActiveFeatures=x Gres=gpu:9\n")}
    assert (rows["n1"].up, rows["n1"].cpus, rows["n1"].gres) == (False, 0, ())
    assert rows["n2"] == parse_nodes(text)[1]


def test_later_releases_say_themselves_how_many_shards_of_each_gpu_are_used() -> None:
    line = next(line for line in recorded("22.05", "nodes.txt").splitlines() if "=n1 " in line)
    used = "gpu:v100:1(IDX:3),shard:v100:6(3/4,3/4,0/4,-/4)"
    row = parse_nodes(
        line.replace("shard:v100:2(IDX:0-1)", "").replace("GresUsed=", f"GresUsed={used} X=")
    )[0]
    assert node_of(row, None).pools == v100(1, 1, 1)


def test_where_a_job_hides_its_place_no_shard_of_its_node_counts_as_free() -> None:
    text = recorded("22.05", "nodes.txt")
    row = parse_nodes(text)[0]
    assert node_of(row, None).pools == v100(1, 0, 0)
    assert node_of(replace(row, up=False), {0: (3, 2)}).pools == v100(1, 1, 0)
