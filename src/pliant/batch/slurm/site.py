"""What a site's Slurm is: its release, who may act, how it schedules; read once and kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pliant.batch.slurm.limits import NO_LIMITS, Limits
from pliant.batch.slurm.values import size_mib
from pliant.errors import BadAnswer
from pliant.grammar import quoted

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?", re.ASCII)
_LINE = re.compile(r"^(\S+)\s*=[ ]?(.*)$")
_UID = re.compile(r".*\(([0-9]{1,10})\)", re.ASCII)
OLDEST = (22, 5)
HIERARCHICAL = (23, 2)
BACKFILL, STOPS = "sched/backfill", "assoc_limit_stop"
MOST_LATE_S = 60
RESERVES = "bf_job_part_count_reserve"


@dataclass(frozen=True, slots=True)
class Site:
    """From ``scontrol show config``. ``version`` is that of slurmctld, (22, 5) for 22.05.8.

    ``limits`` are those that its accounting enforces (sacctmgr(1)).
    """

    version: tuple[int, int]
    release: str
    slurm_user: str
    cluster: str
    conf: str
    scheduler: Mapping[str, str]
    private_data: frozenset[str]
    gres_types: tuple[str, ...]
    counts_memory: bool
    options: Mapping[str, str] = field(repr=False, default_factory=dict)
    limits: Limits = NO_LIMITS

    @property
    def slurm_uid(self) -> int | None:
        """SlurmUser's uid, which Slurm says beside the name: ``slurm(64030)``."""
        found = _UID.fullmatch(self.options.get("SlurmUser", ""))
        return int(found[1]) if found else None

    @property
    def basic_priority(self) -> bool:
        """Whether jobs have their places by their order of submission, and keep them."""
        return self.options.get("PriorityType", "") == "priority/basic"

    @property
    def requeue_delay_s(self) -> int:
        """How long after its requeue a job may start again: ``cred_expire`` and a second.

        From 25.11 on ``requeue_delay`` says it (slurm.conf(5), AuthInfo, SchedulerParameters).
        """
        words = (word.partition("=") for word in _names(self.options.get("AuthInfo", "")))
        expires = {key: value for key, _, value in words}.get("cred_expire", "")
        delay = self.scheduler.get("requeue_delay", "")
        if delay.isdecimal():
            return int(delay)
        return (int(expires) if expires.isdecimal() else 120) + 1

    @property
    def late_s(self) -> int:
        """For how long Slurm may start nobody though GPUs are free (slurm.conf(5)).

        ``CompleteWait``: while another job ends; ``batch_sched_delay``, with ``defer``: after the
        last start. MOST_LATE_S at most: GPUs stand idle for as long as a start is waited for.
        """
        waits = _ahead(self.options.get("CompleteWait", ""))
        defers = any(word.startswith("defer") for word in self.scheduler)
        delay = _ahead(self.scheduler.get("batch_sched_delay", "3")) if defers else 0
        return min(MOST_LATE_S, waits + delay)

    @property
    def backfill_interval_s(self) -> int:
        """How often backfill runs: 30 s unless told otherwise."""
        text = self.scheduler.get("bf_interval", "")
        return int(text) if text.isdecimal() else 30

    @property
    def default_per_cpu_mib(self) -> int:
        """DefMemPerCPU; 0 where memory is not given by the CPU."""
        return size_mib(self.options.get("DefMemPerCPU", ""))

    @property
    def limits_of_all(self) -> bool:
        """Whether a submission must keep to the limits of each partition that it names."""
        return self.options.get("EnforcePartLimits", "") == "ALL"

    @property
    def preempts(self) -> bool:
        """Whether jobs end others of a lower PriorityTier to start (slurm.conf(5), PreemptType)."""
        return self.options.get("PreemptType", "") == "preempt/partition_prio"

    @property
    def user_top(self) -> bool:
        """Whether users may give a job's priority to another one of theirs (scontrol(1), top).

        Slurm looks for the word as a part of what is said, however it is written.
        """
        return "enable_user_top" in self.options.get("SchedulerParameters", "").lower()

    @property
    def stops_behind(self) -> str:
        """What keeps all from starting that wait behind one that cannot, as slurm.conf(5) says it.

        "" for nothing. A job that makes room waits before all others until its guest has ended.
        """
        kind = self.options.get("SchedulerType", BACKFILL)
        if kind != BACKFILL:
            return f"SchedulerType={kind}"
        is_set = STOPS in self.options.get("SchedulerParameters", "").lower()
        return f"SchedulerParameters={STOPS}" if is_set and self.enforces_limits else ""

    @property
    def preempts_by_qos(self) -> bool:
        """Whether jobs end others of a QOS that their own may preempt (slurm.conf(5))."""
        return self.options.get("PreemptType", "") == "preempt/qos"

    @property
    def own_preemption(self) -> str:
        """How Slurm itself ends or stops jobs for others, as slurm.conf(5) says it; "" for not."""
        kind = self.options.get("PreemptType", "")
        mode = self.options.get("PreemptMode", "")
        said = (("PreemptType", kind, "preempt/none"), ("PreemptMode", mode, "OFF"))
        words = [f"{name}={value}" for name, value, off in said if value not in ("", off)]
        return ", ".join(words)

    @property
    def no_room(self) -> str:
        """Why no job is to make room for another here, and what slurm.conf should say; "" for not.

        Two that end jobs for others undo each other's work. And who makes room waits before all
        others: it would have the opening that backfill keeps for the first job alone.
        """
        if self.own_preemption:
            return (
                f"the batch system itself preempts here ({self.own_preemption});"
                " PreemptMode=OFF and PreemptType=preempt/none in slurm.conf are right for it"
            )
        if self.scheduler.get(RESERVES, "0").strip("0"):
            return (
                f"with SchedulerParameters={RESERVES} Slurm would keep no opening for who is next,"
                " but for the job that makes room; without that it is right"
            )
        return ""

    @property
    def least_qos(self) -> frozenset[str]:
        """The QOS whose jobs become no smaller: they ask for so much, or room is made for them."""
        return self.limits.least | self.ending_qos

    @property
    def ending_qos(self) -> frozenset[str]:
        """The QOS whose jobs may end those of others (sacctmgr(1), Preempt)."""
        return self.limits.preempting if self.preempts_by_qos else frozenset()

    @property
    def plugin_dirs(self) -> tuple[str, ...]:
        """Where Slurm's plugins lie."""
        return tuple(part for part in self.options.get("PluginDir", "").split(":") if part)

    @property
    def enforces_limits(self) -> bool:
        """Whether limits of associations and QOS hold (slurm.conf(5), AccountingStorageEnforce)."""
        return not {"limits", "safe", "all"}.isdisjoint(self._enforced)

    @property
    def _enforced(self) -> tuple[str, ...]:
        return _names(self.options.get("AccountingStorageEnforce", "").lower())

    @property
    def above(self) -> tuple[tuple[str, str], ...] | None:
        """Which accounts count for AllowAccounts and DenyAccounts, too: as in Abilities.

        Since 23.02 those above a job's; none where no associations are enforced (slurm.conf(5)).
        """
        if {"nojobs", "nosteps"}.issuperset(self._enforced):
            return None
        return self.limits.above if self.version >= HIERARCHICAL else ()

    @property
    def qos_of(self) -> tuple[tuple[tuple[str, str], frozenset[str]], ...] | None:
        """Which QOS a user's jobs of an account start with: as in Abilities (slurm.conf(5))."""
        return self.limits.qos_of if {"qos", "all"}.intersection(self._enforced) else None

    @property
    def controllers(self) -> tuple[str, ...]:
        """The names of the hosts that slurmctld may run on, the primary first."""
        found = sorted(key for key in self.options if key.startswith("SlurmctldHost["))
        return tuple(self.options[key].partition("(")[0] for key in found)

    @property
    def submit_plugins(self) -> tuple[str, ...]:
        """The job submit plugins in use."""
        return _names(self.options.get("JobSubmitPlugins", ""))


def _ahead(text: str) -> int:
    """Read the number that a text begins with: ``30 sec``; 0 where it begins with none."""
    found = re.match(r"[0-9]{1,6}", text)
    return int(found[0]) if found else 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word and word not in ("none", "None"))


def version_of(text: str) -> tuple[int, int]:
    """Read ``22.05.8`` or ``slurm-wlm 22.05.8``.

    Raises BadAnswer.
    """
    match = _VERSION.search(text)
    if not match:
        raise BadAnswer(f"Slurm's version {quoted(text)} is not a version")
    return (int(match[1]), int(match[2]))


def parse_config(text: str) -> Site:
    """Read ``scontrol show config``. What is not set is "": from 24.11 on much is ``(null)``.

    Raises BadAnswer.
    """
    options: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            value = match[2].strip()
            options.setdefault(match[1], "" if value == "(null)" else value)
    release = options.get("SLURM_VERSION", "")
    words = (word.partition("=") for word in _names(options.get("SchedulerParameters", "")))
    return Site(
        version_of(release),
        release,
        options.get("SlurmUser", "").partition("(")[0],
        options.get("ClusterName", ""),
        options.get("SLURM_CONF", ""),
        {key: value for key, _, value in words},
        frozenset(_names(options.get("PrivateData", ""))),
        _names(options.get("GresTypes", "")),
        "MEMORY" in options.get("SelectTypeParameters", "").upper(),
        options,
    )
