"""A step of several tasks whose shared directory hangs: no wrapper waits for it.

What hangs is a FIFO in a file's place: nobody opens its other end, so each open of it waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fake_door import wait_until
from wrapped_job import Job, ended, wrapped_job

TASK = """
me = 'task' + os.environ['SLURM_PROCID']
def told(*_):
    with open(me + '.told', 'a') as file: file.write('TERM ')
signal.signal(signal.SIGTERM, told)
with open(me, 'a') as file: file.write(f'{os.getpid()} ')
while not os.path.exists('go'):
    time.sleep(0.02)
    if pliant.checkpoint_wanted():
        pathlib.Path(me + '.asked').touch()
        pliant.checkpointed()
sys.exit(7)
"""
HASTY = (
    "import pliant.node.core as core; core.SILENT_S = core.GATHER_S = 3.0; "
    "from pliant.entry import main; main()"
)
LOOKS_S = 2.5
"""In which each wrapper has looked, unless the machine is busy: then less is tried."""


class Hanging:
    """Files of a directory that hang, until they do so no more."""

    def __init__(self, shared: Path) -> None:
        self.shared = shared
        self._hung: list[Path] = []

    def hang(self, name: str) -> None:
        """Let each open of it wait, in one moment for all."""
        fifo = self.shared / f"new-{name}"
        os.mkfifo(fifo, 0o600)
        fifo.replace(self.shared / name)
        self._hung.append(self.shared / name)

    def answer(self) -> None:
        """Be as a file system that is well again: there are files, and who waits goes on."""
        for fifo in self._hung:
            gone = fifo.with_name(f"gone-{fifo.name}")
            fifo.rename(gone)
            if fifo.name == "told":
                fifo.touch(0o600)
                fifo.write_text('{"decided": "", "signal": 0}')
            os.close(os.open(gone, os.O_RDWR | os.O_NONBLOCK))
        self._hung.clear()


def shared(job: Job) -> Hanging:
    return Hanging(job.folder / "pliant-4711" / ".pliant-4711-0-0")


class Step:
    """Some tasks, each with a wrapper of its own, of a step that may have more, and what they share."""

    def __init__(self, job: Job, ranks: int = 2, of: tuple[int, ...] = (0,)) -> None:
        """``ranks``: how many tasks the step has; ``of``: those that run here."""
        job.pliant = [sys.executable, "-c", HASTY]
        self.job, self.folder, self.files = job, job.folder, shared(job)
        self._step = {"SLURM_STEP_NUM_TASKS": str(ranks), "SLURM_STEP_ID": "0"}
        self.tasks = [self.start(rank) for rank in of]

    def start(self, rank: int) -> subprocess.Popen[str]:
        """Start a task, and wait until its program runs."""
        task = self.job.start(TASK, SLURM_PROCID=str(rank), **self._step)
        self.job.wait_for_file(f"task{rank}")
        if rank == 0:
            self.job.door.wait_for("run-watch")
        return task

    def saw_term(self, rank: int) -> bool:
        return (self.folder / f"task{rank}.told").exists()

    def was_asked(self, rank: int) -> bool:
        return (self.folder / f"task{rank}.asked").exists()

    def end(self) -> list[int]:
        """Let the programs end; return the exit codes."""
        (self.folder / "go").touch()
        return [ended(task)[0] for task in self.tasks]

    def taken_over(self) -> list[int]:
        """Do what a requeue does, once all have saved; return the exit codes."""
        self.job.door.wait_for("run-saved")
        for task in self.tasks:
            task.terminate()
        return [ended(task)[0] for task in self.tasks]


def start(job: Job, ranks: int = 2, of: tuple[int, ...] = (0,)) -> Step:
    step = Step(job, ranks, of)
    if 0 in of:
        wait_until((step.files.shared / "told").exists, "task 0 to join")
    else:
        wait_until(step.files.shared.exists, "it to join")
    return step


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with wrapped_job(tmp_path) as job:
        yield job
        for process in job.started:  # a wrapper that waits in an open outlives its guardian
            for one in (
                psutil.Process(process.pid).children(recursive=True) if _runs(process) else []
            ):
                one.kill()


def _runs(process: subprocess.Popen[str]) -> bool:
    return process.poll() is None


@pytest.mark.parametrize("rank", [0, 1])
def test_a_term_is_passed_on_and_the_programs_end_is_seen(job: Job, rank: int) -> None:
    step = start(job, of=(rank,))
    step.files.hang("told")
    job.door.want("w1", within_s=60.0)
    time.sleep(LOOKS_S)
    step.tasks[0].terminate()
    wait_until(lambda: step.saw_term(rank), "the program to be told")
    assert step.end() == [7]


@pytest.mark.parametrize("rank", [0, 1])
def test_where_an_end_cannot_be_told_to_the_others_it_is_one_all_the_same(
    job: Job, rank: int
) -> None:
    step = start(job, of=(rank,))
    step.files.hang(f"ended-{rank}")
    assert step.end() == [7]


def test_a_step_that_cannot_agree_yet_runs_and_ends_and_is_asked_for_nothing(job: Job) -> None:
    files = shared(job)
    files.shared.mkdir(mode=0o700, parents=True)
    files.hang("told")
    step = Step(job)
    job.door.want("w1", within_s=3.0)
    assert job.door.wait_for("run-failed")["untold"] == "1"
    step.tasks[0].terminate()
    wait_until(lambda: step.saw_term(0), "the program to be told")
    assert step.end() == [7]
    assert not step.was_asked(0)


def test_no_program_is_asked_before_all_can_be_and_all_are_once_it_is_over(job: Job) -> None:
    step = start(job)
    step.files.hang("told")
    job.door.want("w1", within_s=3.0)
    failed = job.door.wait_for("run-failed")
    assert (failed["wish"], failed["untold"]) == ("w1", "1")
    assert failed["words"].endswith("(their directory does not answer)")
    assert not step.was_asked(0)
    job.door.want("")
    step.files.answer()
    step.tasks.append(step.start(1))
    job.door.want("w2", within_s=60.0)
    assert job.door.wait_for("run-saved")["wish"] == "w2"
    assert step.was_asked(0) and step.was_asked(1)
    assert step.taken_over() == [85, 85]


def test_where_a_file_cannot_be_written_no_program_is_asked_either(job: Job) -> None:
    step = start(job)
    (step.files.shared / "told").unlink()
    (step.files.shared / "told").mkdir()
    job.door.want("w1", within_s=60.0)
    failed = job.door.wait_for("run-failed")
    assert (failed["untold"], failed["words"].endswith("(Is a directory)")) == ("1", True)
    assert step.end() == [7]
    assert not step.was_asked(0)


def test_how_a_task_ended_is_waited_for_no_longer_than_if_it_had_not(job: Job) -> None:
    step = start(job, 3, (0, 1))
    step.files.hang("ended-2")
    job.door.want("w1", within_s=4.0)
    assert step.taken_over() == [85, 85]
