"""HPC2N, as Fujiwara et al. replay it: 202,871 tasks of a Linux cluster with 240 CPUs.

A CPU of the trace is a GPU of the model, (p_min, p_max) = (1, 240) for moldable and malleable
policies and the task's own number for rigid ones, with linear speedup and no cost of a preemption,
on 60 to 480 CPUs; online, or offline with all tasks there at once.

Source: Fujiwara et al. (paper 000), section VI; HPC2N-2002-2.2-cln of the Parallel Workloads
Archive (Åke Sandgren, High-Performance Computing Center North).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

from pliant.simulator.traces import Record, read_swf
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.records import Machine, Width, from_records

BOUNDS = (1, 240)
CPUS = (60, 120, 240, 480)


def hpc2n(
    path: Path,
    cpus: int = 240,
    *,
    width: Width = "allocated",
    offline: bool = False,
    told: bool = False,
    jobs: int | None = None,
) -> Workload:
    """Return the tasks of the trace in an SWF file, moldable and malleable, on so many CPUs.

    ``told``: policies know the volume, as the paper's clairvoyant ones do. Rigid policies give each
    its own number (``shape: own``). Raises BadInput for a file that cannot be right.
    """
    records = islice(read_swf(path), jobs)
    return on_cpus(records, Machine(cpus, BOUNDS, width=width, offline=offline, told=told))


def on_cpus(records: Iterable[Record], machine: Machine) -> Workload:
    """Return some of the trace's tasks on a machine, whose bounds are :data:`BOUNDS`."""
    kind = "offline" if machine.offline else "online"
    found = from_records(records, machine, f"HPC2N on {machine.processors} CPUs, {kind}")
    more = "p_max is 240, or the machine where that is smaller, whatever the task asked for"
    return replace(found, choices=(*found.choices, more))
