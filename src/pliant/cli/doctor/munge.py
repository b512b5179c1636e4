"""munge, by which pliantd knows who asks."""

from __future__ import annotations

from collections.abc import Iterator

from pliant.cli.doctor.findings import Finding, command, fault, ok
from pliant.cli.doctor.patient import Patient
from pliant.errors import Unavailable


def check_munge(patient: Patient) -> Iterator[Finding]:
    """Let munge make a credential and read it."""
    sockets = [f"--socket={patient.munge_socket}"] if patient.munge_socket else []
    cure = "start munged, with the key of the cluster"
    start = [command("systemctl", "start", "munge")]
    try:
        made = patient.run(["munge", *sockets], text="ping")
        read = patient.run(["unmunge", *sockets], text=made.out)
    except Unavailable as wrong:
        yield fault("munge", str(wrong), cure, start)
        return
    if made.status == 0 and read.status == 0:
        yield ok("munge", "makes and reads credentials")
    else:
        yield fault("munge", made.words if made.status else read.words, cure, start)
