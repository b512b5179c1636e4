"""A scheduler of its own, placement sets and a formula that orders jobs, on a real PBS."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pbs_helpers import Server, needs_server, number, until

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

OWN = "pliant_test"
"""A scheduler, a partition and a queue of this name."""
LONG = ("-l", "walltime=10:00")
ONE, WISH = "1:ncpus=1:ngpus=1", "gpus=1-8+nodes=1-2"
SWITCH = "pliant_test_switch"


@contextmanager
def told(server: Server, *said: str) -> Iterator[None]:
    """Set something of the server, a queue or nodes, as pliantd and the hooks know it at once."""
    server.tell(*(f"set {one}" for one in said))
    try:
        read_anew(server)
        yield
    finally:
        server.empty()
        server.tell(*(f"unset {one.partition('=')[0].strip()}" for one in said))
        read_anew(server)


def read_anew(server: Server) -> None:
    """Let pliantd read queues, server and schedulers now, not within a minute."""
    server.stop_pliantd(kill=True)
    server.start_pliantd()


def select_of(server: Server, job_id: str) -> str:
    return str(server.job(job_id)["Resource_List"]["select"])


# A scheduler of its own


def started(server: Server) -> subprocess.Popen[bytes]:
    """Start the scheduler in the foreground."""
    program = Path(server.bin_dir).parent / "sbin" / "pbs_sched"
    quiet = subprocess.DEVNULL
    return subprocess.Popen([program, "-N", "-I", OWN], stdin=quiet, stdout=quiet, stderr=quiet)


@pytest.fixture
def queue(server: Server) -> Iterator[str]:
    """A queue of a partition with all nodes but one; its scheduler does not run yet."""
    first, *others = server.nodes()
    del first
    server.tell(f"create sched {OWN}", f"set sched {OWN} partition = {OWN}")
    server.tell(f"set sched {OWN} sched_host = {socket.gethostname()}")
    server.tell(f"create queue {OWN} queue_type=Execution, partition={OWN}")
    server.tell(f"set queue {OWN} enabled=True, started=True")
    server.tell(*(f"set node {name} partition = {OWN}" for name in others))
    try:
        yield OWN
    finally:
        server.empty()
        server.tell(*(f"unset node {name} partition" for name in others))
        server.tell(f"delete queue {OWN}", f"delete sched {OWN}")
        read_anew(server)


@pytest.fixture
def scheduler(server: Server, queue: str) -> Iterator[str]:
    """That queue, and its scheduler runs."""
    listed = server.run("qmgr", "-c", "list sched").split()
    default, own = (
        Path(word) for word in listed if Path(word).is_absolute() and "sched_priv" in word
    )
    logs = own.with_name(own.name.replace("priv", "logs"))
    shutil.copytree(default, own, ignore=shutil.ignore_patterns("sched.lock", "sched_out"))
    logs.mkdir()
    process = started(server)
    try:
        server.tell(f"set sched {OWN} scheduling = True")
        until(lambda: "state = idle" in server.run("qmgr", "-c", f"list sched {OWN}"))
        read_anew(server)
        yield queue
    finally:
        server.empty()
        process.terminate()
        process.wait(60)
        shutil.rmtree(own)
        shutil.rmtree(logs)


def trains(server: Server, queue: str) -> str:
    """Return a job of that queue that has been under way for a while."""
    words = ("-l", "select=1:ncpus=1:ngpus=4", "-l", "moldable=gpus=2:4", "-l", "malleable=yes")
    job_id = server.train("-q", queue, *words, *LONG)
    until(lambda: len(server.log(job_id)) > 20)
    return job_id


def shapes(server: Server, job_id: str) -> list[str]:
    return [one["SHAPE"] for one in server.log(job_id) if "start" in one]


def refused(server: Server, job_id: str) -> str:
    """Ask for another shape, which nothing may come of; return what is said."""
    return server.pliant("resize", number(job_id), "2", check=False)


def test_who_was_kept_out_by_a_fence_is_started_by_the_scheduler_of_its_partition(
    server: Server, scheduler: str
) -> None:
    job_id = trains(server, scheduler)
    node = server.vnode_of(job_id)
    words = ("-q", scheduler, "-l", f"select=1:ncpus=1:ngpus=2:vnode={node}", *LONG)
    server.resize(job_id, "2")
    other = server.submit("sleep 600", *words)
    until(lambda: shapes(server, job_id) == ["4", "2"])
    server.run_all(other)


def test_no_job_is_resized_whose_scheduler_does_not_run(server: Server, scheduler: str) -> None:
    job_id = trains(server, scheduler)
    server.tell(f"set sched {OWN} scheduling = False")
    words = f"the scheduler {OWN} is stopped"
    until(lambda: words in refused(server, job_id))
    until(lambda: f"it would not start again: {words}" in server.pliant("why", number(job_id)))
    server.tell(f"set sched {OWN} scheduling = True")
    server.resize(job_id, "2")
    until(lambda: shapes(server, job_id) == ["4", "2"])


def test_nor_while_all_scheduling_is_stopped(server: Server) -> None:
    job_id = trains(server, "workq")
    server.tell("set server scheduling = False")
    try:
        until(lambda: "the scheduler default is stopped" in refused(server, job_id))
    finally:
        server.tell("set server scheduling = True")
    assert server.job(job_id)["job_state"] == "R"


# Placement sets


@pytest.fixture
def sets(server: Server) -> Iterator[None]:
    """Let each node be a placement set of its own, over which no job may be spread."""
    server.tell(f"create resource {SWITCH} type=string,flag=h")
    nodes = [f"node {name} resources_available.{SWITCH} = {name}" for name in server.nodes()]
    grouping = (f"server node_group_key = {SWITCH}", "server node_group_enable = True")
    try:
        with told(server, *nodes, *grouping, "sched default do_not_span_psets = True"):
            yield
    finally:
        server.tell(f"delete resource {SWITCH}")


@pytest.mark.usefixtures("sets")
def test_no_job_is_spread_over_placement_sets(server: Server) -> None:
    job_id = server.submit("sleep 60", "-l", f"select={ONE}", "-l", f"moldable={WISH}", *LONG)
    server.run_all(job_id)
    assert select_of(server, job_id) == "1:ncpus=1:ngpus=4"


@pytest.mark.usefixtures("sets")
def test_nor_by_pliantd(server: Server) -> None:
    fillers = [*server.fill(2), *server.fill(2)]
    asked = ("-l", "select=1:ncpus=1:ngpus=3", "-l", "moldable=gpus=2:3:4+nodes=1-2", *LONG)
    job_id = server.submit("sleep 60", *asked)
    words = f"node_group_key is {SWITCH}: over several nodes only as its owner wrote"
    until(lambda: words in server.pliant("why", number(job_id), check=False))
    server.run("qdel", *fillers[:2])  # 2x2 would fit
    server.run_all(job_id)
    assert select_of(server, job_id) == "1:ncpus=1:ngpus=2"


# What orders jobs


def test_where_a_formula_orders_jobs_by_what_a_shape_changes_none_is_changed(
    server: Server,
) -> None:
    fillers = [*server.fill(2), *server.fill(2)]
    with told(server, "server job_sort_formula = 10*ngpus"):
        asked = ("-l", f"select={ONE}", "-l", "moldable=gpus=1-4", *LONG)
        job_id = server.submit("sleep 60", *asked)
        words = "job_sort_formula names ngpus: another shape would change who is next"
        until(lambda: words in server.pliant("why", number(job_id), check=False))
        said = server.pliant("doctor", check=False)
        assert "job_sort_formula names ngpus: no job is given another shape" in said
        server.run("qdel", *fillers)
        server.run_all(job_id)
        assert select_of(server, job_id) == ONE
        other = server.submit("sleep 60", *asked)
        server.run_all(other)
        assert select_of(server, other) == ONE
