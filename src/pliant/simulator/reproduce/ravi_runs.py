"""The runs behind the figures of Ravi et al. (paper 004)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import geometric_mean
from typing import NamedTuple

from pliant.plan import Policy
from pliant.policies import by_name
from pliant.simulator.latencies import (
    Ran,
    assignment_latency_s,
    completion_s,
    most_idle_s,
    queuing_latency_s,
    resources_of,
)
from pliant.simulator.replay import Replay
from pliant.simulator.running import Run
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.ravi import Bias, multi_node, single_node
from pliant.simulator.workloads.ravi_tables import pool

SCHEMES = ("rsa", "rsc", "asjf")
ROBIN, OPTIMAL = "blind-round-robin", "manual-optimal"

POLICIES: dict[str, Policy] = {
    **{name: by_name(name) for name in (*SCHEMES, ROBIN, OPTIMAL)},
    **{name: by_name(name) for name in ("fms", "fms-type", "fms-nodes", "mct", "torque")},
    "torque, overtaking": by_name("torque", overtaking=True),
    "fms, beside later": by_name("fms", beside="later"),
}
NO_IDLING = "no idling"
"""All jobs as asked on CPUs and GPUs, without a gap: no policy, but what could be gained at all."""


class Watched(Replay):
    """A replay that notes where each job ran."""

    def __init__(self, workload: Workload, policy: Policy) -> None:
        super().__init__(workload, policy)
        self.ran: list[Ran] = []

    def _end(self, run: Run) -> None:
        best_s = min(run.of.arrival.run_s(shape) for shape in run.job.shapes)
        where = self.cluster.names(run.places)
        times = (run.job.submit_s, run.start_s, self.now_s)
        self.ran.append(Ran(*times, run.shape, where, best_s))
        super()._end(run)


def replayed(workload: Workload, policy: Policy) -> list[Ran]:
    """Return how all jobs of a workload ran."""
    replay = Watched(workload, policy)
    for _ in replay.run():
        pass
    assert len(replay.ran) == len(workload.arrivals), policy  # noqa: S101  # each is done once
    return replay.ran


# --- one node for each job ------------------------------------------------------------------------


class Single(NamedTuple):
    """One draw of 24 jobs, and the policies that it is run under."""

    bias: Bias
    seed: int
    iterations: int
    policies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Latencies:
    """CT, ANL, AQL and MIT in seconds."""

    ct: float
    anl: float
    aql: float
    mit: float


def single(point: Single) -> dict[str, Latencies]:
    """Run one draw under its policies."""
    workload = single_node(point.bias, point.seed, pool=pool(point.iterations))
    resources = resources_of(node.name for node in workload.nodes)
    found = {}
    for name in point.policies:
        ran = replayed(workload, POLICIES[name])
        found[name] = Latencies(
            completion_s(ran),
            assignment_latency_s(ran),
            queuing_latency_s(ran),
            most_idle_s(ran, resources),
        )
    return found


# --- several nodes for each job -------------------------------------------------------------------


class Multi(NamedTuple):
    """One draw of 32 jobs, and the policies that it is run under."""

    mix: str
    seed: int
    load: float
    pagerank_s: float
    policies: tuple[str, ...]


def multi(point: Multi) -> dict[str, float]:
    """Run one draw under its policies; return each total completion time in seconds."""
    mix, seed, load, pagerank_s, policies = point
    workload = multi_node(mix, seed, load=load, pagerank_s=pagerank_s)
    found = {name: completion_s(replayed(workload, POLICIES[name])) for name in policies}
    return {**found, NO_IDLING: _no_idling_s(workload)}


def _no_idling_s(workload: Workload) -> float:
    arrivals, nodes = workload.arrivals, len(workload.nodes)
    last_s = max(one.job.submit_s + one.work_s for one in arrivals)
    return max(last_s, sum(one.work_s * one.job.shape.nodes for one in arrivals) / nodes)


def over(found: list[dict[str, float]], name: str, base: str = "fms") -> float:
    """Return the geometric mean of a policy's times over another's, draw by draw."""
    return geometric_mean(times[name] / times[base] for times in found)


def best(times: Mapping[str, float], names: tuple[str, ...]) -> float:
    """Return the least of some policies' times."""
    return min(times[name] for name in names)
