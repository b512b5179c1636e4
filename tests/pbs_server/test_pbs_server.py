"""Pliant on a running PBS (see pbs_fixtures.py)."""

from __future__ import annotations

import pytest
from pbs_helpers import Server, needs_server, until

from pliant.filter.pbs.names import CHECKPOINTED

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

MOLDABLE = ("-l", "moldable=gpus=1-4", "-l", "walltime=10:00")


def test_installing_and_removing_leave_the_server_as_it_was(bare: Server) -> None:
    bare.empty()
    before = bare.says()
    bare.directory = bare.home / "install"
    shown = bare.pliant("install", "pbs")
    assert bare.pliant("install", "pbs", "--apply").startswith(shown)
    assert bare.pliant("install", "pbs") == "all is installed\n"
    assert bare.says() != before
    bare.pliant("install", "pbs", "--remove")
    assert bare.says() == before


def test_a_submission_is_rewritten_to_what_is_free_and_runs(server: Server) -> None:
    server.fill(3)
    server.until_seen()
    job_id = server.submit(
        "echo $PLIANT_SHAPE $PLIANT_GPUS; sleep 60", "-l", "select=1:ncpus=1:ngpus=4", *MOLDABLE
    )
    until(lambda: server.job(job_id).get("job_state") == "R")
    job = server.job(job_id)
    assert job["Resource_List"]["select"] == "1:ncpus=1:ngpus=1"
    assert job["Resource_List"]["pliant"].startswith("pliant=v1:")
    assert "ngpus=1" in job["exec_vnode"]


def test_resources_without_a_select_are_rewritten_too(server: Server) -> None:
    server.fill(2)
    server.until_seen()
    job_id = server.submit("sleep 60", "-l", "ncpus=1,ngpus=4,mem=100mb", *MOLDABLE)
    until(lambda: server.job(job_id).get("job_state") == "R")
    assert server.job(job_id)["Resource_List"]["ngpus"] == 2


def test_a_wrong_request_is_refused_in_one_sentence(server: Server) -> None:
    (server.home / "job.sh").write_text("#!/bin/sh\n")
    words = ("-l", "select=1:ngpus=1", "-l", "moldable=gpus=0", str(server.home / "job.sh"))
    said = server.run("qsub", *words, user=server.user, check=False)
    assert said.startswith("qsub: pliant: moldable gpus: '0': a number of GPUs from 1")


def test_a_job_that_says_nothing_is_as_it_was_written(server: Server) -> None:
    job_id = server.submit("sleep 60", "-l", "select=1:ncpus=1:ngpus=2")
    until(lambda: server.job(job_id).get("job_state") == "R")
    job = server.job(job_id)
    assert "pliant" not in job["Resource_List"]
    assert not [name for name in job["Variable_List"] if name.startswith("PLIANT")]


def test_a_waiting_job_is_molded_when_something_is_free(server: Server) -> None:
    fillers = server.fill()
    job_id = server.submit("sleep 60", "-l", "select=1:ncpus=1:ngpus=4", *MOLDABLE)
    server.until_seen()
    assert server.job(job_id)["job_state"] == "Q"
    server.run("qmgr", "-c", "set server scheduling = False")
    try:
        server.run("qdel", fillers[0])
        other = server.submit("sleep 600", "-l", "select=1:ncpus=1:ngpus=3", "-l", "walltime=5:00")
        until(lambda: server.job(fillers[0])["job_state"] == "F")
        server.run("qrun", other)
    finally:
        server.run("qmgr", "-c", "set server scheduling = True")
    until(lambda: server.job(job_id).get("job_state") == "R")
    assert server.job(job_id)["Resource_List"]["select"] == "1:ncpus=1:ngpus=1"


def test_who_takes_the_request_back_has_a_waiting_job_as_it_was_written(server: Server) -> None:
    server.fill(2)
    server.until_seen()
    server.tell("set server scheduling = False")
    try:
        job_id = server.submit("sleep 60", "-l", "select=1:ncpus=1:ngpus=1", *MOLDABLE)
        assert server.job(job_id)["Resource_List"]["select"] == "1:ncpus=1:ngpus=2"
        server.run("qalter", "-l", "moldable=", job_id, user=server.user)
        job = server.job(job_id)
    finally:
        server.tell("set server scheduling = True")
    assert job["Resource_List"]["select"] == "1:ncpus=1:ngpus=1"
    assert "pliant" not in job["Resource_List"]
    assert (str(job["Variable_List"]["PLIANT_SHAPE"]), job["job_state"]) == ("1", "Q")


@pytest.mark.parametrize("chunk", ["ngpus=0", "ncpus=1", "ngpus=0:ncpus=1"])
def test_so_has_who_wrote_no_gpu(server: Server, chunk: str) -> None:
    """PBS keeps in Resource_List what a select does not name any more."""
    server.tell("set server scheduling = False")
    try:
        job_id = server.submit(
            "sleep 60", "-l", f"select=1:{chunk}", "-l", "moldable=gpus=8+nodes=2"
        )
        said = server.job(job_id)["Resource_List"]
        assert (said["ngpus"], said["nodect"], said["place"]) == (8, 2, "scatter")
        server.run("qalter", "-l", "moldable=", job_id, user=server.user)
        said = server.job(job_id)["Resource_List"]
        assert (said["ngpus"], said["nodect"], said["place"]) == (0, 1, "free")
        assert {*said["select"].split(":")} == {"1", "ngpus=0", *chunk.split(":")}
    finally:
        server.tell("set server scheduling = True")
    server.run_all(job_id)


def test_a_job_has_all_cores_of_a_node_where_no_gpu_is_free(server: Server) -> None:
    name, node = server.nodes().popitem()
    has = node["resources_available"]
    server.run_all(*(server.takes(other, 4) for other in server.nodes() if other != name))
    server.tell(f"set node {name} resources_available.ngpus = 0")
    try:
        asked = ("-l", "moldable=type=gpu:cpu+cores=all", "-l", "throughput=1x0@cpu:1+1:1")
        words = ("-l", "select=1:ncpus=1:ngpus=1", "-l", "walltime=10:00", *asked)
        job_id = server.submit("sleep 60", *words)
        server.run_all(job_id)
        assert server.job(job_id)["Resource_List"]["select"] == f"1:ncpus={has['ncpus']}:ngpus=0"
    finally:
        server.tell(f"set node {name} resources_available.ngpus = {has['ngpus']}")


def starts(server: Server, job_id: str) -> list[dict[str, object]]:
    return [one for one in server.log(job_id) if "start" in one]


def resized(server: Server, job_id: str, shape: str, runs: int) -> None:
    """Ask for another shape once the job's run of this number makes progress."""
    until(lambda: len(starts(server, job_id)) == runs)
    steps = len(server.log(job_id))
    until(lambda: len(server.log(job_id)) > steps + 20)
    server.resize(job_id, shape)
    until(lambda: len(starts(server, job_id)) > runs)


def test_a_running_job_saves_and_goes_on_at_another_shape_with_nothing_lost(
    server: Server,
) -> None:
    job_id = server.train(
        *("-l", "select=1:ncpus=1:ngpus=4", "-l", "malleable=grace=30s"), *MOLDABLE
    )
    for run, shape in enumerate(("2", "1", "4"), 1):
        resized(server, job_id, shape, run)
    server.enough(job_id)
    until(lambda: server.job(job_id).get("job_state") == "F")
    runs = starts(server, job_id)
    assert [(one["SHAPE"], one["GPUS"], one["RESTART_COUNT"]) for one in runs] == [
        *(("4", "4", "0"), ("2", "2", "1"), ("1", "1", "2")),
        ("4", "4", "3"),
    ]
    steps_done = [one["step"] for one in server.log(job_id) if "step" in one]
    assert steps_done == list(range(1, len(steps_done) + 1))  # none twice, none left out
    assert server.job(job_id)["Exit_status"] == 0


def test_without_pliantd_jobs_are_submitted_run_and_come_back(server: Server) -> None:
    server.stop_pliantd(kill=True)
    server.until_old()  # so long what it said last is believed
    try:
        script = f"[ $PLIANT_RESTART_COUNT = 0 ] && exit {CHECKPOINTED}; exit 0"
        asked = ("-l", "select=1:ncpus=1:ngpus=2", "-l", "malleable=yes", *MOLDABLE)
        job_id = server.submit(script, *asked)
        until(lambda: server.job(job_id).get("job_state") == "F")
        job = server.job(job_id)
        assert (job["Exit_status"], job["Resource_List"]["select"]) == (0, "1:ncpus=1:ngpus=2")
    finally:
        server.start_pliantd()


def test_two_jobs_of_one_node_change_at_once(server: Server) -> None:
    words = ("-l", "moldable=gpus=1-2", "-l", "malleable=grace=30s", "-l", "walltime=10:00")
    jobs = [server.train("-l", "select=1:ncpus=1:ngpus=2", *words) for _ in range(2)]
    until(lambda: all(len(server.log(one)) > 20 for one in jobs))
    assert server.vnode_of(jobs[0]) == server.vnode_of(jobs[1])
    for one in jobs:
        server.resize(one, "1")
    until(lambda: all(len(starts(server, one)) == 2 for one in jobs))
    for one in jobs:
        server.enough(one)
    assert [[run["SHAPE"] for run in starts(server, one)] for one in jobs] == [["2", "1"]] * 2
