"""One round of the demonstration on the simulated cluster: the same jobs, no Slurm, no waiting.

With Pliant off the jobs are rigid and started as ``easy-backfill`` says, which is what Slurm does;
else the cycle that pliantd runs decides. Nothing takes time here but the jobs themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pliant.demo.live import Say
from pliant.demo.mix import GPUS, NODES, SHARDS, Submission
from pliant.demo.run import Run
from pliant.model import Job, Node, Partition, Pool, Shape, Spec
from pliant.plan import Policy
from pliant.policies import DEFAULT, by_name
from pliant.simulator.cluster import Cluster
from pliant.simulator.replay import Replay
from pliant.simulator.workload import Arrival, Workload

_CPUS = 16
_MEM_MIB = 32_000
_POOL = Pool("a100", total=GPUS, free=GPUS, shards_per_gpu=SHARDS)
_NAMES = tuple(f"n{number + 1}" for number in range(NODES))
_NODES = tuple(Node(name, _CPUS, _CPUS, _MEM_MIB, _MEM_MIB, (_POOL,)) for name in _NAMES)
_PARTITIONS = (Partition("gpu", _NAMES, default=True),)


def dry_round(mode: str, jobs: Sequence[Submission], say: Say) -> Sequence[Run]:
    """Run the jobs with Pliant ``off`` or with its default policy."""
    off = mode == "off"
    policy = by_name("easy-backfill" if off else DEFAULT)
    found = simulate([(job, _job(job, off)) for job in jobs], policy)
    say(f"{len(found)} jobs have ended")
    return found


def simulate(jobs: Sequence[tuple[Submission, Job]], policy: Policy) -> Sequence[Run]:
    """Let the jobs arrive, each at its time, and run to their ends; return how they ran."""
    arrivals = tuple(_arrival(submission, job) for submission, job in jobs)
    ran: dict[str, tuple[Shape, tuple[str, ...]]] = {}

    def watch(_: float, cluster: Cluster) -> None:
        for run in cluster.running.values():
            ran[run.job.id] = (run.shape, cluster.names(run.places))

    replay = Replay(Workload("demonstration", _NODES, _PARTITIONS, arrivals), policy, watch)
    ended = {task.id: task for task in replay.run()}
    return [
        Run(
            job=submission,
            shape=ran[submission.name][0],
            nodes=ran[submission.name][1],
            submit_s=(task := ended[submission.name]).submit_s,
            start_s=task.start_s,
            end_s=task.end_s,
        )
        for submission, _ in jobs
    ]


def _arrival(submission: Submission, job: Job) -> Arrival:
    own_s = submission.run_s(submission.own)

    def speed(shape: Shape) -> float:
        return own_s / submission.run_s(shape)

    return Arrival(replace(job, submit_s=submission.at_s), own_s, speed)


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
