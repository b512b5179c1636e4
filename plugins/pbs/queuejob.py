"""The queuejob hook: read what the owner said, note it, and let the job fit what is free.

It runs inside the server, which does nothing else meanwhile: it reads one small file, and never
looks at other jobs.
"""

from __future__ import annotations

import time
from typing import Any

import pbs

from pliant.filter.pbs.decide import Answer, Known, Submission, decide
from pliant.filter.pbs.names import ASKED, BACK, HELD, PLACE, RESOURCES, RETURNS, UNANSWERED, WROTE
from pliant.hooks.reading import (
    attribute,
    bounds_now,
    item,
    read_settings,
    read_state_file,
    remark,
    resource_texts,
    seconds,
    taken_before,
    variable_texts,
)
from pliant.hooks.typed import typed


def leave_others(event: Any) -> None:
    """Accept a job that says nothing to Pliant: this comes first, and all else after it.

    A job submitted from within a job by ``qsub -V`` has that one's variables: what our hooks would
    act upon is taken away, and what those of 0.1.0 would: a node may have them still.
    """
    for name in (RETURNS, HELD, BACK, PLACE, WROTE, UNANSWERED):
        if item(event.job.Variable_List, name):
            event.job.Variable_List[name] = ""
    said = [(event.job.Resource_List, name) for name in RESOURCES.values()]
    asked = [(event.job.Variable_List, name) for name in ASKED.values()]
    if not any(item(some, name) for some, name in said + asked):
        taken_before(read_settings(pbs.hook_config_filename), time.time())
        event.accept()


def must_wait(job: Any) -> bool:
    """Whether it cannot start at once, whatever is free."""
    holds = attribute(job, "Hold_Types")
    if holds is not None and str(holds) not in ("", "n"):
        return True
    names = ("array_indices_submitted", "depend", "Execution_Time")
    return any(attribute(job, name) for name in names)


def submission(job: Any) -> Submission:
    """Return what the job asks, as text."""
    return Submission(
        str(job.queue or ""),
        resource_texts(job.Resource_List, whole=True),
        variable_texts(job.Variable_List, ()),
        seconds(item(job.Resource_List, "walltime")),
        must_wait(job),
    )


def put(job: Any, answer: Answer) -> None:
    """Set what was decided; all of it, or nothing.

    What was not there before cannot be taken away again, and PBS refuses an empty place.
    """
    values = typed(answer)
    before = {name: item(job.Resource_List, name) for name, _ in answer.resources}
    if "place" in before:
        before["place"] = before["place"] or pbs.place("free")
    try:
        for name, value in values:
            job.Resource_List[name] = value
        for name, text in answer.variables:
            job.Variable_List[name] = text
    except BaseException:
        for name, was in before.items():
            if item(job.Resource_List, name) is not was:
                job.Resource_List[name] = was
        raise


def main(event: Any) -> None:
    """Decide about one submission."""
    now_s = time.time()
    job = event.job
    settings = read_settings(pbs.hook_config_filename)
    state = read_state_file(settings, str(job.queue or ""))
    last_s = taken_before(settings, now_s)
    fresh = state is None or not state.written_s <= last_s <= now_s
    asked = submission(job)
    bounds = bounds_now(asked.queue) if state else None
    answer = decide(asked, Known(state, now_s, fresh, bounds, settings.resources))
    if answer.refusal:
        event.reject(answer.refusal)
    remark("queuejob", answer.remark)
    put(job, answer)
    event.accept()


leave_others(pbs.event())
main(pbs.event())
