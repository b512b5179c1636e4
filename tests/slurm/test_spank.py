"""The SPANK plugin in the job: PLIANT_*, and sizes that are true whatever was changed before.

pliantd is stopped here: the tests change waiting jobs themselves, in the forms that every release
understands, and the plugin must be right without the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from slurm_helpers import Submit, WaitForState, wait_until
from spank_helpers import plugstack

from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

Environment = dict[str, str]
Molded = Callable[..., tuple[str, Environment]]


@pytest.fixture
def alone(clean: Sandbox) -> Sandbox:
    """The sandbox without pliantd, which `clean` starts again."""
    clean.stop("pliantd")
    return clean


CHOSEN = "PLIANT_CHECKPOINT_DIR=/b PLIANT_CHECKPOINT_DIR_OF=1:/b"
# A step that finds the one before not yet gone says so and waits: Slurm's own words, left out.
SAYS = r"""
step() { srun "$@" 2>&1 | grep -v -e 'temporarily disabled, retrying' -e 'Step created for'; }
env | grep -E '^(SLURM|PLIANT|CUDA)_' | sort > "$SLURM_JOB_ID.env"
echo plain: $(step hostname | wc -l) tasks
echo one: $(step -N1 -n1 bash -c 'echo $SLURM_NTASKS $PLIANT_SHAPE')
echo torchrun: $(step --ntasks-per-node=1 -n$SLURM_NNODES bash -c \
    'echo $SLURM_NNODES x $((PLIANT_GPUS / PLIANT_NODES)) devices $CUDA_VISIBLE_DEVICES' \
    | sort | head -1)
"""


@pytest.fixture
def molded(
    alone: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    workdir: Path,
) -> Molded:
    """Submit a job that waits, change it, let it run; return what it printed and its variables."""

    def run(
        options: str, *changes: str, script: str = SAYS, moldable: str = "--moldable=gpus=1-8"
    ) -> tuple[str, Environment]:
        job = submit("-H", *moldable.split(), *options.split(), script=script)
        for change in changes:
            argv = ["scontrol", "update", f"jobid={job}", *change.split()]
            done = alone.run(argv)
            assert done.returncode == 0, f"{argv}: {done.stderr}"
        alone.run(["scontrol", "release", str(job)], check=True)
        wait_for_state(job, "COMPLETED")
        lines = (workdir / f"{job}.env").read_text().splitlines()
        return output(job), dict(line.partition("=")[::2] for line in lines)

    return run


def pliant_of(env: Environment) -> dict[str, str]:
    names = ("SHAPE", "GPUS", "NODES", "TYPE", "SHARE")
    return {name: env.get(f"PLIANT_{name}", "") for name in names}


def said(tasks: int, shape: str, torchrun: str) -> str:
    return f"plain: {tasks} tasks\none: 1 {shape}\ntorchrun: {torchrun}\n"


WHOLE = {"NODES": "1", "TYPE": "gpu", "SHARE": "1"}
DOWN, UP = "gres=gpu:2 NumTasks=2 NumCPUs=2", "gres=gpu:4 NumTasks=4 NumCPUs=4"


@pytest.mark.parametrize(
    ("options", "changes", "shape", "tasks"),
    [
        pytest.param("-n4 --gres=gpu:4", [], 4, 4, id="as written"),
        pytest.param("-n4 --gres=gpu:4", [DOWN], 2, 2, id="down"),
        pytest.param("-n2 --gres=gpu:2", [UP], 4, 4, id="up"),
        pytest.param("-n4 --gres=gpu:4", [DOWN, UP, DOWN], 2, 2, id="down, up and down"),
        pytest.param("--gres=gpu:4", ["gres=gpu:2"], 2, 1, id="no number of tasks"),
        pytest.param("--ntasks-per-node=4 --gpus-per-node=4", ["gres=gpu:2"], 2, 4, id="per node"),
        pytest.param("--ntasks-per-node=1 --gres=gpu:1", ["gres=gpu:3"], 3, 1, id="one per node"),
        pytest.param("--gpus=4 -n4", ["tresperjob=gres:gpu:2 NumTasks=2 NumCPUs=2"], 2, 2, id="-G"),
        pytest.param(
            "-n4 -c2 --gpus-per-node=a100:4",
            ["gres=gpu:a100:2 NumTasks=2 NumCPUs=4"],
            2,
            2,
            id="typed",
        ),
    ],
)
def test_sizes_are_those_of_the_run(
    molded: Molded,
    options: str,
    changes: list[str],
    shape: int,
    tasks: int,
) -> None:
    text, env = molded(options, *changes)
    devices = env["CUDA_VISIBLE_DEVICES"]
    assert len(devices.split(",")) == shape
    assert env["SLURM_GPUS_ON_NODE"] == str(shape)
    assert env["SLURM_TASKS_PER_NODE"] == str(tasks)
    assert pliant_of(env) == {**WHOLE, "SHAPE": str(shape), "GPUS": str(shape)}
    stale = {"SLURM_NTASKS": tasks, "SLURM_NPROCS": tasks, "SLURM_NTASKS_PER_NODE": tasks}
    stale |= {"SLURM_GPUS": shape, "SLURM_GPUS_PER_NODE": shape}
    assert {n: env[n] for n in stale if n in env} == {n: str(stale[n]) for n in stale if n in env}
    assert text == said(tasks, str(shape), f"1 x {shape} devices {devices}")


@pytest.mark.parametrize(
    ("written", "of_one_task"),
    [
        ("SLURM_GPUS=a100:4", 2),
        ("SLURM_GPUS_PER_NODE=a100:4,SLURM_NTASKS_PER_NODE=4", 2),
        ("SLURM_GPUS=4,SLURM_CPUS_PER_GPU=1,SLURM_MEM_PER_GPU=100", 2),
        ("SLURM_GPUS=4,SLURM_GPUS_PER_TASK=1", 1),  # as without Pliant: one for each task
        ("SLURM_GPUS_PER_TASK=a100:1", 1),
    ],
)
def test_what_sbatch_wrote_of_another_form_does_not_break_srun(
    molded: Molded, written: str, of_one_task: int
) -> None:
    """The submit filter gives every request the per-node form; sbatch had written its own."""
    text, env = molded(f"-n4 --gres=gpu:4 --export=ALL,{written}", DOWN)
    devices = env["CUDA_VISIBLE_DEVICES"].split(",")[:of_one_task]
    assert text == said(2, "2", f"1 x 2 devices {','.join(devices)}")


def test_tasks_per_gpu_follow_the_gpus(molded: Molded) -> None:
    written = "SLURM_NTASKS_PER_GPU=1,SLURM_GPUS=4"
    text, _ = molded(f"-n4 --gres=gpu:4 --export=ALL,{written}", DOWN, script=SAYS)
    assert text.startswith("plain: 2 tasks\n")


def test_two_nodes_become_one_and_one_becomes_two(
    molded: Molded,
) -> None:
    text, env = molded("-N2 -n2 --gpus-per-node=2", "NumNodes=1-1 NumTasks=1 NumCPUs=1 gres=gpu:4")
    assert pliant_of(env) == {**WHOLE, "SHAPE": "4", "GPUS": "4"}
    assert text == said(1, "4", "1 x 4 devices 0,1,2,3")
    text, env = molded("-N1 -n1 --gpus-per-node=4", "NumNodes=2-2 NumTasks=2 NumCPUs=2 gres=gpu:2")
    assert pliant_of(env) == {**WHOLE, "SHAPE": "2x2", "GPUS": "4", "NODES": "2"}
    assert env["SLURM_TASKS_PER_NODE"] == "1(x2)"
    assert text == said(2, "2x2", "2 x 2 devices 0,1")


def test_fewer_tasks_than_nodes_may_have_stay_as_many(molded: Molded) -> None:
    """Slurm counts four on each node of `-N2 -n6 --ntasks-per-node=4`; srun of 22.05 starts the six.

    From 24.11 on sbatch itself writes eight.
    """
    written = "-N2 -n6 --ntasks-per-node=4 --gres=gpu:2"
    script = 'env | grep -E "^(SLURM|PLIANT)_" > $SLURM_JOB_ID.env; srun hostname | wc -l'
    _, plain = molded(written, script=script, moldable="")
    own = plain["SLURM_NTASKS"]
    for shape, changes, tasks in (
        ("2x2", (), own),
        ("2x4", ("gres=gpu:4",), own),
        ("4", ("NumNodes=1-1 NumTasks=4 NumCPUs=4 gres=gpu:4",), "4"),
    ):
        text, env = molded(written, *changes, script=script)
        found = (env["PLIANT_SHAPE"], env["SLURM_NTASKS"], env["SLURM_NPROCS"])
        assert found == (shape, tasks, tasks)
        assert tasks in text.splitlines()


def test_a_share_is_told_as_a_part_of_one_gpu(
    molded: Molded,
) -> None:
    text, env = molded("--gres=shard:1", "gres=shard:2", moldable="--moldable=gpus=1/4-1/2")
    assert pliant_of(env) == {**WHOLE, "SHAPE": "1/2", "GPUS": "1", "SHARE": "2"}
    assert text == said(1, "1/2", f"1 x 1 devices {env['CUDA_VISIBLE_DEVICES']}")
    written = "--gres=shard:1 --export=ALL,SLURM_GPUS=1,SLURM_CPUS_PER_GPU=1"
    text, env = molded(written, moldable="--moldable=gpus=1/4-1")
    assert text == said(1, "1/4", f"1 x 1 devices {env['CUDA_VISIBLE_DEVICES']}")


TO_CPU = ["TresPerNode=", "Gres=nogpu:1 CPUsPerTask=8 NumCPUs=8"]


def test_on_cpus_nothing_asks_for_gpus_any_more(
    molded: Molded,
) -> None:
    written = (
        "SLURM_GPUS=1,SLURM_GPUS_PER_TASK=1,SLURM_CPUS_PER_GPU=2,SLURM_NTASKS_PER_GPU=1,"
        "SLURM_MEM_PER_GPU=10,SLURM_GPUS_PER_SOCKET=1"
    )
    text, env = molded(
        f"-n1 -c1 --gpus-per-node=1 --export=ALL,{written}",
        *TO_CPU,
        moldable="--moldable=type=gpu:cpu",
    )
    cpu = {"SHAPE": "1x0@cpu", "GPUS": "0", "NODES": "1", "TYPE": "cpu", "SHARE": "1"}
    assert pliant_of(env) == cpu
    assert not [name for name in env if re.match("SLURM_.*GPU", name)]
    assert env["SLURM_CPUS_PER_TASK"] == "8"
    assert text == said(1, "1x0@cpu", "1 x 0 devices")


def test_a_job_of_gpus_and_all_cores_is_told_apart_from_one_of_gpus(
    molded: Molded,
) -> None:
    asks = "--moldable=type=gpu:both,cores=16,gpu-type=a100"
    _, few = molded("-n1 -c2 --gres=gpu:1", moldable=asks)
    _, all_cores = molded("-n1 -c2 --gres=gpu:1", "CPUsPerTask=16 NumCPUs=16", moldable=asks)
    assert (few["PLIANT_TYPE"], few["PLIANT_SHAPE"]) == ("gpu", "1@a100")
    assert (all_cores["PLIANT_TYPE"], all_cores["PLIANT_SHAPE"]) == ("both", "1@a100:both")


def test_gpus_spread_unequally_by_slurm_still_all_belong_to_a_step(
    molded: Molded,
) -> None:
    """With a SLURM_GPUS of 2 x 2 or 2 x 1, srun would refuse them or leave one out."""
    script = SAYS + "step -N2 -n2 bash -c 'echo $CUDA_VISIBLE_DEVICES' | tr '\\n' , | wc -c\n"
    text, _ = molded("-N2 -n2 --gpus=3", script=script)
    lines = text.splitlines()
    assert lines[0] == "plain: 2 tasks"
    assert lines[-1] == str(len("0,1,0,"))


def test_a_flag_without_a_value_does_not_break_the_steps(
    molded: Molded,
) -> None:
    text, _ = molded("-n2 --gres=gpu:2", moldable="--malleable --colocate")
    assert text == said(2, "2", "1 x 2 devices 0,1")


def test_a_value_accepted_while_off_does_not_break_the_steps(
    alone: Sandbox, submit: Submit, wait_for_state: WaitForState, output: Callable[[int], str]
) -> None:
    with plugstack(alone, "off"):
        job = submit("-H", "-n2", "--moldable=gpus=four", "--steps=x", script="srun echo step")
    alone.run(["scontrol", "release", str(job)], check=True)
    wait_for_state(job, "COMPLETED")
    assert output(job) == "step\nstep\n"


def test_steps_of_salloc_and_srun_are_told_what_they_got(alone: Sandbox) -> None:
    tell = ["bash", "-c", "echo $PLIANT_SHAPE $PLIANT_GPUS $PLIANT_NODES $PLIANT_RESTART_COUNT"]
    asks = ["--moldable=gpus=1-4", "--gpus-per-node=2", "-N2", "-n2"]
    assert alone.run(["srun", *asks, *tell]).stdout == "2x2 4 2 0\n" * 2
    assert alone.run(["salloc", *asks, "srun", *tell]).stdout == "2x2 4 2 0\n" * 2


def test_a_job_submitted_from_a_job_says_only_what_its_owner_wrote(
    alone: Sandbox, submit: Submit, wait_for_state: WaitForState, workdir: Path
) -> None:
    inner = "sbatch --parsable -o inner.out --wrap 'env | grep -E \"PLIANT_(SHAPE|GPUS|CHECKPOINT)|_pliant_\"'"
    for outer in (f"{inner} > inner.id", f"salloc -n1 {inner} > inner.id"):
        script = f"export PLIANT_CHECKPOINT_REQUESTED=/a {CHOSEN}\n{outer}"
        job = submit("--moldable=gpus=1-2", "--malleable", "--gres=gpu:1", script=script)
        wait_for_state(job, "COMPLETED")
        wait_for_state(int((workdir / "inner.id").read_text()), "COMPLETED|FAILED")
        assert (workdir / "inner.out").read_text() == ""


def test_a_job_submitted_from_a_job_is_told_its_own_run_and_no_step(
    alone: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    workdir: Path,
) -> None:
    tells = 'env | grep -E "^(SLURM|PLIANT)_(RESTART|STEP_NUM|CHECKPOINT)"'
    inner = f"sbatch --parsable -o inner.out --malleable --wrap '{tells}'"
    inherited = "SLURM_RESTART_COUNT=2 SLURM_STEP_NUM_TASKS=8 PLIANT_CHECKPOINT_DIR=/own"
    job = submit(script=f"export {inherited}\n{inner} > inner.id")
    wait_for_state(job, "COMPLETED")
    wait_for_state(int((workdir / "inner.id").read_text()), "COMPLETED")
    said = sorted((workdir / "inner.out").read_text().split())
    assert said == ["PLIANT_CHECKPOINT_DIR=/own", "PLIANT_RESTART_COUNT=0"]
    # where the submit host has no plugin
    job = submit("--export=ALL,PLIANT_GPUS=4,PLIANT_X=1", script="env | grep ^PLIANT_[GX]")
    wait_for_state(job, "COMPLETED")
    assert output(job) == "PLIANT_X=1\n"


def test_a_requeued_job_is_told_its_own_run(
    alone: Sandbox, submit: Submit, wait_for_state: WaitForState, workdir: Path
) -> None:
    script = (
        'echo $PLIANT_RESTART_COUNT $PLIANT_SHAPE >> told; [ "$SLURM_RESTART_COUNT" ] || sleep 60'
    )
    job = submit("--moldable=gpus=1-4", "--gres=gpu:2", "--requeue", script=script)
    wait_until((workdir / "told").exists, "the first run to write")
    alone.run(["scontrol", "requeue", str(job)], check=True)
    wait_for_state(job, "PENDING")
    alone.run(["scontrol", "update", f"jobid={job}", "gres=gpu:1", "StartTime=now+2"], check=True)
    wait_for_state(job, "COMPLETED")
    assert (workdir / "told").read_text() == "0 2\n1 1\n"
    tasks = submit(
        "--array=1-2", "--moldable=gpus=1-4", "--gres=gpu:1", script="echo $PLIANT_SHAPE"
    )
    wait_for_state(tasks, "COMPLETED")


def test_each_task_of_an_array_is_told_its_own_run(
    alone: Sandbox, submit: Submit, wait_for_state: WaitForState, workdir: Path
) -> None:
    options = ("-H", "--array=1-2", "--output=%a.out", "--moldable=gpus=1-4", "-n4", "--gres=gpu:4")
    job = submit(*options, script="srun bash -c 'echo $PLIANT_SHAPE'")
    alone.run(["scontrol", "update", f"jobid={job}_2", *DOWN.split()], check=True)
    alone.run(["scontrol", "release", str(job)], check=True)
    wait_for_state(job, "COMPLETED")
    outputs = [(workdir / f"{task}.out").read_text() for task in (1, 2)]
    assert outputs == ["4\n" * 4, "2\n" * 2]


def test_a_job_that_speaks_by_its_comment_is_told_too(molded: Molded) -> None:
    text, env = molded("-n4 --gres=gpu:4", DOWN, moldable="--comment=pliant:gpus=1-4;steps=10")
    assert text == said(2, "2", f"1 x 2 devices {env['CUDA_VISIBLE_DEVICES']}")


def test_a_heterogeneous_job_keeps_what_slurm_wrote(
    alone: Sandbox, submit: Submit, wait_for_state: WaitForState, output: Callable[[int], str]
) -> None:
    job = submit(
        script="#SBATCH -n1 --gpus=a100:1 --moldable=gpus=1-4\n"
        "#SBATCH hetjob\n"
        "#SBATCH -n2 --gpus=2\n"
        "env | grep ^SLURM_GPUS | sort; srun --het-group=0,1 true"
    )
    wait_for_state(job, "COMPLETED")
    assert output(job).splitlines() == [
        "SLURM_GPUS_HET_GROUP_0=a100:1",
        "SLURM_GPUS_HET_GROUP_1=2",
        "SLURM_GPUS_ON_NODE=1",
        "SLURM_GPUS_PACK_GROUP_0=a100:1",
        "SLURM_GPUS_PACK_GROUP_1=2",
    ]


CHANGING = re.compile(
    r"SLURM_(JOB_?ID|JOB_SLUID|JOB_(START|END)_TIME|TASK_PID|LAUNCH|SUBMIT_HOST|STEP|SRUN)|_=|SLURM_.*PORT"
)


def test_a_job_that_says_nothing_finds_the_environment_of_plain_slurm(
    alone: Sandbox, submit: Submit, wait_for_state: WaitForState, output: Callable[[int], str]
) -> None:
    script = "env | sort; srun -n1 env | sort"
    options = ("-n2", "--gpus=2", "--gpus-per-node=2", "--mem-per-cpu=10", "-N1")

    def environment() -> list[str]:
        job = submit(*options, script=script)
        wait_for_state(job, "COMPLETED")
        number = re.compile(rf"/(job0*)?{job}(?=[/.]|$)", re.MULTILINE)  # as part of a path
        lines = number.sub("/JOB", output(job)).splitlines()
        return [line for line in lines if not CHANGING.match(line)]

    with plugstack(alone, None):
        plain = environment()
    assert environment() == plain


def test_the_plugin_is_not_needed_on_a_node(
    alone: Sandbox, submit: Submit, wait_for_state: WaitForState, output: Callable[[int], str]
) -> None:
    job = submit(
        "-H", "--moldable=gpus=1-4", "--gres=gpu:2", "-n2", script="srun echo ${PLIANT_GPUS-no}"
    )
    with plugstack(alone, None):
        alone.run(["scontrol", "release", str(job)], check=True)
        wait_for_state(job, "COMPLETED")
    assert output(job) == "no\nno\n"


AT_ONCE = """
for step in 1 2 3 4; do
    srun -n1 -N1 --gpus=1 --exact bash -c "touch met.$step
        until [ -e met.1 ] && [ -e met.2 ] && [ -e met.3 ] && [ -e met.4 ]; do sleep 0.1; done" &
done
wait
"""


@pytest.mark.parametrize("options", ["--gres=gpu:4 -n4", "--gpus=4 -N1 -n4"])
def test_steps_share_memory_that_was_asked_by_the_gpu(
    alone: Sandbox, submit: Submit, wait_for_state: WaitForState, options: str
) -> None:
    """As one step's memory of the whole node each would wait for the one before."""
    words = ("--moldable=gpus=1-4", "--mem-per-gpu=100", "--time=1", *options.split())
    job = submit(*words, script=AT_ONCE)
    assert wait_for_state(job, "COMPLETED|TIMEOUT") == "COMPLETED"
