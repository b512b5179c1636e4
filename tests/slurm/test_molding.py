"""Waiting jobs molded on a real Slurm: what pliantd changes, what it leaves, and what then runs.

All happens on n1: one job holds the other nodes. Each test fills n1, lets jobs wait, and makes
room. pliantd itself enforces; nothing is changed by hand but where a test says so.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace

import pytest
from asking_helpers import ask, wait_for_look
from daemon_helpers import LONG, OneNode, configured, why
from lua_helpers import answered, close_breaker
from release_helpers import Release, from_on, requests
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.daemon import answers as a
from pliant.grammar import find_token, parse_shape, put_token
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

Show = Callable[[int | str], dict[str, str]]

# Down and up, and the environment inside

SAYS = r"""
echo "$PLIANT_SHAPE ${CUDA_VISIBLE_DEVICES//[^,]/}+ $SLURM_GPUS_ON_NODE"
echo sizes: $SLURM_NTASKS $SLURM_NPROCS $SLURM_TASKS_PER_NODE $SLURM_NNODES
echo plain: $(srun -Q /bin/hostname 2>&1 | wc -l)
echo one: $(srun -Q -N1 -n1 /bin/bash -c 'echo $SLURM_NTASKS $PLIANT_GPUS' 2>&1)
echo torchrun: $(srun -Q --ntasks-per-node=1 -n$SLURM_NNODES /bin/bash -c \
    'echo $SLURM_NNODES x $((PLIANT_GPUS / PLIANT_NODES))' 2>&1)
"""


def said(gpus: int, tasks: int) -> str:
    commas = "," * (gpus - 1)
    return (
        f"{gpus} {commas}+ {gpus}\nsizes: {tasks} {tasks} {tasks} 1\nplain: {tasks}\n"
        f"one: 1 {gpus}\ntorchrun: 1 x {gpus}\n"
    )


WRITTEN = [
    pytest.param("-n{0} --gres=gpu:{0}", 0, id="-n, one to a GPU"),
    pytest.param("-n3 --gres=gpu:{0}", 3, id="-n"),
    pytest.param("--ntasks-per-node=3 --gpus-per-node={0}", 3, id="--ntasks-per-node"),
    pytest.param("-n{0} --gpus-per-task=1", 0, id="--gpus-per-task"),
    pytest.param("-n{0} --gpus-per-node={0} --export=NONE", 0, id="--export=NONE"),
    pytest.param("-n{0} --gpus-per-node={0} --export=HOME,PATH", 0, id="--export=HOME,PATH"),
]
"""Ways to ask for GPUs, and the tasks of the job; 0: one for each GPU."""


@pytest.mark.parametrize(("written", "tasks"), WRITTEN)
def test_a_job_is_molded_down_to_what_is_free_and_runs_true_to_it(
    n1: OneNode, written: str, tasks: int
) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    job = n1.wait_in_line("--moldable=gpus=1-4", *written.format(4).split(), script=SAYS)
    n1.cancel(leaving)
    n1.wait_for_state(job, "COMPLETED")
    assert n1.output(job) == said(2, tasks or 2)


@pytest.mark.parametrize(("written", "tasks"), WRITTEN)
def test_a_job_is_submitted_as_large_as_what_is_free_and_runs_true_to_it(
    n1: OneNode, written: str, tasks: int
) -> None:
    n1.fill("gpu:1")
    options = ("--moldable=gpus=2-4", *written.format(2).split())
    job = answered(n1.sandbox, lambda: n1.submit(*options, script=SAYS))
    n1.wait_for_state(job, "COMPLETED")
    assert n1.output(job) == said(3, tasks or 3)


ON_TWO_NODES = [
    pytest.param("-n4 --gres=gpu:2", 2, 4, id="-n, one to a GPU"),
    pytest.param("-n2 --gres=gpu:1", 1, 1, id="-n, one to a node"),
    pytest.param("-n6 --gres=gpu:1", 1, 3, id="-n"),
    pytest.param("--ntasks-per-node=3 --gpus-per-node=1", 1, 3, id="--ntasks-per-node"),
    pytest.param("-n2 --gpus-per-task=1", 1, 4, id="--gpus-per-task"),
    pytest.param("--gres=gpu:1", 1, 1, id="plain"),
]
"""Ways to ask for GPUs on two nodes, these on each, and the tasks with four GPUs on one node."""


@pytest.mark.parametrize(("written", "gpus", "tasks"), ON_TWO_NODES)
def test_a_waiting_job_is_molded_up_to_what_is_free(
    n1: OneNode, written: str, gpus: int, tasks: int
) -> None:
    """Its two nodes are not there; the one that is has more GPUs than it asked for."""
    leaving = n1.fill("gpu:4")
    written_on_two = ("-N2", *written.split())
    job = n1.wait_in_line("--moldable=gpus=2:4,nodes=1-2", *written_on_two, script=SAYS)
    before = n1.show(job)
    n1.cancel(leaving)
    n1.wait_for_state(job, "COMPLETED")
    assert (before["NumNodes"], before["TresPerNode"]) == ("2-2", f"gres:gpu:{gpus}")
    assert n1.output(job) == said(4, tasks)


def test_tasks_asked_per_gpu_follow_the_gpus(n1: OneNode) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    written = ("--gpus=4", "--ntasks-per-gpu=1")
    job = n1.wait_in_line("--moldable=gpus=1-4", *written, script="srun hostname | wc -l")
    n1.cancel(leaving)
    n1.wait_for_state(job, "COMPLETED")
    assert n1.output(job) == "2\n"


def test_memory_and_cores_asked_per_gpu_follow_the_gpus(n1: OneNode) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    written = "--gpus=4 --cpus-per-gpu=3 --mem-per-gpu=500"
    job = n1.wait_in_line("--moldable=gpus=1-4", *written.split(), script=LONG)
    n1.cancel(leaving)
    n1.wait_for_state(job, "RUNNING")
    told = n1.show(job)
    assert (told["NumCPUs"], told["MinMemoryNode"], told["NumNodes"]) == ("6", "1000M", "1")


# The hole, and whom it belongs to


def test_a_job_slips_into_a_hole_that_its_rigid_form_could_not_use(n1: OneNode) -> None:
    """Two GPUs are free for twenty minutes; then all four belong to the first waiting job."""
    ends = n1.fill("gpu:2", time_min=20)
    first = n1.wait_in_line("--gres=gpu:4", script=LONG)
    wait_until(lambda: n1.show(first)["StartTime"] == n1.show(ends)["EndTime"], "backfill to plan")
    rigid = n1.wait_in_line("--gres=gpu:4", script=LONG)
    long = n1.wait_in_line("--moldable=gpus=1-4", "--gres=gpu:4", "--time=30", script=LONG)
    short = n1.submit("--moldable=gpus=1-4", "--gres=gpu:4", "--time=10", script=LONG)
    n1.wait_for_state(short, "RUNNING")
    assert n1.gpus(short) == "gres:gpu:2"
    n1.look()
    assert n1.states(first, rigid, long) == ["PENDING"] * 3
    assert n1.gpus(long) == "gres:gpu:4"  # it would run into the hole's end
    assert n1.show(first)["StartTime"] == n1.show(ends)["EndTime"]  # and nobody is late for that
    told = why(n1.sandbox, long)
    assert [claim.id for claim in told.before] == [str(first)]
    n1.cancel(ends, short)
    n1.wait_for_state(first, "RUNNING")


def test_a_job_that_can_start_nowhere_keeps_what_its_user_wrote(n1: OneNode) -> None:
    n1.fill("gpu:4")
    job = n1.wait_in_line("--moldable=gpus=1-4", "--gres=gpu:3")
    before = n1.show(job)
    n1.look()
    assert n1.gpus(job) == "gres:gpu:3"
    assert n1.changed(job, before) == set()


def test_a_job_whose_hole_was_taken_gets_back_what_its_user_wrote(n1: OneNode) -> None:
    """pliantd was killed after it had molded the job; somebody else has the GPUs now."""
    n1.fill("gpu:4")
    leave_molded_to_two(n1, n1.wait_in_line("--moldable=gpus=1-4", "--gres=gpu:4"))


def test_switched_off_it_gives_back_what_the_user_wrote(n1: OneNode) -> None:
    """The administrator no longer lets Pliant act where a job waits that it has molded."""
    n1.fill("gpu:4")
    job = n1.wait_in_line("--moldable=gpus=1-4", "--gres=gpu:4")
    with configured(n1.sandbox, default='"off"'):
        leave_molded_to_two(n1, job)


def leave_molded_to_two(n1: OneNode, job: int) -> None:
    """Leave a waiting job as a pliantd that died did, and see the next one make it whole."""
    n1.sandbox.stop("pliantd")
    n1.run("scontrol", "update", f"jobid={job}", "gres=gpu:2", with_set(n1, job, "2"))
    n1.sandbox.start("pliantd")
    wait_until(lambda: n1.gpus(job) == "gres:gpu:4", "the job to be as it was")


def with_set(n1: OneNode, job: int, shape: str) -> str:
    """A job's AdminComment as pliantd would have left it."""
    told = n1.run("squeue", "-h", "-j", str(job), "-O", "admin_comment:|")
    comment = told.strip().rstrip("|")
    spec = find_token(comment)
    assert spec is not None
    return f"AdminComment={put_token(comment, replace(spec, set=parse_shape(shape)))}"


def test_a_job_is_not_changed_for_a_start_that_backfill_would_not_make(n1: OneNode) -> None:
    """Slurm keeps all nodes for the first, at the four that it carries, though one would do."""
    n1.fill("gpu:3", time_min=100)
    first = n1.wait_in_line("--moldable=gpus=4:8,nodes=1-4", "-N4", "--gres=gpu:2")
    wait_until(lambda: n1.show(first).get("SchedNodeList") == "n[1-4]", "backfill to plan for it")
    before = n1.show(first)
    long = n1.wait_in_line("--moldable=gpus=1-4", "--gres=gpu:4", "--time=120")
    n1.look()
    assert n1.gpus(long) == "gres:gpu:4"
    short = n1.submit("--moldable=gpus=1-4", "--gres=gpu:4", "--time=50", script=LONG)
    n1.wait_for_state(short, "RUNNING")
    assert n1.gpus(short) == "gres:gpu:1"
    assert n1.changed(first, before) == set()


# Jobs of other kinds


def test_the_waiting_tasks_of_an_array_are_molded_together(n1: OneNode) -> None:
    n1.fill("gpu:1")
    leaving = n1.fill("gpu:3")
    array = n1.wait_in_line("--array=1-3", "--moldable=gpus=1-4", "--gres=gpu:4", script=LONG)
    n1.cancel(leaving)
    n1.wait_for_state(array, "RUNNING")
    rows = requests(n1.run("squeue", "-h", "-r", "-j", str(array), "-o", "%K %b"))
    assert sorted(rows.splitlines()) == ["1 gres:gpu:1", "2 gres:gpu:1", "3 gres:gpu:1"]


def test_an_array_stays_one_record_while_its_tasks_wait(n1: OneNode) -> None:
    n1.fill("gpu:3")
    leaving = n1.fill("gpu:1")
    array = n1.wait_in_line("--array=0-99", "--moldable=gpus=1-2", "--gres=gpu:2", script=LONG)
    n1.cancel(leaving)
    argv = ("squeue", "-h", "-j", str(array), "-o", "%T %K %b")

    def records() -> set[str]:
        return set(requests(n1.run(*argv)).splitlines())

    runs = "RUNNING 0 gres:gpu:1"
    wait_until(lambda: runs in records(), "the first task to run")
    both = {"PENDING 1-99 gres:gpu:2", runs}
    wait_until(lambda: records() == both, "the others to be as written")


def test_a_job_that_depends_on_another_is_left_alone_until_that_has_ended(n1: OneNode) -> None:
    other = n1.fill("gpu:2")
    n1.look()
    options = ("--moldable=gpus=1-4", "--gres=gpu:4", "--time=10", "--mem=100")
    n1.fill("gpu:1")
    job = n1.submit(*options, f"--dependency=afterany:{other}", script=LONG)
    n1.wait_for_reason(job, "Dependency")
    n1.look()
    assert n1.gpus(job) == "gres:gpu:4"
    assert "Dependency" in why(n1.sandbox, job).left
    n1.cancel(other)
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:3"


def test_a_held_job_is_left_alone_until_it_is_released(n1: OneNode) -> None:
    n1.fill("gpu:2")
    n1.look()
    job = n1.submit("--hold", "--moldable=gpus=1-4", "--gres=gpu:4", "--time=10", script=LONG)
    n1.look()
    assert n1.gpus(job) == "gres:gpu:4"
    assert "JobHeldUser" in why(n1.sandbox, job).left
    n1.run("scontrol", "release", str(job), user="pliant-alice")
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:2"


@pytest.fixture
def qos(sandbox: Sandbox) -> str:
    """A quality of service of two GPUs for each user, which pliant-alice may use."""
    return quality(sandbox, "twogpus", "MaxTRESPerUser=gres/gpu=2")


@pytest.fixture
def least_three(sandbox: Sandbox) -> str:
    """A quality of service for jobs of three GPUs and more."""
    return quality(sandbox, "leastthree", "MinTRESPerJob=gres/gpu=3")


def quality(sandbox: Sandbox, name: str, *limits: str) -> str:
    for argv in (
        ["add", "qos", name, *limits],
        ["modify", "user", "pliant-alice", "set", f"qos+={name}"],
    ):
        sandbox.run(["sacctmgr", "-i", *argv])
    return name


def test_a_job_above_a_limit_of_its_qos_is_made_smaller(n1: OneNode, qos: str) -> None:
    """By no more than it must be, also where pliantd knows that there is one."""
    n1.sandbox.restart("pliantd")
    n1.look()
    options = ("--moldable=gpus=1-4", "--gres=gpu:4", "--time=10", f"--qos={qos}")
    job = n1.submit(*options, script=LONG)
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:2"


def test_a_job_made_smaller_for_a_limit_does_not_grow_again(n1: OneNode, qos: str) -> None:
    options = ("--moldable=gpus=1-4", "--gres=gpu:4", "--time=10", f"--qos={qos}")
    n1.look()
    runs = n1.submit("--gres=gpu:2", "--time=10", f"--qos={qos}", script=LONG)
    n1.wait_for_state(runs, "RUNNING")
    n1.look()
    job = n1.submit(*options, script=LONG)
    wait_until(lambda: n1.gpus(job) == "gres:gpu:1", "the job to be made as small as may be")
    n1.look()
    assert (n1.gpus(job), n1.states(job)) == ("gres:gpu:1", ["PENDING"])


def test_a_waiting_job_is_not_started_beyond_a_limit_on_cpus(n1: OneNode) -> None:
    """Slurm would ask for no such limit any more once root has changed the job's CPUs."""
    group = quality(n1.sandbox, "fourcpus", "GrpTRES=cpu=4")
    runs = n1.submit("-c3", "--time=10", f"--qos={group}", script=LONG)
    n1.wait_for_state(runs, "RUNNING")
    n1.look()
    options = ("--moldable=gpus=1-4", "--gres=gpu:4", "--cpus-per-gpu=1", "--time=10")
    job = n1.submit(*options, f"--qos={group}", script=LONG)
    wait_until(lambda: "QOSGrp" in n1.show(job)["Reason"], "it to wait for the limit")
    n1.look()
    n1.look()
    assert (n1.gpus(job), n1.states(job)) == ("gres:gpu:4", ["PENDING"])


def test_no_job_is_made_smaller_behind_one_that_waits_for_the_same_limit(n1: OneNode) -> None:
    group = quality(n1.sandbox, "group", "GrpTRES=gres/gpu=3")
    options = ("--time=10", f"--qos={group}")
    leaving = n1.submit("--gres=gpu:2", *options, script=LONG)
    n1.wait_for_state(leaving, "RUNNING")
    first = n1.submit("--gres=gpu:3", *options, script=LONG)
    wait_until(lambda: "QOSGrp" in n1.show(first)["Reason"], "the first to wait for the limit")
    n1.look()
    job = n1.submit("--gres=gpu:2", "--moldable=gpus=1-2", *options, script=LONG)
    n1.look()
    n1.look()
    assert (n1.gpus(job), n1.states(job)) == ("gres:gpu:2", ["PENDING"])
    assert (
        why(n1.sandbox, job).left
        == f"job {first} before it waits for a limit that may be its own too"
    )
    n1.cancel(leaving)
    n1.wait_for_state(first, "RUNNING")


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("twogpus", "MaxTRESPerUser=gres/gpu=2"),
        ("minutesofuser", "MaxTRESRunMinsPU=gres/gpu=20"),
        ("minutesofaccount", "MaxTRESRunMinsPA=gres/gpu=20"),
        ("minutes", "GrpTRESRunMins=gres/gpu=20"),
    ],
)
def test_a_job_that_a_limit_may_stop_is_not_made_larger_than_its_user_wrote(
    n1: OneNode, name: str, limit: str
) -> None:
    qos = quality(n1.sandbox, name, limit)
    forget_limits(n1)
    options = ("--moldable=gpus=1-4", "--gres=gpu:2", "--time=10")
    for written in (qos, qos.upper()):  # to Slurm they are one
        job = n1.submit(*options, f"--qos={written}", script=LONG)
        n1.wait_for_state(job, "RUNNING")
        assert n1.gpus(job) == "gres:gpu:2"
        n1.cancel(job)
        n1.look()
    job = n1.submit(*options, script=LONG)  # of no QOS that has limits
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:4"


@pytest.mark.parametrize("known", [True, False])
def test_a_job_is_not_put_on_fewer_nodes_than_a_limit_of_each_node_lets_it(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState, show: Show, known: bool
) -> None:
    pair = quality(clean, f"pair{known:d}", "MaxTRESPerNode=gres/gpu=2")
    if known:
        clean.restart("pliantd")
    close_breaker(clean)
    wait_for_look(clean)
    options = ("-N2", "--gres=gpu:2", "--moldable=gpus=4,nodes=1-2", f"--qos={pair}")
    job = submit(*options, script=LONG)
    wait_for_state(job, "RUNNING")
    assert (show(job)["NumNodes"], show(job)["TresPerNode"]) == ("2", "gres:gpu:2")


@pytest.mark.parametrize("option", ["--ntasks-per-socket=1", "--hint=nomultithread", "--tmp=0"])
def test_what_a_job_asks_of_its_nodes_beyond_cpus_is_seen(n1: OneNode, option: str) -> None:
    n1.look()
    request = ("-n1", "--gpus-per-task=1", option, "--moldable=gpus=1-4")
    job = n1.submit(*request, script=LONG)
    n1.wait_for_state(job, "RUNNING")
    molded = "gres:gpu" in n1.show(job).get("TresPerNode", "")
    assert molded is (option == "--tmp=0")
    log = (n1.sandbox.layout.top / "log" / "slurmctld.log").read_text(errors="replace")
    assert "unrecognized field" not in log


def test_a_job_is_not_refused_for_the_size_of_what_is_free(n1: OneNode) -> None:
    strict = quality(n1.sandbox, "strict", "MinTRESPerJob=gres/gpu=2", "Flags=DenyOnLimit")
    forget_limits(n1)
    n1.fill("gpu:3")
    n1.look()
    options = ("--moldable=gpus=1-4", "--gres=gpu:2", "--time=10", f"--qos={strict}")
    job = n1.submit(*options, script=LONG)
    n1.sandbox.run(["sacctmgr", "-i", "modify", "qos", strict, "set", "flags-=DenyOnLimit"])
    forget_limits(n1)
    assert n1.gpus(job) == "gres:gpu:2"


def forget_limits(n1: OneNode) -> None:
    """Let pliantd read the limits anew, which it does every minute by itself."""
    n1.sandbox.signal("pliantd", signal.SIGHUP)
    n1.look()


def test_a_shape_that_its_qos_forbids_is_taken_back_and_not_tried_again(
    n1: OneNode, least_three: str
) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    options = ("--moldable=gpus=1-4", "--gres=gpu:4", f"--qos={least_three}")
    job = n1.wait_in_line(*options, script=LONG)
    n1.cancel(leaving)
    wait_until(lambda: "refused" in decided(n1, job), "the shape to be left out")
    wait_until(lambda: n1.gpus(job) == "gres:gpu:4", "the job to be as its user wrote it")
    n1.wait_for_reason(job, "Resources", "Priority")
    for _ in range(3):
        n1.look()
    assert decided(n1, job).count("mold") == 2
    assert any("QOSMinGRES" in row.reason for row in why(n1.sandbox, job).decisions)
    assert n1.gpus(job) == "gres:gpu:4"


def decided(n1: OneNode, job: int) -> list[str]:
    """What pliantd has done about a job, latest first."""
    return [row.what for row in why(n1.sandbox, job).decisions]


def test_an_owners_update_wins_over_ours(n1: OneNode) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    job = n1.wait_in_line("--moldable=gpus=1-4", "--gres=gpu:4")
    n1.run("scontrol", "update", f"jobid={job}", "gres=gpu:3", user="pliant-alice")
    n1.cancel(leaving)
    n1.look()
    assert (n1.gpus(job), n1.states(job)) == ("gres:gpu:3", ["PENDING"])
    assert "its owner or another tool has changed it" in why(n1.sandbox, job).left


CPU_OR_GPU = ("--moldable=type=gpu:cpu,cores=8", "--gres=gpu:1", "-n1")
"""A job that does not say how fast it is on which: it waits for the cores, and takes a GPU."""


def test_a_cpu_or_gpu_job_takes_the_cores_where_no_gpu_is_free(
    n1: OneNode, release: Release
) -> None:
    """Where GPUs can be given up it waits for one, unless it says that cores are nearly as fast."""
    says = from_on({"22.05": (), "24.11": ("--throughput=1:1,1x0@cpu:0.9",)}, release)
    n1.fill("gpu:4")
    leaving = n1.fill("nogpu:1", "-c12")
    job = n1.wait_in_line(*CPU_OR_GPU, *says, script='echo "$PLIANT_SHAPE:$CUDA_VISIBLE_DEVICES"')
    n1.cancel(leaving)
    n1.wait_for_state(job, "COMPLETED")
    assert (n1.show(job)["NumCPUs"], n1.output(job)) == ("8", "1x0@cpu:\n")


def test_a_cpu_or_gpu_job_takes_the_gpu_where_one_is_free(n1: OneNode) -> None:
    leaving = n1.fill("gpu:4")
    n1.fill("nogpu:1", "-c12")
    job = n1.wait_in_line(*CPU_OR_GPU, script='echo "$PLIANT_SHAPE:$CUDA_VISIBLE_DEVICES"')
    n1.cancel(leaving)
    n1.wait_for_state(job, "COMPLETED")
    assert (n1.show(job)["NumCPUs"], n1.output(job)) == ("1", "1:0\n")


def test_a_share_is_molded_to_what_is_left_of_a_gpu(n1: OneNode) -> None:
    n1.fill("gpu:3")
    n1.fill("shard:3")
    leaving = n1.fill("shard:1")
    options = ("--moldable=gpus=1/4:1/2", "--gres=shard:2")
    job = n1.wait_in_line(*options, script='echo "$PLIANT_SHAPE $SLURM_SHARDS_ON_NODE"')
    n1.cancel(leaving)
    n1.wait_for_state(job, "COMPLETED")
    assert n1.output(job) == "1/4 1\n"


def test_a_range_of_nodes_is_molded_to_the_nodes_that_are_free(n1: OneNode) -> None:
    leaving = n1.fill("gpu:2")
    options = ("--moldable=gpus=4-8,nodes=1-2", "-N2", "--gpus-per-node=4")
    job = n1.wait_in_line(*options, script='echo "$PLIANT_SHAPE $SLURM_NNODES $SLURM_GPUS_ON_NODE"')
    n1.cancel(leaving)
    n1.wait_for_state(job, "COMPLETED")
    assert n1.output(job) == "4 1 4\n"


# Where nothing may change


def test_observing_changes_nothing_and_says_what_would_be_done(n1: OneNode) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    with configured(n1.sandbox, default='"observe"'):
        job = n1.wait_in_line("--moldable=gpus=1-4", "--gres=gpu:4")
        before = n1.show(job)
        n1.cancel(leaving)
        n1.look()
        plan = ask(n1.sandbox, a.PlanAnswer, "plan")
        changed = n1.changed(job, before)
        decided = [(row.what, row.shape) for row in why(n1.sandbox, job).decisions]
    assert [(c.id, c.carried, c.shape, c.done) for c in plan.changes] == [
        (str(job), "4", "2", False)
    ]
    assert (decided[0], changed) == (("would", "2"), set())


def test_a_job_without_a_flag_is_never_touched(n1: OneNode) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    job = n1.wait_in_line("--gres=gpu:4", "--comment=mine")
    before = n1.show(job)
    n1.cancel(leaving)
    n1.look()
    assert n1.changed(job, before) == set()
    assert "AdminComment" not in before
