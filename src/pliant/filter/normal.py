"""A shape as fields of a submission, in the per-node form that every release changes correctly.

GRES per node, one number of nodes, tasks and CPUs in numbers; what was asked per GPU, per task or
in total is written out. ``gres`` is the field to set: Slurm puts the prefix of its release before
it. Only fields that differ from what was submitted are named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.filter.fields import NO_VAL16, number, read_gres
from pliant.filter.inventory import Inventory
from pliant.model import ALL_CORES, Demand, Kind, Shape

NO_GPU = "nogpu:1"
"""The dummy GRES of sites where a waiting job can give up its GPUs."""


@dataclass(frozen=True, slots=True)
class Form:
    """A shape and what it takes on each node.

    ``wants_gpu``: another shape of the job has GPUs. ``tasks_follow``, ``mem_follows``:
    its tasks and its memory follow the GPUs. ``is_open``: the batch system goes on choosing the
    number of nodes, as the owner wrote it.
    """

    shape: Shape
    demand: Demand
    wants_gpu: bool
    tasks_follow: bool
    mem_follows: bool
    is_open: bool = False


def normal_fields(
    submission: Mapping[str, str], form: Form, inventory: Inventory
) -> dict[str, str]:
    """Return the fields that make a submission carry a form."""
    shape, demand = form.shape, form.demand
    names = submission.get("partition", "")
    cpus = inventory.all_cores(names, demand) if demand.cpus == ALL_CORES else demand.cpus
    changes = _gres(submission, form, inventory) | _cleared(submission, cpus // demand.tasks)
    numbers = {
        **({} if form.is_open else {"min_nodes": shape.nodes, "max_nodes": shape.nodes}),
        "min_cpus": shape.nodes * cpus,
        **_tasks(submission, form),
        **_cpus(submission, shape, demand, cpus),
        **_cpus_said(submission, demand, cpus, inventory),
    }
    if form.mem_follows and demand.mem_mib:  # 0 would be all of a node's
        numbers["min_mem_per_node"] = demand.mem_mib
    changes |= {
        name: str(value) for name, value in numbers.items() if number(submission, name) != value
    }
    return changes


def _gres(submission: Mapping[str, str], form: Form, inventory: Inventory) -> dict[str, str]:
    """The GRES, unless it stands there in the same form."""
    shape = form.shape
    kind = f"{shape.gpu_type}:" if shape.gpu_type else ""
    if shape.kind is Kind.CPU:
        wanted = NO_GPU if form.wants_gpu and inventory.abilities.gpu_to_cpu else ""
    elif shape.is_share:
        shards = inventory.shards(submission.get("partition", ""), shape.gpu_type)
        wanted = f"shard:{kind}{shards // shape.share}"
    else:
        wanted = f"gpu:{kind}{shape.gpus}"
    if read_gres(submission.get("tres_per_node", "")) == read_gres(wanted):
        return {}
    return {"gres": wanted} if wanted else {"tres_per_node": ""}


def _cleared(submission: Mapping[str, str], cpus_per_task: int) -> dict[str, str]:
    """What is now said per node must not stand beside it in another way."""
    changes = {
        name: ""
        for name in ("tres_per_job", "cpus_per_tres", "mem_per_tres")
        if submission.get(name)
    }
    per_task = submission.get("tres_per_task", "")
    if per_task:  # 23.11 and later keep --cpus-per-task here too
        kept = [f"cpu={cpus_per_task}" for gres in read_gres(per_task) if gres.name == "cpu"]
        if ",".join(kept) != per_task:
            changes["tres_per_task"] = ",".join(kept)
    return changes


def _tasks(submission: Mapping[str, str], form: Form) -> dict[str, int]:
    """The tasks; a job that named none keeps Slurm's own default, one on each node."""
    tasks = form.shape.nodes * form.demand.tasks
    changes: dict[str, int] = {}
    if tasks > form.shape.nodes or number(submission, "num_tasks") is not None:
        changes["num_tasks"] = tasks
    if number(submission, "ntasks_per_tres"):
        changes["ntasks_per_tres"] = NO_VAL16
    if form.tasks_follow and number(submission, "ntasks_per_node"):
        changes["ntasks_per_node"] = NO_VAL16  # it could not be changed later
    return changes


def _cpus_said(
    submission: Mapping[str, str], demand: Demand, cpus: int, inventory: Inventory
) -> dict[str, int]:
    """CPUs of a task, even where it is one: else DefCpuPerGPU would count beside them."""
    known = inventory.partitions(submission.get("partition", ""))
    if not any(partition.cpus_per_gpu for partition in known):
        return {}
    return {"cpus_per_task": _per_task(demand, cpus)}


def _per_task(demand: Demand, cpus: int) -> int:
    return cpus // demand.tasks if cpus % demand.tasks == 0 else 1


def _cpus(submission: Mapping[str, str], shape: Shape, demand: Demand, cpus: int) -> dict[str, int]:
    changes: dict[str, int] = {}
    per_task = _per_task(demand, cpus)
    if per_task != (number(submission, "cpus_per_task") or 1):
        changes["cpus_per_task"] = per_task
    # Else 5 + 1 tasks instead of 3 + 3; and sbatch itself sets it to --cpus-per-task.
    if (shape.nodes > 1 and demand.tasks > 1) or (number(submission, "pn_min_cpus") or 0) > cpus:
        changes["pn_min_cpus"] = cpus
    return changes
