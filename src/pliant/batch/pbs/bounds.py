"""What one job may have in a queue, by the limits of the queue and of the server.

OpenPBS 23.06 refuses a submission, and an owner's qalter, that is beyond one (chk_resc_limits in
src/server/svr_jobfunc.c), but no manager's qalter: pliantd has to keep to them itself. The most of
a resource is the queue's where it has one, else the server's; the server has no least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pliant.batch.pbs.rows import QueueRow, ServerRow
from pliant.batch.pbs.values import number, size_mib, whole_mib
from pliant.model import Limits

COUNTED = ("nodect", "ngpus", "ncpus", "mem", "mpiprocs")
"""What a shape changes of a job."""


def bounds(queue: QueueRow, server: ServerRow) -> Limits:
    """Return what one job may have in a queue."""
    most = dict(_amounts({**server.most, **queue.most}, whole_mib))
    chunk = dict(_amounts({**server.chunk, **queue.chunk}, size_mib))
    return Limits(
        most=tuple(most.items()),
        least=tuple(_amounts(queue.least, size_mib)),
        defaults=tuple((name, many) for name, many in chunk.items() if name in most),
    )


def _amounts(said: Mapping[str, str], memory: Callable[[str], int]) -> Iterator[tuple[str, int]]:
    for name in COUNTED:
        if name in said:
            yield name, memory(said[name]) if name == "mem" else number(said[name])
