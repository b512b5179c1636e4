"""What others do meanwhile to a job in a hand-over, on a running PBS (see pbs_fixtures.py)."""

from __future__ import annotations

import pytest
from pbs_helpers import Server, needs_server, number, until

from pliant.filter.pbs.names import SENDS_BACK

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

ASKED = ("-l", "select=1:ncpus=1:ngpus=4", "-l", "malleable=grace=30s")
MOLDABLE = ("-l", "moldable=gpus=1-4", "-l", "walltime=20:00")


def trains(server: Server) -> str:
    """Return a job that has been under way for a while."""
    job_id = server.train(*ASKED, *MOLDABLE)
    until(lambda: len(server.log(job_id)) > 20)
    return job_id


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        (("-l", "select=1:ncpus=1:ngpus=3"), "3"),
        (("-l", "moldable=gpus=4"), "4"),
        (("-l", "malleable=", "-l", "moldable="), "4"),
    ],
)
def test_what_its_owner_says_between_two_runs_stands(
    server: Server, words: tuple[str, ...], shape: str
) -> None:
    job_id = trains(server)
    server.resize(job_id, "2")
    server.halt_at_fence(job_id)
    try:
        until(lambda: server.job(job_id)["job_state"] in "QWH")
        server.run("qalter", *words, job_id, user=server.user)
        says = server.job(job_id)["Resource_List"]
    finally:
        server.go_on()
    until(lambda: [one["SHAPE"] for one in server.log(job_id) if "start" in one] == ["4", shape])
    began = len(server.log(job_id))
    until(lambda: len(server.log(job_id)) > began + 5 * 20)  # longer than a program may take to end
    now = server.job(job_id)
    assert sum("start" in one for one in server.log(job_id)) == 2
    assert {n: now["Resource_List"].get(n) for n in says} == says
    assert "  done  " not in server.pliant("history", number(job_id))


def test_no_job_is_asked_where_the_hook_that_sends_it_back_is_disabled(server: Server) -> None:
    job_id = trains(server)
    server.tell(f"set hook {SENDS_BACK} enabled = false")
    try:
        words = ("no running job is asked", "would send it back")
        refused = ("resize", number(job_id), "2")
        until(lambda: any(w in server.pliant(*refused, check=False) for w in words))
        assert SENDS_BACK in server.pliant("status", check=False)
    finally:
        server.tell(f"set hook {SENDS_BACK} enabled = true")
    assert server.job(job_id)["job_state"] == "R"


def test_nothing_is_removed_while_a_job_is_between_two_runs(server: Server) -> None:
    job_id = trains(server)
    before = server.says()
    server.resize(job_id, "2")
    server.halt_at_fence(job_id)
    try:
        until(lambda: server.job(job_id)["job_state"] in "QWH")
        said = server.pliant("install", "pbs", "--remove", check=False)
    finally:
        server.go_on()
    assert f"job {number(job_id)} is between two runs" in said
    assert server.says() == before
    until(lambda: len([one for one in server.log(job_id) if "start" in one]) == 2)
