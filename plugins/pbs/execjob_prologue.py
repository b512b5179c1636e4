"""The execjob_prologue hook: the first start after our epilogue hook sent a job back is refused.

OpenPBS 22.05 and 23.06 keep the mark by which they were told to send it back, and would do so after
every run from then on. What a refused start leaves takes the place of that mark; PBS starts the job
again at once.
"""

from __future__ import annotations

from typing import Any

import pbs

from pliant.filter.pbs.launched import is_false_start
from pliant.filter.pbs.names import BACK
from pliant.hooks.reading import attribute, item, seconds


def main(event: Any) -> None:
    """Refuse one start, or let it go on."""
    job = event.job
    back = str(item(job.Variable_List, BACK) or "")
    if job.in_ms_mom() and is_false_start(back, seconds(attribute(job, "run_count"))):
        event.reject("pliant: the job starts once more, and then for good")
    event.accept()


main(pbs.event())
