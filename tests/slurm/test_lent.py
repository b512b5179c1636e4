"""What a hand-over lends and gives, taken back: by pliantd, or by `pliantd --release` for good."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking_helpers import wait_for_look
from daemon_helpers import LONG, OneNode, slurm_says
from slurm_helpers import wait_until

from pliant.grammar import NICE, PRIORITY, TIME_MIN, note
from pliant.handover import PINNED

pytestmark = pytest.mark.slurm

NOTES = {NICE: 50, PRIORITY: 1, TIME_MIN: 5}


@pytest.fixture
def pinned(n1: OneNode) -> Iterator[int]:
    """A job that waits as one between two runs does: pinned, with its notes, behind a fence."""
    n1.fill("gpu:4")
    job = n1.wait_in_line("--gres=gpu:4", "--moldable=gpus=4", script=LONG)
    comment = n1.show(job)["AdminComment"]
    for key, number in NOTES.items():
        comment = note(comment, key, number)
    words = (f"jobid={job}", f"Priority={PINNED}", f"AdminComment={comment}")
    n1.run("scontrol", "update", *words)
    yield job
    n1.sandbox.run(["scontrol", "delete", f"reservationname=pliant_{job}"])


def own(fields: dict[str, str]) -> dict[str, str]:
    """What of a job is its own again."""
    notes = [word for word in fields["AdminComment"].split() if word.startswith("pliant-")]
    return {"Nice": fields["Nice"], "TimeMin": fields["TimeMin"], "notes": "".join(notes)}


ITS_OWN = {"Nice": "50", "TimeMin": "00:05:00", "notes": ""}


def test_an_owner_who_lowers_a_pin_has_the_own_place_again(n1: OneNode, pinned: int) -> None:
    n1.look()
    assert n1.show(pinned)["Priority"] == str(PINNED)  # for what it had it keeps it
    n1.sandbox.stop("pliantd")
    lower = ["scontrol", "update", f"jobid={pinned}", f"Priority={PINNED - 10}"]
    n1.sandbox.run(lower, user="pliant-alice")  # it says that this does not last, and does it
    assert n1.show(pinned)["Priority"] == str(PINNED - 10)
    n1.sandbox.start("pliantd")
    wait_until(lambda: int(n1.show(pinned)["Priority"]) < PINNED - 10, "its own priority")
    wait_until(lambda: own(n1.show(pinned)) == ITS_OWN, f"{own(n1.show(pinned))} to be its own")


def test_a_pinned_job_without_its_token_has_its_own_place_again(n1: OneNode, pinned: int) -> None:
    n1.run("scontrol", "update", f"jobid={pinned}", "AdminComment=checked")
    wait_until(lambda: int(n1.show(pinned)["Priority"]) < PINNED, "its own priority")


def test_what_a_hand_over_left_is_taken_back_before_pliantd_goes_for_good(
    n1: OneNode, pinned: int
) -> None:
    sandbox = n1.sandbox
    sandbox.stop("pliantd")
    fence = ("flags=ignore_jobs,overlap", "users=root", "nodes=n1", "starttime=now", "duration=9")
    n1.run("scontrol", "create", "reservation", f"reservationname=pliant_{pinned}", *fence)
    program = str(Path(sys.executable).with_name("pliantd"))
    release = [program, "--config", str(sandbox.layout.pliant_toml), "--release"]
    done = subprocess.run(release, env=sandbox.env, capture_output=True, text=True, check=True)
    assert done.stdout == f"job {pinned} has nothing of a hand-over any more\n"
    told = n1.show(pinned)
    assert (int(told["Priority"]) < PINNED, own(told)) == (True, ITS_OWN)
    assert "pliant_" not in n1.run("scontrol", "show", "reservation")
    again = subprocess.run(release, env=sandbox.env, capture_output=True, text=True, check=True)
    assert again.stdout == ""
    sandbox.start("pliantd")
    wait_for_look(sandbox)


@pytest.mark.parametrize(
    "says", ["SchedulerParameters=enable_user_top", "SchedulerType=sched/builtin"]
)
def test_where_one_may_lose_its_place_or_stop_all_behind_it_no_running_job_is_asked(
    n1: OneNode, programs: Path, says: str
) -> None:
    with slurm_says(n1.sandbox, says):
        job = n1.submit(
            "--gres=gpu:1", "--nodelist=n1", "--malleable", "--moldable=gpus=1:2", script=LONG
        )
        n1.wait_for_state(job, "RUNNING")
        n1.look()
        done = n1.sandbox.run(
            [str(programs / "pliant"), "resize", str(job), "2"], user="pliant-alice"
        )
    assert says.rpartition("=")[2] in done.stderr
