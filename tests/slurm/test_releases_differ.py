"""What Slurm's releases do differently where Pliant relies on it, and what each of them does.

A table names releases; each row holds from its release on, until the next one. So a release that no
table knows is expected to do what the latest did, and the test that fails names the difference.
Nothing here is changed by Pliant but where a test says so: pliantd is stopped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from changing_helpers import Cluster, by_id
from release_helpers import Release, from_on
from slurm_helpers import Submit, WaitForState, adapter, wait_until
from spank_helpers import plugstack

from pliant import resources
from pliant.batch.slurm.job_rows import NUMBERS, TEXTS
from pliant.batch.slurm.refusals import blocked, is_for_good
from pliant.batch.slurm.site import parse_config
from pliant.batch.slurm.values import instant_s
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

LONG = "#!/bin/bash\nsleep 3600\n"

# What an update of a waiting job does


@dataclass(frozen=True)
class Came:
    """What came of a job: whether Slurm took the (last) update, and what then ran."""

    taken: bool
    gpus: int
    nodes: int = 1
    tasks: int = 1
    shards: int = 0
    waits: str = ""  # the Reason of one that Slurm does not start


@dataclass(frozen=True)
class Trap:
    """A job, what it is changed by while it waits, and what comes of it from a release on."""

    options: str
    updates: tuple[str, ...]
    came: Mapping[str, Came]


TO_ONE_NODE = "NumTasks=1 NumCPUs=1 Gres=gpu:4"
TRAPS = {
    "gres=gpu:0 leaves the GPUs before 26.05": Trap(
        "--gres=gpu:2", ("Gres=gpu:0",), {"22.05": Came(True, 2), "26.05": Came(True, 0)}
    ),
    "an empty gres= leaves the GPUs before 26.05": Trap(
        "--gres=gpu:2", ("Gres=",), {"22.05": Came(True, 2), "26.05": Came(True, 0)}
    ),
    "an empty TresPerNode= leaves the GPUs in 24.11": Trap(
        "--gres=gpu:2",
        ("TresPerNode=",),
        {"22.05": Came(True, 0), "24.11": Came(True, 2), "26.05": Came(True, 0)},
    ),
    "the dummy takes the GPUs' place": Trap(
        "--gres=gpu:2",
        ("Gres=nogpu:1 CPUsPerTask=8 NumCPUs=8",),
        {"22.05": Came(True, 2), "24.11": Came(True, 0)},
    ),
    "the dummy takes the GPUs' place after an empty TresPerNode=": Trap(
        "--gres=gpu:2",
        ("TresPerNode=", "Gres=nogpu:1 CPUsPerTask=8 NumCPUs=8"),
        {"22.05": Came(True, 0)},
    ),
    "a total changes by the colon form": Trap(
        "--gpus=2", ("TresPerJob=gres:gpu:1",), {"22.05": Came(True, 1)}
    ),
    "a total changes by the form with a slash from 24.11 on": Trap(
        "--gpus=2", ("TresPerJob=gres/gpu:1",), {"22.05": Came(True, 2), "24.11": Came(True, 1)}
    ),
    "a total is no form per node": Trap("--gpus=2", ("Gres=gpu:1",), {"22.05": Came(False, 2)}),
    "a total becomes the form per node where both are said": Trap(
        "--gpus=2", ("TresPerJob= Gres=gpu:1",), {"22.05": Came(True, 1)}
    ),
    "--gpus-per-task does not become the form per node": Trap(
        "-n2 -N1 --gpus-per-task=1",
        ("Gres=gpu:1",),
        {
            "22.05": Came(False, 2, tasks=2),
            "24.11": Came(True, 0, waits="BadConstraints"),
        },
    ),
    "--gpus-per-task follows more tasks": Trap(
        "-n2 -N1 --gpus-per-task=1", ("NumTasks=4 NumCPUs=4",), {"22.05": Came(True, 4, tasks=4)}
    ),
    "--gpus-per-task follows fewer tasks": Trap(
        "-n4 -N1 --gpus-per-task=1",
        ("NumTasks=2 NumCPUs=2",),
        {"22.05": Came(True, 2, tasks=2)},
    ),
    "--ntasks-per-node is not changed by its name": Trap(
        "-N1 --ntasks-per-node=2 --gres=gpu:2",
        ("Gres=gpu:1 NtasksPerNode=1",),
        {"22.05": Came(False, 2, tasks=2)},
    ),
    "--ntasks-per-node changes as TasksPerNode": Trap(
        "-N1 --ntasks-per-node=2 --gres=gpu:2",
        ("Gres=gpu:1 NumTasks=1 NumCPUs=1 TasksPerNode=1 MinCPUsNode=1",),
        {"22.05": Came(True, 1)},
    ),
    "--cpus-per-gpu goes by an empty CpusPerTres=": Trap(
        "--gres=gpu:2 --cpus-per-gpu=3",
        (f"CpusPerTres= NumNodes=1-1 CPUsPerTask=1 MinCPUsNode=1 {TO_ONE_NODE}",),
        {"22.05": Came(True, 4)},
    ),
    "--gpus-per-task becomes the form per node by an empty TresPerTask= from 24.11 on": Trap(
        "-n4 -N1 --gpus-per-task=1",
        ("TresPerTask= Gres=gpu:2 NumTasks=2 NumCPUs=2",),
        {"22.05": Came(False, 4, tasks=4), "24.11": Came(True, 2, tasks=2)},
    ),
    "--gpus-per-task becomes a total": Trap(
        "-n4 -N1 --gpus-per-task=1",
        ("TresPerTask= TresPerJob=gres:gpu:2 NumTasks=2 NumCPUs=2",),
        {"22.05": Came(True, 2, tasks=2)},
    ),
    "a number of nodes alone leaves the tasks": Trap(
        "-N2 -n2 --gres=gpu:2", ("NumNodes=1-1",), {"22.05": Came(True, 2, tasks=2)}
    ),
    "one number of nodes in its place": Trap(
        "-N2 -n2 --gres=gpu:2", ("NumNodes=1",), {"22.05": Came(True, 2, tasks=2)}
    ),
    "one number of nodes beside tasks by the node": Trap(
        "-N2 --ntasks-per-node=2 --gres=gpu:2",
        ("NumNodes=1",),
        {"22.05": Came(True, 4, nodes=2, tasks=4), "24.11": Came(True, 2, tasks=2)},
    ),
    "nodes, tasks, CPUs and GPUs change together": Trap(
        "-N2 -n2 --gres=gpu:2", (f"NumNodes=1-1 {TO_ONE_NODE}",), {"22.05": Came(True, 4)}
    ),
    "GPUs become shards from 24.11 on": Trap(
        "--gres=gpu:2",
        ("Gres=shard:1",),
        {"22.05": Came(False, 2), "24.11": Came(True, 0, shards=1)},
    ),
    "shards become GPUs from 24.11 on": Trap(
        "--gres=shard:1",
        ("Gres=gpu:2",),
        {"22.05": Came(False, 0, shards=1), "24.11": Came(True, 2)},
    ),
    "one type of GPU does not become another": Trap(
        "--gres=gpu:a100:1",
        ("Gres=gpu:h100:1",),
        {"22.05": Came(True, 0, waits="BadConstraints")},
    ),
}


@pytest.fixture(scope="module")
def came(cluster: Cluster) -> dict[str, Came]:
    """Let all wait, change all, and let all run."""
    cluster.empty()
    cluster.fill()
    jobs = {name: cluster.submit(*trap.options.split()) for name, trap in TRAPS.items()}
    taken = {}
    for name, trap in TRAPS.items():
        for words in trap.updates:
            argv = ("scontrol", "update", f"jobid={jobs[name]}", *words.split())
            taken[name] = cluster.sandbox.run(argv).returncode == 0
    cluster.free()
    found = {name: what_came(cluster, job, taken[name]) for name, job in jobs.items()}
    cluster.empty()
    return found


def what_came(cluster: Cluster, job: str, taken: bool) -> Came:
    """Wait until a job has ended, or Slurm says that it will not start."""
    hopeless = ("BadConstraints", "PartitionConfig", "ReqNodeNotAvail")

    def state() -> tuple[str, ...]:
        return tuple(cluster.run("squeue", "-h", "-t", "all", "-j", job, "-o%T %r").split())

    wait_until(lambda: state()[0] == "COMPLETED" or state()[1] in hopeless, f"job {job}")
    if state()[0] != "COMPLETED":
        return Came(taken, 0, waits=state()[1])
    ran = cluster.ran(job)
    tasks = sum(
        int(number) * int(times or 1)
        for number, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", ran.tasks)
    )
    return Came(taken, ran.accounted, ran.nodes, tasks, ran.shards)


@pytest.mark.parametrize("name", TRAPS)
def test_an_update_of_a_waiting_job(name: str, came: dict[str, Came], release: Release) -> None:
    assert came[name] == from_on(TRAPS[name].came, release)


def test_a_job_whose_gpus_were_taken_starts_where_no_gpu_is_free(
    cluster: Cluster, release: Release
) -> None:
    """In 22.05 a count of no GPUs is left: it starts only where a GPU is free."""
    starts = {"22.05": False, "24.11": True}
    cluster.empty()
    here = ("--nodelist=n1", "--gres=gpu:4")
    cluster.run_long(*here)
    job = cluster.submit("--hold", *here, script=LONG)
    for words in ("TresPerNode=", "Gres=nogpu:1 CPUsPerTask=8 NumCPUs=8"):
        cluster.run("scontrol", "update", f"jobid={job}", *words.split())
    cluster.run("scontrol", "release", job)
    waits = ("squeue", "-h", "-t", "all", "-j", job, "-o%T %r")
    wait_until(
        lambda: cluster.run(*waits) in ("PENDING Resources", "RUNNING None"), "the job's turn"
    )
    assert (cluster.run(*waits) == "RUNNING None") is from_on(starts, release)
    cluster.empty()


def test_the_nodes_of_an_arrays_waiting_tasks_cannot_be_changed_together(full: Cluster) -> None:
    job = full.submit("--array=1-3", "--nodes=1", "--gres=gpu:1")

    def update(words: str) -> int:
        argv = ("scontrol", "update", f"jobid={job}_[1-3]", *words.split())
        return full.sandbox.run(argv).returncode

    assert (update("NumNodes=2-2"), update("Gres=gpu:2 NumTasks=1")) == (1, 0)


# What Slurm refuses for good, and what it takes and never starts: docs/slurm-updates.md


@dataclass(frozen=True)
class Answered:
    """What Slurm says to an update of a waiting job, and what of it is applied."""

    words: str = ""  # "": it is taken
    gpus: str = "2"
    limit: str = "00:30:00"
    waits: str = ""  # the Reason for which a job that was changed so does not start


TIME_MIN = "Invalid time-min specification (exceeds job's time or other limits)"
ANSWERS = {
    "a time limit below --time-min is refused": (
        "--time-min=20",
        "Gres=gpu:1 TimeLimit=10",
        {"22.05": Answered(TIME_MIN)},
    ),
    "a time limit and TimeMin in one call are taken": (
        "--time-min=20",
        "Gres=gpu:1 TimeMin=10 TimeLimit=10",
        {"22.05": Answered(gpus="1", limit="00:10:00")},
    ),
    "a GRES that is not there is refused": (
        "",
        "Gres=tpu:1 TimeLimit=10",
        {"22.05": Answered("Invalid generic resource (gres) specification")},
    ),
    "a type of GPU that is not there is refused beside an untyped one": (
        "",
        "Gres=gpu:none:1 TimeLimit=10",
        {
            "22.05": Answered("Invalid GRES specification (with and without type identification)"),
            "24.11": Answered(gpus="1", limit="00:10:00", waits="BadConstraints"),
        },
    ),
    "a feature that is not there is refused": (
        "",
        "Gres=gpu:1 Features=none TimeLimit=10",
        {"22.05": Answered("Invalid feature specification", limit="00:10:00")},
    ),
    "a QOS that is not there is refused": (
        "",
        "Gres=gpu:1 QOS=none TimeLimit=10",
        {"22.05": Answered("Invalid qos specification")},
    ),
    "more nodes than the partition has are taken": (
        "",
        "Gres=gpu:2 NumNodes=9-9 NumTasks=9 NumCPUs=9",
        {"22.05": Answered(waits="PartitionNodeLimit")},
    ),
    "more than a limit of its QOS allows is taken": (
        "--qos=few",
        "Gres=gpu:4",
        {"22.05": Answered(gpus="4", waits="QOSMaxGRESPerJob")},
    ),
    "more than a limit of its QOS allows is taken with DenyOnLimit": (
        "--qos=deny",
        "Gres=gpu:4",
        {"22.05": Answered(gpus="4", waits="QOSMaxGRESPerJob")},
    ),
    "more than a limit of its account allows is taken": (
        "--account=few",
        "Gres=gpu:4",
        {"22.05": Answered(gpus="4", waits="AssocMaxGRESPerJob")},
    ),
    "less than its QOS asks for is taken": (
        "--qos=many",
        "Gres=gpu:1",
        {"22.05": Answered(gpus="1", waits="QOSMinGRES")},
    ),
}

LIMITS = (
    "add qos few set MaxTRESPerJob=gres/gpu=2",
    "add qos deny set MaxTRESPerJob=gres/gpu=2 Flags=DenyOnLimit",
    "add qos many set MinTRESPerJob=gres/gpu=2",
    "modify user root set qos+=few,deny,many",
    "add account few MaxTRESPerJob=gres/gpu=2",
    "add user root account=few",
)


UNLIMITED = (
    "modify user root set qos-=few,deny,many",
    "delete user root where account=few",
    "delete account few",
    "delete qos few,deny,many",
)
"""Of one account's limit nobody knows whom it may bound: other tests' jobs would not be enlarged."""


@pytest.fixture(scope="module")
def limits(cluster: Cluster) -> Iterator[None]:
    """Limits of QOS and of an account, for a while."""
    for words in LIMITS:
        cluster.run("sacctmgr", "-i", *words.split())
    yield
    cluster.empty()
    for words in UNLIMITED:
        cluster.run("sacctmgr", "-i", *words.split())


@pytest.fixture(scope="module")
def answered(cluster: Cluster, limits: None) -> dict[str, Answered]:
    """Let all wait, change all, and see for what they wait once there is room."""
    cluster.empty()
    cluster.fill()
    gpus = ("--gres=gpu:2", "--nodes=1")
    jobs = {name: cluster.submit(*gpus, *row[0].split()) for name, row in ANSWERS.items()}
    told = {}
    for name, (_, words, _) in ANSWERS.items():
        done = cluster.sandbox.run(("scontrol", "update", f"jobid={jobs[name]}", *words.split()))
        said = done.stderr.replace("slurm_update error:", "").strip()
        fields = cluster.fields(jobs[name])
        asks = fields["TresPerNode"].rpartition(":")[2]
        told[name] = Answered(said.partition(" for job")[0], asks, fields["TimeLimit"])
    cluster.free()
    found = {name: replace(told[name], waits=waits_for(cluster, job)) for name, job in jobs.items()}
    cluster.empty()
    return found


def waits_for(cluster: Cluster, job: str) -> str:
    """Wait until a job has ended, or waits for what does not pass; return the Reason."""
    told = ("squeue", "-h", "-t", "all", "-j", job, "-o%T %r")
    passes = ("Resources", "Priority", "None")

    def settled() -> bool:
        state, _, reason = cluster.run(*told).partition(" ")
        return state == "COMPLETED" or (state == "PENDING" and reason not in passes)

    wait_until(settled, f"job {job}")
    state, _, reason = cluster.run(*told).partition(" ")
    return "" if state == "COMPLETED" else reason


@pytest.mark.parametrize("name", ANSWERS)
def test_what_slurm_answers_to_an_update_of_a_waiting_job(
    name: str, answered: dict[str, Answered], release: Release
) -> None:
    expected = from_on(ANSWERS[name][2], release)
    assert answered[name] == expected
    assert is_for_good(expected.words) is (expected.words != "")
    assert blocked(expected.waits) == expected.waits


def test_on_a_running_job_time_min_is_taken_and_does_nothing(cluster: Cluster) -> None:
    cluster.empty()
    job = cluster.run_long("--gres=gpu:1", "--time-min=20")
    cluster.run("scontrol", "update", f"jobid={job}", "TimeMin=10")
    assert cluster.fields(job)["TimeMin"] == "00:20:00"
    cluster.empty()


def test_on_a_running_job_its_end_is_taken_to_the_second(cluster: Cluster) -> None:
    cluster.empty()
    job = cluster.run_long("--gres=gpu:1", "--time=20")
    told = cluster.fields(job)["EndTime"]
    later = (datetime.fromisoformat(told) + timedelta(seconds=41)).isoformat()
    cluster.run("scontrol", "update", f"jobid={job}", f"EndTime={later}")
    shown = cluster.fields(job)
    assert (shown["EndTime"], shown["TimeLimit"]) == (later, "00:21:00")
    cluster.empty()


def test_a_priority_takes_the_nice_value_away_until_it_is_set_again(full: Cluster) -> None:
    job = full.submit("--gres=gpu:1", "--nice=50")

    def after(*words: str) -> tuple[str, str]:
        full.run("scontrol", *words)
        fields = full.fields(job)
        return fields["Priority"], fields["Nice"]

    own, _ = after("release", job)
    assert after("update", f"jobid={job}", "Priority=5000") == ("5000", "0")
    assert after("update", f"jobid={job}", "Nice=50") == ("5000", "0")
    assert after("release", job) == (own, "0")
    assert after("update", f"jobid={job}", "Nice=50") == (own, "50")


# An update that comes too late


@dataclass(frozen=True)
class Left:
    """What a running job is after an update that was meant for a waiting one."""

    taken: bool
    minutes: int = 30
    nodes: int = 2
    gpus: int = 2


OURS = "NumNodes=1-1 NumTasks=1 NumCPUs=1 CPUsPerTask=1 MinCPUsNode=1"
LATE = {
    "a time limit is cut though the update is refused": (
        "TimeLimit=5 StartTime=now+60",
        {"22.05": Left(False, minutes=5)},
    ),
    "behind gres= a time limit is left": ("Gres=gpu:2 TimeLimit=5", {"22.05": Left(False)}),
    "a number of nodes shrinks it": ("NumNodes=1", {"22.05": Left(True, nodes=1, gpus=1)}),
    "behind gres= nothing is applied": (f"Gres=gpu:2 {OURS}", {"22.05": Left(False)}),
}


@pytest.mark.parametrize("name", LATE)
def test_an_update_that_finds_its_job_running(
    name: str, cluster: Cluster, release: Release
) -> None:
    words, table = LATE[name]
    cluster.empty()
    job = cluster.run_long("-N2", "-n2", "--gres=gpu:1")
    done = cluster.sandbox.run(("scontrol", "update", f"jobid={job}", *words.split()))
    fields = cluster.fields(job)
    gpus = re.search(r"gres/gpu=(\d+)", cluster.run("scontrol", "show", "job", job))
    hours, minutes, _ = fields["TimeLimit"].split(":")
    cluster.empty()
    left = Left(
        done.returncode == 0,
        60 * int(hours) + int(minutes),
        int(fields["NumNodes"]),
        int(gpus[1]) if gpus else 0,
    )
    assert left == from_on(table, release)


def test_a_requeued_job_waits_two_minutes_unless_its_begin_is_set(cluster: Cluster) -> None:
    cluster.empty()
    job = cluster.run_long("--requeue", "--gres=gpu:1")
    cluster.run("scontrol", "requeue", job)
    wait_until(lambda: cluster.states([job]) == {"PENDING"}, "the job to wait again")
    moments = ("squeue", "-h", "-j", job, "-O", "EligibleTime:|,SubmitTime:|")
    eligible_s, submit_s = (instant_s(text) for text in cluster.run(*moments).split("|")[:2])
    assert 120 <= eligible_s - submit_s <= 122  # cred_expire, and one more
    cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now+2")
    wait_until(lambda: cluster.states([job]) == {"RUNNING"}, "the job to run again")
    assert cluster.fields(job)["Restarts"] == "1"
    cluster.empty()


LEAST = (
    *("-c3", "-n3", "-n2 --mincpus=5", "--ntasks-per-node=3", "--cpus-per-gpu=3"),
    *("--ntasks-per-gpu=2", "--exclusive"),
)


@pytest.mark.parametrize("options", LEAST)
def test_squeue_shows_the_least_cpus_of_a_running_job_as_it_asks_them_once_it_waits_again(
    cluster: Cluster, options: str
) -> None:
    """Else each resize of a job without an answer would end as one that its owner has changed."""
    cluster.empty()
    job = cluster.run_long("--requeue", "--gres=gpu:2", *options.split())
    told = ("squeue", "-h", "-j", job, "-O", "NumTasks:|,cpus-per-task:|,MinCpus:|")
    runs = cluster.run(*told)
    cluster.run("scontrol", "requeue", job)
    wait_until(lambda: cluster.states([job]) == {"PENDING"}, "the job to wait again")
    assert cluster.run(*told) == runs
    cluster.empty()


# How Slurm answers


def test_that_slurm_preempts_nobody_is_seen(cluster: Cluster, release: Release) -> None:
    told = cluster.run("scontrol", "show", "config")
    said = re.search(r"^PreemptType\s*= (.*)", told, re.MULTILINE)
    assert said
    assert said[1] == from_on({"22.05": "preempt/none", "24.11": "(null)"}, release)
    assert parse_config(told).own_preemption == ""


UNKNOWN_FIELDS = {
    "22.05": {"ExcNodes", "Exclusive"},
    "24.11": {"Exclusive"},
    "26.05": set[str](),
}


def test_squeue_knows_the_fields_that_are_asked_for(cluster: Cluster, release: Release) -> None:
    unknown = set()
    for field in (*NUMBERS, *TEXTS, "Exclusive"):
        done = cluster.sandbox.run(("squeue", "-h", "-O", f"{field}:|"))
        if done.returncode or "Invalid" in done.stderr:
            unknown.add(field)
    assert unknown == from_on(UNKNOWN_FIELDS, release)


def test_a_task_that_its_owner_changed_is_told_apart(full: Cluster, release: Release) -> None:
    """22.05's squeue can say so itself; later ones know no --array-unique any more."""
    job = full.submit("--array=1-3", "--nodes=1", "--gres=gpu:1")
    full.flag(job, "gpus=1-4")
    full.run("scontrol", "update", f"jobid={job}_2", "Gres=gpu:2")
    done = full.sandbox.run(("squeue", "-h", "--array-unique", "-o%i"))
    assert (done.returncode == 0) is from_on({"22.05": True, "24.11": False}, release)
    seen = by_id(adapter(full.sandbox).observe().waiting)
    assert (seen[job].array_tasks, str(seen[job].shape), seen[job].frozen) == ("1,3", "1", "")
    assert f"{job}_2" in seen


JOINED = {"22.05": "Resources", "24.11": "Resources,JobHeldAdmin"}


def test_why_the_tasks_wait_that_nobody_holds_is_seen(full: Cluster, release: Release) -> None:
    job = full.submit("--array=1-3", "--nodes=1", "--gres=gpu:1")
    full.flag(job, "gpus=1-4")
    full.run("scontrol", "hold", f"{job}_2")
    words = ("env", "SQUEUE_ARRAY_UNIQUE=1", "squeue", "-h", "-j", job, "-o%r")
    wait_until(lambda: "Resources" in full.run(*words), "Slurm to say why")
    assert full.run(*words).splitlines()[0] == from_on(JOINED, release)
    seen = by_id(adapter(full.sandbox).observe().waiting)[job]
    assert (seen.array_tasks, seen.reason) == ("1,3", "Resources")


ALONE = {
    "": {"22.05": "OK", "26.05": "NO NO"},
    "--oversubscribe": {"22.05": "YES", "26.05": "YES NO"},
    "--exclusive=user": {"22.05": "USER", "26.05": "NO USER"},
    "--exclusive": {"22.05": "NO", "26.05": "NO NODE"},
}
"""How squeue says for whom a job keeps its nodes."""


def test_for_whom_a_job_keeps_its_nodes_is_seen(cluster: Cluster, release: Release) -> None:
    cluster.empty()
    words = "OverSubscribe:|,Exclusive:|" if release >= (26, 5) else "OverSubscribe:|"
    for options, table in ALONE.items():
        job = cluster.run_long(*options.split())
        said = cluster.run("squeue", "-h", "-j", job, "-O", words).rstrip("|").split("|")
        (seen,) = adapter(cluster.sandbox).observe().running
        cluster.empty()
        assert " ".join(said) == from_on(table, release), options
        assert seen.whole_nodes is (options == "--exclusive"), options


OWN_NODES = {
    "": {"22.05": "OverSubscribe=NO ExclusiveUser=NO", "26.05": "OverSubscribe=NO Exclusive=NO"},
    "OverSubscribe=EXCLUSIVE": {
        "22.05": "OverSubscribe=EXCLUSIVE ExclusiveUser=NO",
        "26.05": "OverSubscribe=NO Exclusive=NODE",
    },
    "ExclusiveUser=YES": {
        "22.05": "OverSubscribe=NO ExclusiveUser=YES",
        "26.05": "OverSubscribe=NO Exclusive=USER",
    },
}
"""How scontrol says that a partition's jobs share their nodes with nobody, or with no other user."""


@pytest.mark.parametrize("words", OWN_NODES)
def test_that_a_partitions_jobs_have_their_nodes_alone_is_seen(
    words: str, cluster: Cluster, release: Release
) -> None:
    cluster.run("scontrol", "create", "partition=own", "nodes=ALL", *words.split())
    try:
        told = cluster.run("scontrol", "-o", "-a", "show", "partition", "own").split()
        seen = adapter(cluster.sandbox).observe().partitions
    finally:
        cluster.run("scontrol", "delete", "partition=own")
    for word in from_on(OWN_NODES[words], release).split():
        assert word in told
    (own,) = (partition for partition in seen if partition.name == "own")
    assert own.alone is bool(words)


USED = {
    "22.05": "gpu:a100:1(IDX:0),shard:a100:1(IDX:1),nogpu:0",
    "24.11": "gpu:a100:1(IDX:0),shard:a100:3(0/4,3/4,0/4,0/4),nogpu:0",
    "26.05": "gpu:a100:1(IDX:0),shard:a100:3(-/4,3/4,0/4,0/4),nogpu:0",
}


def test_which_shards_of_a_node_are_used_is_seen(cluster: Cluster, release: Release) -> None:
    cluster.empty()
    for gres in ("gpu:1", "shard:3"):
        cluster.run_long("--nodelist=n1", f"--gres={gres}")
    told = cluster.run("scontrol", "-o", "-d", "show", "node", "n1").split()
    used = next(word for word in told if word.startswith("GresUsed="))
    assert used.removeprefix("GresUsed=") == from_on(USED, release)
    node = next(n for n in adapter(cluster.sandbox).observe().nodes if n.name == "n1")
    (pool,) = node.pools
    assert (pool.free, pool.parts) == (2, (1,))
    cluster.empty()


# What stands in a job's environment

SAYS = """
env | grep -E '^SLURM_(NTASKS|NPROCS|GPUS|GPUS_PER_NODE|NTASKS_PER_NODE|TRES_PER_TASK|GPUS_PER_TASK)=' | sort
echo tasks=$(srun -Q hostname 2>/dev/null | wc -l)
"""

STALE = {
    "-n4 -N1 --gpus-per-node=4": {
        "22.05": "GPUS_PER_NODE=4 NPROCS=4 NTASKS=4 tasks=0",
        "24.11": "GPUS_PER_NODE=4 NPROCS=2 NTASKS=2 tasks=0",
    },
    "-n4 -N1 --gres=gpu:4": {
        "22.05": "NPROCS=4 NTASKS=4 tasks=0",
        "24.11": "NPROCS=2 NTASKS=2 tasks=2",
    },
}
"""What a job finds that was made half as large, without Pliant: variables that are not true any more."""


@pytest.fixture
def half(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    output: Callable[[int], str],
) -> Callable[[str], str]:
    """Submit a job of four tasks and GPUs, make it one of two, let it run; return what it finds."""
    clean.stop("pliantd")

    def run(options: str) -> str:
        job = submit("-H", *options.split(), script=SAYS)
        words = ("gres=gpu:2", "NumTasks=2", "NumCPUs=2")
        clean.run(["scontrol", "update", f"jobid={job}", *words], check=True)
        clean.run(["scontrol", "release", str(job)], check=True)
        wait_for_state(job, "COMPLETED")
        return " ".join(output(job).replace("SLURM_", "").split())

    return run


@pytest.mark.parametrize("options", STALE)
def test_what_slurm_leaves_in_the_environment_of_a_changed_job_is_true_with_pliant(
    options: str, half: Callable[[str], str], clean: Sandbox, release: Release
) -> None:
    with plugstack(clean, None):
        assert half(options) == from_on(STALE[options], release)
    true = half(f"{options} --moldable=gpus=1-4").replace("GPUS=2 ", "")
    assert true.removeprefix("GPUS_PER_NODE=2 ") == "NPROCS=2 NTASKS=2 tasks=2"


# The plugin


def test_a_plugin_built_for_another_release_is_left_out_and_jobs_run(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState, tmp_path: Path
) -> None:
    headers = tmp_path / "include"
    shutil.copytree("/usr/include/slurm", headers / "slurm")
    version = headers / "slurm" / "slurm_version.h"
    later = re.sub(r"(?<=SLURM_VERSION_NUMBER 0x)..", "63", version.read_text())
    version.write_text(later)
    source = tmp_path / "spank"
    shutil.copytree(resources.folder("spank"), source, ignore=shutil.ignore_patterns("*.so"))
    made = subprocess.run(
        ("make", "-C", str(source), f"SLURM_INCLUDE={headers}", "pliant.so"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    plugin, kept = clean.layout.plugin, clean.layout.plugin.with_suffix(".kept")
    plugin.rename(kept)
    try:
        shutil.copy(source / "pliant.so", plugin)
        refused = clean.run(["sbatch", "--moldable=gpus=1-2", "--wrap=true"])
        job = submit("--gres=gpu:1", script="srun true")
        wait_for_state(job, "COMPLETED")
    finally:
        kept.replace(plugin)
    assert "unrecognized option '--moldable=gpus=1-2'" in refused.stderr
