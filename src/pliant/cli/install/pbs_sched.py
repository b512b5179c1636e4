"""PBS's schedulers, and the line of sched_config by which they count GPUs.

That line is the administrator's to write: it decides about all jobs, and needs no Pliant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pliant.batch.pbs.schedulers import path_of, read_config
from pliant.daemon.config import Config

CURE = "then kill -HUP the scheduler"


def wanted(config: Config) -> list[str]:
    """Return the resources that a scheduler must count."""
    pbs = config.pbs
    return sorted({"ngpus", pbs.type_resource.lower(), pbs.share_resource.lower()} - {""})


def uncounted(said: Mapping[str, str], config: Config) -> list[str]:
    """Return the resources that a scheduler must count and does not, by its sched_config."""
    words = {word.strip().lower() for word in said.get("resources", "").split(",")}
    return [name for name in wanted(config) if name not in words]


def to_write(
    schedulers: Mapping[str, Mapping[str, str]], config: Config, hostname: str
) -> Iterator[str]:
    """Say which line a scheduler of this host needs, with what its sched_config has there."""
    for one in schedulers.values():
        said = read_config(one, hostname)
        missing = uncounted(said, config) if said is not None else []
        if said is not None and missing:
            line = ", ".join(filter(None, (said.get("resources", "").strip(), *missing)))
            yield f'to be written in {path_of(one)}, {CURE}: resources: "{line}"'
