"""What a running PBS with Pliant is told to be: by `pliant doctor`, and of arrays and reservations."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pbs_helpers import SHARE, Server, needs_server, number, until

from docs_helpers import alike, on_page, with_words

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

MOLDABLE = ("-l", "moldable=gpus=1-4", "-l", "walltime=10:00:00")


def faults(server: Server) -> dict[str, str]:
    findings = json.loads(server.pliant("doctor", "--json", check=False))
    return {one["name"]: one["says"] for one in findings if one["state"] == "fault"}


@contextmanager
def told(server: Server, wrong: str, right: str) -> Iterator[None]:
    """Let qmgr be told what is wrong for a while."""
    server.run("qmgr", "-c", wrong)
    try:
        yield
    finally:
        server.run("qmgr", "-c", right)


def test_the_doctor_finds_nothing_wrong_where_all_is_well_and_then_what_is(server: Server) -> None:
    assert faults(server) == {}
    hook = "set hook pliant_execjob_launch"
    with told(server, f"{hook} enabled = false", f"{hook} enabled = true"):
        assert faults(server) == {"pliant_execjob_launch": "enabled is false instead of true"}
    with told(server, f"{hook} alarm = 20", f"{hook} alarm = 300"):
        assert faults(server) == {"pliant_execjob_launch": "alarm is 20 instead of 300"}
    others = "set server query_other_jobs ="
    with told(server, f"{others} False", f"{others} True"):
        assert "query_other_jobs" in faults(server)
    until(lambda: faults(server) == {})
    formula = "job_sort_formula"
    with told(server, f"set server {formula} = queue_priority", f"unset server {formula}"):
        said = server.pliant("doctor")
        assert f"advice   order                    {formula} queue_priority: not seen" in said
        assert faults(server) == {}


@contextmanager
def without_types(server: Server) -> Iterator[None]:
    """Let Pliant be told of no types of GPUs, which not every site has."""
    path = server.directory / "pliant.toml"
    said = path.read_text()
    lines = said.splitlines(keepends=True)
    path.write_text("".join(x for x in lines if not x.startswith("type_resource")))
    try:
        yield
    finally:
        path.write_text(said)


def test_the_page_shows_what_the_doctor_prints(server: Server) -> None:
    [typed] = on_page("docs/pbs.md", "pliant doctor")
    nodes = server.nodes()
    shares = f"create resource {SHARE}\n" in server.run("qmgr", "-c", "print resource")
    words = {
        "/opt/pbs/bin": server.bin_dir,
        "head": socket.gethostname(),
        "12 on 3": f"{4 * len(nodes)} on {len(nodes)}",
        "/run/pliant/pbs_state.json": str(server.state_file),
    }
    if shares:
        words["looks at ngpus"] = f"looks at {SHARE}, ngpus"
        words["flag hn"] = f"flag hn\nok       {SHARE:<24} type float, flag hn"
    most = "queue workq resources_max.ngpus"
    with without_types(server), told(server, f"set {most} = 8", f"unset {most}"):
        printed = server.pliant("doctor")
    assert alike(with_words(typed.shown, words), printed), printed


def test_the_doctor_tells_that_pliantd_is_dead(server: Server) -> None:
    server.stop_pliantd(kill=True)
    try:
        server.until_old()
        found = faults(server)
        assert set(found) == {"state file", "first door", "second door"}
        assert "hooks believe it for 30 s" in found["state file"]
    finally:
        server.start_pliantd()


def test_an_array_is_asked_for_as_qstat_names_it(server: Server) -> None:
    fillers = server.fill()
    words = ("-J", "1-2", "-l", "select=1:ncpus=1:ngpus=2", *MOLDABLE)
    array = server.submit("sleep 600", *words)
    one = number(array)
    until(lambda: f"job {one}[] of" in server.pliant("why", array, check=False))
    for name in (f"{one}[]", f"{one}[2]", array.replace("[]", "[2]"), one):
        said = server.pliant("why", name).splitlines()[0]
        assert said.startswith(f"job {one}[] of {server.user} in workq: waiting as 2")
    for filler in fillers:
        server.run("qdel", filler)
    until(lambda: f"job {one}[2] of" in server.pliant("why", f"{one}[2]", check=False))
    assert "running" in server.pliant("why", array.replace("[]", "[2]"))
    until(lambda: "one by one" in server.pliant("why", array, check=False))  # nothing of it waits


def test_no_job_is_given_a_shape_for_what_a_reservation_keeps(server: Server) -> None:
    nodes = list(server.nodes())
    start = time.strftime("%m%d%H%M", time.gmtime(time.time() + 3600))
    words = ("-R", start, "-D", "600", "-l", f"select=1:ncpus=1:ngpus=4:vnode={nodes[0]}")
    reservation = server.run("pbs_rsub", *words, user=server.user).split()[0]
    try:
        until(lambda: "RESV_CONFIRMED" in server.run("pbs_rstat", "-f", reservation))
        asks = (f"select=1:ncpus=1:ngpus=3:vnode={name}" for name in nodes[1:])
        fillers = [server.submit("sleep 600", "-l", one, "-l", "walltime=20:00") for one in asks]
        until(lambda: all(server.job(one).get("job_state") == "R" for one in fillers))
        server.until_seen()
        job_id = server.submit("sleep 60", "-l", "select=1:ncpus=1:ngpus=4", *MOLDABLE)
        until(lambda: server.job(job_id).get("job_state") == "R")  # not where it could not end
        job = server.job(job_id)
        assert job["Resource_List"]["select"] == "1:ncpus=1:ngpus=1"
        assert nodes[0] not in job["exec_vnode"]
    finally:
        server.run("pbs_rdel", reservation)
