"""A step of several tasks of which one loses its wrapper: no task loses what it has done."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fake_door import wait_until
from wrapped_job import Job, ended, wrapped_job

HASTY = (
    "import pliant.node.core as core; core.GATHER_S = 1.0; core.FOLLOW_S = 5.0; "
    "from pliant.entry import main; main()"
)
TASK = (
    "me = 'task' + os.environ['SLURM_PROCID']\n"
    "with open(me, 'a') as file: file.write(f'{os.getpid()} ')\n"
    "while not os.path.exists('go'):\n"
    "    time.sleep(0.02)\n"
    "    if pliant.checkpoint_wanted() and not os.path.exists('keep'): pliant.checkpointed()\n"
)
WISH = '{"decided": "", "signal": 0, "wish": "w1", "why": "resize", "shape": "2", "left_s": 60}'
NO_WISH = '{"decided": "again", "signal": 0}'
STEP = {"SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_ID": "0"}


class Step:
    """Three tasks, each with a wrapper of its own."""

    def __init__(self, job: Job) -> None:
        job.pliant = [sys.executable, "-c", HASTY]
        self.job, self.folder = job, job.folder
        self.tasks = [job.start(TASK, SLURM_PROCID=str(rank), **STEP) for rank in range(3)]
        for rank in range(3):
            job.wait_for_file(f"task{rank}")
        job.door.wait_for("run-watch")

    def starts(self, rank: int) -> int:
        """How often this task's program was started."""
        return len((self.folder / f"task{rank}").read_text().split())

    def wrapper(self, rank: int) -> psutil.Process:
        guardian = psutil.Process(self.tasks[rank].pid)
        return next(one for one in guardian.children() if one.cmdline() == guardian.cmdline())

    def kill_wrapper(self, rank: int) -> None:
        """End it, and wait until its guardian has said so."""
        self.wrapper(rank).kill()
        stderr = self.tasks[rank].stderr
        assert stderr is not None
        assert stderr.readline().endswith("the program runs on\n")

    def end(self) -> list[int]:
        """Let all programs end; return the exit codes."""
        (self.folder / "go").touch()
        return [ended(task)[0] for task in self.tasks]


@pytest.fixture
def step(tmp_path: Path) -> Iterator[Step]:
    with wrapped_job(tmp_path) as job:
        yield Step(job)


def test_where_a_task_never_hears_of_the_wish_the_others_go_on_in_place(step: Step) -> None:
    step.wrapper(1).send_signal(signal.SIGSTOP)
    step.job.door.want("w1", within_s=2.0)
    wait_until(lambda: len(list(step.folder.glob("pliant-4711/.pliant-*/ended-*"))) == 2, "saves")
    step.kill_wrapper(1)
    wait_until(lambda: [step.starts(0), step.starts(2)] == [2, 2], "the others to go on")
    assert step.starts(1) == 1
    assert step.job.door.of("run-saved") == []
    assert step.end() == [0, 0, 0]
    assert not step.job.requeues.exists()


def test_pliantd_learns_of_a_lost_wrapper_at_once_and_that_the_step_has_it_again(
    step: Step,
) -> None:
    step.kill_wrapper(1)
    door = step.job.door
    wait_until(lambda: door.of("run-begin")[-1]["lost"] == "1", "run-begin to say so")
    wait_until(lambda: door.of("run-watch")[-1]["lost"] == "1", "run-watch to say so")
    door.want("w1", within_s=60.0)
    door.wait_for("run-watch", len(door.of("run-watch")) + 2)
    assert [step.starts(rank) for rank in range(3)] == [1, 1, 1]
    door.want("")  # else the others would be asked
    next(step.folder.glob("pliant-4711/.pliant-*/lost-1")).unlink()
    wait_until(lambda: door.of("run-watch")[-1]["lost"] == "0", "run-watch to say so")
    assert step.end() == [0, 0, 0]


def test_a_task_whose_guardian_is_killed_is_one_that_has_ended(step: Step) -> None:
    (told,) = step.folder.glob("pliant-4711/.pliant-*/told")
    step.tasks[1].kill()
    mark = told.with_name("ended-1")
    wait_until(lambda: mark.exists() and mark.read_text() == "- 137", "its wrapper to say so")
    step.job.door.want("w1", within_s=60.0)
    step.job.door.wait_for("run-saved")
    for rank in (0, 2):
        step.tasks[rank].terminate()
    assert [ended(step.tasks[rank])[0] for rank in range(3)] == [85, -9, 85]


def test_those_that_saved_for_a_wish_that_is_withdrawn_go_on_in_place(step: Step) -> None:
    step.wrapper(0).send_signal(signal.SIGSTOP)
    step.wrapper(1).send_signal(signal.SIGSTOP)
    (told,) = step.folder.glob("pliant-4711/.pliant-*/told")
    told.write_text(WISH)
    ended_2 = told.parent / "ended-2"
    wait_until(ended_2.exists, "task 2 to save")
    told.write_text(NO_WISH)
    wait_until(lambda: step.starts(2) == 2, "task 2 to go on")
    assert not ended_2.exists()
    for rank in range(2):
        step.wrapper(rank).send_signal(signal.SIGCONT)
    assert step.end() == [0, 0, 0]


def test_a_task_that_comes_late_is_not_asked_for_what_is_over(tmp_path: Path) -> None:
    with wrapped_job(tmp_path) as job:
        shared = job.folder / "pliant-4711" / ".pliant-4711-0-0"
        shared.mkdir(mode=0o700, parents=True)
        told = shared / "told"
        told.touch(0o600)
        told.write_text(WISH.replace('"decided": ""', '"decided": "again"'))
        looks = "\nfor _ in range(150): time.sleep(0.02); print(pliant.checkpoint_wanted())"
        late = job.start(looks.lstrip(), SLURM_PROCID="1", **STEP)
        assert ended(late)[:2] == (0, 150 * "False\n")


def test_where_the_first_task_finishes_meanwhile_those_that_saved_go_on_and_finish_too(
    step: Step,
) -> None:
    step.wrapper(0).send_signal(signal.SIGSTOP)
    (told,) = step.folder.glob("pliant-4711/.pliant-*/told")
    told.write_text(WISH)
    wait_until(lambda: len(list(told.parent.glob("ended-*"))) == 2, "the others to save")
    step.job.door.want("w1")
    (step.folder / "keep").touch()
    step.wrapper(0).send_signal(signal.SIGCONT)
    wait_until(lambda: told.read_text() not in ("", WISH), "task 0 to be asked")
    assert step.end() == [0, 0, 0]
    assert [step.starts(rank) for rank in range(3)] == [1, 2, 2]
