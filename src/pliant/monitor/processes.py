"""Which Slurm jobs run on this node, and which processes are theirs.

A job is known by slurmd's cgroups (:mod:`pliant.monitor.cgroups`). A job that has none, as where
slurmd tracks processes by their parents (proctrack/linuxproc, pgid), is known by the slurmstepd of
each of its steps, which calls itself ``slurmstepd: [4711.batch]``: it is believed if root runs it
and its program is slurmstepd. What it started is the job's, and so is what lost its parent since
but is still in one of their sessions, where only descendants can be. A process that both began a
session of its own and lost its parent is not seen.

Nothing that a user's process says is believed: neither its environment (SLURM_JOB_ID) nor its
title. The step ``extern``, where logins by ssh end up, is not the job's work.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pliant.monitor import cgroups, proc
from pliant.monitor.cgroups import EXTERN, JobGroup
from pliant.monitor.proc import Process

_NAME = "slurmstepd"
_PROGRAMS = {"slurmstepd", "slurmstepd-wlm"}  # the latter is Debian's
_TITLE = re.compile(r"slurmstepd: \[(\d+)\.([^\]]+)\]")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a job without cgroups.

    ``name`` is as in the title of its slurmstepd, ``stepd`` that process: two nodes of a job may be
    one host. ``ended_s``: CPU seconds of what it started and has seen ending.
    """

    name: str
    stepd: int
    processes: tuple[Process, ...]
    ended_s: float


@dataclass(frozen=True, slots=True)
class JobHere:
    """A job on this node: its living processes, and its cgroups or else its steps."""

    job: str
    processes: tuple[Process, ...]
    groups: tuple[JobGroup, ...] = ()
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stepd:
    """A slurmstepd that is one."""

    job: str
    step: str
    process: Process


def jobs_here(proc_root: Path, cgroup_root: Path) -> tuple[JobHere, ...]:
    """Return the jobs that run here, by number. Raises OSError where /proc cannot be read."""
    table = proc.processes(proc_root)
    stepds = _stepds(table, proc_root)
    found = _by_cgroup(table, stepds, cgroups.job_groups(cgroup_root))
    found |= _by_stepd(table, stepds, found)
    return tuple(found[job] for job in sorted(found, key=int))


def _stepds(table: Mapping[int, Process], root: Path) -> dict[int, _Stepd]:
    """Return the slurmstepds; a name is cheap to read and to choose, so it only spares questions.

    Between fork and exec a new task looks like its slurmstepd: it is taken for what it will be.
    """
    found: dict[int, _Stepd] = {}
    for each in table.values():
        if each.name != _NAME or not _is_slurmstepd(root, each.pid):
            continue
        if title := _TITLE.fullmatch(proc.title(root, each.pid).strip()):
            found[each.pid] = _Stepd(title[1], title[2], each)
    return {pid: stepd for pid, stepd in found.items() if stepd.process.parent not in found}


def _is_slurmstepd(root: Path, pid: int) -> bool:
    return proc.program(root, pid) in _PROGRAMS and proc.real_user(root, pid) == 0


def _by_cgroup(
    table: Mapping[int, Process], stepds: Mapping[int, _Stepd], groups: Iterable[JobGroup]
) -> dict[str, JobHere]:
    by_job: dict[str, list[JobGroup]] = {}
    for group in groups:
        job = group.job or next(
            (stepds[pid].job for pid in sorted(cgroups.stepd_pids(group)) if pid in stepds), ""
        )
        if job:
            by_job.setdefault(job, []).append(group)
    return {job: _in_groups(job, table, stepds, found) for job, found in by_job.items()}


def _in_groups(
    job: str,
    table: Mapping[int, Process],
    stepds: Mapping[int, _Stepd],
    groups: list[JobGroup],
) -> JobHere:
    pids = set().union(*map(cgroups.pids, groups)) - set(stepds)
    return JobHere(job, tuple(table[pid] for pid in sorted(pids) if pid in table), tuple(groups))


def _by_stepd(
    table: Mapping[int, Process], stepds: Mapping[int, _Stepd], known: Collection[str]
) -> dict[str, JobHere]:
    children: dict[int, list[Process]] = {}
    sessions: dict[int, list[Process]] = {}
    for each in table.values():
        children.setdefault(each.parent, []).append(each)
        sessions.setdefault(each.session, []).append(each)
    shared = {s for s, members in sessions.items() if _is_shared(members, stepds)}
    steps: dict[str, list[Step]] = {}
    for stepd in stepds.values():
        if stepd.step != EXTERN and stepd.job not in known:
            found = _of_step(stepd.process, children, sessions, shared)
            step = Step(stepd.step, stepd.process.pid, found, stepd.process.children_s)
            steps.setdefault(stepd.job, []).append(step)
    return {job: _of_steps(job, found) for job, found in steps.items()}


def _of_steps(job: str, steps: list[Step]) -> JobHere:
    steps.sort(key=lambda step: step.stepd)
    processes = {each.pid: each for step in steps for each in step.processes}
    return JobHere(job, tuple(processes[pid] for pid in sorted(processes)), (), tuple(steps))


def _is_shared(members: Iterable[Process], stepds: Mapping[int, _Stepd]) -> bool:
    """Say whether a session is more than one step's: whether its oldest is not its slurmstepd.

    slurmd begins a session for each slurmstepd (setsid in _forkexec_slurmstepd). Were that to
    change, the session would be slurmd's, and be taken for nobody's.
    """
    own = [each for each in members if each.pid in stepds]
    return len(own) > 1 or any(each.started < one.started for one in own for each in members)


def _of_step(
    stepd: Process,
    children: Mapping[int, list[Process]],
    sessions: Mapping[int, list[Process]],
    shared: Collection[int],
) -> tuple[Process, ...]:
    found: dict[int, Process] = {}
    followed = set(shared)
    waiting = [stepd]
    while waiting:
        each = waiting.pop()
        if each.pid in found:
            continue
        found[each.pid] = each
        waiting += children.get(each.pid, ())
        if each.session not in followed:
            followed.add(each.session)
            waiting += sessions[each.session]
    del found[stepd.pid]
    return tuple(found[pid] for pid in sorted(found))
