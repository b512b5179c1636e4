"""What one job may have in a queue, by the limits of the queue and of the server. Pure.

OpenPBS 23.06 refuses a submission, and an owner's qalter, that is beyond one (chk_resc_limits in
src/server/svr_jobfunc.c), but no manager's qalter: pliantd has to keep to them itself. The most of
a resource is the queue's where it has one, else the server's; the server has no least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pliant.filter.fields import Fixed
from pliant.filter.pbs.defaults import NO_DEFAULTS, Defaults
from pliant.filter.pbs.select import MIB, read_bytes, read_mem_mib, read_number
from pliant.model.limits import Limits

SHAPED = ("nodect", "ngpus", "ncpus", "mem", "mpiprocs")
"""What a shape changes of a job."""
OF_SEVERAL = (
    *("max_run_res", "max_queued_res", "queued_jobs_threshold_res"),
    *("max_user_res", "max_group_res"),
    *("max_run_res_soft", "max_user_res_soft", "max_group_res_soft"),
)
"""The limits that bound what several jobs may have; beyond a soft one they may be preempted."""
OF_RUNNING = "resources_available"
"""What the jobs that run may have together of each resource, of a queue or the server."""

Said = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds one job of a queue.

    ``careful``: what several have together is bounded too, so none is made larger than written.
    ``defaults``: what it has that does not say it. ``sets``: whether there are placement sets,
    which one on several nodes does not leave: none is spread over nodes but as it was written.
    ``ordered``: whether jobs are ordered by what a shape changes, so that none is given another.
    """

    limits: Limits
    careful: bool = False
    defaults: Defaults = NO_DEFAULTS
    sets: bool = False
    ordered: bool = False


def limits_of(most: Said, least: Said) -> Limits:
    """Return what one job may have in a queue; the queue's words stand before the server's."""
    return Limits(tuple(_amounts(most, _whole_mib)), tuple(_amounts(least, read_mem_mib)))


def _amounts(said: Said, memory: Callable[[str], int]) -> Iterator[tuple[str, int]]:
    for name in SHAPED:
        if said.get(name):
            try:
                many = memory(said[name]) if name == "mem" else read_number(name, said[name])
            except Fixed:  # larger than any job
                continue
            yield name, many


def _whole_mib(text: str) -> int:
    return read_bytes(text) // MIB
