"""`pliant qsub` on a PBS with Pliant (see pbs_fixtures.py)."""

from __future__ import annotations

import pytest
from pbs_helpers import Server, needs_server, type_qsub, until

from hostile import values
from pliant.filter.pbs.names import RESOURCES

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

ASKED = ("-l", "select=1:ncpus=1:ngpus=4,walltime=10:00")


def test_the_flags_of_the_command_line_and_the_script_reach_the_hook(server: Server) -> None:
    server.fill(2)
    server.until_seen()
    script = "#PBS --moldable=gpus=1-8 --malleable=grace=2m\necho $PLIANT_SHAPE; sleep 60"
    done = type_qsub(server, "--moldable=gpus=1-4,nodes=1", *ASKED, script=script)
    assert (done.returncode, done.stderr) == (0, "")
    job_id = done.stdout.strip()
    until(lambda: server.job(job_id).get("job_state") == "R")
    job = server.job(job_id)
    resources = job["Resource_List"]
    assert (resources["moldable"], resources["malleable"]) == ("gpus=1-4+nodes=1", "grace=120s")
    assert resources["select"] == "1:ncpus=1:ngpus=2"
    assert (job["Job_Name"], job["Variable_List"]["PLIANT_RETURNS"]) == ("typed.sh", 85)


def test_a_wrong_flag_is_one_line_and_nothing_is_submitted(server: Server) -> None:
    done = type_qsub(server, "--moldable=gpus=4-1", *ASKED, script="true")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "pliant: moldable gpus: '4-1': the range runs backwards; write 1-4\n",
    )
    assert server.jobs() == {}


def test_hostile_and_malformed_resources_submit_nothing(server: Server) -> None:
    (server.home / "job.sh").write_text("#!/bin/sh\n")
    accepted = []
    for option, value in values():
        if not value or "," in value or len(value) > 10_000 or value == 'gpus="1"':
            continue  # nothing is said, or qsub takes it for several, or says it without quotes
        words = ("-l", f"{RESOURCES[option]}={value}", "-l", "select=1:ngpus=1")
        said = server.run(
            "qsub", *words, str(server.home / "job.sh"), user=server.user, check=False
        )
        accepted += [] if said.startswith(("qsub: ", "usage: qsub")) else [(option, value, said)]
    assert (accepted, server.jobs()) == ([], {})
