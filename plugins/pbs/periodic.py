"""The periodic hook: where pliantd is away, jobs that our epilogue hook held are released.

It runs in a process of its own beside the server, and looks at jobs only while pliantd is away.
"""

from __future__ import annotations

import re
import subprocess
import time
from typing import Any

import pbs

from pliant.filter.pbs.names import HELD
from pliant.hooks.reading import attribute, item, read_settings, read_state_file, seconds

JOB_ID = re.compile(r"[0-9]+(\[[0-9]*\])?(\.[A-Za-z0-9._-]+)?", re.ASCII)
AT_ONCE = 50
LIMIT_S = 20


def is_ours(job: Any) -> bool:
    """Whether a job waits with the hold of our epilogue hook, and has not run since that."""
    mark = item(attribute(job, "Variable_List"), HELD)
    if str(attribute(job, "Hold_Types")) != "s" or not mark or not JOB_ID.fullmatch(str(job.id)):
        return False
    return str(seconds(attribute(job, "run_count"))) == str(mark)


def main(event: Any) -> None:
    """Release what is held, unless pliantd is there to do so."""
    settings = read_settings(pbs.hook_config_filename)
    state = read_state_file(settings, "")
    if state and state.is_live(time.time(), settings.away_s):
        event.accept()
    held = [str(job.id) for job in pbs.server().jobs() if is_ours(job)]
    for start in range(0, len(held), AT_ONCE):
        subprocess.run(
            [settings.qrls, "-h", "s", *held[start : start + AT_ONCE]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
    event.accept()


main(pbs.event())
