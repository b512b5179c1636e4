"""PBS's schedulers, and the line of sched_config by which they count GPUs.

That line is the administrator's to write: it decides about all jobs, and needs no Pliant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pliant.batch.slurm.standby import is_controller
from pliant.daemon.config import Config

LIST = ("qmgr", "-c", "list sched")
CURE = "then kill -HUP the scheduler"
_LINE = re.compile(r'\s*([a-z_]+)\s*:\s*("[^"]*"|\S+)', re.ASCII)


def listed(out: str) -> dict[str, dict[str, str]]:
    """Read what qmgr lists of schedulers: ``Sched default``, then ``    sched_host = head``."""
    found: dict[str, dict[str, str]] = {}
    for line in out.splitlines():
        kind, _, name = line.strip().partition(" ")
        if kind == "Sched" and line[:1] == "S":
            found[name] = {}
        elif found:
            key, equals, value = line.strip().partition(" = ")
            found[next(reversed(found))].update({key: value} if equals else {})
    return found


def path_of(scheduler: Mapping[str, str]) -> Path:
    """Return where a scheduler's sched_config lies on its host."""
    return Path(scheduler.get("sched_priv", "")) / "sched_config"


def read_config(scheduler: Mapping[str, str], hostname: str) -> dict[str, str] | None:
    """Return a scheduler's sched_config; None where it cannot be read.

    A host of jobs has a file of that name too.
    """
    if not is_controller([scheduler.get("sched_host", "")], hostname):
        return None
    try:
        text = path_of(scheduler).read_text(errors="replace")
    except OSError:
        return None
    config: dict[str, str] = {}
    for found in filter(None, map(_LINE.match, text.splitlines())):
        name, value = found[1], found[2].strip('"')
        config[name] = f"{config.get(name, '')} {value}".lstrip()  # at prime time, and not
    return config


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
