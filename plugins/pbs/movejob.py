"""The movejob hook: no job is refused elsewhere for what Pliant made of it where it waits.

A hook of this event can change nothing of a job but its queue. So the move is refused in one
sentence, and the job is given its own shape back beside the server, which hears of that once the
hook has ended: the next move is as its owner wrote the job.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pbs

from pliant.filter.pbs.decide import Known, Submission
from pliant.filter.pbs.move import Destination, decide_move
from pliant.filter.pbs.names import PLACE, TOKEN, WROTE
from pliant.hooks.reading import (
    WAITS,
    attribute,
    bounds_now,
    item,
    read_settings,
    read_state_file,
    resource_texts,
    variable_texts,
)

PARTS = ("Scheduler", "PBS_Server")
"""Whom PBS itself calls who asks, where it moves a job."""


def main(event: Any) -> None:
    """Decide about one move."""
    job = event.job
    if not (item(job.Resource_List, TOKEN) or item(job.Variable_List, PLACE)):
        event.accept()
    if not may_move(str(event.requestor), job):
        event.accept()  # PBS asks its hooks first, and refuses it then
    settings, queue = read_settings(pbs.hook_config_filename), str(job.queue or "")
    if "@" not in queue and pbs.server().queue(queue) is None:
        event.accept()  # PBS refuses it, whatever the job is
    state, source = read_state_file(settings, queue), str(event.src_queue or "")
    waits = attribute(job, "job_state") in WAITS
    said = variable_texts(job.Variable_List, (PLACE, WROTE))
    moved = Submission(source, resource_texts(job.Resource_List), said, waits=waits)
    known = Known(state, time.time(), bounds=bounds_now(source), resources=settings.resources)
    molds = state is not None and bool(state.queues)
    answer = decide_move(moved, known, Destination(queue, bounds_now(queue), molds))
    if answer.refusal:
        words = [word for name, text in answer.resources for word in ("-l", f"{name}={text}")]
        start(settings.qalter, *words, str(job.id))
        event.reject(answer.refusal)
    event.accept()


def may_move(who: str, job: Any) -> bool:
    """Whether PBS lets somebody move a job: its owner, who rules the server, or its own parts."""
    server = pbs.server()
    owners = (str(attribute(job, "Job_Owner")).partition("@")[0], str(attribute(job, "euser")))
    rulers = f"{attribute(server, 'managers')},{attribute(server, 'operators')}"
    named = [one.strip().partition("@")[0] for one in rulers.split(",")]
    return who in ("root", *PARTS, *owners, *named)


def start(*words: str) -> None:
    """Run a command beside the server. Without it the job stays as it is, and where it is."""
    quiet = subprocess.DEVNULL
    try:
        subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    except OSError as error:
        pbs.logmsg(pbs.LOG_WARNING, f"pliant: {words[0]}: {error.strerror}")


main(pbs.event())
