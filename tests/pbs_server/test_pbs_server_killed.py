"""pliantd killed after each step of a hand-over on a running PBS (see pbs_fixtures.py)."""

from __future__ import annotations

import pytest
from pbs_helpers import FENCED, Server, needs_server, until

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

STEPS = ("root asked for it", FENCED, "reshape", "unfence")
"""What pliantd's log says of them, after the job's number; or what is to be seen of it."""


def starts(server: Server, job_id: str) -> list[object]:
    """The shapes in which a job has started so far."""
    return [one["SHAPE"] for one in server.log(job_id) if "start" in one]


def steps(server: Server, job_id: str) -> list[object]:
    return [one["step"] for one in server.log(job_id) if "step" in one]


@pytest.mark.parametrize("comes_back", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_a_job_goes_on_with_nothing_lost_where_pliantd_is_killed(
    server: Server, step: str, *, comes_back: bool
) -> None:
    asked = ("-l", "select=1:ncpus=1:ngpus=4", "-l", "malleable=grace=30s")
    job_id = server.train(*asked, "-l", "moldable=gpus=1-4", "-l", "walltime=20:00")
    until(lambda: len(steps(server, job_id)) > 20)
    seen = server.logged()
    server.resize(job_id, "2")
    try:
        assert server.kill_after(step, job_id, seen)
        if comes_back:
            server.start_pliantd()
        until(lambda: len(starts(server, job_id)) == 2)
    finally:
        server.stop_pliantd(kill=True)
        server.start_pliantd()
    done = len(steps(server, job_id))
    until(lambda: len(steps(server, job_id)) > done + 5)
    server.enough(job_id)
    until(lambda: server.job(job_id).get("job_state") == "F")
    assert server.job(job_id)["Exit_status"] == 0
    assert steps(server, job_id) == list(range(1, len(steps(server, job_id)) + 1))
    assert starts(server, job_id)[0] == "4"
    assert not comes_back or starts(server, job_id)[1] == "2"
