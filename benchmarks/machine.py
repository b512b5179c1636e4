"""What the benchmarks ran on."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path


def lines() -> Iterator[str]:
    """Yield what a reader must know to compare: date, machine, load, versions."""
    yield f"- Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    yield f"- Machine: {_cpu()}, {os.cpu_count()} CPUs, {_memory_gib():.0f} GiB of memory"
    yield f"- Load when it began (1, 5, 15 minutes): {load()}{_niceness()}"
    yield f"- Slurm {slurm()}, Python {platform.python_version()}"


def steal_s() -> float:
    """Return for how many seconds the host has kept CPUs from this machine (proc(5), stat)."""
    words = Path("/proc/stat").read_text().partition("\n")[0].split()
    return int(words[8]) / os.sysconf("SC_CLK_TCK")


def load() -> str:
    """Return the load of the last 1, 5 and 15 minutes."""
    return ", ".join(f"{part:.1f}" for part in os.getloadavg())


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    pages: int = os.sysconf("SC_PHYS_PAGES")
    size: int = os.sysconf("SC_PAGE_SIZE")
    return pages * size / 2**30


def _niceness() -> str:
    """Say whether it ran before or behind other work, nice(1)."""
    own = os.nice(0)
    return f"; niceness {own}" if own else ""


def slurm() -> str:
    """Return the release of the Slurm that is installed here."""
    try:
        done = subprocess.run(
            ["slurmctld", "-V"], capture_output=True, text=True, timeout=10, check=False
        )
    except OSError:
        return "(none)"
    return done.stdout.strip().removeprefix("slurm-wlm ").removeprefix("slurm ")
