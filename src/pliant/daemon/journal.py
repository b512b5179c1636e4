"""Lines for systemd's journal with fields: ``journalctl JOB_ID=4711`` finds all of one job.

Where stderr is the journal's, as in a systemd service, lines go to its socket instead, each with
what it is about: JOB_ID, USER, PARTITION, and of a change FROM and TO. Elsewhere, and where the
journal does not take one, they go to stderr. Source: systemd's "Native Journal Protocol".
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

from pliant.model import Job

SOCKET = Path("/run/systemd/journal/socket")
FIELDS = "journal"
"""As what a record of logging carries them."""
LIMIT_S = 1.0
"""How long the journal may take for a line."""
_PRIORITY = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3}
"""As syslog(3) counts."""


def about(
    job_id: str, *, user: str = "", partition: str = "", before: str = "", after: str = ""
) -> Mapping[str, object]:
    """Return what a line is about, as ``extra`` of the calls of logging."""
    fields = {"JOB_ID": job_id, "USER": user, "PARTITION": partition, "FROM": before, "TO": after}
    return {FIELDS: {name: text for name, text in fields.items() if text}}


def about_job(job: Job, before: str = "", after: str = "") -> Mapping[str, object]:
    """Return the same of a job."""
    partition = ",".join(job.partitions)
    return about(job.id, user=job.user, partition=partition, before=before, after=after)


def handler(environ: Mapping[str, str] = os.environ, path: Path = SOCKET) -> logging.Handler:
    """Return what writes lines to the journal, or to stderr where that is not the journal's."""
    plain = logging.StreamHandler(sys.stderr)
    plain.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    if not path.exists() or not _is_stderr(environ.get("JOURNAL_STREAM", "")):
        return plain
    return JournalHandler(path, plain)


def _is_stderr(stream: str) -> bool:
    """Whether systemd says that the journal reads our stderr: by its device and inode."""
    try:
        found = os.fstat(2)
    except OSError:
        return False
    return stream == f"{found.st_dev}:{found.st_ino}"


class JournalHandler(logging.Handler):
    """Writes to the journal's socket."""

    def __init__(self, path: Path, plain: logging.Handler) -> None:
        """``plain``: takes what the journal does not take."""
        super().__init__()
        self.setFormatter(logging.Formatter())  # else basicConfig's own: what the fields say, again
        self._path, self._plain = path, plain
        self._socket: socket.socket | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            self._connected().send(message(record, self.format(record)))
        except OSError:
            self._close_socket()
            self._plain.emit(record)

    def close(self) -> None:
        """Close the socket."""
        self._close_socket()
        super().close()

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.settimeout(LIMIT_S)
            self._socket.connect(str(self._path))
        return self._socket

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def message(record: logging.LogRecord, text: str) -> bytes:
    """Return a line as the journal takes it."""
    fields = {
        "MESSAGE": text,
        "PRIORITY": str(_PRIORITY.get(record.levelno, 2)),
        "SYSLOG_IDENTIFIER": "pliantd",
        "LOGGER": record.name,
        **getattr(record, FIELDS, {}),
    }
    return b"".join(_field(name, value) for name, value in fields.items())


def _field(name: str, value: str) -> bytes:
    """Return a field by its length: nothing in a text begins another one."""
    raw = value.encode("utf-8", "replace")
    return name.encode() + b"\n" + struct.pack("<Q", len(raw)) + raw + b"\n"
