"""The execjob_epilogue hook: a checkpointed job that exits 85 goes back to the queue.

It waits there, held by us or until a time, so that pliantd can give it another shape. pliantd ends
that; where it is away, time or the periodic hook does.
"""

from __future__ import annotations

import time
from typing import Any

import pbs

from pliant.filter.pbs.names import BACK, HELD, RETURNS, Back, read_back
from pliant.hooks.reading import attribute, item, read_settings, seconds


def main(event: Any) -> None:
    """Send one job back, or let it end."""
    job = event.job
    code, runs = item(job.Variable_List, RETURNS), seconds(attribute(job, "run_count"))
    back = read_back(str(item(job.Variable_List, BACK) or ""))
    rerunable = attribute(job, "Rerunable")
    if not code or str(attribute(job, "Exit_status")) != code or rerunable in (False, 0):
        if back and runs == back.runs + 1 and seconds(attribute(job, "Exit_status")) > 0:
            # it ended before our prologue hook refused its start: the next one is to be refused
            job.Variable_List[BACK] = str(Back(runs, back.times))
        event.accept()
    begins_s = 0
    settings = read_settings(pbs.hook_config_filename)
    if "[" in str(job.id):
        pass  # one of an array has no hold of its own, and keeps its shape: it starts when it can
    elif settings.back != "hold":
        job.Execution_Time = begins_s = int(time.time()) + settings.wait_s
    else:
        job.Variable_List[HELD] = str(runs)
        job.Hold_Types = pbs.hold_types("s")
    job.Variable_List[BACK] = str(Back(runs, back.times + 1 if back else 1, begins_s))
    job.rerun()
    event.reject("pliant: the job has saved and goes back to the queue")


main(pbs.event())
