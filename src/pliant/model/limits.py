"""What one job may have in all, by the limits of its queue and of the batch system's server."""

from __future__ import annotations

from dataclasses import dataclass

from pliant.model.footprints import Demand

Amounts = tuple[tuple[str, int], ...]
WORDS = {
    **{"ngpus": "GPUs", "ncpus": "CPUs", "nodect": "nodes"},
    **{"mem": "MiB of memory", "mpiprocs": "MPI processes"},
}
"""What amounts are called where no name of PBS's is meant."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most and the least of a resource that one job may have, by name; memory is in MiB.

    The names are PBS's: nodect, ngpus, ncpus, mem, mpiprocs.
    """

    most: Amounts = ()
    least: Amounts = ()

    def why_not(self, nodes: int, demand: Demand) -> str:
        """Return which limit a demand on so many nodes breaks, in words; "" for none.

        What is 0 of the memory is not said, and so not held against the least.
        """
        asked = totals(nodes, demand)
        for name, most in self.most:
            if name in asked and asked[name] > most:
                return f"resources_max.{_words(name, most)}"
        for name, least in self.least:
            said = name in asked and (asked[name] > 0 or name != "mem")
            if said and asked[name] < least:
                return f"resources_min.{_words(name, least)}"
        return ""


NO_LIMITS = Limits()


def totals(nodes: int, demand: Demand) -> dict[str, int]:
    """Return what a job has in all; a share of a GPU is no whole one."""
    return {
        "nodect": nodes,
        "ngpus": 0 if demand.share > 1 else nodes * demand.gpus,
        "ncpus": nodes * demand.cpus,
        "mem": nodes * demand.mem_mib,
        "mpiprocs": nodes * demand.tasks,
    }


def _words(name: str, many: int) -> str:
    return f"{name} is {many}{' MiB' if name == 'mem' else ''}"
