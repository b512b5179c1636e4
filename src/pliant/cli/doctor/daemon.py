"""pliantd: its configuration, both doors, its store, and what it may do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pliant.cli.commands import is_there
from pliant.cli.doctor.findings import Finding, advice, fault, ok, skipped
from pliant.cli.doctor.patient import Patient
from pliant.cli.doctor.toml_lines import edit, mended
from pliant.cli.door import ask
from pliant.daemon.answers import StatusAnswer
from pliant.daemon.config import Config
from pliant.errors import PliantError, Unavailable
from pliant.policies import by_name
from pliant.wire import Message
from pliant.wire import ask as ask_socket

ROOM_BYTES = 100 * 1024 * 1024


def check_daemon(patient: Patient) -> Iterator[Finding]:
    """Look at pliant.toml, then at pliantd itself."""
    config = patient.config
    if config is None:
        yield broken(patient) if is_there(patient.config_path) else _missing(patient)
        return
    yield from _policy(patient, config)
    if patient.is_controller or patient.has_pliantd:
        yield from _first_door(patient, config)
        yield from _store(patient, config)
    else:
        yield skipped(patient.door, f"it is looked at on {patient.place}")
    yield from _second_door(patient, config)


def _missing(patient: Patient) -> Finding:
    words = [patient.writes_config] if patient.writes_config else []
    cure = "; ".join([*words, "PLIANT_CONFIG names another"])
    return fault("pliant.toml", patient.config_trouble, cure, patient.config_commands)


def broken(patient: Patient) -> Finding:
    """A pliant.toml that is there and says what it should not: an installation leaves it alone."""
    path, name = patient.config_path, "pliant.toml"
    try:
        commands = edit(path, mended(path.read_bytes().decode()))
    except (OSError, ValueError):
        commands = ()
    if commands:
        cure = f"mend it so, then {patient.again}: until then pliantd keeps the settings it has"
        return fault(name, patient.config_trouble, cure, commands)
    return fault(name, patient.config_trouble, f"write what is expected, then {patient.again}")


def _policy(patient: Patient, config: Config) -> Iterator[Finding]:
    try:
        by_name(config.daemon.policy)
        yield ok("pliant.toml", f"{patient.config_path}, policy {config.daemon.policy}")
    except PliantError as wrong:
        yield fault("pliant.toml", str(wrong), "set [daemon] policy")


def _first_door(patient: Patient, config: Config) -> Iterator[Finding]:
    name, path = patient.door, Path(config.daemon.socket)
    if not patient.may_see_all:
        yield skipped(name, f"only {patient.who_may} may ask there")
        return
    try:
        answer = ask_socket(path, Message("ping"))
    except Unavailable as wrong:
        cure = f"{patient.start}; until then jobs pass as they are"
        yield fault(name, f"{wrong}", cure, patient.start_commands)
        return
    if answer.is_ok:
        yield ok(name, f"{path} answers")
    else:
        yield fault(name, answer.message, patient.start, patient.start_commands)


def _store(patient: Patient, config: Config) -> Iterator[Finding]:
    directory = Path(config.daemon.state_dir)
    try:
        free = shutil.disk_usage(directory).free
        mine = os.access(directory, os.W_OK)
    except OSError as wrong:
        says = f"{directory}: {wrong.strerror}"
        yield fault("store", says, patient.start, patient.start_commands)
        return
    if patient.may_see_all and not mine:
        yield fault("store", f"{directory} cannot be written", "chown it to pliantd's user")
    elif free < ROOM_BYTES:
        yield fault(
            "store", f"{directory} has {free // 2**20} MiB left", "make room: history is lost"
        )
    else:
        yield ok("store", f"{directory}")


def _second_door(patient: Patient, config: Config) -> Iterator[Finding]:
    name = "second door"
    if not config.daemon.listen:
        yield advice(
            name,
            "off: pliant status, jobs, why and set cannot ask",
            '[daemon] listen = "0.0.0.0:6830" in pliant.toml, then restart pliantd',
        )
        return
    try:
        status = ask(StatusAnswer, "status")
    except PliantError as wrong:
        cure = f"{patient.start}; is port {config.daemon.listen} open between hosts?"
        yield fault(name, str(wrong), cure, patient.start_commands)
        return
    yield ok(name, f"pliantd {status.version} on {status.host} answers")
    for trouble in status.troubles:
        yield fault("pliantd", trouble, f"{patient.log} has more")
    yield from unanswered(patient, status)
    yield from modes(patient, config, status)


def unanswered(patient: Patient, status: StatusAnswer) -> Iterator[Finding]:
    """Say how many jobs were submitted without an answer since pliantd began."""
    if status.unanswered:
        yield advice(
            "submissions",
            f"{status.unanswered} jobs with Pliant's options got no answer in time at their "
            f"submission since pliantd began, {status.submissions} submissions got one: those jobs "
            "were accepted as written and looked into while they waited",
            f"nothing where pliantd was stopped meanwhile; else see the load of {status.host}, "
            f"{patient.log} and slurmctld's log for `pliant:`",
        )


def modes(patient: Patient, config: Config, status: StatusAnswer) -> Iterator[Finding]:
    """Say what Pliant may do, and which partitions of pliant.toml there are not."""
    if status.paused:
        yield advice("mode", "paused: no job is changed", "pliant resume")
    known = {row.name for row in status.partitions}
    unknown = sorted(set(config.partitions) - known - {"default"})
    if unknown and known and not patient.known_partitions:  # else Slurm itself was asked
        yield fault(
            "partitions",
            f"[partitions] of pliant.toml names {', '.join(unknown)}, which {patient.system} does "
            "not have",
            f"one of {', '.join(sorted(known))} is expected",
        )
    enforced = [row.name for row in status.partitions if row.mode == "enforce"]
    if enforced:
        yield ok("mode", f"enforce in {', '.join(enforced)}")
    elif known:
        yield advice(
            "mode",
            "no partition is enforced: Pliant decides and explains, and changes no job",
            f'when you trust it: [partitions] NAME = "enforce", then {patient.again}',
        )
