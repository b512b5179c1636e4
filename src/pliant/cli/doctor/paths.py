"""The paths of an installation with the eyes of those who use them, as root sees all of them.

slurmctld's user reads job_submit.lua and what it loads, and connects to pliantd; pliantd's user
reads pliant.toml, and writes its history and its socket; each user's sbatch reads the plugin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pliant.cli.commands import is_there
from pliant.cli.doctor.eyes import EVERYBODY, Eyes, Obstacle, obstacle, opened
from pliant.cli.doctor.findings import Finding, fault, ok, skipped
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.doctor.spank import stack_of, stack_paths
from pliant.errors import Unavailable

MUNGE_SOCKET = "/run/munge/munge.socket.2"
"""munge's own default (munge(7))."""

Wants = Iterable[tuple[Path, str]]


def check_paths(patient: SlurmPatient) -> Iterator[Finding]:
    """Look whether each one's way is open, by the modes along it."""
    if patient.site is not None and patient.is_controller:
        wants = slurmctld_wants(patient)
        yield from seen("slurmctld's paths", patient.site.slurm_user, wants)
    if patient.config is not None and (patient.is_controller or patient.has_pliantd):
        yield from seen("pliantd's paths", pliantd_user(patient), pliantd_wants(patient))
    if patient.site is not None:
        yield from judged("users' paths", EVERYBODY, user_wants(patient))


def pliantd_user(patient: SlurmPatient) -> str:
    """Return who pliantd is: as pliant.toml says, else SlurmUser, as an installation has it."""
    said = patient.config.daemon.user if patient.config else ""
    return said or (patient.site.slurm_user if patient.site else "")


def slurmctld_wants(patient: SlurmPatient) -> list[tuple[Path, str]]:
    """Return what slurmctld's user needs, each path with letters of rwx."""
    wants = [(patient.conf_dir / name, "r") for name in ("job_submit.lua", "pliant.lua")]
    if patient.config is not None:
        door = Path(patient.config.daemon.socket)
        wants += [(door.parent, "x"), (door, "w")]
    return wants


def pliantd_wants(patient: SlurmPatient) -> list[tuple[Path, str]]:
    """Return what pliantd's user needs."""
    config = patient.config
    if config is None:
        return []
    state = Path(config.daemon.state_dir)
    conf = config.slurm.conf or (patient.site.conf if patient.site else "")
    return [
        (patient.config_path, "r"),
        *([(Path(conf), "r")] if conf else []),
        (state, "rwx"),
        *((state / f"pliant.db{end}", "rw") for end in ("", "-wal", "-shm")),
        (Path(config.daemon.socket).parent, "wx"),
        (Path(patient.munge_socket or MUNGE_SOCKET), "w"),
    ]


def user_wants(patient: SlurmPatient) -> list[tuple[Path, str]]:
    """Return what sbatch needs in each user's hands: where one cannot read it, it says so."""
    try:
        return [(path, "r") for path in stack_paths(stack_of(patient))]
    except Unavailable:  # root may see it
        return []


def seen(name: str, user: str, wants: Wants) -> Iterator[Finding]:
    """Judge the paths of a user of this host."""
    eyes = Eyes.of(user)
    if eyes is None:
        yield skipped(name, f"this host does not know the user {user}")
    else:
        yield from judged(name, eyes, wants)


def judged(name: str, eyes: Eyes, wants: Wants) -> Iterator[Finding]:
    """Yield a fault for each place that keeps a user from some paths."""
    if not eyes.can_be_ours:
        yield skipped(name, f"only root can look with the eyes of {eyes.name}")
        return
    wants, found = list(wants), dict[tuple[Path, str], Obstacle]()
    try:
        for one in (obstacle(path, letters, eyes) for path, letters in wants):
            if one is not None:
                found.setdefault((one.at, one.letters), one)
    except OSError as wrong:
        yield skipped(name, f"the eyes of {eyes.name} cannot be had here: {wrong.strerror}")
        return
    for one in found.values():
        yield _told(name, one, eyes)
    if not found and any(is_there(path) for path, _ in wants):
        yield ok(name, f"open to {eyes.name}")


def _told(name: str, one: Obstacle, eyes: Eyes) -> Finding:
    says = f"{eyes.name} may not {one.says} {one.at}"
    if one.at != one.path:
        says += f", on the way to {one.path}"
    run = opened(one, eyes)
    acl = "its mode is not what is in the way: an ACL, or a file system mounted read-only"
    return fault(name, says, "" if run else acl, [run] if run else [])
