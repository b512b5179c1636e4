"""A node's monitor reports to a real pliantd about a real job, with munge between them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from asking_helpers import answer_of, ask
from door_helpers import ask_as
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.daemon import answers as a
from pliant.daemon.answers import from_json
from pliant.daemon.watched import TopAnswer
from pliant.errors import Unavailable
from pliant.monitor.report import Sender, World
from pliant.monitor.service import Node, once
from pliant.monitor.spool import Spool
from pliant.sandbox import Sandbox
from pliant.wire.monitor import REPORT, ReportAnswer, from_bytes, request

pytestmark = pytest.mark.slurm

START = "0123456789abcdef" * 2
SPINS = "while :; do :; done"


def sender_of(sandbox: Sandbox, folder: Path, said: list[str]) -> Sender:
    """What root runs on n1, reporting whenever it is let."""

    def tell(verb: str, fields: Mapping[str, str]) -> ReportAnswer:
        answer = answer_of(sandbox, verb, **fields)
        if not answer.is_ok:
            raise Unavailable(answer.message)
        return from_json(ReportAnswer, answer.fields["json"])

    world = World(time.time, time.monotonic, lambda: 0.0, said.append)
    sender = Sender("n1", START, Spool(folder), tell, world, every_s=0.1)
    sender.spool.open()
    return sender


def test_windows_wait_for_pliantd_and_reach_it_once_and_from_root_alone(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState, workdir: Path
) -> None:
    job = submit("--nodelist=n1", "--mem=100", "--time=30", script=SPINS)
    wait_for_state(job, "RUNNING")
    said: list[str] = []
    sender = sender_of(clean, workdir / "spool", said)

    def look() -> None:
        found = once(Node("n1"), 0.3, Event().wait)
        assert found is not None
        own = tuple(row for row in found.jobs if row.job == str(job))  # others' Slurm may be here
        assert len(own) == 1
        sender.take(replace(found, jobs=own))

    def sent() -> bool:
        time.sleep(sender.turn())
        return not sender._gathered and not len(sender.spool)

    look()
    clean.stop("pliantd")
    time.sleep(0.1)
    sender.turn()
    assert "Connection refused" in said[0]
    assert [path.suffix for path in (workdir / "spool").iterdir()] == [".report"]
    clean.start("pliantd")
    raw = sender.spool.oldest()
    assert raw is not None
    forged = request(from_bytes(raw))
    refused = ask_as(clean, "pliant-alice", REPORT, **forged.fields)
    assert refused.message == "only root's monitor of a node may report"

    wait_until(sent, "the report to be taken")
    look()
    wait_until(sent, "the next one to be taken")
    again = answer_of(clean, REPORT, **forged.fields)  # the first again: it came too late
    assert from_json(ReportAnswer, again.fields["json"]).verdict == "refused"

    now = ask(clean, a.StatusAnswer, "status").monitors
    (last,) = [row for row in now.last if row.node == "n1"]
    speed = {row.job: row for row in last.speeds}[str(job)]
    assert (speed.tier, speed.unit) == ("cpu", "cpu-s/s")
    assert speed.value > 0
    assert (now.reports, now.refused["not root"], now.refused["out of order"]) == (2, 1, 1)
    assert said[1:] == ["pliantd has taken the reports that were kept"]
    top = from_json(TopAnswer, ask_as(clean, "pliant-alice", "top").fields["json"])
    (row,) = [row for row in top.jobs if row.id == str(job)]
    assert (row.nodes, row.speeds[0].tier, row.speeds[0].nodes) == (("n1",), "cpu", 1)
    assert [row.name for row in top.nodes if row.heard_s] == ["n1"]
    mine = from_json(a.StatusAnswer, ask_as(clean, "pliant-alice", "status").fields["json"])
    assert mine.monitors.last == ()
