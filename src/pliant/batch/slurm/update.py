"""What ``scontrol update`` is told so that a waiting job asks for another shape, and no more.

Measured on 22.05.8, 24.11.5 and 26.05.5; each line is a trap:

- One form is changed rightly by every release: GRES per node with one number of nodes, tasks and
  CPUs, all in one call. ``Gres=`` comes first: on a job that has started meanwhile it is refused
  before anything else is applied.
- ``MinCPUsNode`` keeps 3 + 3 tasks from becoming 5 + 1, and must go down again with the CPUs. From
  24.11 on, beside ``Gres=`` and a number of CPUs that stays, it becomes that number, times the
  nodes: fewer than the tasks need, and the job never starts. So where it was less than the CPUs
  it is given back in a second call (see lent.py).
- GPUs are not taken from a waiting job of 22.05: ``Gres=gpu:0`` leaves them, an empty
  ``TresPerNode=`` takes them, but then the job starts only on a node with a free GPU. Later
  releases want the dummy GRES in their place.
- One type of GPU does not become another: 22.05 adds it beside the first.
- ``--gpus=N`` becomes the per-node form by ``TresPerJob=`` in the same call, ``--cpus-per-gpu`` by
  ``CpusPerTres=``. What ``--mem-per-gpu`` asks follows the GPUs by itself, and is left alone: its
  SLURM_MEM_PER_GPU in the job's environment lets srun refuse memory per node.
- scontrol calls ``--ntasks-per-node`` TasksPerNode, which cannot be taken away; it refuses
  NtasksPerNode.
- ``--gpus-per-task`` becomes the per-node form by ``TresPerTask=`` from 24.11 on; 22.05 refuses
  that, but takes a total in its place (``TresPerTask= TresPerJob=gres:gpu:N``).
- Arrays: ``J_[5,7-9]``, exactly the waiting tasks, changes their one record and splits nothing;
  scontrol refuses NumNodes there. A comma outside the brackets would mean another job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.gres import GPU, NO_GPU, gres_list
from pliant.batch.slurm.job_rows import JobRow, count
from pliant.batch.slurm.request import Asked, only_in_total
from pliant.batch.slurm.requested import CHANGED
from pliant.batch.slurm.values import NOTHING
from pliant.errors import Refused
from pliant.grammar import MAX_NODES, MIN_CPUS, find_token, note, noted, put_token
from pliant.model import Job, Kind, Shape, Spec

Words = tuple[str, ...]
"""The arguments of one ``scontrol update``, without the job."""


def job_words(row: JobRow) -> str:
    """Return how scontrol names exactly this record: ``11``, ``27_4``, ``27_[5,7-9]``.

    A task may have the number of its array, by which scontrol means all its tasks.
    """
    if not row.is_array_record:
        return row.key
    return f"{row.array_id}_{row.tasks if row.is_last_task else f'[{row.tasks}]'}"


def wanted(job: Job, shape: Shape, spec: Spec, cluster: Cluster) -> Asked:
    """Return what the job asks for on each node once it carries ``shape``."""
    demand = job.footprint.demand(shape, spec.request.cores)
    cpus = cluster.cores(job.partitions, demand)
    shards = 0
    if shape.kind is Kind.CPU and not cluster.abilities.gpu_to_cpu:
        raise Refused("here a waiting job cannot give up its GPUs")
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


def update_words(row: JobRow, now: Asked, then: Asked, spec: Spec) -> Words:
    """Return the one call that changes a job from what it asks to what it shall ask.

    Raises Refused where there is none.
    """
    written = _as_written(row, now, then, spec)
    sizes = _sizes(row, now, then, spec, written)
    token = f"AdminComment={put_token(written.comment, spec)}"
    return (*_gres_words(row, then), *sizes, token)


def token_words(row: JobRow, spec: Spec) -> Words:
    """Return the call that notes ``spec`` and changes nothing else."""
    return (f"AdminComment={put_token(_text(row.admin_comment), spec)}",)


def check_accounts(now: Job, then: Job) -> None:
    """Check that what a job carries stays accounted for by a token that another is to replace.

    ``now`` and ``then``: the job as it is read with the one and with the other. The cores of a form
    (``cores=``) are not changed while it waits in that form: the call would name no GRES, and could
    shrink the job if it started meanwhile. Raises Refused.
    """
    if then.frozen.startswith(CHANGED) and not now.frozen:
        told = then.frozen.removeprefix(CHANGED)
        raise Refused(
            f"job {now.id}: it waits with {told}, which Pliant does not"
            " change in the shape that it waits as; change it with `scontrol update` first"
            " (NumCPUs=, CPUsPerTask=, MinCPUsNode=)"
        )


@dataclass(frozen=True, slots=True)
class _Written:
    """What its owner's own form says beyond a shape, and the comment that notes it for later.

    ``min_cpus``: of each node; ``max_nodes``: on how many it may be. A shape on one node needs all
    its CPUs there; its owner may have left to Slurm to spread the tasks over more.
    """

    min_cpus: int
    max_nodes: int
    comment: str


def _as_written(row: JobRow, now: Asked, then: Asked, spec: Spec) -> _Written:
    """Return what to say for a shape; for the own one what was written is said again."""
    comment, said = _text(row.admin_comment), find_token(row.admin_comment)
    keys = (MIN_CPUS, MAX_NODES)
    if spec.set in (None, spec.own):
        min_cpus, max_nodes = (noted(comment, key) for key in keys)
        comment = note(comment, MAX_NODES, 0)
        if not 0 < min_cpus < then.cpus:
            comment = note(comment, MIN_CPUS, 0)
        return _Written(max(min_cpus, then.cpus), max(max_nodes, then.nodes), comment)
    if said is None or said.set in (None, said.own):  # it still says what was written
        min_cpus = noted(comment, MIN_CPUS) or max(1, count(row.min_cpus))
        max_nodes = count(row.max_nodes) if row.max_nodes != row.num_nodes else 0  # else a guess
        comment = note(comment, MIN_CPUS, min_cpus if min_cpus != now.cpus else 0)
        comment = note(comment, MAX_NODES, max_nodes if max_nodes > now.nodes else 0)
    return _Written(then.cpus, then.nodes, comment)


def restoring(row: JobRow, now: Asked) -> Words:
    """Return the call that brings a half changed job back to what was observed."""
    sizes = [
        f"NumTasks={row.num_tasks}",
        f"NumCPUs={now.nodes * now.cpus if now.cpus_per_gpu else row.num_cpus}",
        f"CPUsPerTask={now.cpus_per_task}",
        f"MinCPUsNode={now.cpus if now.cpus_per_gpu else max(1, count(row.min_cpus))}",
        *_tasks_words(row, count(row.tasks_per_node)),
        f"AdminComment={_text(row.admin_comment)}",
    ]
    if not row.is_array_record or row.is_last_task:
        sizes.insert(0, f"NumNodes={now.nodes}-{max(now.nodes, count(row.max_nodes))}")
    told = row.min_memory not in ("0", "N/A") and not _follows_gpus(row, now)
    if now.mem_mib and not now.per_cpu and told:
        sizes.append(f"MinMemoryNode={now.mem_mib}")
    takes_back = not (now.gpus or now.shards) and NO_GPU not in row.tres_per_node
    return (*(("TresPerNode=",) if takes_back else _gres_words(row, now)), *sizes)


def _text(text: str) -> str:
    return "" if text in NOTHING else text


def _gres_words(row: JobRow, then: Asked) -> Words:
    away = tuple(f"{key}=" for key, text in _asked_by(row) if _names_gpus(text))
    kind = f"{then.gpu_type}:" if then.gpu_type else ""
    if then.shards:
        return (*away, f"Gres=shard:{kind}{then.shards}")
    if then.gpus and only_in_total(row):
        return (*away, f"TresPerJob=gres:gpu:{kind}{then.nodes * then.gpus}")
    if then.gpus:
        return (*away, f"Gres=gpu:{kind}{then.gpus}")
    return (*away, f"Gres={NO_GPU}:1")


def _asked_by(row: JobRow) -> Sequence[tuple[str, str]]:
    """What GPUs, and CPUs for each, are asked by beside ``Gres=``; as scontrol names it."""
    return (
        ("TresPerJob", row.tres_per_job),
        ("TresPerTask", row.tres_per_task),  # from 24.11 on it has the CPUs of a task, too
        ("CpusPerTres", row.cpus_per_tres),
    )


def _names_gpus(text: str) -> bool:
    return any(gres.name == GPU for gres in gres_list(text))


def _tasks_words(row: JobRow, tasks: int) -> Words:
    """``--ntasks-per-node``, where the job has it."""
    return (f"TasksPerNode={tasks}",) if count(row.tasks_per_node) else ()


def _sizes(row: JobRow, now: Asked, then: Asked, spec: Spec, written: _Written) -> Words:
    """A number of nodes that is left open cannot be said again: what stays is not said.

    Where nobody said how many they may be, squeue tells its own guess, by MinCPUsNode for one.
    """
    words = []
    if not row.is_array_record or row.is_last_task:
        in_total = only_in_total(row)  # which Slurm may spread
        was_open = any(
            noted(text, MAX_NODES) for text in (_text(row.admin_comment), written.comment)
        )
        if in_total or was_open or then.nodes != now.nodes:
            words.append(f"NumNodes={then.nodes}-{written.max_nodes}")
    elif then.nodes != now.nodes:
        raise Refused(
            "Slurm changes the nodes of an array only task by task, which Pliant does not"
        )
    tasks = then.nodes * then.tasks
    # A number of tasks that is said gives --gres-flags=enforce-binding all CPUs of a node (22.05);
    # where --cpus-per-gpu is taken away, one that is not said becomes more, with CPUs for each.
    is_said = tasks != count(row.num_tasks) or now.cpus_per_gpu
    words += [
        *([f"NumTasks={tasks}"] if is_said else []),
        f"NumCPUs={then.nodes * then.cpus}",
        f"CPUsPerTask={then.cpus_per_task}",
        f"MinCPUsNode={written.min_cpus}",
        *_tasks_words(row, then.tasks),
    ]
    footprint = spec.footprint
    owner_said = footprint and (footprint.mem_per_node_mib or footprint.mem_per_gpu_mib)
    if owner_said and then.mem_mib and not _follows_gpus(row, now):
        words.append(f"MinMemoryNode={then.mem_mib}")
    return tuple(words)


def _follows_gpus(row: JobRow, now: Asked) -> bool:
    """Whether its owner asked for memory by the GPU; a partition's default is without ``gres``."""
    return now.mem_per_gpu_mib > 0 and row.mem_per_tres.startswith("gres")


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


def by_another(found: Asked, forms: Sequence[Asked]) -> bool:
    """Whether something read back is as in none of the forms it may have: someone else asked it."""
    return any(all(getattr(found, name) != getattr(form, name) for form in forms) for name in _TOLD)


def as_started(found: Asked, then: Asked) -> bool:
    """Whether a job that started meanwhile did so as the shape it was to have."""
    return (found.nodes, found.gpus, found.shards) == (then.nodes, then.gpus, then.shards)


def unchanged(before: JobRow, after: JobRow) -> bool:
    """Whether nothing that an owner or a tool could have changed differs between two looks.

    While 22.05 tries to start a job with --mem-per-gpu, the job has a least memory of 0.
    """
    tried = before.mem_per_tres not in NOTHING and "0" in (before.min_memory, after.min_memory)
    moves = (*_MOVES, "min_memory") if tried else _MOVES
    return replace(after, **{name: getattr(before, name) for name in moves}) == before


_MOVES = (
    *("priority", "start", "end", "reason", "eligible", "num_nodes", "max_nodes", "restarts"),
    *("nodes_expected", "dependency", "nodes_excluded", "array_tasks", "tres", "comment"),
    "name",
)
"""What Slurm itself changes on a waiting job, or what Pliant does not mind."""
