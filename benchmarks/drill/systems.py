"""The batch systems on which the drill is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks import machine
from benchmarks.drill import pbs_faults, slurm_faults
from benchmarks.drill.fault import Fault
from benchmarks.drill.pbs_field import NAMES, PbsField, server_here
from benchmarks.drill.sitting import Up
from benchmarks.drill.slurm_field import SlurmField


@dataclass(frozen=True, slots=True)
class System:
    """One of them: how it comes ``up``, what is done to it, which it is here, how many may run.

    ``needs``: what of the environment says where it is.
    """

    name: str
    up: Up
    faults: Sequence[Fault]
    release: Callable[[], str]
    at_once: int | None = None  # None: as many as are wanted
    needs: tuple[str, ...] = ()


SYSTEMS = {
    "slurm": System("Slurm", SlurmField.up, slurm_faults.FAULTS, machine.slurm),
    "pbs": System("OpenPBS", PbsField.up, pbs_faults.FAULTS, server_here, at_once=1, needs=NAMES),
}


def faults_on(which: str) -> Sequence[Fault]:
    """Return the faults of the system that is called so, its release behind its name."""
    return next(one.faults for one in SYSTEMS.values() if which.startswith(f"{one.name} "))
