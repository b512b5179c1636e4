"""The runjob hook: for some seconds a job in a hand-over finds its vnodes as it left them.

It runs inside the server before each start. Where no fence of pliantd's stands, or somebody other
than the scheduler starts the job (`qrun -H`; without `-H` it is asked to), it does nothing.
"""

from __future__ import annotations

import time
from typing import Any

import pbs

from pliant.filter.pbs.fences import in_the_way
from pliant.hooks.reading import attribute, read_fences_file, read_settings, read_state_file

SCHEDULER = "Scheduler"


def vnodes_of(job: Any) -> list[str]:
    """Return where a job is to start."""
    found = attribute(job, "exec_vnode")
    return [str(chunk.vnode_name) for chunk in found.chunks] if found else []


def main(event: Any) -> None:
    """Refuse one start, or let it go on."""
    if str(event.requestor) != SCHEDULER:
        event.accept()
    settings, now_s = read_settings(pbs.hook_config_filename), time.time()
    fences = [fence for fence in read_fences_file(settings) if fence.stands(now_s)]
    state = read_state_file(settings, "") if fences else None
    if state is None or not state.is_live(now_s):
        event.accept()  # pliantd is away: nobody would end a fence
    job = event.job
    vnodes = vnodes_of(job)
    for vnode in vnodes:
        fence = in_the_way(fences, str(job.id), str(job.queue or ""), vnode)
        if fence:
            event.reject(f"pliant: {vnode} is kept for job {fence.lets[0]} for a moment")
    event.accept()


main(pbs.event())
