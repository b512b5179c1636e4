"""Which submissions must keep the shape that their owner wrote, and what their partition adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pliant.filter.constraint import features_all, features_any
from pliant.filter.fields import Fixed, number
from pliant.filter.inventory import Inventory
from pliant.model import Demand

_APART: Final = (2, 3, 4)
"""``shared`` of --exclusive=user, mcs and topo (slurm.h, JOB_SHARED_*)."""


def check_movable(submission: Mapping[str, str], inventory: Inventory) -> None:
    """Raise Fixed where the shape must stay whatever it is.

    What a waiting job is left alone for (see batch.slurm.requested) must be left alone here too:
    a shape that no cycle may change back is not for the filter to choose.
    """
    if number(submission, "het_job_offset") is not None:
        raise Fixed("a component of a heterogeneous job keeps its shape")
    if number(submission, "shared") == 0:
        raise Fixed("--exclusive: a job that has its nodes alone keeps its shape")
    if number(submission, "shared") in _APART:
        raise Fixed("--exclusive=user, mcs or topo: a job so kept apart keeps its shape")
    if any(p.alone for p in inventory.partitions(submission.get("partition", ""))):
        raise Fixed("its partition lets no others on a job's nodes: the shape stays")
    if number(submission, "min_mem_per_node") == 0:
        raise Fixed("--mem=0: a job that takes all of its nodes' memory keeps its shape")
    if number(submission, "contiguous"):
        raise Fixed("--contiguous: a job of neighbouring nodes keeps its shape")
    if number(submission, "reboot"):
        raise Fixed("--reboot: a job that waits for nodes to boot keeps its shape")
    _check_constraint(submission.get("features", ""))
    _check_layout(submission, inventory)
    if submission.get("reservation"):
        raise Fixed("--reservation: a job in a reservation keeps its shape")
    if inventory.abilities.federated or submission.get("clusters", "").count(","):
        raise Fixed("--clusters or a federation: a job of several clusters keeps its shape")
    if submission.get("batch") == "0":
        raise Fixed("only jobs of sbatch can change their shape")
    if (number(submission, "pn_min_cpus") or 0) > (number(submission, "cpus_per_task") or 1):
        # sbatch itself sets it to --cpus-per-task
        raise Fixed("--mincpus: say -c or --cpus-per-gpu instead to let the shape change")
    if submission.get("tres_per_socket"):
        raise Fixed("--gpus-per-socket: ask per node (--gres=gpu:N) to let the shape change")


def _check_constraint(features: str) -> None:
    if features_all(features) is None and features_any(features) is None:
        raise Fixed("--constraint: more than a list of features keeps the shape")


_LAYOUT: Final = {
    "ntasks_per_socket": "--ntasks-per-socket",
    "ntasks_per_core": "--ntasks-per-core",
    "sockets_per_node": "--sockets-per-node",
    "cores_per_socket": "--cores-per-socket",
    "threads_per_core": "--threads-per-core or --hint",
    "core_spec": "--core-spec or --thread-spec",
    "pn_min_tmp_disk": "--tmp",
}
"""What a node must be like, of which nothing more is known here than that it was asked for."""


def _check_layout(submission: Mapping[str, str], inventory: Inventory) -> None:
    for name, option in _LAYOUT.items():
        if number(submission, name):
            raise Fixed(f"{option}: a job that asks for more of a node than CPUs keeps its shape")
    cpus = number(submission, "cpus_per_task") or 1
    threads = inventory.threads(submission.get("partition", ""))
    if cpus > 1 and any(cpus % of_core for of_core in threads):
        # Slurm gives a task whole cores: on one node such tasks may need more than there seem to be
        raise Fixed(f"-c {cpus} is no whole number of cores here: the shape stays")


def check_memory(submission: Mapping[str, str], inventory: Inventory, demand: Demand) -> None:
    """Raise Fixed where the own request is beyond a limit of memory.

    Slurm gives such a job more CPUs, or lets it wait, by rules of its own.
    """
    if any(p.exceeds_memory(demand) for p in inventory.partitions(submission.get("partition", ""))):
        raise Fixed(
            "it asks for more memory than MaxMemPerCPU or MaxMemPerNode allows here:"
            " the shape stays"
        )


def defaults_per_gpu(submission: Mapping[str, str], inventory: Inventory) -> tuple[int, int]:
    """Return the CPUs and the MiB that Slurm adds for each GPU: DefCpuPerGPU, DefMemPerGPU.

    Measured on 22.05: the CPUs where neither -c nor --cpus-per-gpu is said, even as -c1; the memory
    where none is said in any way; both for whole GPUs alone. With --ntasks-per-gpu the CPUs are
    noted and not given.

    Raises Fixed where it cannot be known which count.
    """
    adds_cpus = number(submission, "cpus_per_task") is None and not submission.get("cpus_per_tres")
    said = [number(submission, name) for name in ("min_mem_per_node", "min_mem_per_cpu")]
    adds_mem = said == [None, None] and not submission.get("mem_per_tres")
    found = {
        (p.cpus_per_gpu if adds_cpus else 0, p.mem_per_gpu_mib if adds_mem else 0)
        for p in inventory.partitions(submission.get("partition", ""))
    }
    if len(found) > 1:
        raise Fixed("its partitions give a GPU different CPUs or memory: the shape stays")
    cpus, mem_mib = found.pop() if found else (0, 0)
    if cpus and number(submission, "ntasks_per_tres"):
        raise Fixed("--ntasks-per-gpu where the partition has DefCpuPerGPU: say -c beside it")
    return cpus, mem_mib


def default_memory(submission: Mapping[str, str], inventory: Inventory) -> tuple[int, int]:
    """Return the MiB that Slurm gives by node and by CPU where the job says nothing of memory.

    The most of its partitions: it must fit in each.
    """
    names = ("min_mem_per_node", "min_mem_per_cpu")
    if any(number(submission, name) is not None for name in names) or submission.get(
        "mem_per_tres"
    ):
        return (0, 0)
    known = inventory.partitions(submission.get("partition", ""))
    of_cpus = [p for p in known if not p.mem_per_gpu_mib]
    return (
        max((p.mem_per_node_mib for p in of_cpus), default=0),
        max((p.mem_per_cpu_mib for p in of_cpus), default=0),
    )


def least_nodes(submission: Mapping[str, str], inventory: Inventory) -> int:
    """Return the nodes that Slurm gives at least: MinNodes; 0 where one is enough.

    Raises Fixed where it depends on the partition.
    """
    known = inventory.partitions(submission.get("partition", ""))
    found = {max(1, partition.min_nodes) for partition in known}
    if len(found) > 1 and not number(submission, "min_nodes"):
        raise Fixed("its partitions give different numbers of nodes (MinNodes): say -N")
    least = min(found, default=1)
    return least if least > 1 else 0
