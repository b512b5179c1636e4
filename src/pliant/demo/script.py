"""The job: it reads what Slurm really gave it, looks up its speed there, and works that long."""

from __future__ import annotations

from collections.abc import Sequence

from pliant.demo.mix import SHARDS, Submission
from pliant.demo.speed import ACROSS_NODES, ON_CPU, PROGRAMS
from pliant.model import Kind, Shape

# SLURM_GPUS_ON_NODE and SLURM_SHARDS_ON_NODE come from the allocation, not from the request.
_SCRIPT = """\
#!/bin/sh
gpus=${{SLURM_GPUS_ON_NODE:-0}}
shards=${{SLURM_SHARDS_ON_NODE:-0}}
nodes=${{SLURM_JOB_NUM_NODES:-1}}
set -- $(awk -v gpus="$gpus" -v shards="$shards" -v nodes="$nodes" 'BEGIN {{
    amount = shards ? shards / {shards} : gpus * nodes
    speed = amount ? amount ^ {exponent} * (nodes > 1 ? {across} : 1) : {cpu}
    print amount, speed, {work} / speed
}}')
echo "gpus $1 speed $2 seconds $3"
sleep "$3"
"""


def script(job: Submission) -> str:
    """Return the batch script of a job, for /bin/sh and awk."""
    return _SCRIPT.format(
        shards=SHARDS,
        exponent=PROGRAMS[job.program],
        across=ACROSS_NODES,
        cpu=ON_CPU,
        work=f"{job.work:.4f}",
    )


def sbatch(job: Submission, output: str, flag: str = "--moldable=") -> Sequence[str]:
    """Return the command that submits a job, its script on standard input.

    ``flag`` is what stands before the request: ``--comment=pliant:`` needs no SPANK plugin.
    """
    asked = [f"{flag}{job.moldable}"] if job.moldable else []
    return [
        "sbatch",
        "--parsable",
        f"--job-name={job.name}",
        f"--output={output}",
        f"--time={job.limit_min}",
        *own_options(job.own),
        *asked,
    ]


def own_options(own: Shape) -> Sequence[str]:
    """Return how a user asks sbatch for a shape without Pliant."""
    if own.kind is Kind.CPU:
        return [f"--nodes={own.nodes}"]
    if own.is_share:
        return [f"--gres=shard:{SHARDS // own.share}"]
    return [f"--nodes={own.nodes}", f"--gres=gpu:{own.gpus}"]
