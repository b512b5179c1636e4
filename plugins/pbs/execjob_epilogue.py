"""The execjob_epilogue hook: a checkpointed job that exits 85 goes back to the queue.

It waits there, held by us or until a time, so that pliantd can give it another shape. pliantd ends
that; where it is away, time or the periodic hook does.
"""

from __future__ import annotations

import time
from typing import Any

import pbs

from pliant.filter.pbs.names import HELD, RETURNS
from pliant.hooks.reading import attribute, item, read_settings, seconds


def main(event: Any) -> None:
    """Send one job back, or let it end."""
    job = event.job
    code = item(job.Variable_List, RETURNS)
    rerunable = attribute(job, "Rerunable")
    if not code or str(attribute(job, "Exit_status")) != code or rerunable in (False, 0):
        event.accept()
    settings = read_settings(pbs.hook_config_filename)
    if "[" in str(job.id):
        pass  # one of an array has no hold of its own, and keeps its shape: it starts when it can
    elif settings.back == "time":
        job.Execution_Time = int(time.time()) + settings.wait_s
    else:
        job.Variable_List[HELD] = str(seconds(attribute(job, "run_count")))
        job.Hold_Types = pbs.hold_types("s")
    job.rerun()
    event.reject("pliant: the job has saved and goes back to the queue")


main(pbs.event())
