"""slurm.conf as a file against slurmctld's memory: an edit that slurmctld has not read.

Slurm compares the two by itself (HASH_VAL of ``scontrol show config``), and by each letter of the
file; here it is looked whether what matters to Pliant differs, and the partitions. slurm.conf(5)
says which options a reconfiguration does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pliant.cli.doctor.cures import RECONFIGURE
from pliant.cli.doctor.findings import Finding, advice, fault, ok, skipped
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.install.texts import own_settings, settings
from pliant.cli.install.view import view
from pliant.errors import PliantError

NAME = "slurm.conf"
RESTART = "systemctl restart slurmctld"
RECONFIGURED = ("JobSubmitPlugins", "PlugStackConfig", "PreemptMode", "PrivateData",
                "SchedulerParameters", "SelectTypeParameters")  # fmt: skip
RESTARTED = ("AuthInfo", "GresTypes", "PreemptType", "PriorityType", "SchedulerType", "SelectType")
"""What only a restart of slurmctld changes, before Slurm 23.11."""
_KIND = re.compile(r"^[a-z_]+/")
_NONE = ("", "(null)", "none", "n/a")


def check_memory(patient: SlurmPatient) -> Iterator[Finding]:
    """Compare what slurm.conf says on the controller with what slurmctld has read of it."""
    if patient.site is None or not patient.is_controller or not patient.site.conf:
        return
    conf = Path(patient.site.conf)
    try:
        found = view(Path("/"), conf)
    except PliantError as wrong:
        yield skipped(NAME, str(wrong))
        return
    if found.missing:
        yield skipped(NAME, f"{found.missing[0]} is not there")
        return
    differ = list(_differ(patient, found.text))
    if not differ:
        yield _by_hash(patient, conf)
        return
    restarts = any(name in RESTARTED for name, _ in differ) and patient.site.version < (23, 11)
    yield fault(
        NAME,
        f"{'; '.join(words for _, words in differ)}: {conf} was edited and not read since",
        "where the edit is meant",
        [RESTART if restarts else RECONFIGURE],
    )


def _by_hash(patient: SlurmPatient, conf: Path) -> Finding:
    if patient.option("HASH_VAL").lower().startswith("different"):
        says = f"{conf} is not the one that slurmctld has read, in what Pliant does not look at"
        return advice(NAME, says, "where the edit is meant", [RECONFIGURE])
    return ok(NAME, "as slurmctld has it")


def _differ(patient: SlurmPatient, text: str) -> Iterator[tuple[str, str]]:
    """Yield the options, and PartitionName, that slurmctld has otherwise, each in words."""
    said = {key.lower(): value for key, value in own_settings(text)}
    for name in (*RECONFIGURED, *RESTARTED):
        must = name == "JobSubmitPlugins"  # an option that is not said has a default
        value = said.get(name.lower(), "" if must else None)
        if name == "PlugStackConfig" and value and not value.startswith("/"):
            continue  # slurmctld shows where that lies
        if value is not None and _words(value) != _words(patient.option(name)):
            now = patient.option(name) or "none"
            yield name, f"it says {name}={value or '(nothing)'}, slurmctld has {now}"
    partitions = {value for key, value in settings(text) if key.lower() == "partitionname"}
    plain = {name for name in partitions if name.upper() != "DEFAULT" and not set(name) & set("[,")}
    new = sorted(plain - patient.known_partitions)
    if new and patient.known_partitions:
        yield "PartitionName", f"it has the partition {', '.join(new)}, slurmctld has not"


def _words(value: str) -> frozenset[str]:
    """Return an option's words, however they are written: order, case, ``sched/`` before them."""
    words = (_KIND.sub("", word.strip()) for word in value.lower().split(","))
    return frozenset(word for word in words if word not in _NONE)
