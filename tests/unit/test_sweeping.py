"""Where many runs are done: what `--processes`, `--slurm` and `--sbatch` take and refuse."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pliant.cli import main
from pliant.cli.sweeping import sweep_asked
from pliant.simulator import job_array
from pliant.simulator.job_array import JobArray
from pliant.simulator.sweep import Processes

WORDS = ("compare", "torque", "rsa", "--workload", "ravi", "--jobs", "6")


@pytest.fixture
def submits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with sbatch and srun, which are never called here."""
    for name in ("sbatch", "srun"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path))


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*WORDS, *words])
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


@pytest.mark.usefixtures("submits")
def test_an_array_takes_any_option_of_sbatch() -> None:
    words = ("partition=cpu", "--time=1:00:00", "exclusive")
    options: dict[str, str | bool] = {"partition": "cpu", "time": "1:00:00", "exclusive": True}
    assert sweep_asked(None, True, words) == JobArray(options)
    assert sweep_asked(8, True) == JobArray({}, 8)


def test_processes_are_as_many_as_cpus_unless_told() -> None:
    assert sweep_asked(None) == Processes(len(os.sched_getaffinity(0)))
    assert sweep_asked(3) == Processes(3)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--sbatch", "partition=cpu"), "pliant: --sbatch goes with --slurm\n"),
        (("--slurm", "--sbatch", "=1"), "pliant: --sbatch: '=1': OPTION=VALUE is expected, as pa"),
        (("--slurm", "--sbatch", "array=1-9"), "pliant: --sbatch: 'array=1-9': Pliant says that"),
        (("--slurm", "--sbatch", "job_name=x"), "pliant: --sbatch: 'job_name=x': Pliant says tha"),
    ],
)
@pytest.mark.usefixtures("submits")
def test_wrong_options_are_refused_in_one_line(
    words: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, *words)
    assert told.startswith(line)
    assert told.count("\n") == 1


def test_what_is_missing_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    told = said(capsys, "--slurm")
    assert told == "pliant: --slurm: sbatch is not there: this host submits to no Slurm\n"
    monkeypatch.setattr(job_array, "find_spec", lambda _: None)
    told = said(capsys, "--slurm")
    assert told == "pliant: --slurm needs submitit: pip install 'pliant[sweeps]'\n"


def waits(flag: Path) -> None:
    """Say that a run has begun, and be far from its end."""
    flag.touch()
    time.sleep(300)


def fails_beside(flag: Path) -> None:
    """Fail in one run when the other one has begun."""
    if flag.name == "waits":
        waits(flag)
    while not (flag.parent / "waits").exists():
        time.sleep(0.01)
    raise ValueError(flag.name)


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """A shell that starts these tests behind itself has them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_ends_the_processes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flags = [tmp_path / "first", tmp_path / "second"]
    pid = os.getpid()
    context = multiprocessing.get_context("fork")
    presses = context.Process(target=_presses, args=(flags, pid))
    presses.start()
    with pytest.raises(KeyboardInterrupt):
        Processes(2).each(waits, flags, lambda _: None)
    presses.join()
    assert multiprocessing.active_children() == []
    assert capfd.readouterr().err == ""


def _presses(flags: list[Path], pid: int) -> None:
    """Interrupt all processes of a sweep, as a terminal does, when its runs have begun."""
    while not all(flag.exists() for flag in flags):
        time.sleep(0.01)
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in (*map(int, children), pid):
        if each != os.getpid():
            os.kill(each, signal.SIGINT)


def test_a_run_that_fails_ends_the_others(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="fails"):
        Processes(2).each(fails_beside, [tmp_path / "waits", tmp_path / "fails"], lambda _: None)
    assert multiprocessing.active_children() == []
