"""Start, find and end the processes of a sandbox.

No pid file is believed. Each part is started with a mark in its environment, and is found again by
that mark in /proc; so a reused pid is never killed and a process whose starter died is never lost.
Slurm's programs overwrite their own environment when they set a title, and job steps are started
with their user's: those are known by the program they run and the files they hold, by the job's
SLURM_CONF, and as descendants.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from pliant.errors import Unavailable
from pliant.sandbox.layout import Layout

MARK = "PLIANT_SANDBOX_PART"
_DAEMONS = {"slurmctld", "slurmd", "slurmstepd", "slurmdbd", "munged", "mariadbd"}
_HELPERS = {"slurmscriptd", "slurmstepd"}
_CLIENTS = {"srun", "salloc", "sbatch", "scancel", "scontrol", "squeue", "sinfo", "sacct"}
_CLIENTS |= {"sacctmgr", "sattach", "strigger", "sstat", "sprio", "sdiag", "sreport"}


@dataclass(frozen=True)
class Found:
    """A process of the sandbox: its part's name, or "job" for all that is not one."""

    pid: int
    part: str
    ppid: int
    create_time: float


def start(
    layout: Layout,
    part: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    user: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start one part in a session of its own, its output in its .out file."""
    account = {"user": user, "group": _group(user), "extra_groups": []} if user else {}
    with layout.output(part).open("ab") as output:
        try:
            # mypy cannot see which keywords **account brings
            return subprocess.Popen(  # type: ignore[call-overload,no-any-return]  # **account
                list(argv),
                env=marked(layout, part, env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=layout.run,
                start_new_session=True,
                **account,
            )
        except OSError as error:
            raise Unavailable(f"{part}: {argv[0]}: {error.strerror}") from error


def marked(layout: Layout, part: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment by which a process is known, and all that it starts."""
    return {**env, MARK: f"{part}@{layout.top}"}


def _group(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


def find(layout: Layout) -> list[Found]:
    """Return every living process of the sandbox, never ourselves or our ancestors."""
    spared = _ourselves()
    table = [p for p in psutil.process_iter() if p.pid not in spared]
    found: dict[int, Found] = {}
    children: dict[int, list[psutil.Process]] = {}
    for process in table:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            children.setdefault(process.ppid(), []).append(process)
            part = _part(process.pid, layout)
            if part:
                found[process.pid] = _noted(process, part)
        except psutil.Error:
            continue
    _add_descendants(found, children)
    return sorted(found.values(), key=lambda f: (f.part, f.create_time, f.pid))


def _add_descendants(found: dict[int, Found], children: Mapping[int, list[psutil.Process]]) -> None:
    waiting = list(found.values())
    while waiting:
        parent = waiting.pop()
        for child in children.get(parent.pid, ()):
            if child.pid not in found:
                try:
                    found[child.pid] = _noted(child, "job" if parent.part == "job" else parent.part)
                except psutil.Error:
                    continue
                waiting.append(found[child.pid])


def _noted(process: psutil.Process, part: str) -> Found:
    return Found(process.pid, part, process.ppid(), process.create_time())


def _ourselves() -> set[int]:
    me = psutil.Process()
    return {me.pid, *(p.pid for p in me.parents())}


def _part(pid: int, layout: Layout) -> str | None:
    """Return the part that a process plays in the sandbox, None for a stranger."""
    proc = Path("/proc", str(pid))
    part = _part_of(proc, layout)
    # Helpers of daemons have their mark, and must not be taken for them.
    return "job" if part and _title(proc) in _HELPERS else part


def _part_of(proc: Path, layout: Layout) -> str | None:
    environ = _environ(proc)
    part, at, top = environ.get(MARK, "").partition("@")
    if at and top == str(layout.top):
        return part
    program = _program(proc)
    if program in _DAEMONS and _holds_file_below(proc, layout.top):
        return "job" if program == "slurmstepd" else program
    if environ.get("SLURM_CONF") == str(layout.slurm_conf) and (
        "SLURM_JOB_ID" in environ or program in _CLIENTS
    ):
        return "job"
    return None


def _environ(proc: Path) -> dict[str, str]:
    try:
        items = (proc / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(item).partition("=") for item in items)
    return {key: value for key, _, value in pairs}


def _title(proc: Path) -> str:
    try:
        return (proc / "comm").read_text().strip()
    except OSError:
        return ""


def _program(proc: Path) -> str:
    try:
        name = (proc / "exe").readlink().name.removesuffix(" (deleted)")
    except OSError:
        return ""
    return name.removesuffix("-wlm")  # Debian's slurmstepd is a link to slurmstepd-wlm


def _holds_file_below(proc: Path, top: Path) -> bool:
    below = f"{top}/"
    return any(target.startswith(below) for target in _open_files(proc))


def _open_files(proc: Path) -> Iterator[str]:
    try:
        links = [proc / "cwd", *(proc / "fd").iterdir()]
    except OSError:
        return
    for link in links:
        try:
            yield str(link.readlink())
        except OSError:
            continue


def leaders(found: Iterable[Found]) -> dict[str, Found]:
    """Return the first process of each part: the one that was started."""
    first: dict[str, Found] = {}
    for process in found:
        if process.part != "job":
            first.setdefault(process.part, process)
    return first


def send(process: Found, number: signal.Signals) -> None:
    """Send a signal unless the process is gone, its pid perhaps another's by now."""
    try:
        living = psutil.Process(process.pid)
        if living.create_time() == process.create_time:
            living.send_signal(number)
    except psutil.NoSuchProcess:
        return


def kill_all(layout: Layout, timeout_s: float = 20.0) -> list[Found]:
    """Kill every process of the sandbox until none is found; return those that would not go.

    SIGKILL at once: everything that a gentler end would save is removed in the next moment.
    """
    deadline = time.monotonic() + timeout_s
    killed: set[Found] = set()
    while left := {*find(layout), *filter(_lives, killed)}:
        for process in left:
            send(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            return sorted(left, key=lambda f: f.pid)
        killed |= left
        time.sleep(0.02)
    return []


def _lives(process: Found) -> bool:
    """Return whether it is there still; one that is dying has closed what we would know it by."""
    try:
        living = psutil.Process(process.pid)
        return (
            living.create_time() == process.create_time and living.status() != psutil.STATUS_ZOMBIE
        )
    except psutil.Error:
        return False
