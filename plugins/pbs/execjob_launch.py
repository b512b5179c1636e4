"""The execjob_launch hook: PLIANT_* and the GPUs, as the job really has them on its nodes.

And the first start after our epilogue hook sent a job back is refused here. OpenPBS 22.05 and 23.06
keep the mark by which they were told to send it back, and would do so after every run from then on.
What a refused start leaves takes the place of that mark; PBS starts the job again at once. (A hook
of an earlier event could do so too, and each hook on a node costs every job a start of Python.)
"""

from __future__ import annotations

from typing import Any

import pbs

from pliant.filter.pbs.launched import (
    DEVICES,
    Part,
    Site,
    devices,
    is_false_start,
    variables,
)
from pliant.filter.pbs.names import BACK, RETURNS, SHAPE
from pliant.hooks.reading import Settings, attribute, item, read_settings, seconds


def parts_of(job: Any, settings: Settings) -> tuple[Part, ...]:
    """Return what the job has of each vnode."""
    found = attribute(job, "exec_vnode")
    chunks = found.chunks if found else ()
    return tuple(
        Part(
            str(chunk.vnode_name),
            seconds(item(chunk.chunk_resources, "ngpus")),
            share_of(chunk.chunk_resources, settings.share_resource),
        )
        for chunk in chunks
    )


def share_of(resources: Any, name: str) -> float:
    """Return the part of a GPU that a chunk has; 0.0 for none."""
    value = item(resources, name) if name else None
    return float(value) if value else 0.0


def main(event: Any) -> None:
    """Set the environment of what is launched."""
    env, job = event.env, event.job
    if item(env, SHAPE) is None and item(env, RETURNS) is None:
        event.accept()  # a job that says nothing to Pliant
    runs = seconds(attribute(job, "run_count"))
    back = str(item(job.Variable_List, BACK) or "")
    if is_false_start(back, runs) and job.in_ms_mom():
        job.rerun()  # else PBS ends a job whose launch is refused
        event.reject("pliant: the job starts once more, and then for good")
    settings = read_settings(pbs.hook_config_filename)
    parts, site = parts_of(job, settings), Site(settings.gpu_vnode)
    told = {name: str(env[name]) for name in list(env)}
    said = variables(parts, site, told, runs)
    numbers = devices(parts, site, pbs.get_local_nodename())
    if numbers is not None:  # "" hides all: without it a program would see the others' too
        said[DEVICES] = numbers.replace(",", "\\,")  # PBS would end the value at a bare comma
    for name, text in said.items():
        env[name] = text
    event.accept()


main(pbs.event())
