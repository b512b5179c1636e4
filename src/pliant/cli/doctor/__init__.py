"""``pliant doctor``: what is wrong with an installation, each fault with its cure."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator

import click

from pliant.cli.doctor.access import check_access
from pliant.cli.doctor.daemon import check_daemon
from pliant.cli.doctor.filter import check_filter
from pliant.cli.doctor.findings import Finding, State, fault
from pliant.cli.doctor.patient import Patient, gather
from pliant.cli.doctor.slurm import check_gpus, check_munge, check_scheduler, check_slurm
from pliant.cli.doctor.spank import check_spank
from pliant.cli.output import json_option, on_terminal, print_json, printable
from pliant.errors import PliantError

CHECKS: tuple[Callable[[Patient], Iterator[Finding]], ...] = (
    check_slurm,
    check_access,
    check_munge,
    check_gpus,
    check_scheduler,
    check_filter,
    check_spank,
    check_daemon,
)
COLOURS = {State.OK: "green", State.ADVICE: "yellow", State.FAULT: "red", State.SKIPPED: "cyan"}


@click.command(short_help="What is wrong with this installation, and the cure.")
@json_option
def doctor(as_json: bool) -> None:
    """Look for what is wrong with this installation, and say the cure of each fault.

    It changes nothing. Run it as root on the controller, where it sees most. Exit 1 where it
    found a fault; advice is no fault.
    """
    findings = examine(gather(getpass.getuser()))
    if as_json:
        print_json(findings)
    else:
        _print(findings)
    if any(finding.state is State.FAULT for finding in findings):
        raise click.exceptions.Exit(1)


def examine(patient: Patient) -> list[Finding]:
    """Return all findings; a check that fails itself is a fault like any other."""
    findings: list[Finding] = []
    for check in CHECKS:
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
        if finding.cure:
            click.echo(f"{'':9}{'':{width}}  cure: {printable(finding.cure)}")
    faults = sum(finding.state is State.FAULT for finding in findings)
    advised = sum(finding.state is State.ADVICE for finding in findings)
    click.echo(f"\nfaults: {faults}, advice: {advised}")
