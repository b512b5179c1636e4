"""`pliant qsub` on a PBS into which nothing was installed: this comes before what installs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pbs_helpers import Server, needs_server, type_qsub, until

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(300)

SHAPES = ("--native", "--moldable=gpus=1:2:4", "-l", "select=1:ncpus=1:ngpus=4,walltime=10:00")


@pytest.fixture(autouse=True)
def no_jobs_on(bare: Server) -> Iterator[None]:
    """Begin and end without jobs."""
    bare.empty()
    (bare.home / "ran").unlink(missing_ok=True)
    yield
    bare.empty()


def native(server: Server, seconds: int, *words: str) -> list[str]:
    """Submit requests of which one is to run for so long; return their ids."""
    script = f'echo "$PBS_JOBID" >>{server.home}/ran; sleep {seconds}'
    done = type_qsub(server, *SHAPES, *words, script=script)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def states(server: Server, jobs: list[str]) -> str:
    """Return one letter for each job."""
    return "".join(server.job(one).get("job_state", "-") for one in jobs)


def test_the_first_shape_that_can_run_does_and_the_others_go_when_it_has_ended(
    bare: Server,
) -> None:
    bare.fill(2)
    jobs = native(bare, 5)
    assert len(jobs) == 3
    until(lambda: states(bare, jobs) == "HRH")
    assert "ngpus=2" in bare.job(jobs[1])["exec_vnode"]
    until(lambda: states(bare, jobs) == "FFF")
    assert (bare.home / "ran").read_text().split() == [jobs[1]]
    assert bare.job(jobs[1])["Exit_status"] == 0


def test_where_all_fit_the_largest_or_the_fastest_runs(bare: Server) -> None:
    largest = native(bare, 60)
    until(lambda: states(bare, largest) == "RHH")
    assert "ngpus=4" in bare.job(largest[0])["exec_vnode"]
    fastest = native(bare, 60, "--throughput=2:9,4:5")
    until(lambda: states(bare, fastest) == "RHH")
    assert "ngpus=2" in bare.job(fastest[0])["exec_vnode"]


def test_one_that_is_requeued_takes_part_again_with_all_others(bare: Server) -> None:
    fillers = bare.fill(3)
    jobs = native(bare, 600)
    until(lambda: states(bare, jobs) == "HHR")
    bare.run("qmgr", "-c", "set server scheduling = False")
    try:
        bare.run("qdel", fillers[0])
        bare.run("qrerun", jobs[2])
        until(lambda: states(bare, [fillers[0], *jobs]) == "FQQQ")
    finally:
        bare.run("qmgr", "-c", "set server scheduling = True")
    until(lambda: states(bare, jobs) == "RHH")
    bare.run("qdel", jobs[0], user=bare.user)
    until(lambda: states(bare, jobs) == "FFF")


def test_of_those_that_wait_only_what_is_deleted_goes(bare: Server) -> None:
    bare.fill()
    jobs = native(bare, 60)
    bare.run("qdel", jobs[0], user=bare.user)
    until(lambda: states(bare, jobs) == "FQQ")


def test_where_one_is_refused_none_is_left(bare: Server) -> None:
    bare.run("qmgr", "-c", 'set server max_queued = "[u:PBS_GENERIC=2]"')
    try:
        done = type_qsub(bare, *SHAPES, script="true")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("pliant: qsub: ")
        assert done.stderr.count("\n") == 1
        assert bare.jobs() == {}
    finally:
        bare.run("qmgr", "-c", "unset server max_queued")


def test_without_our_resources_the_same_stands_in_variables(bare: Server) -> None:
    script = "#PBS -v MINE=1 --moldable=gpus=1-4,nodes=1\n#PBS -l select=1:ncpus=1:ngpus=1\ntrue"
    done = type_qsub(bare, "--malleable=grace=2m", script=script)
    assert (done.returncode, done.stderr) == (0, "")
    job = bare.job(done.stdout.strip())
    variables = {n: v for n, v in job["Variable_List"].items() if n[:4] in ("MINE", "PLIA")}
    assert variables == {
        "MINE": 1,
        "PLIANT_MOLDABLE": "gpus=1-4+nodes=1",
        "PLIANT_MALLEABLE": "grace=120s",
    }
    assert job["Job_Name"] == "typed.sh"
