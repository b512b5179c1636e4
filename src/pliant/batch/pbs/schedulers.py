"""PBS's schedulers: which of them starts a queue's jobs, whether it runs, what orders its jobs."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pliant.batch.pbs.values import number, true
from pliant.batch.slurm.standby import is_controller
from pliant.filter.pbs.schedulers import listed, own_partition, shaped_in

_LINE = re.compile(r'\s*([a-z_]+)\s*:\s*("[^"]*"|\S+)', re.ASCII)
ORDERING = ("job_sort_formula", "job_sort_key")
"""What orders jobs by their resources: an attribute, and lines of sched_config."""

PREFIXES = {"primetime_prefix": "p_", "nonprimetime_prefix": "np_", "dedicated_prefix": "ded"}
"""How the names of queues begin whose jobs start at certain times only, as PBS ships it."""
AT_TIMES = "its queue starts jobs at certain times only"
EXPRESS = 150
"""preempt_queue_prio as it is by default: from this priority on PBS ends others for a queue."""
BY_QUEUES = (["express_queue", "normal_jobs"], ["express_queue"], ["normal_jobs"])
"""The values of preempt_prio by which nobody is ended for a job of an ordinary queue."""

MAIN = "default"
"""The scheduler of all that is of no partition; another one without a partition starts nothing."""


@dataclass(frozen=True, slots=True)
class SchedulerRow:
    """One scheduler. ``partition``: whose queues' jobs it starts; "": those of no partition.

    ``order``: by which of its settings and which resource it orders jobs that a shape changes, as
    words; "": by none. ``at_times``: how the names of its queues begin that start jobs at certain
    times only. ``express``: the priority from which on PBS ends others for a queue.
    ``preempts``: its preempt_prio, where it ends others for jobs of other queues too; "": it does
    not.
    """

    name: str
    partition: str = ""
    scheduling: bool = True
    down: bool = False
    order: str = ""
    at_times: tuple[str, ...] = tuple(PREFIXES.values())
    express: int = EXPRESS
    preempts: str = ""

    @property
    def trouble(self) -> str:
        """Why it starts no job now; "" where it does."""
        if self.down:
            return f"the scheduler {self.name} is down"
        return "" if self.scheduling else f"the scheduler {self.name} is stopped"


@dataclass(frozen=True, slots=True)
class Schedulers:
    """All of them by partition; ``unknown``: why PBS does not list them, "" where it does."""

    of: Mapping[str, SchedulerRow] = field(default_factory=dict)
    unknown: str = ""

    def why_none_starts(self, partition: str) -> str:
        """Return why no scheduler would start a job of a partition's queues that goes back now.

        The default one is taken to be there where PBS does not list them.
        """
        row = self.of.get(partition)
        if row is None and (not partition or not self.of):
            return f"partition {partition}: {self.unknown}" if partition else ""
        return row.trouble if row else f"partition {partition} has no scheduler"

    def order(self, partition: str) -> str:
        """Return by what a partition's scheduler orders jobs, as :class:`SchedulerRow` has it."""
        row = self.of.get(partition)
        return row.order if row else ""

    def leaves_running(self, queue: str, partition: str) -> str:
        """Return why no running job of a queue is asked to go back to it; "": it may be.

        One that waits for prime time, say, had its place and loses it until that comes again. And
        who ends others in vain, as a fence then refuses its start, has cost them their work.
        """
        row = self._serving(partition)
        if queue.startswith(row.at_times):
            return AT_TIMES
        more = f"its scheduler preempts by more than queues: preempt_prio is {row.preempts}"
        return more if row.preempts else ""

    def express(self, partition: str) -> int:
        """Return from which priority on others are ended for jobs of a partition's queue."""
        return self._serving(partition).express

    def _serving(self, partition: str) -> SchedulerRow:
        """Return a partition's scheduler; one as PBS ships it where it is not known."""
        return self.of.get(partition, SchedulerRow(MAIN))


def parse_schedulers(out: str, share_resource: str = "", hostname: str = "") -> Schedulers:
    """Read what qmgr lists of schedulers; the rest as in :func:`schedulers_of`."""
    return schedulers_of(listed(out), share_resource, hostname)


def schedulers_of(
    said: Mapping[str, Mapping[str, str]], share_resource: str = "", hostname: str = ""
) -> Schedulers:
    """Return schedulers by what is said of each, and by the sched_config of those of this host.

    ``share_resource``: the site's resource of shares of a GPU. ``hostname``: "" is this host's.
    """
    here = hostname or socket.gethostname()
    serving = ((name, one) for name, one in said.items() if name == MAIN or one.get("partition"))
    rows = (_row(name, one, share_resource, here) for name, one in serving)
    return Schedulers({row.partition: row for row in rows})


def _row(name: str, said: Mapping[str, str], share_resource: str, hostname: str) -> SchedulerRow:
    config = read_config(said, hostname) or {}
    orders = ((what, {**config, **said}.get(what, "")) for what in ORDERING)
    found = ((what, shaped_in(text, share_resource)) for what, text in orders)
    return SchedulerRow(
        name,
        own_partition(said.get("partition", "")),
        true(said.get("scheduling", True)),
        said.get("state", "") == "down",
        next((f"{what} of {name} names {one}" for what, one in found if one), ""),
        tuple((config.get(name) or prefix).split()[-1] for name, prefix in PREFIXES.items()),
        number(said.get("preempt_queue_prio", EXPRESS)),
        _preempts(said.get("preempt_prio", "")),
    )


def _preempts(preempt_prio: str) -> str:
    """Return a preempt_prio by which PBS ends others not for express queues alone; "" for others.

    Where ordinary jobs come first it ends those of express queues for them.
    """
    levels = [level.strip() for level in preempt_prio.split(",") if level.strip()]
    return "" if not levels or levels in BY_QUEUES else ", ".join(levels)


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
