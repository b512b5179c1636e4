"""One round of the demonstration on the simulated cluster: the same jobs, no Slurm, no waiting.

With Pliant off the jobs are rigid and started as ``easy-backfill`` says, which is what Slurm does;
else the cycle that pliantd runs decides. Nothing takes time here but the jobs themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from pliant.batch.simulated import SimulatedCluster
from pliant.demo.live import Say
from pliant.demo.mix import GPUS, NODES, SHARDS, Submission
from pliant.demo.run import Run
from pliant.model import Abilities, Job, Node, Partition, Pool, Spec
from pliant.plan import Policy
from pliant.policies import DEFAULT, by_name

_CPUS = 16
_MEM_MIB = 32_000


def dry_round(mode: str, jobs: Sequence[Submission], say: Say) -> Sequence[Run]:
    """Run the jobs with Pliant ``off`` or with its default policy."""
    off = mode == "off"
    policy = by_name("easy-backfill" if off else DEFAULT)
    found = simulate([(job, _job(job, off)) for job in jobs], policy)
    say(f"{len(found)} jobs have ended")
    return found


def simulate(jobs: Sequence[tuple[Submission, Job]], policy: Policy) -> Sequence[Run]:
    """Let the jobs arrive, each at its time, and run to their ends; return how they ran."""
    cluster = _cluster()
    for submission, job in jobs:
        _advance(cluster, policy, submission.at_s)
        cluster.submit(job, submission.run_s)
        cluster.settle(policy)
    ended = {run.id: run for run in cluster.run(policy)}
    return [
        Run(
            job=submission,
            shape=(run := ended[submission.name]).shape,
            nodes=run.nodes,
            submit_s=run.submit_s,
            start_s=run.start_s,
            end_s=run.end_s,
        )
        for submission, _ in jobs
    ]


def _advance(cluster: SimulatedCluster, policy: Policy, to_s: float) -> None:
    while (end_s := cluster.next_end_s) is not None and end_s <= to_s:
        cluster.advance(end_s)
        cluster.settle(policy)
    cluster.advance(to_s)


def _cluster() -> SimulatedCluster:
    pool = Pool("a100", total=GPUS, free=GPUS, shards_per_gpu=SHARDS)
    names = tuple(f"n{number + 1}" for number in range(NODES))
    return SimulatedCluster(
        nodes=tuple(Node(name, _CPUS, _CPUS, _MEM_MIB, _MEM_MIB, (pool,)) for name in names),
        partitions=(Partition("gpu", names, default=True),),
        abilities=Abilities(gpu_to_cpu=True),
    )


def _job(job: Submission, rigid: bool) -> Job:
    """Return a job as the cluster sees it; one that says nothing to Pliant has no token."""
    spec = Spec(job.request, own=job.own) if job.moldable and not rigid else None
    return Job(
        id=job.name,
        user=job.user,
        partitions=("gpu",),
        shape=job.own,
        shapes=job.shapes if spec else (job.own,),
        spec=spec,
        time_limit_s=60 * job.limit_min,
    )
