"""The execjob_epilogue hook: a checkpointed job that exits 85 goes back to the queue.

It waits there until a time, so that pliantd can give it another shape, and lets it begin at once;
where pliantd is away, that time comes. It is not held: PBS has one system hold for all who set one,
so nobody could tell ours from that of a dependency or an administrator. PBS itself holds a job for
good once it was started more than 20 times, so its run_count begins anew here, wherever pliantd is.
"""

from __future__ import annotations

import time
from typing import Any

import pbs

from pliant.filter.pbs.names import (
    BACK,
    RESTARTS,
    RETURNS,
    Back,
    earlier_runs,
    read_back,
)
from pliant.hooks.reading import attribute, item, read_settings, seconds

OF_TASKS = 10
"""The most that run_count of one of an array is left at: PBS holds one from 21 on."""


def main(event: Any) -> None:
    """Send one job back, or let it end."""
    job = event.job
    code, runs = item(job.Variable_List, RETURNS), seconds(attribute(job, "run_count"))
    back = read_back(str(item(job.Variable_List, BACK) or ""))
    rerunable = attribute(job, "Rerunable")
    if not code or str(attribute(job, "Exit_status")) != code or rerunable in (False, 0):
        if back and runs == back.runs + 1 and seconds(attribute(job, "Exit_status")) > 0:
            # it ended before our launch hook refused its start: the next one is to be refused
            job.Variable_List[BACK] = str(Back(runs, back.times))
        event.accept()
    begins_s, counted = 0, 0
    if "[" in str(job.id):
        # one of an array has no time of its own, and keeps its shape: it starts when it can; PBS
        # makes its variables anew, so that its run_count alone tells how often it was restarted
        counted = min(runs, OF_TASKS)
    else:
        wait_s = read_settings(pbs.hook_config_filename).wait_s
        job.Execution_Time = begins_s = int(time.time()) + wait_s
    before = str(item(job.Variable_List, RESTARTS) or "")
    job.Variable_List[RESTARTS] = str(earlier_runs(before) + runs - counted)
    job.Variable_List[BACK] = str(Back(counted, back.times + 1 if back else 1, begins_s))
    job.run_count = counted
    job.rerun()
    event.reject("pliant: the job has saved and goes back to the queue")


main(pbs.event())
