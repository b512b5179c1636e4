"""SELinux: its mode, whether Pliant's module is loaded, and whether files have their labels.

A file that was moved, not copied, keeps the label of the place where it was made, which daemons may
not read (restorecon(8)). Nothing is said where getenforce(8) is not, or SELinux is off.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from pliant import resources
from pliant.cli.commands import is_there
from pliant.cli.doctor.findings import Finding, advice, command, fault, ok, skipped
from pliant.cli.doctor.paths import pliantd_wants, slurmctld_wants, user_wants
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.errors import Unavailable

NAME, LABELS, MODULE = "selinux", "labels", "pliant"
ENFORCING = "Enforcing"
COPY = Path("/root/pliant-selinux")
"""Where the module is compiled: its source may lie where nothing is to be written."""
DEVEL = Path("/usr/share/selinux/devel/Makefile")
SPOOLS = (Path("/var/lib/pliant-monitor"), Path("/var/spool/pliant-monitor"))


def check_selinux(patient: SlurmPatient) -> Iterator[Finding]:
    """Ask getenforce, and where SELinux is on semodule(8), and matchpathcon(8) for each file."""
    try:
        mode = patient.run(["getenforce"]).out.strip()
    except Unavailable:
        return
    if mode in (ENFORCING, "Permissive"):
        yield _module(patient, mode)
        yield from _labels(patient, mode)


def _module(patient: SlurmPatient, mode: str) -> Finding:
    """Whether Pliant's module is loaded, where there is a pliantd that it is for."""
    if not (patient.is_controller or patient.has_pliantd):
        return ok(NAME, mode)
    if not patient.is_root:
        return skipped(NAME, f"{mode}; only root sees which modules are loaded")
    try:
        answer = patient.run(["semodule", "-l"])
    except Unavailable as missing:
        return skipped(NAME, f"{mode}; modules are not looked at: {missing}")
    if answer.status != 0:
        return skipped(NAME, f"{mode}; modules are not looked at: {answer.words}")
    if any(line.split()[:1] == [MODULE] for line in answer.out.splitlines()):
        return ok(NAME, f"{mode}, module {MODULE} is loaded")
    return advice(
        NAME,
        f"{mode}, without the module {MODULE}: pliantd is a service without a domain of its own",
        f"load it, if it shall have one; {DEVEL} is of selinux-policy-devel (Debian: -dev)",
        _loading(),
    )


def _loading() -> list[str]:
    """Return what compiles and loads the module; the labels that follow are found next time."""
    return [
        command("cp", "-rT", resources.find("templates", "selinux"), COPY),
        command("make", "-C", COPY, "-f", DEVEL, f"{MODULE}.pp"),
        command("semodule", "-i", COPY / f"{MODULE}.pp"),
    ]


def _labels(patient: SlurmPatient, mode: str) -> Iterator[Finding]:
    """Whether each file has the label that the policy gives it."""
    program = Path(sys.executable).with_name("pliantd").resolve()
    wants = (*slurmctld_wants(patient), *pliantd_wants(patient), *user_wants(patient))
    paths = sorted({p for p in (program, *SPOOLS, *(path for path, _ in wants)) if is_there(p)})
    try:
        wrong = [(path, said) for path in paths if (said := _mislabelled(patient, path))]
    except Unavailable as missing:
        yield skipped(LABELS, f"{mode}; labels are not looked at: {missing}")
        return
    bad = fault if mode == ENFORCING else advice
    for path, said in wrong:
        yield bad(LABELS, f"{mode}, and {said}", "", [command("restorecon", "-v", path)])
    if not wrong:
        yield ok(LABELS, "as SELinux's policy has them")


def _mislabelled(patient: SlurmPatient, path: Path) -> str:
    """Return matchpathcon's complaint, "" where it has none."""
    answer = patient.run(["matchpathcon", "-V", str(path)])
    return "" if answer.status == 0 else (answer.out.strip() or answer.words)
