"""The runjob hook: for some seconds a job in a hand-over finds its vnodes as it left them.

And a start that would have PBS send the job back after every run from then on is noted as the one
that the launch hook is to refuse.

It runs inside the server before each start. Where no fence of pliantd's stands, or somebody other
than the scheduler starts the job (`qrun -H`; without `-H` it is asked to), it refuses nothing.
"""

from __future__ import annotations

import time
from typing import Any

import pbs

from pliant.filter.pbs.fences import in_the_way
from pliant.filter.pbs.launched import refused_next
from pliant.filter.pbs.names import BACK
from pliant.hooks.reading import (
    Settings,
    attribute,
    item,
    read_fences_file,
    read_settings,
    read_state_file,
    seconds,
    taken_before,
)

SCHEDULER = "Scheduler"


def vnodes_of(job: Any) -> list[str]:
    """Return where a job is to start."""
    found = attribute(job, "exec_vnode")
    return [str(chunk.vnode_name) for chunk in found.chunks] if found else []


def refusal(event: Any, settings: Settings, now_s: float) -> str:
    """Return why a job may not start there now; "" where it may."""
    if str(event.requestor) != SCHEDULER:
        return ""
    fences = [fence for fence in read_fences_file(settings) if fence.stands(now_s)]
    state = read_state_file(settings, "") if fences else None
    if state is None or not state.is_live(now_s):
        return ""  # pliantd is away: nobody would end a fence
    job = event.job
    for vnode in vnodes_of(job):
        fence = in_the_way(fences, str(job.id), str(job.queue or ""), vnode)
        if fence:
            whom = next(iter(fence.lets), fence.job)
            return f"pliant: {vnode} is kept for job {whom} for a moment"
    return ""


def note(job: Any) -> None:
    """Let the launch hook refuse a start by which PBS forgets that it has sent the job back."""
    back, runs = item(job.Variable_List, BACK), seconds(attribute(job, "run_count"))
    said = refused_next(str(back or ""), runs, str(attribute(job, "Exit_status")))
    if said:
        job.Variable_List[BACK] = said


def main(event: Any) -> None:
    """Refuse one start, or let it go on and note it for the other hooks."""
    settings, now_s = read_settings(pbs.hook_config_filename), time.time()
    words = refusal(event, settings, now_s)
    if words:
        event.reject(words)
    note(event.job)
    taken_before(settings, now_s)
    event.accept()


main(pbs.event())
