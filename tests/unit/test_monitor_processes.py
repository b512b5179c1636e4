"""Which processes are a job's: as slurmd and slurmstepd say, never as a process says of itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from monitor_node import FakeNode

from pliant.monitor import proc
from pliant.monitor.proc import Process, parse_stat
from pliant.monitor.processes import jobs_here


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    made = FakeNode(tmp_path)
    made.process(1, 0, name="init", uid=0)
    made.process(50, name="slurmd", program="/usr/sbin/slurmd", uid=0)
    return made


def found(node: FakeNode) -> dict[str, list[int]]:
    """The pids of each job."""
    jobs = jobs_here(node.proc, node.cgroup)
    return {each.job: [process.pid for process in each.processes] for each in jobs}


# by slurmstepd


def test_what_a_slurmstepd_started_is_its_jobs_and_steps_are_one_job(node: FakeNode) -> None:
    node.stepd(100, "12.batch", children_s=3.5)
    node.process(101, 100, session=100, own_s=2.0)
    node.process(102, 101, session=100)
    node.stepd(200, "12.0")
    node.process(201, 200, session=200)
    node.stepd(300, "7.interactive")
    node.process(400, 1)
    table = proc.processes(node.proc)
    jobs = jobs_here(node.proc, node.cgroup)
    assert [(job.job, job.groups) for job in jobs] == [("7", ()), ("12", ())]
    assert jobs[0].processes == ()
    assert jobs[1].processes == (table[101], table[102], table[201])
    assert [(s.name, s.stepd, s.processes, s.ended_s) for s in jobs[1].steps] == [
        ("batch", 100, (table[101], table[102]), 3.5),
        ("0", 200, (table[201],), 0.0),
    ]


@pytest.mark.parametrize(
    ("name", "title", "program", "uid"),
    [
        ("slurmstepd", "slurmstepd: [66.batch]", "/home/eve/slurmstepd", 1000),  # not root's
        ("slurmstepd", "slurmstepd: [66.batch]", "/usr/bin/python3.11", 0),  # not slurmstepd
        ("slurmstepd", "/usr/sbin/slurmstepd spank prolog", "/usr/sbin/slurmstepd", 0),  # no step's
        ("slurmstepd", "slurmstepd: [66.batch] x", "/usr/sbin/slurmstepd", 0),
        ("slurmstepd", "slurmstepd: [66.extern]", "/usr/sbin/slurmstepd", 0),  # logins by ssh
        ("work) slurmstepd", "slurmstepd: [66.0]", "/usr/bin/work", 1000),
    ],
)
def test_nothing_else_is_believed(
    node: FakeNode, name: str, title: str, program: str, uid: int
) -> None:
    node.process(600, name=name, title=title, program=program, uid=uid)
    node.process(601, 600)
    node.write("proc/601/environ", "SLURM_JOB_ID=66\0")
    assert found(node) == {}


def test_a_slurmstepd_that_was_updated_meanwhile_is_one_still(node: FakeNode) -> None:
    node.process(
        *(100, 1),
        name="slurmstepd",
        title="slurmstepd: [12.0+1]",
        program="/usr/sbin/slurmstepd (deleted)",
        uid=0,
    )
    node.process(101, 100)
    assert found(node) == {"12": [101]}


def test_a_task_between_fork_and_exec_is_no_second_slurmstepd(node: FakeNode) -> None:
    node.stepd(100, "12.batch")
    node.process(
        *(101, 100),
        name="slurmstepd",
        title="slurmstepd: [12.batch]",
        program="/usr/sbin/slurmstepd",
        uid=0,
    )
    assert found(node) == {"12": [101]}


def test_who_lost_his_parent_is_known_by_his_session(node: FakeNode) -> None:
    node.stepd(100, "12.batch", session=98)  # slurmd's child 98 began it, and ended
    node.process(101, 100, session=98)
    node.process(102, 101, session=102)  # began a session, as a shell with job control
    node.process(110, 1, session=98)
    node.process(111, 1, session=102)
    node.process(112, 111, session=112)
    node.process(113, 1, session=112)
    node.process(120, 1, session=120)  # began its own and lost its parent: out of sight
    assert found(node) == {"12": [101, 102, 110, 111, 112, 113]}


@pytest.mark.parametrize("slurmd", [True, False])
def test_a_session_that_a_slurmstepd_shares_says_nothing(node: FakeNode, slurmd: bool) -> None:
    node.process(50, name="slurmd", uid=0, session=50 if slurmd else 49)
    node.process(90, 50, session=50 if slurmd else 90)
    node.stepd(100, "12.batch", session=50)
    node.process(101, 100, session=50)
    node.stepd(200, "13.batch", session=50)
    node.process(201, 200, session=50)
    assert found(node) == {"12": [101], "13": [201]}


# by cgroups


@pytest.mark.parametrize("scope", ["slurmstepd.scope", "n1_slurmstepd.scope"])
def test_cgroups_of_v2(node: FakeNode, scope: str) -> None:
    node.stepd(100, "12.batch")
    node.stepd(300, "12.extern")
    for pid in (101, 102, 301):
        node.process(pid)
    node.process(103, 101)  # in no cgroup of the job: not its
    node.unified(
        f"{scope}/job_12",
        cpu_s=5.0,
        step_batch_slurm=(100,),
        step_batch_user=(101,),
        step_0_user=(102,),
        step_extern_slurm=(300,),
        step_extern_user=(301,),
    )
    (job,) = jobs_here(node.proc, node.cgroup)
    table = proc.processes(node.proc)
    path = node.cgroup / "system.slice" / scope / "job_12"
    assert (job.job, job.processes, job.steps) == ("12", (table[101], table[102]), ())
    assert [(g.tracked, g.unified) for g in job.groups] == [(path, True)]


def test_a_directory_that_is_named_by_a_sluid_has_its_slurmstepds_number(node: FakeNode) -> None:
    node.stepd(100, "12.batch")
    node.process(101, 100)
    node.unified(
        "slurmstepd.scope/s5K1KKYAYG5D00",
        cpu_s=5.0,
        step_batch_slurm=(100,),
        step_batch_user=(101,),
    )
    node.unified("slurmstepd.scope/s5K1KKYAYG5D01", cpu_s=5.0, step_batch_slurm=(999,))
    node.unified("slurmstepd.scope/system", cpu_s=5.0)
    assert found(node) == {"12": [101]}


def test_a_users_own_directories_are_not_slurmds(node: FakeNode) -> None:
    node.process(101)
    for place in (
        "user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_66/step_0/user",
        "user.slice/user-1000.slice/system.slice/slurmstepd.scope/job_66/step_0/user",
        "system.slice/xslurmstepd.scope/job_66/step_0/user",
        "system.slice/slurmstepd.scope/job_x/step_0/user",
    ):
        node.write(f"cgroup/{place}/cgroup.procs", "101\n")
    assert found(node) == {}


@pytest.mark.parametrize("top", ["slurm", "slurm_n1"])
def test_cgroups_of_v1(node: FakeNode, top: str) -> None:
    node.stepd(100, "12.batch")
    for pid in (101, 102, 103, 301):
        node.process(pid)
    job = f"{top}/uid_1000/job_12"
    node.write(f"cgroup/freezer/{job}/step_batch/cgroup.procs", "100\n101\n")
    node.write(f"cgroup/freezer/{job}/step_0/task_1/cgroup.procs", "102\n0\n")
    node.write(f"cgroup/freezer/{job}/step_extern/cgroup.procs", "301\n")
    node.write(f"cgroup/memory/{job}/step_0/cgroup.procs", "103\n")  # not what tracks here
    (found,) = jobs_here(node.proc, node.cgroup)
    table = proc.processes(node.proc)
    assert (found.job, found.processes) == ("12", (table[101], table[102]))
    (group,) = found.groups
    assert (group.tracked, group.unified) == (node.cgroup / "freezer" / job, False)
    assert (group.cpu, group.memory) == (None, node.cgroup / "memory" / job)


def test_jobs_with_and_without_cgroups_are_told_together(node: FakeNode) -> None:
    node.stepd(100, "12.batch")
    node.process(101, 100)
    node.unified("slurmstepd.scope/job_9", cpu_s=0.0, step_0_user=(201,))
    node.process(201)
    assert found(node) == {"9": [201], "12": [101]}


# /proc itself


def test_a_name_may_hold_anything() -> None:
    rest = " ".join(str(number) for number in range(4, 53))
    assert parse_stat(f"9 (a) S 1 (b) ) R {rest}\n".encode()) == Process(
        pid=9,
        name="a) S 1 (b) ",
        parent=4,
        session=6,
        own_s=(14 + 15) / proc.TICKS_PER_S,
        children_s=(16 + 17) / proc.TICKS_PER_S,
        threads=20,
        started=22,
        rss_bytes=24 * proc.PAGE_BYTES,
    )


@pytest.mark.parametrize(("flags", "seen"), [(0x208040, {1, 2, 50}), (0x400000, {1, 2, 50, 66})])
def test_the_kernels_threads_are_not_looked_at(node: FakeNode, flags: int, seen: set[int]) -> None:
    node.process(2, 0, name="kthreadd", uid=0, flags=flags)  # or a user's of that name
    node.process(66, 2)
    node.write("proc/2/task/2/children", "66 77 ")
    assert set(proc.processes(node.proc)) == seen


@pytest.mark.parametrize("line", [b"", b"9 (a", b"9 (a) S 1 2\n"])
def test_a_process_that_is_gone_is_none(line: bytes) -> None:
    assert parse_stat(line) is None


def test_a_process_that_ends_while_it_is_looked_at_is_left_out(node: FakeNode) -> None:
    node.stepd(100, "12.batch")
    (node.proc / "101").mkdir()
    node.unified("slurmstepd.scope/job_9", cpu_s=0.0, step_0_user=(202,))
    assert found(node) == {"9": [], "12": []}


WORKS = """
import threading, time
while time.process_time() < 0.1: pass
threading.Thread(target=time.sleep, args=(60,)).start()
print(flush=True)
time.sleep(60)
"""


def test_real_processes_are_read_as_the_kernel_has_them() -> None:
    root = Path("/proc")
    with subprocess.Popen([sys.executable, "-c", WORKS], stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        seen = proc.processes(root)[child.pid]
        times = list(proc.thread_times(root, seen))
        user, program = proc.real_user(root, child.pid), proc.program(root, child.pid)
        child.kill()
    assert (seen.parent, seen.session, seen.threads) == (os.getpid(), os.getsid(0), 2)
    assert (user, program) == (os.getuid(), Path(sys.executable).resolve().name)
    assert seen.own_s >= 0.1 - 3 / proc.TICKS_PER_S  # two numbers of whole ticks
    assert seen.rss_bytes > 2**20
    (first, first_ran_s, _), (_, second_ran_s, _) = times
    assert first == child.pid
    assert first_ran_s >= 0.1 - 1e-3 > second_ran_s


def test_where_nothing_is_there_is_no_job_and_where_no_proc_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    assert jobs_here(tmp_path / "proc", tmp_path / "none") == ()
    with pytest.raises(FileNotFoundError):
        jobs_here(tmp_path / "none", tmp_path / "none")
