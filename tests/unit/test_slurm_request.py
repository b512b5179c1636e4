"""What one row of squeue says about the shape of its job."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.jobs import waiting_job
from pliant.batch.slurm.request import asked
from pliant.batch.slurm.update import check_accounts
from pliant.daemon.renewal import renewed
from pliant.errors import Refused
from pliant.grammar import parse, put_token
from pliant.model import Footprint, Job, Kind, Shape, Spec

WAITING = dict.fromkeys((field.name for field in fields(JobRow)), "") | {
    "state": "PENDING", "num_nodes": "1", "max_nodes": "0", "num_tasks": "4", "num_cpus": "4",
    "cpus_per_task": "1", "min_cpus": "1", "min_memory": "0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("request_fields", "shape"),
    [
        ({"tres_per_task": "gres:gpu:1"}, Shape(1, 4)),
        ({"tres_per_job": "gres:gpu:4"}, Shape(1, 4)),
        ({"tres_per_job": "gres:gpu:4", "tres_per_task": "gres:gpu:1"}, Shape(1, 4)),
        ({"tres_per_job": "gres:gpu:8", "tres_per_task": "gres:gpu:1"}, Shape(1, 8)),
        ({"tres_per_job": "gres:gpu:4", "num_nodes": "2"}, Shape(2, 2)),
    ],
)
def test_the_total_of_gpus_is_what_was_asked_in_total_else_by_task(
    request_fields: dict[str, str], shape: Shape
) -> None:
    assert asked(JobRow(**(WAITING | request_fields))).shape(0) == shape


def waits(noted: Footprint, **changed: str) -> tuple[JobRow, Job]:
    """Return a job of four GPUs with this footprint that someone has changed since, and as read."""
    spec = Spec(parse("gpus=1-4"), Shape(1, 4), None, noted)
    said = {"tres_per_node": "gres:gpu:4", "admin_comment": put_token("", spec), **changed}
    row = JobRow(**(WAITING | {"batch": "1", "contiguous": "0", "het_id": "0"} | said))
    return row, read(row)


def read(row: JobRow) -> Job:
    return waiting_job(row, Cluster((22, 5), {}, {}), 0.0)


CHANGED = "its owner or another tool has changed it: "
ONE_TASK = {"num_tasks": "1"}


@pytest.mark.parametrize(
    ("noted", "changed", "told", "carries"),
    [
        (  # --cpus-per-gpu=2, gres=gpu:2
            Footprint(cpus_per_gpu=2),
            ONE_TASK | {"tres_per_node": "gres:gpu:2", "num_cpus": "8"},
            "it carries 2 instead of 4",
            Footprint(cpus_per_task=8),
        ),
        (  # the same, with the CPUs in proportion: what was noted holds
            Footprint(cpus_per_gpu=2),
            ONE_TASK | {"tres_per_node": "gres:gpu:2"},
            "it carries 2 instead of 4",
            Footprint(cpus_per_gpu=2),
        ),
        (  # --mem-per-gpu=2000, gres=gpu:2
            Footprint(mem_per_gpu_mib=2000),
            ONE_TASK
            | {"num_cpus": "1", "tres_per_node": "gres:gpu:2", "min_memory": "8000M"}
            | {"tres": "mem=8000M"},
            "it carries 2 instead of 4",
            Footprint(mem_per_node_mib=8000),
        ),
        (  # -n4, numtasks=2 numcpus=2
            Footprint(tasks_per_gpu=1),
            {"num_tasks": "2", "num_cpus": "2"},
            "2 tasks a node instead of 4",
            Footprint(2),
        ),
        (  # -c2, cpuspertask=4 numcpus=4
            Footprint(cpus_per_task=2),
            ONE_TASK | {"cpus_per_task": "4"},
            "4 CPUs a node instead of 2",
            Footprint(cpus_per_task=4),
        ),
        (  # --mem=800, minmemorycpu=300
            Footprint(cpus_per_task=4, mem_per_node_mib=800),
            ONE_TASK | {"min_memory": "300M", "tres": "mem=1200M"},
            "300 MiB a node instead of 800",
            Footprint(cpus_per_task=4, mem_per_cpu_mib=300),
        ),
        (  # --mem-per-cpu=200, minmemorynode=1000
            Footprint(cpus_per_task=4, mem_per_cpu_mib=200),
            ONE_TASK | {"min_memory": "1000M", "tres": "mem=1000M"},
            "1000 MiB a node instead of 800",
            Footprint(cpus_per_task=4, mem_per_node_mib=1000),
        ),
        (  # --mem-per-cpu=200, numcpus=2 cpuspertask=2: the total is not reckoned anew
            Footprint(cpus_per_task=4, mem_per_cpu_mib=200),
            ONE_TASK | {"num_cpus": "2", "min_memory": "200M", "tres": "mem=800M"},
            "2 CPUs a node instead of 4",
            Footprint(cpus_per_task=2, mem_per_cpu_mib=200),
        ),
    ],
)
def test_what_was_changed_by_hand_is_taken_up_again_as_it_is(
    noted: Footprint, changed: dict[str, str], told: str, carries: Footprint
) -> None:
    row, job = waits(noted, **changed)
    assert (job.frozen, job.footprint) == (CHANGED + told, carries)
    spec = renewed(job, parse("gpus=1-4"))
    assert spec == Spec(parse("gpus=1-4"), job.shape, None, carries, renewed=True)
    again = read(replace(row, admin_comment=put_token(row.admin_comment, spec)))
    assert (again.frozen, again.footprint) == ("", carries)


@pytest.mark.parametrize(
    ("own", "left", "carries", "then"),
    [
        # Pliant made it larger, or wider: what its owner wrote stays what it wrote
        (Shape(1, 2), Shape(1, 4), Shape(1, 4), (Shape(1, 2), Shape(1, 4))),
        # other GPUs, with the nodes that Pliant set
        (Shape(1, 8), Shape(2, 4), Shape(2, 3), (Shape(1, 3), Shape(2, 3))),
        # other nodes, with the GPUs that Pliant set
        (Shape(1, 2), Shape(2, 4), Shape(1, 4), (Shape(1, 2), Shape(1, 4))),
        # both
        (Shape(1, 2), Shape(2, 4), Shape(1, 1), (Shape(1, 1), None)),
        # a type and a kind are of what a node gives
        (Shape(1, 2), Shape(1, 4), Shape(1, 4, gpu_type="a"), (Shape(1, 4, gpu_type="a"), None)),
        # nothing of Pliant's
        (Shape(1, 2), None, Shape(2, 1), (Shape(2, 1), None)),
    ],
)
def test_what_pliant_set_is_not_taken_for_the_owners_own(
    own: Shape, left: Shape | None, carries: Shape, then: tuple[Shape, Shape | None]
) -> None:
    noted, now = Footprint(cpus_per_task=2), Footprint(cpus_per_task=3)
    spec = Spec(parse("gpus=1-8"), own, left, noted)
    job = Job("7", shape=carries, spec=spec, footprint=now, frozen=CHANGED)
    assert renewed(job, parse("gpus=1-4")) == Spec(parse("gpus=1-4"), *then, now, renewed=True)


@pytest.mark.parametrize(
    ("noted", "carries", "then"),
    [
        # of a job of 2 GPUs that Pliant gave 4: only the CPUs, only the memory, only the tasks
        (
            Footprint(cpus_per_gpu=2, mem_per_gpu_mib=100),
            Footprint(cpus_per_task=6, mem_per_node_mib=400),
            Footprint(cpus_per_task=6, mem_per_gpu_mib=100),
        ),
        (
            Footprint(cpus_per_gpu=2, mem_per_gpu_mib=100),
            Footprint(cpus_per_task=8, mem_per_node_mib=500),
            Footprint(cpus_per_gpu=2, mem_per_node_mib=500),
        ),
        (
            Footprint(tasks_per_gpu=1, mem_per_gpu_mib=100),
            Footprint(2, cpus_per_task=2, mem_per_node_mib=400),
            Footprint(2, cpus_per_task=2, mem_per_gpu_mib=100),
        ),
    ],
)
def test_what_an_owner_left_as_it_was_still_follows_the_gpus(
    noted: Footprint, carries: Footprint, then: Footprint
) -> None:
    spec = Spec(parse("gpus=1-4"), Shape(1, 2), Shape(1, 4), noted)
    job = Job("7", shape=Shape(1, 4), spec=spec, footprint=carries, frozen=CHANGED)
    assert renewed(job, parse("gpus=1-4")) == replace(spec, footprint=then, renewed=True)


def test_cores_of_a_cpu_form_are_not_noted_for_its_gpu_form() -> None:
    noted = Footprint(mem_per_cpu_mib=50)
    spec = Spec(parse("type=gpu:cpu,cores=8"), Shape(1, 1), Shape(1, 0, kind=Kind.CPU), noted)
    carries = Footprint(cpus_per_task=4, mem_per_cpu_mib=50)
    job = Job("7", shape=Shape(1, 0, kind=Kind.CPU), spec=spec, footprint=carries, frozen=CHANGED)
    assert renewed(job, parse("type=gpu:cpu,cores=4")).footprint == noted
    assert renewed(job, parse("type=gpu:cpu")).footprint == carries


CPU_FORM = Spec(parse("type=gpu:cpu,cores=8"), Shape(1, 1), Shape(1, 0, kind=Kind.CPU), Footprint())
EIGHT = ONE_TASK | {"cpus_per_task": "8", "num_cpus": "8", "tres_per_node": ""}


@pytest.mark.parametrize("said", ["type=gpu:cpu,cores=4", "type=gpu:cpu,cores=16", "type=gpu:cpu"])
def test_cores_that_a_waiting_cpu_form_lacks_are_not_set(said: str) -> None:
    row, _ = waits(Footprint(), **EIGHT, admin_comment=put_token("", CPU_FORM))
    now = read(row)
    assert (now.frozen, now.shape) == ("", Shape(1, 0, kind=Kind.CPU))
    then = read(replace(row, admin_comment=put_token("", renewed(now, parse(said)))))
    with pytest.raises(Refused, match="it waits with 8 CPUs a node instead of"):
        check_accounts(now, then)
    same = read(replace(row, admin_comment=put_token("", renewed(now, CPU_FORM.request))))
    check_accounts(now, same)
    assert same.frozen == ""


def test_other_cores_are_set_where_they_were_changed_by_hand_first() -> None:
    four = EIGHT | {"cpus_per_task": "4", "num_cpus": "4"}
    row, _ = waits(Footprint(), **four, admin_comment=put_token("", CPU_FORM))
    now, said = read(row), parse("type=gpu:cpu,cores=4")
    assert now.frozen == CHANGED + "4 CPUs a node instead of 8"
    then = read(replace(row, admin_comment=put_token("", renewed(now, said))))
    check_accounts(now, then)
    assert then.frozen == ""


def test_what_no_footprint_can_say_is_left_alone_and_said() -> None:
    row, job = waits(Footprint(4), num_cpus="6")
    spec = renewed(job, parse("gpus=1"))
    left = read(replace(row, admin_comment=put_token(row.admin_comment, spec)))
    assert left.frozen == (
        f"{CHANGED}6 CPUs a node instead of 8; its 6 CPUs a node do not divide over its 4 tasks"
        " there"
    )
    _, job = waits(Footprint(2), num_nodes="2", num_tasks="3")
    assert job.frozen == "its tasks do not divide over its nodes"


def test_what_was_read_of_jobs_that_are_gone_is_forgotten() -> None:
    cluster = Cluster((22, 5), {}, {})
    for look in range(10):
        cluster = Cluster((22, 5), {}, {}).as_before(cluster)
        for number in range(100):
            row = JobRow(**(WAITING | {"admin_comment": f"{look} {number}"}))
            waiting_job(row, cluster, 0.0)
        assert len(cluster.read) <= 200
    known = cluster.read.get("a", lambda: 1)
    cluster.as_before(cluster)
    assert (known, cluster.read.get("a", lambda: 2)) == (1, 1)
