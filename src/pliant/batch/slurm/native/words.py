"""What scontrol would be told, as arguments of pyslurm's ``JobSubmitDescription``.

Seen in pyslurm 25.11.2 on Slurm 25.11.7:

- ``nodes`` is ignored in ``modify``, and there is nothing for MinCPUsNode: both may be left out
  only where the job has them already.
- An empty value changes nothing, where scontrol takes something away with it.
- ``min_cpus_per_node`` is scontrol's NumCPUs, of 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping

from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.requested import spec_of
from pliant.batch.slurm.update import Words

_NAMES = {
    "Gres": "gres_per_node",
    "NumTasks": "ntasks",
    "NumCPUs": "min_cpus_per_node",
    "CPUsPerTask": "cpus_per_task",
    "MinMemoryNode": "memory_per_node",
    "AdminComment": "admin_comment",
}
_TEXTS = ("Gres", "AdminComment")
_16_BITS = ("min_cpus_per_node", "cpus_per_task")
_MOST = 65_000


def arguments(row: JobRow, words: Words) -> Mapping[str, str | int] | None:
    """Return the arguments that say the same as ``words``; None: only scontrol can say them."""
    if row.is_array_record:  # scontrol names its waiting tasks one by one
        return None
    said: dict[str, str | int] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key in ("NumNodes", "MinCPUsNode"):
            if value != _has(row, key):
                return None
        elif key not in _NAMES or not value or not _is_text(value):
            return None
        else:
            said[_NAMES[key]] = value if key in _TEXTS else int(value)
    return said if all(int(said.get(name, 0)) <= _MOST for name in _16_BITS) else None


def _is_text(value: str) -> bool:
    """Whether it is UTF-8 without a zero byte, which a C library can be told."""
    return not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value)


def _has(row: JobRow, key: str) -> str:
    """What the job has already, as scontrol would be told; "" where it cannot be known."""
    if key == "MinCPUsNode":
        return row.min_cpus
    # squeue shows a job without a most number of nodes as if the least were its most.
    spec = spec_of(row.admin_comment)
    pinned = row.num_tasks == "1" or (spec is not None and spec.set is not None)
    return f"{row.num_nodes}-{row.max_nodes}" if pinned else ""
