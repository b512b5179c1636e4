"""How much memory this process has had at most."""

from __future__ import annotations

from pathlib import Path


def peak_mib() -> float:
    """Return the most that was resident since the program began, in MiB.

    VmHWM of proc_pid_status(5): getrusage(2)'s ru_maxrss counts what the parent had at the fork.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) / 1024
    raise OSError("/proc/self/status has no VmHWM")
