"""pliantd's lines in systemd's journal, each with the fields of what it is about."""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from pliant.daemon.journal import JournalHandler, about, about_job, handler
from pliant.model import Job

HOSTILE = "it's\nJOB_ID=9\nPRIORITY=0\udcff"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    """What stands for journald: a socket of datagrams."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(str(tmp_path / "journal"))
        door.settimeout(10)
        yield door


def fields_of(datagram: bytes) -> dict[str, str]:
    """Read systemd's native protocol: a name, a length, and so many bytes."""
    found = {}
    while datagram:
        name, _, rest = datagram.partition(b"\n")
        (length,) = struct.unpack("<Q", rest[:8])
        assert rest[8 + length : 9 + length] == b"\n"
        found[name.decode()] = rest[8 : 8 + length].decode()
        datagram = rest[9 + length :]
    return found


def logger(to: logging.Handler) -> logging.Logger:
    made = logging.Logger("pliant.cycle")
    made.addHandler(to)
    return made


def stderr_is_the_journals() -> dict[str, str]:
    found = os.fstat(2)
    return {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}


def test_a_line_has_the_fields_of_its_job(journal: socket.socket, tmp_path: Path) -> None:
    to = handler(stderr_is_the_journals(), tmp_path / "journal")
    job = Job("7", user="alice", partitions=("gpu", "short"))
    logger(to).info("job %s: mold 2: it fits", "7", extra=about_job(job, "4", "2"))
    logger(to).warning("%s", HOSTILE)
    assert fields_of(journal.recv(65536)) == {
        "MESSAGE": "job 7: mold 2: it fits",
        "PRIORITY": "6",
        "SYSLOG_IDENTIFIER": "pliantd",
        "LOGGER": "pliant.cycle",
        "JOB_ID": "7",
        "USER": "alice",
        "PARTITION": "gpu,short",
        "FROM": "4",
        "TO": "2",
    }
    hostile = fields_of(journal.recv(65536))
    assert hostile["MESSAGE"] == "it's\nJOB_ID=9\nPRIORITY=0?"
    assert (hostile["PRIORITY"], "JOB_ID" in hostile) == ("4", False)
    to.close()


def test_level_and_logger_are_fields_and_not_in_the_text_too(
    journal: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logging.basicConfig(handlers=[handler(stderr_is_the_journals(), tmp_path / "journal")])
    logging.getLogger("pliant.cycle").warning("x")
    assert fields_of(journal.recv(65536))["MESSAGE"] == "x"
    logging.getLogger().handlers[0].close()


def test_what_is_not_known_is_no_field() -> None:
    assert about("7", user="", before="4") == {"journal": {"JOB_ID": "7", "FROM": "4"}}


@pytest.mark.parametrize("stream", ["", "1:2", "x"])
def test_where_stderr_is_not_the_journals_lines_go_there(
    journal: socket.socket, tmp_path: Path, stream: str, capsys: pytest.CaptureFixture[str]
) -> None:
    to = handler({"JOURNAL_STREAM": stream}, tmp_path / "journal")
    assert not isinstance(to, JournalHandler)
    logger(to).info("x", extra=about("7"))
    assert capsys.readouterr().err == "INFO pliant.cycle: x\n"


def test_where_the_journal_is_away_lines_go_to_stderr_and_back_to_it_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal"
    path.touch()
    log = logger(handler(stderr_is_the_journals(), path))
    log.info("lost")
    assert capsys.readouterr().err == "INFO pliant.cycle: lost\n"
    path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(str(path))
        log.info("back")
        assert fields_of(door.recv(65536))["MESSAGE"] == "back"
