"""The first jobs of each workload come to their ends, under a policy of each kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pliant.plan import Policy
from pliant.policies.easy import EasyBackfill
from pliant.policies.equipartition import MoldableEquipartition
from pliant.policies.fitgpp import Fifo, FitGpp, Lrtp
from pliant.policies.fsched import FScheduling
from pliant.policies.malleable import MalleableEquipartition
from pliant.policies.proportional import MalleableProportional, MoldableProportional
from pliant.policies.rigid import RigidFcfs
from pliant.policies.static import StaticPartition
from pliant.simulator.replay import Replay
from pliant.simulator.traces import Record
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.chronus import chronus
from pliant.simulator.workloads.fitgpp import fitgpp
from pliant.simulator.workloads.fujiwara import fujiwara
from pliant.simulator.workloads.fujiwara_trace import GPU_MIB
from pliant.simulator.workloads.records import Machine, from_records
from pliant.simulator.workloads.seo import seo

TRACE = [Record(str(n), 7 * n, 20 + 3 * n % 11, 1 + n % 9, 1 + n % 9, 60) for n in range(24)]
PHILLY = "job_id,user,num_gpu,submit_time,model_name,duration,best_effort\n" + "\n".join(
    f"{n},u,{(0, 1, 4, 8, 12, 16)[n % 6]},{n},vgg16,{2 + n % 5},{n % 3 and 1}" for n in range(24)
)


def ends(workload: Workload, policy: Policy, most: int = 12) -> dict[str, float]:
    """Replay the first jobs; return when each ended."""
    first = replace(workload, arrivals=workload.arrivals[:most])
    return {task.id: task.end_s for task in Replay(first, policy).run()}


DIVIDING = [
    RigidFcfs(), EasyBackfill(), MoldableEquipartition(),
    MalleableEquipartition(), MoldableProportional(), MalleableProportional(), FScheduling(), StaticPartition(2),
]  # fmt: skip
PREEMPTING = [Fifo(), FitGpp(), Lrtp(), EasyBackfill()]


@pytest.mark.parametrize("policy", DIVIDING, ids=lambda policy: policy.name)
def test_jobs_to_divide_among_come_to_their_ends(policy: Policy) -> None:
    workloads = (
        from_records(TRACE, Machine(8, (1, 240), told=True), "trace"),
        from_records(TRACE, Machine(8, told=True), "rigid trace"),
        fujiwara(1, 4, tasks=100, told=True),
        seo(),
    )
    for workload in workloads:
        expected = {arrival.job.id for arrival in workload.arrivals[:12]}
        assert ends(workload, policy).keys() == expected, workload.name


@pytest.mark.parametrize("policy", [MoldableEquipartition(), MalleableEquipartition()])
def test_the_memory_of_a_gpu_is_never_lent_twice(policy: Policy) -> None:
    replay = Replay(fujiwara(2, 2, tasks=100, told=True), policy)
    cluster, shared = replay.cluster, 0
    for _ in replay.run():
        held: dict[str, list[int]] = {}
        for run in cluster.running.values():
            if run.shape.is_share and run.job.spec is not None:
                (name,) = cluster.names(run.places)
                held.setdefault(name, []).append(run.job.spec.request.gpu_mem_mib)
        assert all(sum(of) <= GPU_MIB for of in held.values()), held
        shared += any(len(of) > 1 for of in held.values())
    assert shared


@pytest.mark.parametrize("policy", PREEMPTING, ids=lambda policy: policy.name)
def test_jobs_of_two_classes_come_to_their_ends(policy: Policy, tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    path.write_text(PHILLY)
    for workload in (fitgpp(1, jobs=400, told=True), chronus(path, 2, told=True)):
        expected = {arrival.job.id for arrival in workload.arrivals[:60]}
        assert ends(workload, policy, 60).keys() == expected, workload.name


def test_a_rigid_trace_on_cpus_runs_as_on_gpus() -> None:
    machines = Machine(9), Machine(9, cpus=True)
    on_gpus, on_cpus = (
        ends(from_records(TRACE, machine, ""), RigidFcfs("own")) for machine in machines
    )
    assert on_gpus == on_cpus
