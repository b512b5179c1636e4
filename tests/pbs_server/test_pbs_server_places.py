"""Whose place a job has that Pliant has spread over nodes, on a real PBS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pbs_helpers import Server, needs_server, until

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

ALONE = "pliant_alone"
"""A queue whose jobs have their nodes for themselves."""
WORDS = ("-l", "moldable=gpus=1-8+nodes=1-2", "-l", "walltime=10:00")
ONE, TWO = "1:ncpus=1:ngpus=1", "2:ncpus=1:ngpus=4"
MOVE_ONCE_MORE = "move it once more"


@pytest.fixture
def alone(server: Server) -> Iterator[str]:
    """That queue; nobody starts."""
    server.until_seen()
    server.tell(
        f"create queue {ALONE} queue_type=Execution, enabled=True, started=True",
        f"set queue {ALONE} resources_default.place = excl",
        "set server scheduling = False",
    )
    try:
        yield ALONE
    finally:
        server.empty()  # which lets the scheduler go on
        server.tell(f"delete queue {ALONE}")
        server.stop_pliantd(kill=True)
        server.start_pliantd()  # it reads queues once a minute


def has(server: Server, job_id: str) -> tuple[str, str, str]:
    job = server.job(job_id)
    said = job["Resource_List"]
    return str(said["select"]), str(said["place"]), str(job["queue"])


def moved(server: Server, job_id: str, queue: str) -> str:
    return server.run("qmove", queue, job_id, user=server.user, check=False)


def test_a_job_that_is_moved_has_the_place_of_its_new_queue(server: Server, alone: str) -> None:
    job_id = server.submit("sleep 60", "-l", f"select={ONE}", *WORDS)
    assert has(server, job_id) == (TWO, "scatter", "workq")
    said = moved(server, job_id, alone)
    assert (f"queue {alone}: not as Pliant has set the job" in said, MOVE_ONCE_MORE in said) == (
        *(True, True),
    )
    until(lambda: has(server, job_id) == (ONE, "excl", "workq"))
    assert moved(server, job_id, alone) == ""
    assert has(server, job_id) == (ONE, "excl", alone)
    said = moved(server, job_id, "workq")
    assert "it gets place=free: move it once more" in said
    until(lambda: has(server, job_id) == (ONE, "free", alone))
    assert moved(server, job_id, "workq") == ""
    assert has(server, job_id) == (ONE, "free", "workq")


def test_or_that_which_its_owner_wrote(server: Server, alone: str) -> None:
    job_id = server.submit("sleep 60", "-l", f"select={ONE}", "-l", "place=pack", *WORDS)
    assert has(server, job_id) == (TWO, "scatter", "workq")
    assert MOVE_ONCE_MORE in moved(server, job_id, alone)
    until(lambda: has(server, job_id) == (ONE, "pack", "workq"))
    assert moved(server, job_id, alone) == ""
    assert has(server, job_id) == (ONE, "pack", alone)


def test_so_has_one_whose_owner_takes_the_request_back(server: Server, alone: str) -> None:
    job_id = server.submit("sleep 60", "-l", f"select={ONE}", "-l", "place=vscatter", *WORDS)
    assert has(server, job_id) == (TWO, "scatter", "workq")
    server.run("qalter", "-l", "moldable=", job_id, user=server.user)
    assert has(server, job_id) == (ONE, "vscatter", "workq")
    assert moved(server, job_id, alone) == ""
    assert has(server, job_id) == (ONE, "vscatter", alone)
