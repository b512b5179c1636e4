"""The periodic hook: where pliantd is away, it does what of its work others wait for.

PBS starts no cycle of its scheduler for a job that our runjob hook refused: where pliantd has left
fences behind, some are started here.

It runs in a process of its own beside the server, and looks at no job.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pbs

from pliant.filter.pbs.schedulers import LIST, WAKE, kicks, listed
from pliant.hooks.reading import attribute, read_fences_file, read_settings, read_state_file

LIMIT_S = 20
REFUSED_S = 600.0
"""For how long after a fence somebody may wait whom it kept out."""


def tell(command: str, *words: str) -> None:
    """Run one of PBS's commands."""
    quiet = subprocess.DEVNULL
    subprocess.run(
        [command, *words], stdin=quiet, stdout=quiet, stderr=quiet, timeout=LIMIT_S, check=False
    )


def kick(qmgr: str) -> None:
    """Start a cycle of each scheduler that nobody has stopped."""
    if attribute(pbs.server(), "scheduling"):
        tell(qmgr, *WAKE)
    quiet = subprocess.DEVNULL
    said = subprocess.run(
        [qmgr, *LIST],
        stdin=quiet,
        stdout=subprocess.PIPE,
        stderr=quiet,
        timeout=LIMIT_S,
        check=False,
    )
    for words in kicks(listed(said.stdout.decode("utf-8", "replace"))):
        tell(qmgr, *words)


def main(event: Any) -> None:
    """Start what was refused, unless pliantd is there to do so."""
    settings, now_s = read_settings(pbs.hook_config_filename), time.time()
    state = read_state_file(settings, "")
    if state and state.is_live(now_s):
        event.accept()
    ends = [fence.until_s for fence in read_fences_file(settings)]
    if any(now_s - end_s < REFUSED_S for end_s in ends):
        kick(settings.qmgr)
    event.accept()


main(pbs.event())
