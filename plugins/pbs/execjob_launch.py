"""The execjob_launch hook: PLIANT_* and the GPUs, as the job really has them on its nodes."""

from __future__ import annotations

from typing import Any

import pbs

from pliant.filter.pbs.launched import DEVICES, Part, Site, devices, variables
from pliant.filter.pbs.names import RETURNS, SHAPE
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
    settings = read_settings(pbs.hook_config_filename)
    parts, site = parts_of(job, settings), Site(settings.gpu_vnode)
    runs = seconds(attribute(job, "run_count"))
    told = {name: str(env[name]) for name in list(env)}
    said = variables(parts, site, told, runs)
    numbers = devices(parts, site, pbs.get_local_nodename())
    if numbers is not None:  # "" hides all: without it a program would see the others' too
        said[DEVICES] = numbers.replace(",", "\\,")  # PBS would end the value at a bare comma
    for name, text in said.items():
        env[name] = text
    event.accept()


main(pbs.event())
