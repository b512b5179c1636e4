"""Cgroups of the real kernel, made as slurmd makes them but below a root of our own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pliant.monitor.processes import JobHere, jobs_here
from pliant.monitor.sample import CountedBy, Sample
from pliant.monitor.usage import sample

WORKED_S = 0.2
JOINS_AND_WORKS = f"""
import os, sys, time
open(sys.argv[1], "w").write("0")
if os.fork() == 0:
    if os.fork() == 0:  # nobody we know will have waited for it
        while time.process_time() < {WORKED_S}: pass
        print("worked", flush=True)
    os._exit(0)
os.wait()
time.sleep(60)
"""


def mounted(kind: str, option: str = "") -> Path | None:
    """Where the kernel's cgroups of a kind are mounted, if at all."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, found, options = line.split()[:4]
        if found == kind and (not option or option in options.split(",")):
            return Path(place)
    return None


@pytest.fixture
def top(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A cgroup of our own in the hierarchy that the test names."""
    place = mounted(*request.param)
    made = place / f"pliant-test-{os.getpid()}" if place else None
    try:
        if made is None:
            raise OSError(f"none of {request.param}")
        made.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    yield made
    for path in sorted(made.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
    made.rmdir()


def job_12(root: Path) -> JobHere:
    """The job whose cgroups are made here: others may run on this machine."""
    return next(job for job in jobs_here(Path("/proc"), root) if job.groups)


def after_work(root: Path, member: Path) -> tuple[Sample, int]:
    """A sample of the one job once its worker has ended, and the process that still lives."""
    member.mkdir(parents=True)
    argv = [sys.executable, "-c", JOINS_AND_WORKS, str(member / "cgroup.procs")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"worked\n"
            while len((job := job_12(root)).processes) > 1:
                time.sleep(0.01)  # the worker ends after its last word
            return sample(job, 0.0), process.pid
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("top", [("cgroup2",)], indirect=True)
def test_v2_counts_what_nobody_waited_for(top: Path) -> None:
    job = top / "system.slice/slurmstepd.scope/job_12"
    found, pid = after_work(top, job / "step_0/user/task_0")
    assert (found.job, found.cpu_by, [each for each, _, _ in found.threads]) == (
        *("12", CountedBy.CGROUP),
        [pid],
    )
    assert set(found.cpu_s) == {str(job)}
    assert found.cpu_s[str(job)] >= WORKED_S


@pytest.mark.parametrize("top", [("cgroup", "cpuacct")], indirect=True)
def test_v1_counts_it_too(top: Path, tmp_path: Path) -> None:
    (tmp_path / "cpuacct").symlink_to(top)
    found, pid = after_work(tmp_path, top / "slurm/uid_0/job_12/step_0/task_0")
    assert (found.job, found.cpu_by, [each for each, _, _ in found.threads]) == (
        *("12", CountedBy.CGROUP),
        [pid],
    )
    assert sum(found.cpu_s.values()) >= WORKED_S
