"""The names of [partitions] in pliant.toml: Slurm knows each of them, or one is misspelt."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from pliant.cli.doctor.findings import Finding, fault
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.doctor.toml_lines import edit, renamed


def check_partitions(patient: SlurmPatient) -> Iterator[Finding]:
    """Look for the partitions of pliant.toml in Slurm itself, whether pliantd runs or not."""
    config, known = patient.config, patient.known_partitions
    if config is None or not known:
        return
    for name in sorted(set(config.partitions) - known - {"default"}):
        meant = get_close_matches(name, known, n=1)
        try:
            lines = renamed(patient.config_path.read_text(), name, known)
        except (OSError, ValueError):
            lines = {}
        commands = edit(patient.config_path, lines)
        yield fault(
            "partitions",
            f"[partitions] of pliant.toml names {name}, which Slurm does not have: it has "
            f"{', '.join(sorted(known))}",
            (f"is {meant[0]} meant? " if meant else "")
            + ("" if commands else f"mend it, then {patient.again}"),
            (*commands, *(patient.again_commands if commands and patient.has_pliantd else ())),
        )
