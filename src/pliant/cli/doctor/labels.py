"""SELinux: whether it enforces, and whether files have the labels that its policy gives them.

A file that was moved, not copied, keeps the label of the place where it was made, which daemons may
not read (restorecon(8)). Nothing is said where getenforce(8) is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pliant.cli.commands import is_there
from pliant.cli.doctor.findings import Finding, command, fault, ok, skipped
from pliant.cli.doctor.paths import pliantd_wants, slurmctld_wants, user_wants
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.errors import Unavailable

NAME = "selinux"


def check_labels(patient: SlurmPatient) -> Iterator[Finding]:
    """Ask getenforce, and where it enforces matchpathcon(8) for each file of the installation."""
    try:
        mode = patient.run(["getenforce"]).out.strip()
    except Unavailable:
        return
    if mode != "Enforcing":
        yield ok(NAME, f"{mode or 'unknown'}: nothing is refused")
        return
    wants = (*slurmctld_wants(patient), *pliantd_wants(patient), *user_wants(patient))
    paths = sorted({path for path, _ in wants if is_there(path)})
    try:
        wrong = [(path, said) for path in paths if (said := _mislabelled(patient, path))]
    except Unavailable as missing:
        yield skipped(NAME, f"Enforcing; labels are not looked at: {missing}")
        return
    for path, said in wrong:
        yield fault(NAME, f"Enforcing, and {said}", "", [command("restorecon", "-v", path)])
    if not wrong:
        yield ok(NAME, "Enforcing; labels are as its policy has them")


def _mislabelled(patient: SlurmPatient, path: Path) -> str:
    """Return matchpathcon's complaint, "" where it has none."""
    answer = patient.run(["matchpathcon", "-V", str(path)])
    return "" if answer.status == 0 else (answer.out.strip() or answer.words)
