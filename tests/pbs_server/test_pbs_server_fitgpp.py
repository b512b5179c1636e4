"""FitGpp, and who is kept out of a hand-over, on a running PBS (see pbs_fixtures.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from pbs_helpers import FENCED, Server, needs_server, number, until

from pliant.batch.pbs.values import instant_s

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

TRIAL = ("-l", "job_class=trial", "-l", "walltime=2:00")
BEST_EFFORT = ("-l", "job_class=best-effort", "-l", "walltime=30:00")
AT_WORK = 100
"""Steps, in 20 s: after so many none of them is protected any more as one that has only begun."""


@pytest.fixture
def fitgpp(server: Server) -> Iterator[Server]:
    """pliantd with the policy fitgpp."""
    server.stop_pliantd()
    server.configure(server.directory, "fitgpp")
    server.start_pliantd()
    yield server
    server.stop_pliantd()
    server.configure(server.directory)
    server.start_pliantd()


def starts(server: Server, job_id: str) -> int:
    return len([one for one in server.log(job_id) if "start" in one])


def steps(server: Server, job_id: str) -> list[int]:
    return [int(str(one["step"])) for one in server.log(job_id) if "step" in one]


def full(server: Server) -> tuple[str, str, str]:
    """Fill all nodes: a small and a large best-effort job, and the job that will end first.

    Return them.
    """
    small = server.train("-l", "select=1:ncpus=1:ngpus=2", *BEST_EFFORT)
    server.run_all(small)
    first = server.vnode_of(small)
    server.run_all(server.takes(first, 2))
    large = server.train("-l", "select=1:ncpus=1:ngpus=3", *BEST_EFFORT)
    server.run_all(large)
    second = server.vnode_of(large)
    soon = server.takes(second, 1, "-l", "walltime=10:00")
    others = [server.takes(name, 4) for name in server.nodes() if name not in (first, second)]
    server.run_all(soon, *others)
    until(lambda: min(len(steps(server, one)) for one in (small, large)) > AT_WORK)
    return small, large, soon


def trial(server: Server, gpus: int = 2, *words: str) -> str:
    return server.submit("sleep 20", "-l", f"select=1:ncpus=1:ngpus={gpus}", *TRIAL, *words)


def nothing_lost(server: Server, job_id: str) -> None:
    """A job that has made room goes on where it was, to its end."""
    until(lambda: starts(server, job_id) == 2)
    server.enough(job_id)
    until(lambda: server.job(job_id).get("job_state") == "F")
    assert server.job(job_id)["Exit_status"] == 0
    assert steps(server, job_id) == list(range(1, len(steps(server, job_id)) + 1))


def test_a_trial_job_takes_the_place_of_the_best_effort_job_that_loses_least(
    fitgpp: Server,
) -> None:
    small, large, _ = full(fitgpp)
    place = fitgpp.vnode_of(small)
    before = fitgpp.submit("sleep 60", "-l", "select=1:ncpus=1:ngpus=1", "-l", "walltime=20:00")
    job_id = trial(fitgpp)
    until(lambda: fitgpp.job(job_id).get("job_state") in ("R", "F"))
    assert fitgpp.vnode_of(job_id) == place
    assert fitgpp.job(before)["job_state"] == "Q"  # the fence: it came first, and has its own place
    assert starts(fitgpp, large) == 1
    fitgpp.run("qdel", before)
    nothing_lost(fitgpp, small)
    fitgpp.enough(large)


def test_two_trial_jobs_have_the_places_of_two_jobs_of_one_node(fitgpp: Server) -> None:
    first = fitgpp.train("-l", "select=1:ncpus=1:ngpus=2", *BEST_EFFORT)
    fitgpp.run_all(first)
    place = fitgpp.vnode_of(first)
    second = fitgpp.train("-l", "select=1:ncpus=1:ngpus=2", *BEST_EFFORT)
    fitgpp.run_all(second)
    assert fitgpp.vnode_of(second) == place  # PBS fills one node after the other
    fitgpp.run_all(*(fitgpp.takes(name, 4) for name in fitgpp.nodes() if name != place))
    until(lambda: min(len(steps(fitgpp, one)) for one in (first, second)) > AT_WORK)
    trials = [trial(fitgpp), trial(fitgpp)]
    until(lambda: all(fitgpp.job(one).get("job_state") in ("R", "F") for one in trials))
    began = [instant_s(fitgpp.job(one)["stime"]) for one in trials]
    assert began == sorted(began)
    for one in (first, second):
        nothing_lost(fitgpp, one)


@pytest.fixture
def limited(fitgpp: Server) -> Iterator[str]:
    """A queue in which PBS starts nobody, as pliantd cannot know; it is deleted again."""
    name = "pliant_limited"
    fitgpp.stop_pliantd()
    made = (f"create queue {name} queue_type=e,enabled=t,started=t", f"set queue {name} max_run")
    fitgpp.tell(made[0], f"{made[1]} = [u:PBS_GENERIC=0]")
    fitgpp.start_pliantd()
    yield name
    fitgpp.empty()
    fitgpp.tell(f"delete queue {name}")


def test_a_trial_job_that_a_limit_keeps_waiting_is_made_room_for_once(
    fitgpp: Server, limited: str
) -> None:
    small, large, _ = full(fitgpp)
    job_id = trial(fitgpp, 2, "-q", limited)
    until(lambda: "room was made for it" in fitgpp.pliant("why", number(job_id)))
    until(lambda: starts(fitgpp, small) == 2)
    time.sleep(30)
    assert (starts(fitgpp, small), starts(fitgpp, large)) == (2, 1)
    nothing_lost(fitgpp, small)
    fitgpp.enough(large)


def test_a_trial_job_that_pbs_may_not_start_is_not_started_and_delays_nobody_for_long(
    fitgpp: Server,
) -> None:
    small, *_ = full(fitgpp)
    job_id = trial(fitgpp)
    until(lambda: fitgpp.job(small).get("job_state") != "R")
    fitgpp.run("qhold", "-h", "u", job_id, user=fitgpp.user)
    held = fitgpp.job(job_id)["job_state"] == "H"
    nothing_lost(fitgpp, small)
    assert not held or fitgpp.job(job_id)["job_state"] == "H"


def makes_room(server: Server, logged: int, *jobs: str) -> str:
    """Return which of some jobs pliantd has asked since then; "" where none.

    On a busy machine one may be out of its reach at that moment.
    """
    said = (server.directory / "log").read_text()[logged:]
    return next((one for one in jobs if f"job {number(one)}: to " in said), "")


@pytest.mark.parametrize("state", ["asked", FENCED, "reshape", "unfence"])
def test_pliantd_that_dies_in_between_leaves_nobody_behind(fitgpp: Server, state: str) -> None:
    small, large, _ = full(fitgpp)
    logged = fitgpp.logged()
    job_id = trial(fitgpp)
    if state == "asked":
        until(lambda: makes_room(fitgpp, logged, small, large))
        fitgpp.stop_pliantd(kill=True)
    else:
        assert fitgpp.kill_after(state, job_id, logged)
    asked = makes_room(fitgpp, logged, small, large)
    try:
        assert (fitgpp.home / f"pliant-{number(asked)}").exists()
        fitgpp.enough(asked) if state == "asked" else None
        until(lambda: fitgpp.job(job_id).get("job_state") in ("R", "F"))
        if state != "asked":
            nothing_lost(fitgpp, asked)
    finally:
        fitgpp.start_pliantd()


def test_a_fence_of_a_pliantd_that_is_no_more_ends(server: Server) -> None:
    asked = ("-l", "select=1:ncpus=1:ngpus=4", "-l", "malleable=grace=30s")
    job_id = server.train(*asked, "-l", "moldable=gpus=1-4", "-l", "walltime=10:00")
    until(lambda: len(steps(server, job_id)) > 20)
    vnode = server.vnode_of(job_id)
    server.resize(job_id, "2")
    until(lambda: server.fences(job_id))
    server.stop_pliantd(kill=True)
    try:
        (fence,) = server.fences(job_id)
        assert fence.vnodes == (vnode,)
        # else it may have all of its vnode again, a minute after it went back
        server.run("qhold", "-h", "u", job_id, user=server.user)
        other = server.takes(vnode, 1)
        server.run_all(other)  # the periodic hook's next time
    finally:
        server.start_pliantd()
    server.run("qrls", "-h", "u", job_id, user=server.user)
    until(lambda: starts(server, job_id) == 2)
    server.enough(job_id)


def test_who_is_older_and_would_fit_meanwhile_waits_until_the_job_has_changed(
    server: Server,
) -> None:
    older = server.submit("sleep 600", "-h", "-l", "select=1:ncpus=1:ngpus=3")
    asked = ("-l", "select=1:ncpus=1:ngpus=4", "-l", "malleable=grace=30s")
    job_id = server.train(*asked, "-l", "moldable=gpus=1-4", "-l", "walltime=10:00")
    server.run_all(job_id)
    place = server.vnode_of(job_id)
    server.run_all(*(server.takes(name, 4) for name in server.nodes() if name != place))
    until(lambda: len(steps(server, job_id)) > 20)
    server.run("qrls", "-h", "u", older, user=server.user)
    server.resize(job_id, "2")
    until(lambda: starts(server, job_id) == 2)
    assert server.job(job_id)["Resource_List"]["ngpus"] == 2
    assert server.job(older)["job_state"] == "Q"
    until(lambda: not server.fences(job_id))
    server.enough(job_id)
    server.run_all(older)
