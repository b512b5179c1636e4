"""What a job has taken until now: CPU time, waiting for CPUs, memory.

CPU time is the cgroup's where the job has one that counts it. Else it is what its living processes
have used and what they and its slurmstepds have seen ending (cutime): a process that lost its
parent and then ended is missing from it, and so is one whose parent ignores SIGCHLD.

Memory is the cgroup's where that counts it, else the sum of the processes' resident sets, in which
a page that several share counts for each. The proportional sets (PSS) would be right, but to add
one up the kernel walks all of a process's pages while it may not map any: the price grows with the
job's memory, and the job pays it. A process of 1 GiB took 10 ms of CPU time, against 0.03 ms.
"""

from __future__ import annotations

from pathlib import Path

from pliant.monitor import cgroups, proc
from pliant.monitor.gpu_use import gpu_use
from pliant.monitor.gpus import GpuReading
from pliant.monitor.processes import JobHere
from pliant.monitor.sample import CountedBy, Counts, Pressure, Sample, ThreadId, ThreadTime


def sample(
    job: JobHere,
    at_s: float,
    proc_root: Path = Path("/proc"),
    counts: Counts | None = None,
    gpus: GpuReading | None = None,
) -> Sample:
    """Return what a job has taken; ``at_s`` is the moment by a monotonic clock."""
    cpu_by, cpu_s = _cpu_s(job)
    memory_by, memory = _memory(job)
    return Sample(
        job=job.job,
        at_s=at_s,
        cpu_by=cpu_by,
        cpu_s=cpu_s,
        threads=_threads(job, proc_root),
        processes=len(job.processes),
        memory_bytes=memory,
        memory_by=memory_by,
        pressure=_pressure(job),
        counts=counts,
        gpus=gpu_use(gpus, {each.pid for each in job.processes}) if gpus else (),
    )


def _cpu_s(job: JobHere) -> tuple[CountedBy, dict[str, float]]:
    """Return CPU seconds by account; an account that ends takes nothing from the others."""
    counted = {str(group.tracked): cgroups.cpu_s(group) for group in job.groups}
    known = {name: used for name, used in counted.items() if used is not None}
    if known and len(known) == len(counted):
        return CountedBy.CGROUP, known
    by_step = {
        f"{step.name}/{step.stepd}": step.ended_s
        + sum(p.own_s + p.children_s for p in step.processes)
        for step in job.steps
    }
    living = {"living": sum(p.own_s + p.children_s for p in job.processes)}
    return CountedBy.PROCESSES, by_step or living


def _memory(job: JobHere) -> tuple[CountedBy, int]:
    counted = [cgroups.memory_bytes(group) for group in job.groups]
    known = [held for held in counted if held is not None]
    if known and len(known) == len(counted):
        return CountedBy.CGROUP, sum(known)
    return CountedBy.PROCESSES, sum(each.rss_bytes for each in job.processes)


def _threads(job: JobHere, proc_root: Path) -> dict[ThreadId, ThreadTime]:
    return {
        (each.pid, each.started, tid): ThreadTime(run_s, wait_s)
        for each in job.processes
        for tid, run_s, wait_s in proc.thread_times(proc_root, each)
    }


def _pressure(job: JobHere) -> Pressure | None:
    """Return the pressure of the job's cgroup; of several nodes on one host, the worst."""
    known = [found for group in job.groups if (found := cgroups.pressure(group)) is not None]
    return max(known, key=lambda each: each.cpu_s + each.memory_s + each.io_s, default=None)
