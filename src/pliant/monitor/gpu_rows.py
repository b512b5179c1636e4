"""The lines of a trace of processes on GPUs: who is on which GPU at one look.

When a process began is reckoned from when the kernel now says that the host did. That stays the
same as long as nobody sets the clock: where somebody does, a process is taken for another.
"""

from __future__ import annotations

import pwd
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pliant.monitor import proc
from pliant.monitor.gpus import GpuProcess, GpuReading
from pliant.monitor.processes import jobs_here
from pliant.wire.gpu_trace import Row


def jobs_by_pid(proc_root: Path, cgroup_root: Path) -> dict[int, str]:
    """Return which job each process of one is of. Raises OSError where /proc cannot be read."""
    jobs = jobs_here(proc_root, cgroup_root)
    return {process.pid: job.job for job in jobs for process in job.processes}


def rows_of(
    reading: GpuReading, node: str, jobs: Mapping[int, str], proc_root: Path = Path("/proc")
) -> Iterator[Row]:
    """Yield a row per process and GPU, and one per GPU without any.

    Nothing is told of a GPU whose processes cannot be listed, nor of one that MIG divides beside
    its instances. Who is known on one GPU is known on all. Raises OSError where /proc cannot be
    read.
    """
    divided = {gpu.instance.parent for gpu in reading.gpus if gpu.instance}
    known = {one.pid for gpu in reading.gpus for one in gpu.processes or () if one.known}
    booted_s = _booted_s(proc_root)
    who = {pid: _who(pid, jobs, booted_s, proc_root) for pid in known}
    for gpu in reading.gpus:
        if gpu.processes is None or gpu.uuid in divided:
            continue
        empty = Row(
            time=f"{reading.at_s:.3f}",
            node=node,
            gpu=gpu.uuid,
            minor=_text(gpu.minor),
            gpu_pct=_text(gpu.util_pct),
        )
        on = [_on_gpu(empty, each, who.get(each.pid, _NOBODY)) for each in gpu.processes]
        yield from on or [empty]


class _Who(NamedTuple):
    """Whose a process is, and when it began; what is not known is empty."""

    started: str = ""
    user: str = ""
    job: str = ""


_NOBODY = _Who()


def _who(pid: int, jobs: Mapping[int, str], booted_s: int, proc_root: Path) -> _Who:
    found, uid = proc.process(proc_root, pid), proc.real_user(proc_root, pid)
    if found is None or uid is None:
        return _NOBODY  # it has ended since
    started = f"{booted_s + found.started / proc.TICKS_PER_S:.2f}"
    return _Who(started, _user(uid), jobs.get(pid, ""))


def _on_gpu(empty: Row, of: GpuProcess, who: _Who) -> Row:
    return empty._replace(
        pid=str(of.pid),
        started=who.started,
        user=who.user,
        job=who.job,
        memory_mib=_text(of.mem_mib),
        process_pct=_text(of.sm_pct),
    )


def _user(uid: int) -> str:
    """Return a user's name; the number where it has none, or none that a line can hold."""
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
    return name if name.isprintable() else str(uid)


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _booted_s(proc_root: Path) -> int:
    """Return when the host was started (Unix time), as proc_stat(5) has it, below long lines."""
    with Path(f"{proc_root}/stat").open("rb") as file:
        found = next((line for line in file if line.startswith(b"btime ")), b"btime 0")
    return int(found.split()[1])
