"""``pliant doctor``: what is wrong with an installation, each fault with its cure."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import click

from pliant.cli.doctor import pbs, pbs_gpus, pbs_hooks, pbs_scheduler
from pliant.cli.doctor.access import check_access
from pliant.cli.doctor.daemon import check_daemon
from pliant.cli.doctor.down import check_down
from pliant.cli.doctor.filter import check_filter
from pliant.cli.doctor.findings import Finding, State, fault
from pliant.cli.doctor.memory import check_memory
from pliant.cli.doctor.munge import check_munge
from pliant.cli.doctor.partitions import check_partitions
from pliant.cli.doctor.paths import check_paths
from pliant.cli.doctor.patient import Host, Patient
from pliant.cli.doctor.pbs_patient import PbsPatient, gather_pbs
from pliant.cli.doctor.selinux import check_selinux
from pliant.cli.doctor.slurm import check_gpus, check_host, check_scheduler, check_slurm
from pliant.cli.doctor.slurm_patient import SlurmPatient, gather_slurm
from pliant.cli.doctor.spank import check_spank
from pliant.cli.output import json_option, on_terminal, print_json, printable
from pliant.errors import PliantError

T = TypeVar("T", bound=Patient)

SLURM: tuple[Callable[[SlurmPatient], Iterator[Finding]], ...] = (
    check_down,  # what slurmctld needs before it can be started
    check_slurm,
    check_access,
    check_munge,
    check_host,
    check_gpus,
    check_scheduler,
    check_memory,
    check_filter,
    check_spank,
    check_paths,
    check_selinux,
    check_partitions,
    check_daemon,
)
PBS: tuple[Callable[[PbsPatient], Iterator[Finding]], ...] = (
    pbs.check_pbs,
    check_munge,
    pbs_gpus.check_gpus,
    pbs_scheduler.check_scheduler,
    pbs_hooks.check_hooks,
    pbs_hooks.check_state,
    check_daemon,
)
COLOURS = {State.OK: "green", State.ADVICE: "yellow", State.FAULT: "red", State.SKIPPED: "cyan"}


@click.command(short_help="What is wrong with this installation, and the cure.")
@json_option
def doctor(as_json: bool) -> None:
    """Look for what is wrong with this installation, and say the cure of each fault.

    It changes nothing. Run it as root on the controller (of PBS: on the server's host), where it
    sees most, also with the eyes of slurmctld's user, of pliantd's and of users. A line `run:` is a
    command of the cure, to be run as it stands. Exit 1 where it found a fault; advice is no fault.
    """
    host = Host.of(getpass.getuser())
    findings = examine(gather_pbs(host) if host.is_of_pbs else gather_slurm(host))
    if as_json:
        print_json(findings)
    else:
        _print(findings)
    if any(finding.state is State.FAULT for finding in findings):
        raise click.exceptions.Exit(1)


def examine(patient: SlurmPatient | PbsPatient) -> list[Finding]:
    """Return all findings; a check that fails itself is a fault like any other."""
    if isinstance(patient, PbsPatient):
        return _found(PBS, patient)
    return _found(SLURM, patient)


def _found(checks: Iterable[Callable[[T], Iterator[Finding]]], patient: T) -> list[Finding]:
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check(patient)
        except PliantError as wrong:
            name = check.__name__.removeprefix("check_")
            findings.append(fault(name, str(wrong), "see the message"))
    return findings


def _print(findings: list[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        word = finding.state.ljust(7)
        shown = click.style(word, COLOURS[finding.state]) if on_terminal() else word
        click.echo(f"{shown}  {finding.name.ljust(width)}  {printable(finding.says)}")
        told = [("cure: ", finding.cure)] if finding.cure else []
        for label, text in [*told, *(("run:  ", line) for line in finding.commands)]:
            click.echo(f"{'':9}{'':{width}}  {label}{printable(text)}")
    faults = sum(finding.state is State.FAULT for finding in findings)
    advised = sum(finding.state is State.ADVICE for finding in findings)
    click.echo(f"\nfaults: {faults}, advice: {advised}")
