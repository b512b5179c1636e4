"""PBS itself: its commands, its server, and who may change jobs there."""

from __future__ import annotations

import pwd
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from pliant.cli.doctor.findings import Finding, advice, fault, ok, skipped
from pliant.cli.doctor.pbs_patient import PbsPatient

MEASURED = "23.06"
"""The release that was measured."""


def check_pbs(patient: PbsPatient) -> Iterator[Finding]:
    """Look for the commands, the server and its release, and the rights of pliantd's user."""
    where = patient.settings.pbs.bin_dir or "PATH"
    if patient.missing:
        yield fault(
            "commands",
            f"{', '.join(patient.missing)}: not in {where}",
            "[pbs] bin_dir in pliant.toml names the directory of qstat",
        )
    else:
        yield ok("commands", f"in {where}")
    server = patient.server
    if server is None:
        yield fault(
            "server",
            patient.server_trouble,
            "start it, or name it by pbs.conf or by [pbs] server in pliant.toml",
        )
        return
    yield ok("server", f"{patient.server_host} answers")
    if server.version.startswith(MEASURED):
        yield ok("release", f"PBS {server.version}")
    else:
        yield advice(
            "release",
            f"PBS {server.version} was not measured",
            "leave the queues in observe until a trial went well",
        )
    yield _seen(patient)
    yield _rights(patient)
    yield _others(server.sees_others)


def _seen(patient: PbsPatient) -> Finding:
    """Whether the doctor sees all itself; what qmgr does not tell is left out below."""
    if patient.hooks is not None and patient.is_root:
        return ok("doctor", f"looks as {patient.user}")
    if patient.is_root and patient.is_controller:
        return fault("qmgr", patient.qmgr_trouble, "see the message: root here is a manager")
    return skipped(
        "doctor", f"{patient.user} does not see all here: root on {patient.server_host} does"
    )


def _rights(patient: PbsPatient) -> Finding:
    """Whether the server lets pliantd's user change jobs: root on its host, and managers."""
    name, uid = "rights", patient.pliantd_uid
    try:
        user = pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        user = patient.settings.daemon.user or str(uid)
        words = f"pliantd's user {user} is not known here"
        return fault(name, words, "[daemon] user in pliant.toml is the name of one that is")
    known = patient.hooks is not None or patient.settings.daemon.user
    if not (patient.is_controller and known):
        return skipped(name, f"those of pliantd's user are seen by root on {patient.server_host}")
    if user == "root" or _is_manager(f"{user}@{patient.server_host}", patient.attributes):
        return ok(name, f"pliantd's user {user} is a manager")
    return fault(
        name,
        f"pliantd's user {user} is no manager: PBS refuses it all changes",
        f"qmgr -c 'set server managers += {user}@{patient.server_host}'",
    )


def _is_manager(who: str, attributes: Mapping[str, str]) -> bool:
    """Whether ``user@host`` is among the managers, whose hosts may begin with an asterisk."""
    named = attributes.get("managers", "").split(",")
    patterns = (one.strip().lstrip("+").replace("[", "[[]") for one in named)
    return any(fnmatchcase(who.lower(), one.lower()) for one in patterns if one)


def _others(sees_others: bool) -> Finding:
    name = "query_other_jobs"
    if sees_others:
        return ok(name, "True")
    return fault(
        name,
        "False: nobody sees others' jobs, and pliantd believes no look of that kind",
        "qmgr -c 'set server query_other_jobs = True'",
    )
