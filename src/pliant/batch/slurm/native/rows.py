"""pyslurm's jobs as squeue prints them, field by field, so that one reader takes both.

pyslurm 25.11 tells less than squeue:

- What a job asks in total, for each task or each socket it cannot read ("gres/gpu:2" has no "=").
  Its TRES give it away where the site's accounting counts GPUs; such a job is left to squeue.
- What it asks for each GPU is hidden behind others; task 0 of an array is shown as no task.
- A count of 0 is shown as none, and UNLIMITED as not set.
"""

from __future__ import annotations

import pwd
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pliant.batch.slurm.gres import GPU

NONE, NULL = "N/A", "(null)"
"""What squeue prints where there is no value: of a number, of a text."""


def fields(job: Any) -> list[str] | None:
    """Return the fields of JobRow, in its order; None where something is asked that is hidden."""
    tres = job.allocated_tres or job.requested_tres
    gres = job.gres_per_node
    if _hides(job, tres, gres):
        return None
    mem_mib = job.memory_per_cpu or job.memory_per_node or 0
    return [
        str(job.id),
        str(job.array_id or job.id),
        job.state,
        str(job.priority or 0),
        _word(job.submit_time),
        _word(job.eligible_time),
        _word(job.start_time),
        _word(job.end_time),
        _duration(job.time_limit) or "UNLIMITED",
        _duration(job.time_limit_min) or "0:00",
        str(job.num_nodes or 0),
        str(job.max_nodes or job.num_nodes or 0),
        str(job.ntasks),
        str(job.cpus),
        _word(job.cpus_per_task),
        str(job.ntasks_per_node or 0),
        str(job.min_cpus_per_node or 0),
        _mebibytes(mem_mib),
        job.resource_sharing,
        str(job.heterogeneous_id or NONE),
        str(job.requeue_count),
        "1" if job.requires_contiguous_nodes else "0",
        "1" if job.is_batch_job else "0",
        "1" if job.is_requeueable else "0",
        _word(job.deadline),
        _tasks(job),
        job.state_reason or "None",
        job.federation_origin or "NA",
        user_of(job.user_id),
        job.account or "",
        job.qos or "",
        job.partition or "",
        _tres(tres),
        NONE,
        _gres(gres),
        NONE,
        _tres(job.tres_per_task) if job.tres_per_task else NONE,
        f"gres:gpu:{job.cpus_per_gpu}" if job.cpus_per_gpu else NONE,
        f"gres:gpu:{job.memory_per_gpu}" if job.memory_per_gpu else NONE,
        ",".join(job.constraints) or NULL,
        job.reservation or NULL,
        job.required_nodes or "",
        job.allocated_nodes or "",
        job.scheduled_nodes or NULL,
        NULL,  # the dependency is not looked at
        job.excluded_nodes or "",
        ",".join(job.licenses) or NULL,
        job.name or "",
        job.admin_comment or NULL,
        job.comment or NULL,
    ]


def _hides(job: Any, tres: Any, gres: Mapping[str, int]) -> bool:
    """Whether GPUs are asked in a form that is not shown, or something for each GPU."""
    if job.cpus_per_task is None and job.cpus_per_gpu is None:
        return True
    counted = tres.gres.get(GPU) if tres else None
    if counted is None and not gres:
        return False
    plain = ((name.removeprefix("gres/").partition(":")[0], gres[name]) for name in gres)
    shown = sum(count for name, count in plain if name == GPU)
    nodes = tres.node.count if tres and tres.node else 0
    return (counted.count if counted else 0) != shown * nodes


@lru_cache(maxsize=4096)
def user_of(uid: int) -> str:
    """Return a user's name; the number where there is none, as squeue does."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _word(value: object) -> str:
    return NONE if value is None else str(value)


def _duration(minutes: int | None) -> str:
    """As squeue prints it: ``30:00``, ``2:00:00``, ``1-00:00:00``."""
    if not minutes:
        return ""
    days, rest = divmod(minutes, 24 * 60)
    hours, left = divmod(rest, 60)
    if days:
        return f"{days}-{hours:02}:{left:02}:00"
    return f"{hours}:{left:02}:00" if hours else f"{left}:00"


def _mebibytes(number: int) -> str:
    """As squeue prints it: with the largest unit that needs no fraction."""
    units = "MGTP"
    place = 0
    while number and number % 1024 == 0 and place < len(units) - 1:
        number, place = number // 1024, place + 1
    return f"{number}{units[place]}" if number else "0"


def _tasks(job: Any) -> str:
    if not job.array_id:
        return NONE
    waiting = job.array_tasks_waiting
    if waiting is None:
        return str(job.array_task_id or 0)
    return f"{waiting}%{job.array_tasks_parallel}" if job.array_tasks_parallel else str(waiting)


def _tres(tres: Any) -> str:
    if tres is None:
        return NONE
    counts = (("cpu", tres.cpu, ""), ("mem", tres.mem, "M"), ("node", tres.node, ""))
    plain = [f"{name}={what.count}{unit}" for name, what, unit in counts if what]
    return ",".join(plain + [f"gres/{name}={what.count}" for name, what in tres.gres.items()])


def _gres(every: Mapping[str, int]) -> str:
    """What was written ``gres/gpu:2`` or ``gres:gpu:2``; pyslurm drops only the second prefix."""
    names = (name if name.startswith("gres/") else f"gres:{name}" for name in every)
    return ",".join(f"{name}:{every[n]}" for name, n in zip(names, every, strict=True)) or NONE
