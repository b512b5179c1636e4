"""Where slurmd keeps its jobs in the cgroup tree, and what the kernel counts there.

::

    v2  system.slice/[NODE_]slurmstepd.scope/job_J/step_S/slurm          slurmstepd
                                                         /user/task_T    the job's work
        Slurm 26.05 names a job's directory by its SLUID, s5K1KKYAYG5D00, unless cgroup.conf says
        CgroupJobIdPaths=yes: its number is known from the slurmstepd in it
    v1  CONTROLLER/slurm[_NODE]/uid_U/job_J/step_S/task_T

NODE stands where Slurm was built with --enable-multiple-slurmd, as Debian's is. Only these places
are looked at: users may make directories of any name in those that systemd delegates to them.
Source: Slurm's src/plugins/cgroup and https://slurm.schedmd.com/cgroup_v2.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pliant.monitor.proc import read
from pliant.monitor.sample import Pressure

EXTERN = "extern"
"""The step of what came from outside, such as a login by ssh: it is not the job's work."""
_JOB = re.compile(r"job_(\d+)|s[0-9A-Z]{10,20}")
_SCOPE = "slurmstepd.scope"
_STEP = "step_"
_STEPD, _WORK = "slurm", "user"
_TRACKING = ("freezer", "cpuset", "memory", "cpuacct", "devices")
"""v1: a job is in the hierarchy of each plugin that the site uses; the first knows all of it."""


@dataclass(frozen=True, slots=True)
class JobGroup:
    """A job's directories. ``job`` is its number, "" where only the slurmstepd in it knows that.

    ``tracked`` lists its processes, ``cpu`` and ``memory`` account for them; None: not there.
    """

    job: str
    unified: bool
    tracked: Path
    cpu: Path | None
    memory: Path | None


def job_groups(root: Path) -> list[JobGroup]:
    """Return the directories of every job, ordered by their paths."""
    return [*_unified(root), *_by_controller(root)]


def _unified(root: Path) -> Iterator[JobGroup]:
    scopes = [root / "system.slice" / _SCOPE, *root.glob(f"system.slice/*_{_SCOPE}")]
    for path in sorted(path for scope in scopes for path in scope.glob("*")):
        if name := _JOB.fullmatch(path.name):
            yield JobGroup(name[1] or "", True, path, path, path)


def _by_controller(root: Path) -> Iterator[JobGroup]:
    tracking = {name: _numbered(root / name) for name in _TRACKING}
    for place in sorted(set().union(*tracking.values())):
        first = next(name for name in _TRACKING if place in tracking[name])
        yield JobGroup(
            job=place.rpartition("job_")[2],
            unified=False,
            tracked=root / first / place,
            cpu=root / "cpuacct" / place if place in tracking["cpuacct"] else None,
            memory=root / "memory" / place if place in tracking["memory"] else None,
        )


def _numbered(controller: Path) -> set[str]:
    paths = [*controller.glob("slurm/uid_*/job_*"), *controller.glob("slurm_*/uid_*/job_*")]
    return {str(p.relative_to(controller)) for p in paths if p.name[len("job_") :].isdecimal()}


def steps(group: JobGroup) -> Iterator[tuple[str, Path]]:
    """Yield the job's steps, the extern step too, and their directories."""
    for path in sorted(group.tracked.glob(f"{_STEP}*")):
        yield path.name[len(_STEP) :], path


def pids(group: JobGroup) -> set[int]:
    """Return the processes of the job's work; in v1 its slurmstepds may be among them."""
    return {
        pid
        for step, path in steps(group)
        if step != EXTERN
        for pid in members(path / _WORK if group.unified else path)
    }


def work(group: JobGroup) -> list[Path]:
    """Return the folders of v2 that hold the work of the job's steps and nothing else."""
    found = [path / _WORK for step, path in steps(group) if step != EXTERN]
    return [path for path in found if path.is_dir()]


def stepd_pids(group: JobGroup) -> set[int]:
    """Return the slurmstepds of a job of v2, by their own leaf."""
    return {pid for _, path in steps(group) for pid in members(path / _STEPD)}


def members(path: Path) -> set[int]:
    """Return the processes of a cgroup and of all below it."""
    found: set[int] = set()
    for file in (path / "cgroup.procs", *path.rglob("*/cgroup.procs")):
        try:
            found |= {int(pid) for pid in file.read_text().split()}  # there may be very many
        except OSError:  # the step ended meanwhile
            continue
    return found - {0}  # 0: a process of another pid namespace


def cpu_s(group: JobGroup) -> float | None:
    """Return the CPU seconds of the job's steps but extern, ended ones too; None: not counted.

    The job's slurmstepds are in it: some hundredths of a second for each step.
    """
    if group.cpu is None:
        return None
    whole = _cpu_s(group.cpu, group.unified)
    if whole is None:
        return None
    return whole - (_cpu_s(group.cpu / f"{_STEP}{EXTERN}", group.unified) or 0.0)


def _cpu_s(path: Path, unified: bool) -> float | None:
    if unified:
        used = _words(path / "cpu.stat").get("usage_usec")
        return None if used is None else used / 1e6
    text = read(path / "cpuacct.usage").strip()
    return int(text) / 1e9 if text.isdigit() else None


def memory_bytes(group: JobGroup) -> int | None:
    """Return what the job's memory holds that cannot be dropped; None: not counted.

    Anonymous and shared memory, each page once, without the page cache.
    """
    if group.memory is None:
        return None
    words = _words(group.memory / "memory.stat")
    names = ("anon", "shmem") if group.unified else ("total_rss", "total_shmem")
    return sum(words.get(name, 0) for name in names) if names[0] in words else None


def pressure(group: JobGroup) -> Pressure | None:
    """Return how long some of the job's work was stalled; None in v1, or where PSI is off."""
    return read_pressure(group.tracked, "{}.pressure") if group.unified else None


def node_pressure(proc: Path) -> Pressure | None:
    """Return how long some of the node's work was stalled; None where PSI is off."""
    return read_pressure(proc / "pressure", "{}")


def read_pressure(directory: Path, name: str) -> Pressure | None:
    """Return the totals of the lines ``some`` (Linux: Documentation/accounting/psi)."""
    totals = []
    for resource in ("cpu", "memory", "io"):
        found = re.search(rb"^some .*\btotal=(\d+)", read(directory / name.format(resource)), re.M)
        if found is None:
            return None
        totals.append(int(found[1]) / 1e6)
    return Pressure(*totals)


def _words(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in read(file).decode().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
