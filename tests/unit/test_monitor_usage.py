"""What a job has taken: whole samples, from cgroups and from processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from monitor_node import FakeNode, pressure

from pliant.monitor import cgroups
from pliant.monitor.processes import jobs_here
from pliant.monitor.sample import CountedBy, Counts, Pressure, Sample, ThreadTime
from pliant.monitor.usage import sample

COUNTS = Counts(10, 5, 1.0)


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)


def taken(node: FakeNode, counts: Counts | None = None) -> Sample:
    (job,) = jobs_here(node.proc, node.cgroup)
    return sample(job, 7.0, node.proc, counts)


def test_without_cgroups_ended_processes_count_as_far_as_somebody_waited(node: FakeNode) -> None:
    node.stepd(100, "12.batch", children_s=1.0)
    node.process(101, 100, own_s=2.0, children_s=4.0, rss_mib=3)
    node.process(102, 101, own_s=8.0, rss_mib=5, threads={102: (7.5, 0.25), 103: (0.5, 0.5)})
    node.stepd(200, "12.0", children_s=16.0)
    assert taken(node, COUNTS) == Sample(
        job="12",
        at_s=7.0,
        cpu_by=CountedBy.PROCESSES,
        cpu_s={"batch/100": 15.0, "0/200": 16.0},
        threads={
            (101, 201, 101): ThreadTime(0.0, 0.0),
            (102, 202, 102): ThreadTime(7.5, 0.25),
            (102, 202, 103): ThreadTime(0.5, 0.5),
        },
        processes=2,
        memory_bytes=8 * 2**20,
        memory_by=CountedBy.PROCESSES,
        counts=COUNTS,
    )


def test_cgroups_of_v2_account_for_all_but_logins(node: FakeNode) -> None:
    node.process(101, own_s=2.0, rss_mib=3, threads={101: (1.0, 2.0)})
    node.unified(
        "slurmstepd.scope/job_12",
        cpu_s=50.5,
        memory={"anon": 1000, "file": 70000, "shmem": 24},
        stalled_s=1.5,
        step_batch_user=(101,),
    )
    node.write(
        "cgroup/system.slice/slurmstepd.scope/job_12/step_extern/cpu.stat", "usage_usec 500000\n"
    )
    assert taken(node) == Sample(
        job="12",
        at_s=7.0,
        cpu_by=CountedBy.CGROUP,
        cpu_s={str(node.cgroup / "system.slice/slurmstepd.scope/job_12"): 50.0},
        threads={(101, 201, 101): ThreadTime(1.0, 2.0)},
        processes=1,
        memory_bytes=1024,
        memory_by=CountedBy.CGROUP,
        pressure=Pressure(1.5, 1.5, 1.5),
    )


def test_cgroups_of_v1_account_as_far_as_the_site_uses_them(node: FakeNode) -> None:
    node.process(101, own_s=2.0, children_s=1.0, rss_mib=3)
    job = "slurm/uid_1000/job_12"
    node.write(f"cgroup/freezer/{job}/step_0/cgroup.procs", "101\n")
    node.write(f"cgroup/memory/{job}/memory.stat", "cache 9\ntotal_rss 4\ntotal_shmem 2\n")
    by_processes = taken(node)
    node.write(f"cgroup/cpuacct/{job}/cpuacct.usage", "50500000000\n")
    node.write(f"cgroup/cpuacct/{job}/step_extern/cpuacct.usage", "500000000\n")
    by_cgroup = taken(node)
    assert (by_processes.cpu_by, by_processes.cpu_s) == (CountedBy.PROCESSES, {"living": 3.0})
    assert (by_cgroup.cpu_by, by_cgroup.cpu_s) == (
        CountedBy.CGROUP,
        {str(node.cgroup / "freezer" / job): 50.0},
    )
    for each in (by_processes, by_cgroup):
        assert (each.memory_bytes, each.memory_by, each.pressure) == (6, CountedBy.CGROUP, None)


def test_two_nodes_of_a_job_on_one_host_are_one_job(node: FakeNode) -> None:
    for name, pid, stalled_s in (("n1", 101, 1.0), ("n2", 102, 3.0)):
        node.process(pid)
        node.unified(
            f"{name}_slurmstepd.scope/job_12",
            cpu_s=pid,
            memory={"anon": pid},
            stalled_s=stalled_s,
            step_0_user=(pid,),
        )
    found = taken(node)
    top = node.cgroup / "system.slice"
    assert found.cpu_s == {
        str(top / "n1_slurmstepd.scope/job_12"): 101.0,
        str(top / "n2_slurmstepd.scope/job_12"): 102.0,
    }
    assert (found.processes, found.memory_bytes) == (2, 203)
    assert found.pressure == Pressure(3.0, 3.0, 3.0)


def test_the_nodes_pressure(node: FakeNode) -> None:
    assert cgroups.node_pressure(node.proc) is None
    for place, resource in enumerate(("cpu", "memory", "io"), 1):
        node.write(f"proc/pressure/{resource}", pressure(place))
    assert cgroups.node_pressure(node.proc) == Pressure(1.0, 2.0, 3.0)
