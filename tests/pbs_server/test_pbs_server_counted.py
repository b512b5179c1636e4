"""What a PBS counts of its jobs' starts, with Pliant (see pbs_fixtures.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pbs_helpers import Server, needs_server, until

from pliant.filter.pbs.names import CHECKPOINTED

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

ASKED = ("-l", "select=1:ncpus=1:ngpus=1", "-l", "walltime=10:00")
TOO_MANY = "job held, too many failed attempts to run"
OLD = "pliant_test_old"
OLD_HOOK = """\
import pbs
event = pbs.event()
event.job.Variable_List["PLIANT_BACK"] = "20:10"
event.accept()
"""


@pytest.fixture(params=["dead", "alive"])
def pliantd(server: Server, request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server, where pliantd is dead and where it is there."""
    if request.param == "alive":
        yield server
        return
    server.stop_pliantd(kill=True)
    server.until_old()
    try:
        yield server
    finally:
        server.start_pliantd()


def goes_back(server: Server) -> str:
    """Submit a job that goes back to the queue once by itself, and has started often before."""
    script = f"[ -e $PBS_JOBID ] && exit 0; touch $PBS_JOBID; exit {CHECKPOINTED}"
    job_id = server.submit(script, "-h", *ASKED, "-l", "malleable=yes")
    server.run("qalter", "-W", "run_count=20", job_id)
    server.run("qrls", job_id)
    return job_id


def test_none_is_held_for_going_back_to_the_queue(pliantd: Server) -> None:
    """A job that PBS has started so often already that the next failed start is one too many."""
    job_id = goes_back(pliantd)
    until(lambda: pliantd.job(job_id).get("job_state", "") in "FH")
    assert (pliantd.job(job_id)["job_state"], pliantd.job(job_id)["Exit_status"]) == ("F", 0)


def test_nor_is_one_of_an_array(server: Server) -> None:
    path = server.home / "starts"
    path.unlink(missing_ok=True)
    script = (
        f"echo $PLIANT_RESTART_COUNT >>{path}; [ $(wc -l <{path}) -gt 24 ] || exit {CHECKPOINTED}"
    )
    job_id = server.submit(script, *ASKED, "-l", "malleable=yes", "-J", "1-2:2")
    until(lambda: server.job(job_id).get("job_state", "") in "FH")
    assert server.job(job_id)["job_state"] == "F"
    assert path.read_text().split() == [str(min(n, 10)) for n in range(25)]


def test_pliantd_releases_whom_pbs_holds_for_going_back_and_nobody_else(server: Server) -> None:
    """Jobs as the epilogue hook of 0.1.0 left them, and others that are held too."""
    words = (*ASKED, "-l", "malleable=yes", "-h")
    ours, failed, held = (server.submit("sleep 60", *words) for _ in range(3))
    path = server.home / "old.py"
    path.write_text(OLD_HOOK)
    server.tell(f"create hook {OLD}", f"set hook {OLD} event=modifyjob")
    server.tell(f"import hook {OLD} application/x-python default {path}")
    try:
        for job_id in (ours, held):
            server.run("qalter", "-W", "run_count=21", job_id)
    finally:
        server.tell(f"delete hook {OLD}")
    server.run("qalter", "-W", "run_count=21", failed)
    for job_id in (held, failed, ours):
        server.run("qhold", "-h", "s", job_id)  # which says in its comment who holds it
        server.run("qrls", "-h", "u", job_id)
    for job_id in (failed, ours):
        server.run("qalter", "-W", f"comment={TOO_MANY}", job_id)
    server.run_all(ours)
    server.until_seen()
    assert [server.job(one)["Hold_Types"] for one in (ours, failed, held)] == ["n", "s", "s"]


@pytest.mark.parametrize("forgets", [False, True])
def test_who_is_submitted_after_a_start_is_not_made_larger_by_what_that_one_took(
    server: Server, forgets: bool
) -> None:
    """A job that was held when pliantd looked last, and then released."""
    anew = ("python_restart_max_hooks", "python_restart_min_interval")
    if forgets:  # PBS begins its Python anew for each hook
        server.tell(*(f"set server {name} = 1" for name in anew))
    other = server.submit("sleep 600", "-h", "-l", f"select={len(server.nodes())}:ncpus=1:ngpus=3")
    server.until_seen()
    server.halt()
    try:
        server.run("qrls", other, user=server.user)
        server.run_all(other)
        job_id = server.submit("sleep 60", *ASKED, "-l", "moldable=gpus=1-4")
        server.run_all(job_id)
        assert server.job(job_id)["Resource_List"]["select"] == "1:ncpus=1:ngpus=1"
    finally:
        server.go_on()
        if forgets:
            server.tell(*(f"unset server {name}" for name in anew))
