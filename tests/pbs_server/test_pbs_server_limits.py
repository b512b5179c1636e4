"""What a server or a queue lets one job have, and GPUs that came free just now, on a real PBS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pbs_helpers import Server, needs_server, number, type_qsub, until

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

LONG = ("-l", "walltime=10:00")


@contextmanager
def limit(server: Server, of: str, said: str) -> Iterator[None]:
    """Set a limit of the server or of a queue, after the last look of pliantd."""
    server.until_seen()
    server.halt()
    server.tell(f"set {of} {said}")
    try:
        yield
    finally:
        server.tell(f"unset {of} {said.partition('=')[0]}")
        server.go_on()


def select_of(server: Server, job_id: str) -> str:
    return str(server.job(job_id)["Resource_List"]["select"])


@pytest.mark.parametrize("of", ["server", "queue workq"])
@pytest.mark.parametrize(
    ("limited", "asked", "given"),
    [
        ("resources_max.ngpus=2", "1:ncpus=1:ngpus=1", "1:ncpus=1:ngpus=2"),
        (
            "resources_max.ncpus=1",
            "1:ncpus=1:ngpus=1:mpiprocs=1",
            "1:ncpus=1:ngpus=4:mpiprocs=1",
        ),
        ("resources_max.mem=1gb", "1:ncpus=1:ngpus=1:mem=1gb", "1:ncpus=1:ngpus=4:mem=1024mb"),
        ("resources_max.nodect=1", "1:ncpus=1:ngpus=4", "1:ncpus=1:ngpus=4"),
        ("max_queued_res.ngpus=[u:PBS_GENERIC=1]", "1:ncpus=1:ngpus=1", "1:ncpus=1:ngpus=1"),
        (
            "queued_jobs_threshold_res.ngpus=[o:PBS_ALL=1]",
            *("1:ncpus=1:ngpus=1", "1:ncpus=1:ngpus=1"),
        ),
    ],
)
def test_a_legal_submission_is_not_refused_for_what_pliant_made_of_it(
    server: Server, of: str, limited: str, asked: str, given: str
) -> None:
    with limit(server, of, limited):
        wish = "moldable=gpus=1-8+nodes=1-2"
        job_id = server.submit("sleep 60", "-l", f"select={asked}", "-l", wish, *LONG)
        server.run_all(job_id)
        assert select_of(server, job_id) == given


def test_nor_for_what_it_would_have_made_of_it_before_a_limit_of_its_queue(server: Server) -> None:
    with limit(server, "queue workq", "resources_min.ngpus=3"):
        wish = ("-l", "moldable=gpus=1-4", "-l", "throughput=1:9+4:1")
        job_id = server.submit("sleep 60", "-l", "select=1:ncpus=1:ngpus=4", *wish, *LONG)
        server.run_all(job_id)
        assert select_of(server, job_id) == "1:ncpus=1:ngpus=4"


HOOK = "site_own"
REFUSES = """\
import pbs
event = pbs.event()
if "ngpus=1" not in str(event.job.Resource_List["select"]):
    event.reject("one GPU to each job")
event.accept()
"""
"""A hook of a site's own."""


def test_nor_does_a_hook_of_the_sites_own_see_what_pliant_made_of_it(server: Server) -> None:
    script = server.directory / "site.py"
    script.write_text(REFUSES)
    server.until_seen()
    server.tell(f"create hook {HOOK}", f"set hook {HOOK} event = queuejob")
    try:
        server.tell(f"set hook {HOOK} order = 2")
        server.tell(f"import hook {HOOK} application/x-python default {script}")
        asked = ("-l", "select=1:ncpus=1:ngpus=1", "-l", "moldable=gpus=1-4", *LONG)
        job_id = server.submit("sleep 60", *asked)
        assert select_of(server, job_id) == "1:ncpus=1:ngpus=4"
    finally:
        server.tell(f"delete hook {HOOK}")


FOO = "pliant_test_licences"
"""A resource of a site's own, of which each chunk has one."""


def test_nor_for_what_more_chunks_have_by_default(server: Server) -> None:
    defaults = ("server", f"default_chunk.{FOO}"), ("server", f"resources_max.{FOO}")
    server.until_seen()
    server.tell(f"create resource {FOO} type=long,flag=nh")
    try:
        server.tell(*(f"set {of} {what} = 1" for of, what in defaults))
        wish = ("-l", "moldable=gpus=1-8+nodes=1-2")
        job_id = server.submit("sleep 60", "-l", "select=1:ncpus=1:ngpus=4", *wish, *LONG)
        assert select_of(server, job_id) == "1:ncpus=1:ngpus=4"
    finally:
        server.tell(*(f"unset {of} {what}" for of, what in defaults))
        server.empty()
        server.tell(f"delete resource {FOO}")


def test_pliantd_gives_no_waiting_job_more_than_the_server_lets_one_have(server: Server) -> None:
    with limit(server, "server", "resources_max.ngpus=2"):
        server.stop_pliantd(kill=True)
        server.start_pliantd()
        fillers = server.fill(2)
        more = server.fill(2)
        asked = ("-l", "select=1:ncpus=1:ngpus=1", "-l", "moldable=gpus=1-4", *LONG)
        job_id = server.submit("sleep 60", *asked)
        words, why = "it cannot become 3, 4: resources_max.ngpus", ("why", number(job_id))
        until(lambda: words in server.pliant(*why, check=False))
        server.run("qdel", *fillers, *more)
        server.run_all(job_id)
        assert server.job(job_id)["Resource_List"]["ngpus"] <= 2
        assert "resources_max.ngpus" in server.pliant("doctor", check=False)


@pytest.mark.parametrize("asks", ["walltime=9:00", "moldable=gpus=4"])
def test_no_change_of_a_job_is_refused_for_what_pliant_made_of_it_before_a_limit(
    server: Server, asks: str
) -> None:
    server.tell("set server scheduling = False")
    try:
        wish = ("-l", "moldable=gpus=4", *LONG)
        job_id = server.submit("sleep 60", "-l", "select=1:ncpus=1:ngpus=1", *wish)
        assert select_of(server, job_id) == "1:ncpus=1:ngpus=4"
        with limit(server, "queue workq", "resources_max.ngpus=2"):
            server.run("qalter", "-l", asks, job_id, user=server.user)
            assert select_of(server, job_id) == "1:ncpus=1:ngpus=1"
    finally:
        server.tell("set server scheduling = True")


def test_a_job_that_comes_when_gpus_came_free_just_now_is_not_shrunk(server: Server) -> None:
    fillers = server.fill(2)
    server.until_seen()
    server.halt()
    try:
        server.run("qdel", *fillers)
        until(lambda: not server.jobs())
        asked = ("-l", "select=1:ncpus=1:ngpus=4", "-l", "moldable=gpus=1-4", *LONG)
        job_id = server.submit("sleep 60", *asked)
        server.run_all(job_id)
        assert select_of(server, job_id) == "1:ncpus=1:ngpus=4"
    finally:
        server.go_on()


def test_colocate_is_refused_in_one_sentence(server: Server) -> None:
    (server.home / "job.sh").write_text("#!/bin/sh\n")
    words = ("-l", "colocate=yes", "-l", "select=1:ngpus=1", str(server.home / "job.sh"))
    said = server.run("qsub", *words, user=server.user, check=False)
    assert said.startswith("qsub: pliant: colocate")
    typed = type_qsub(server, "--colocate", "-l", "select=1:ngpus=1", script="true")
    assert (typed.returncode, typed.stdout) == (2, "")
    assert typed.stderr.startswith("pliant: colocate")
    assert server.jobs() == {}


SMALL, ROUTE = "pliant_small", "pliant_route"
MOVED = "not as Pliant has set the job: it gets 1 again instead of 4: move it once more"


@pytest.fixture
def small(server: Server) -> Iterator[str]:
    """A queue in which a job has one GPU at most, also behind a routing queue; nobody starts."""
    on = "enabled=True, started=True"
    server.tell(
        f"create queue {SMALL} queue_type=Execution, resources_max.ngpus=1, {on}",
        f"create queue {ROUTE} queue_type=Route, route_destinations={SMALL}, {on}",
        "set server scheduling = False",
    )
    try:
        yield SMALL
    finally:
        server.empty()  # which lets the scheduler go on
        server.tell(f"delete queue {ROUTE}", f"delete queue {SMALL}")
        server.stop_pliantd(kill=True)
        server.start_pliantd()  # it reads queues once a minute, and tells of this one until then


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("to", [SMALL, ROUTE, f"{SMALL}@{{}}"])
def test_what_pliant_made_of_a_job_keeps_it_out_of_no_queue(
    server: Server, small: str, to: str, alive: bool
) -> None:
    words = ("-l", "select=1:ncpus=1:ngpus=1", "-l", "moldable=gpus=1-4", *LONG)
    job_id = server.submit("sleep 60", *words)
    assert select_of(server, job_id) == "1:ncpus=1:ngpus=4"
    queue = to.format(job_id.partition(".")[2])
    if not alive:
        server.stop_pliantd(kill=True)
    try:
        move = ("qmove", queue, job_id)
        said = server.run(*move, user=server.user, check=False)
        assert said == f"qmove: pliant: queue {queue}: {MOVED} {job_id}\n"
        until(lambda: select_of(server, job_id) == "1:ncpus=1:ngpus=1")
        assert server.run(*move, user=server.user) == ""
        job = server.job(job_id)
        assert (job["queue"], job["job_state"]) == (small, "Q")
        assert str(job["Variable_List"]["PLIANT_SHAPE"]) == "1"
    finally:
        if not alive:
            server.start_pliantd()
