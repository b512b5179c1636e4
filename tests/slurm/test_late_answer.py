"""A job submitted while pliantd does not answer: its request is one that a later cycle can change."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from asking_helpers import wait_for_look
from daemon_helpers import LONG, OneNode, why
from lua_helpers import close_breaker, job_submit_lua, with_pliant
from slurm_helpers import Submit, WaitForState

from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

MOLDABLE = "--moldable=gpus=1-4"

TASKS = "srun hostname | wc -l"
SAYS = (
    "echo $SLURM_GPUS_ON_NODE GPUs, $(srun hostname | wc -l) tasks, $SLURM_CPUS_ON_NODE CPUs,"
    " $SLURM_NTASKS_PER_NODE a node"
)

FORMS = {
    "--ntasks-per-node=4 --gres=gpu:4": ("4 GPUs, 4 tasks, 4 CPUs, 4 a node", 2, "2", None),
    "-N1 --ntasks-per-node=4 --gres=gpu:4": ("4 GPUs, 4 tasks, 4 CPUs, 4 a node", 2, "2", None),
    "-N1 --ntasks-per-node=4 --gres=gpu:4 -c2 --mem=800": (
        "4 GPUs, 4 tasks, 8 CPUs, 4 a node", 2, "4", "800M",
    ),
    "-N1 -n4 --gpus-per-task=1 -c2": ("4 GPUs, 4 tasks, 8 CPUs, a node", 2, "4", None),
    "--gres=gpu:4 --cpus-per-gpu=3 --mem-per-gpu=500": (
        "4 GPUs, 1 tasks, 12 CPUs, a node", 1, "6", "1000M",
    ),
}  # fmt: skip
"""What each job prints as it was written; then its tasks, CPUs and memory as two GPUs."""

AS_WRITTEN = {options: printed for options, (printed, *_) in FORMS.items()} | {
    "-n4 --gpus-per-task=1 -c2": "4 GPUs, 4 tasks, 8 CPUs, a node",
}
"""And of one of which Slurm may choose the number of nodes."""

Output = Callable[[int], str]


def submitted_late(n1: OneNode, *options: str, script: str) -> int:
    """Submit while pliantd stands still, and let it go on."""
    n1.sandbox.signal("pliantd", signal.SIGSTOP)
    try:
        return n1.submit("--time=10", *options, script=script)
    finally:
        n1.sandbox.signal("pliantd", signal.SIGCONT)


@pytest.fixture(autouse=True)
def asking(clean: Sandbox) -> Iterator[None]:
    close_breaker(clean)
    yield
    close_breaker(clean)


@pytest.mark.parametrize("options", FORMS)
def test_a_job_that_was_answered_too_late_is_molded_afterwards(n1: OneNode, options: str) -> None:
    _, tasks, cpus, memory = FORMS[options]
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    job = submitted_late(n1, MOLDABLE, *options.split(), script=TASKS)
    n1.wait_for_reason(job, "Resources", "Priority")
    n1.cancel(leaving)
    n1.wait_for_state(job, "COMPLETED")
    told = n1.show(job)
    assert (n1.gpus(job), told["NumCPUs"], n1.output(job)) == ("gres:gpu:2", cpus, f"{tasks}\n")
    assert memory in (None, told.get("MinMemoryNode"))


@contextmanager
def nobody_answers(sandbox: Sandbox) -> Iterator[None]:
    """Let slurmctld's Lua have no sockets, and no pliantd run."""
    text = with_pliant(sandbox, before='package.preload["socket.unix"] = function() error() end')
    sandbox.stop("pliantd")
    with job_submit_lua(sandbox, text):
        yield


@pytest.mark.parametrize("options", AS_WRITTEN)
def test_it_runs_as_its_owner_wrote_it_where_nobody_ever_answers(n1: OneNode, options: str) -> None:
    with nobody_answers(n1.sandbox):
        job = n1.submit(MOLDABLE, *options.split(), script=SAYS)
        n1.wait_for_state(job, "COMPLETED")
    assert " ".join(n1.output(job).split()) == AS_WRITTEN[options]


@pytest.mark.parametrize("cpus", [2, 4])
def test_tasks_are_spread_as_their_owner_wrote_them_where_nobody_ever_answers(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState, output: Output, cpus: int
) -> None:
    """Two GPUs are free on each of two nodes; 22.05 would lay three tasks beside the two of one."""
    for node, gpus in (("n1", 2), ("n2", 2), ("n3", 4), ("n4", 4)):
        where = (f"--nodelist={node}", f"--gres=gpu:{gpus}", "--time=60", "--mem=100")
        wait_for_state(submit(*where, script=LONG, user=None), "RUNNING")
    options = ("-n4", "--gpus-per-task=1", f"-c{cpus}", "--mem=100", "--time=10")
    with nobody_answers(clean):
        jobs = [
            submit(*options, *more, script="echo $SLURM_TASKS_PER_NODE")
            for more in ((), (MOLDABLE,))
        ]
        for job in jobs:
            wait_for_state(job, "COMPLETED")
    assert [output(job) for job in jobs] == ["2(x2)\n", "2(x2)\n"]


@pytest.mark.parametrize("options", ["-N2 -n4 --gpus-per-task=1", "-N2 -n4 --gres=gpu:1 -a1"])
def test_it_starts_where_slurm_lays_its_tasks_unevenly_and_nobody_ever_answers(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState, output: Output, options: str
) -> None:
    """Three GPUs and three CPUs are free on one node, one of each on another."""
    for node, gpus, cpus in (("n1", 1, 13), ("n2", 3, 15), ("n3", 4, 16), ("n4", 4, 16)):
        where = (f"--nodelist={node}", f"--gres=gpu:{gpus}", f"-n{cpus}", "--time=60", "--mem=100")
        wait_for_state(submit(*where, script=LONG, user=None), "RUNNING")
    with nobody_answers(clean):
        for more in ((), (MOLDABLE,)):
            late = ("--mem=100", "--time=10", *options.split(), *more)
            job = submit(*late, script="echo $SLURM_TASKS_PER_NODE")
            wait_for_state(job, "COMPLETED")
            assert output(job) == "3,1\n"


LEFT = {
    "-N1 --ntasks-per-node=4 --gres=gpu:4": ("2", "2", "2"),
    "--array=0-1 -N1 --ntasks-per-node=4 --gres=gpu:4": ("1", "1", "1"),  # both tasks start
    "--array=0-1 -N1 -n4 --gres=gpu:4 -c3": ("1", "1", "3"),
    "-N1 --ntasks-per-node=3 --gres=gpu:3 -c3": ("2", "2", "6"),
    "-N1 --ntasks-per-node=4 --gres=gpu:4 --cpus-per-gpu=3": ("2", "2", "6"),
    "-n4 --gpus-per-task=1": ("2", "2", "2"),
    "-n4 --gpus-per-task=1 -c2": ("2", "2", "4"),
    "-n4 --gpus-per-task=1 --cpus-per-gpu=3 --mem-per-gpu=100": ("2", "2", "6"),
    "--gpus=4 --cpus-per-gpu=2 --mem-per-gpu=100": ("2", "1", "4"),
    "-n1 --gpus-per-node=4 --mem-per-gpu=100": ("2", "1", "1"),
    "-N1 --ntasks-per-gpu=2 --gpus=4": ("2", "4", "4"),
}
"""By the options: the GPUs, tasks and CPUs with which each runs where two GPUs are free."""

RAN = "echo $SLURM_GPUS_ON_NODE $(srun hostname | wc -l) $SLURM_CPUS_ON_NODE"


@pytest.mark.parametrize("options", LEFT)
def test_a_job_submitted_while_pliantd_was_dead_starts_smaller_once_it_runs(
    n1: OneNode, options: str
) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    n1.sandbox.stop("pliantd")
    try:
        job = n1.submit("--time=10", MOLDABLE, *options.split(), script=RAN)
    finally:
        n1.sandbox.start("pliantd")
    first = f"{job}_0" if "--array" in options else job
    n1.cancel(leaving)
    n1.wait_for_state(first, "COMPLETED")
    assert tuple(n1.output(int(n1.show(first)["JobId"])).split()) == LEFT[options]


@pytest.mark.parametrize(
    "options", ["-N1 --ntasks-per-node=4 --gres=gpu:4", "--gpus=4 --mem-per-gpu=100"]
)
def test_so_does_one_that_says_so_in_its_comment(n1: OneNode, options: str) -> None:
    """Without the plugin what srun is told by the environment is Slurm's own affair."""
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    said = "--comment=pliant:gpus=1-4"
    job = submitted_late(n1, said, *options.split(), script="echo $SLURM_GPUS_ON_NODE")
    n1.cancel(leaving)
    n1.wait_for_state(job, "COMPLETED")
    assert n1.output(job) == "2\n"


WORDS = {
    "-N1 -n2 --gpus-per-task=2": "--gpus-per-task",
    "--array=0-1 -n4 --gres=gpu:4": "-N1 --ntasks-per-node=4 can be changed",
    "--gpus-per-socket=2 --sockets-per-node=1": "--gpus-per-socket",
}


@pytest.mark.parametrize("options", WORDS)
def test_why_names_the_option_that_keeps_a_job_as_it_is(n1: OneNode, options: str) -> None:
    n1.fill("gpu:3")
    job = submitted_late(n1, MOLDABLE, *options.split(), script=LONG)
    wait_for_look(n1.sandbox)
    assert WORDS[options] in why(n1.sandbox, job).left
