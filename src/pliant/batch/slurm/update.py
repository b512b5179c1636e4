"""What ``scontrol update`` is told so that a waiting job asks for another shape, and no more.

Measured on 22.05.8, 24.11.5 and 26.05.5; each line is a trap:

- One form is changed rightly by every release: GRES per node with one number of nodes, tasks and
  CPUs, all in one call. ``Gres=`` comes first: on a job that has started meanwhile it is refused
  before anything else is applied.
- ``MinCPUsNode`` keeps 3 + 3 tasks from becoming 5 + 1, and must go down again with the CPUs.
- A GPU that is to go does not go by ``Gres=gpu:0``: 22.05 wants ``TresPerNode=`` empty, later
  releases another GRES in its place. A second type of GPU is added beside the first, unless
  the list was emptied before.
- ``--gpus=N`` becomes the per-node form by ``TresPerJob=`` in the same call.
- Arrays: ``J_[5,7-9]``, exactly the waiting tasks, changes their one record and splits nothing;
  scontrol refuses NumNodes there. A comma outside the brackets would mean another job.
"""

from __future__ import annotations

from dataclasses import replace

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.gres import GPU, NO_GPU, SHARD, gres_list
from pliant.batch.slurm.job_rows import JobRow, count
from pliant.batch.slurm.request import Asked
from pliant.batch.slurm.values import NOTHING
from pliant.errors import Refused
from pliant.grammar import put_token
from pliant.model import Job, Kind, Shape, Spec

Words = tuple[str, ...]
"""The arguments of one ``scontrol update``, without the job."""

GUARD_S = 5
"""How long a job may not start between two calls of which the first leaves it without GPUs."""


def job_words(row: JobRow) -> str:
    """Return how scontrol names exactly this record: ``11``, ``27_4``, ``27_[5,7-9]``."""
    if not row.is_array_record:
        return row.job_id
    tasks = row.array_tasks.partition("%")[0]
    return f"{row.array_id}_{tasks}" if row.is_last_task else f"{row.array_id}_[{tasks}]"


def wanted(job: Job, shape: Shape, spec: Spec, cluster: Cluster) -> Asked:
    """Return what the job asks for on each node once it carries ``shape``."""
    demand = job.footprint.demand(shape, spec.request.cores)
    cpus = cluster.cores(job.partitions, demand)
    shards = 0
    if shape.is_share:
        per_gpu = cluster.shards(job.partitions, shape.gpu_type)
        if not per_gpu or per_gpu % shape.share:
            raise Refused(f"1/{shape.share} is no whole number of shards of one GPU here")
        shards = per_gpu // shape.share
    gpus = 0 if shape.is_share or shape.kind is Kind.CPU else shape.gpus
    per_task = max(1, cpus // demand.tasks)
    gpu_type = shape.gpu_type if shape.kind is not Kind.CPU else ""
    return Asked(
        shape.nodes,
        gpu_type,
        gpus,
        shards,
        demand.tasks,
        cpus,
        per_task,
        demand.mem_mib,
        job.footprint.mem_per_cpu_mib > 0,
    )


def steps(row: JobRow, now: Asked, then: Asked, spec: Spec, cluster: Cluster) -> list[Words]:
    """Return the calls, mostly one, that change a job from what it asks to what it shall ask."""
    sizes = _sizes(row, now, then, spec)
    token = (f"AdminComment={put_token(_text(row.admin_comment), spec)}",)
    gres = _gres_words(row, then, cluster)
    if not _must_empty_first(row, now, then, cluster):
        return [(*gres, *sizes, *token)]
    if not now.gpus and not now.shards:  # from the dummy GRES: without it a CPU job as before
        return [("TresPerNode=",), (*gres, *sizes, *token)]
    return [
        ("TresPerNode=", f"StartTime=now+{GUARD_S}"),
        (*gres, *sizes, "StartTime=now", *token),
    ]


def token_step(row: JobRow, spec: Spec) -> Words:
    """Return the call that notes ``spec`` and changes nothing else."""
    return (f"AdminComment={put_token(_text(row.admin_comment), spec)}",)


def restoring(row: JobRow, now: Asked, cluster: Cluster) -> list[Words]:
    """Return the calls that bring a half changed job back to what was observed."""
    sizes = [
        f"NumTasks={row.num_tasks}",
        f"NumCPUs={row.num_cpus}",
        f"CPUsPerTask={now.cpus_per_task}",
        f"MinCPUsNode={max(1, count(row.min_cpus))}",
        f"AdminComment={_text(row.admin_comment)}",
    ]
    if not row.is_array_record or row.is_last_task:
        sizes.insert(0, f"NumNodes={now.nodes}-{now.nodes}")
    if now.mem_mib and not now.per_cpu and row.min_memory not in ("0", "N/A"):
        sizes.append(f"MinMemoryNode={now.mem_mib}")
    return [(*_gres_words(row, now, cluster), *sizes)]


def _text(text: str) -> str:
    return "" if text in NOTHING else text


def _gres_words(row: JobRow, then: Asked, cluster: Cluster) -> Words:
    kind = f"{then.gpu_type}:" if then.gpu_type else ""
    from_total = ("TresPerJob=",) if gres_list(row.tres_per_job) else ()
    if then.shards:
        return (*from_total, f"Gres=shard:{kind}{then.shards}")
    if then.gpus:
        return (*from_total, f"Gres=gpu:{kind}{then.gpus}")
    return (*from_total, "TresPerNode=" if cluster.empties else f"Gres={NO_GPU}:1")


def _must_empty_first(row: JobRow, now: Asked, then: Asked, cluster: Cluster) -> bool:
    if not cluster.empties or not (then.gpus or then.shards):
        return False
    names = {gres.name for gres in gres_list(row.tres_per_node)}
    if NO_GPU in names:
        return True
    return bool(names & {GPU, SHARD}) and now.gpu_type != then.gpu_type


def _sizes(row: JobRow, now: Asked, then: Asked, spec: Spec) -> Words:
    words = []
    if not row.is_array_record or row.is_last_task:
        words.append(f"NumNodes={then.nodes}-{then.nodes}")
    elif then.nodes != now.nodes:
        raise Refused(
            "Slurm changes the nodes of an array only task by task, which Pliant does not"
        )
    words += [
        f"NumTasks={then.nodes * then.tasks}",
        f"NumCPUs={then.nodes * then.cpus}",
        f"CPUsPerTask={then.cpus_per_task}",
        f"MinCPUsNode={then.cpus}",
    ]
    footprint = spec.footprint
    owner_said = footprint and (footprint.mem_per_node_mib or footprint.mem_per_gpu_mib)
    if owner_said and then.mem_mib:
        words.append(f"MinMemoryNode={then.mem_mib}")
    return tuple(words)


_TOLD = {
    "nodes": "nodes",
    "gpu_type": "GPU type",
    "gpus": "GPUs a node",
    "shards": "shards",
    "tasks": "tasks a node",
    "cpus": "CPUs a node",
}
"""What is read back, and how it is called."""


def shortfall(found: Asked, then: Asked) -> str:
    """Return what a job read back does not ask as it should, in words; "" where all is right."""
    wrong = [
        f"{words}: {getattr(found, name)!r} instead of {getattr(then, name)!r}"
        for name, words in _TOLD.items()
        if getattr(found, name) != getattr(then, name)
    ]
    return "; ".join(wrong) or found.odd


def by_another(found: Asked, before: Asked, then: Asked) -> bool:
    """Whether something read back is neither as it was nor as we asked: someone else asked it."""
    return any(
        getattr(found, name) not in (getattr(before, name), getattr(then, name)) for name in _TOLD
    )


def as_started(found: Asked, then: Asked) -> bool:
    """Whether a job that started meanwhile did so as the shape it was to have."""
    return (found.nodes, found.gpus, found.shards) == (then.nodes, then.gpus, then.shards)


def unchanged(before: JobRow, after: JobRow) -> bool:
    """Whether nothing that an owner or a tool could have changed differs between two looks."""
    fresh = replace(
        after,
        **{name: getattr(before, name) for name in _MOVES},
    )
    return fresh == before


_MOVES = (
    *("priority", "start", "end", "reason", "eligible", "num_nodes", "max_nodes", "restarts"),
    *("dependency", "nodes_excluded", "array_tasks", "tres", "comment"),
)
"""What Slurm itself changes on a waiting job, or what Pliant does not mind."""
