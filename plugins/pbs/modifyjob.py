"""The modifyjob hook: after a qalter the token and PLIANT_* say what is true."""

from __future__ import annotations

import time
from typing import Any

import pbs

from pliant.filter.pbs.change import decide_change
from pliant.filter.pbs.decide import Known, Submission
from pliant.filter.pbs.names import BACK, PLACE, RESTARTS, RETURNS, WROTE, shape_variables
from pliant.hooks.reading import (
    RUNS,
    WAITS,
    attribute,
    bounds_now,
    read_settings,
    read_state_file,
    remark,
    resource_names,
    resource_texts,
    variable_texts,
)
from pliant.hooks.typed import typed
from pliant.model.shapes import Shape


def main(event: Any) -> None:
    """Decide about one change."""
    job, was = event.job, event.job_o
    kept = (*shape_variables(Shape()), RESTARTS, RETURNS, BACK, PLACE, WROTE)
    before = Submission(
        str(was.queue or ""),
        resource_texts(was.Resource_List),
        variable_texts(was.Variable_List, kept),
        waits=attribute(was, "job_state") in WAITS,
    )
    named = resource_texts(job.Resource_List)
    changed = {n: text for n, text in named.items() if before.resources.get(n, "") != text}
    count = attribute(job, "run_count")
    runs = (int(attribute(was, "run_count") or 0), None if count in (None, "") else int(count))
    limited = bool(resource_names(job.Resource_List))
    if not limited and runs[1] is None:
        event.accept()
    settings = read_settings(pbs.hook_config_filename)
    state = read_state_file(settings, before.queue)
    known = Known(state, time.time(), bounds=bounds_now(before.queue), resources=settings.resources)
    answer = decide_change(before, changed, known, runs, limited=limited)
    if answer.refusal:
        event.reject(answer.refusal)
    remark("modifyjob", answer.remark)
    for name, value in typed(answer):
        job.Resource_List[name] = value
    if attribute(was, "job_state") != RUNS:  # PBS would refuse the whole change
        for name, text in answer.variables:
            job.Variable_List[name] = text
    event.accept()


main(pbs.event())
