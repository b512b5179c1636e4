"""The workloads whose jobs share nodes or GPUs, as they are asked for: see :mod:`..sources`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pliant.policies.chosen import Load, options_of
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.colocated import JOBS, LOAD, NODES, colocated
from pliant.simulator.workloads.ravi import Bias, multi_node, single_node

if TYPE_CHECKING:  # it knows these by name
    from pliant.simulator.sources import Asked


@dataclass(frozen=True, slots=True)
class Ravi:
    """Ravi et al.: jobs for one node each, on CPUs or a GPU, two nodes."""

    said: ClassVar[frozenset[str]] = frozenset({"nodes"})
    draws: ClassVar[bool] = True
    bias: Bias = "uniform"
    penalty: bool = False

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Draw the jobs."""
        jobs, nodes = asked.jobs or 24, asked.nodes or 2
        return single_node(self.bias, seed, jobs, nodes, penalty=self.penalty)


@dataclass(frozen=True, slots=True)
class RaviMulti:
    """Ravi et al.: jobs for several nodes, on CPUs, GPUs or both, 16 nodes."""

    said: ClassVar[frozenset[str]] = frozenset({"nodes"})
    draws: ClassVar[bool] = True
    mix: Literal[
        "25 SJ/75 LJ",
        "50 SJ/50 LJ",
        "75 SJ/25 LJ",
        "25 SR/75 LR",
        "50 SR/50 LR",
        "75 SR/25 LR",
    ] = "50 SJ/50 LJ"
    load: Load = 2.0
    penalty: bool = False

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Draw the jobs."""
        chosen: dict[str, Any] = {"load": self.load, "penalty": self.penalty}
        return multi_node(self.mix, seed, jobs=asked.jobs or 32, nodes=asked.nodes or 16, **chosen)


@dataclass(frozen=True, slots=True)
class Gavel:
    """Jobs of which two may share a GPU, as fast as Gavel measured (a file of throughputs)."""

    said: ClassVar[frozenset[str]] = frozenset({"trace", "nodes"})
    draws: ClassVar[bool] = True
    gpu_type: str = "v100"
    load: Load = LOAD
    told: bool = False

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Draw the jobs."""
        chosen: dict[str, Any] = {name: getattr(self, name) for name in options_of(Gavel)}
        jobs, nodes = asked.jobs or JOBS, asked.nodes or NODES
        return colocated(asked.path, seed, jobs=jobs, nodes=nodes, **chosen)
