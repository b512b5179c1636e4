"""Programs that speak: what they said, where that puts their jobs, and what a restart costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from slurm_hands import Hands, begun

from pliant.daemon.handing import HandOvers, Wanted, name_of
from pliant.daemon.runs import Runs
from pliant.daemon.speakers import SILENT_S
from pliant.lifecycle import Phase
from pliant.model import Job, JobState, Shape
from pliant.store import Store

JOB = Job("7", user="alice", state=JobState.RUNNING, shape=Shape(1, 4), start_s=1000.0)


class Bench:
    """Runs over a store, and a clock that tests set."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.now_s = directory, 1000.0
        self.start()

    def start(self) -> None:
        """As after a kill."""
        self.store = Store(self.directory)
        self.overs = HandOvers(Hands(begun()), self.store, lambda: self.now_s, lambda: self.now_s)
        self.runs = Runs(self.store, self.overs, lambda: self.now_s, lambda: self.now_s)

    def phase(self, job: Job = JOB) -> Phase:
        return self.runs.life(job).phase


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()


def test_a_job_is_asked_only_once_it_runs_unprotected_and_listens(bench: Bench) -> None:
    seen = [(bench.phase(), bench.runs.may_reshape(JOB))]
    bench.now_s = 1010.0
    bench.runs.heard(JOB, 0, launched=True)
    seen.append((bench.phase(), bench.runs.may_reshape(JOB)))
    bench.now_s = 1041.0
    seen.append((bench.phase(), bench.runs.may_reshape(JOB)))
    bench.now_s = 1041.0 + SILENT_S
    seen.append((bench.phase(), bench.runs.may_reshape(JOB)))
    assert seen == [
        (Phase.LAUNCHING, False),
        (Phase.RUNNING_PROTECTED, False),
        (Phase.RUNNING, True),
        (Phase.RUNNING, False),
    ]


def test_a_job_that_is_asked_is_checkpointing_then_stopping_then_standing_by(bench: Bench) -> None:
    bench.runs.heard(JOB, 0, launched=True)
    bench.overs.begin(JOB, Wanted(Shape(1, 2)), 2000.0, "it fits better")
    seen = [bench.phase()]
    over = bench.overs.of("7")
    assert over is not None
    bench.overs.saved("7", 0, name_of(over))
    seen.append(bench.phase())
    waiting = replace(JOB, state=JobState.WAITING, restarts=1)
    seen.append(bench.phase(waiting))
    assert seen == [Phase.CHECKPOINTING, Phase.STOPPING, Phase.STANDBY]


def test_what_a_run_said_survives_a_restart_but_not_that_it_listens(bench: Bench) -> None:
    bench.now_s = 1010.0
    bench.runs.heard(JOB, 0, launched=True, step=5, rate=2.5)
    bench.start()
    bench.now_s = 1100.0
    assert not bench.runs.may_reshape(JOB)
    bench.runs.heard(JOB, 0)
    assert (bench.phase(), bench.runs.may_reshape(JOB)) == (Phase.RUNNING, True)
    (row,) = bench.store.runs("7")
    assert (row.launched_s, row.step, row.rate) == (1010.0, 5, 2.5)


def test_the_next_run_is_another_one(bench: Bench) -> None:
    bench.runs.heard(JOB, 0, launched=True)
    again = replace(JOB, restarts=1, start_s=1100.0)
    bench.now_s = 1100.0
    assert bench.phase(again) is Phase.LAUNCHING
    bench.runs.heard(again, 1)
    assert bench.phase(again) is Phase.LAUNCHING
    assert [row.run for row in bench.store.runs("7")] == [0, 1]


@pytest.mark.parametrize("restarted", [False, True])
def test_so_is_one_whose_number_is_given_a_second_time(bench: Bench, restarted: bool) -> None:
    """A slurmctld that was killed has forgotten the first."""
    bench.now_s = 1010.0
    bench.runs.heard(JOB, 0, launched=True, step=5, rate=2.5)
    bench.runs.ended(JOB, 0, 3)
    if restarted:
        bench.start()
    again = replace(JOB, start_s=1100.0, shape=Shape(1, 2))
    assert (bench.phase(again), bench.runs.speaks(again)) == (Phase.LAUNCHING, False)
    bench.now_s = 1101.0
    bench.runs.heard(again, 0)
    assert (bench.phase(again), bench.runs.speaks(again)) == (Phase.LAUNCHING, True)
    bench.now_s = 1120.0
    bench.runs.heard(again, 0, launched=True)
    (row,) = bench.store.runs("7")
    assert (row.start_s, row.launched_s, row.shape, row.rate) == (1100.0, 1120.0, "2", 0.0)
    assert row.code is None


def test_a_restart_costs_its_launch_and_its_checkpoint(bench: Bench) -> None:
    assert bench.runs.restart_s(JOB) == 0.0
    bench.now_s = 1012.0
    bench.runs.heard(JOB, 0, launched=True)
    bench.runs.saved(JOB, 0, 8.0)
    assert bench.runs.restart_s(JOB) == 20.0


def test_what_a_program_said_is_known_to_the_next_pliantd_and_in_the_next_run(
    bench: Bench,
) -> None:
    assert not bench.runs.speaks(JOB)
    bench.runs.heard(JOB, 0, step=50)
    bench.start()
    assert bench.runs.speaks(JOB)
    assert bench.runs.progress(JOB, 200) == 0.25
    again = replace(JOB, restarts=1)
    assert not bench.runs.speaks(again)
    bench.runs.heard(again, 1)
    assert (bench.runs.progress(again, 200), bench.runs.progress(again, 0)) == (0.25, 0.0)


def test_jobs_that_are_gone_are_forgotten(bench: Bench) -> None:
    bench.runs.heard(JOB, 0, launched=True)
    bench.now_s = 1001.0
    assert bench.runs.may_reshape(JOB)
    bench.runs.forget(())
    assert not bench.runs.may_reshape(JOB)


def test_heartbeats_tell_how_fast_the_next_job_of_that_user_and_name_runs(bench: Bench) -> None:
    named = replace(JOB, name="train")
    bench.runs.heard(named, 0, rate=3.0)
    bench.now_s = 1100.0
    again = replace(named, id="8", shape=Shape(1, 1))
    bench.runs.heard(again, 0, rate=0.5)
    bench.runs.heard(again, 0, rate=1.0)  # what was measured last counts
    bench.start()
    third = replace(named, id="9", state=JobState.WAITING)
    assert bench.runs.measured(third) == ((Shape(1, 1), 1.0), (Shape(1, 4), 3.0))
    bench.now_s = 1200.0
    bench.runs.heard(replace(named, id="10"), 0, rate=3.5)
    assert bench.runs.measured(third) == ((Shape(1, 1), 1.0), (Shape(1, 4), 3.5))
    bench.runs.forget((third,))
    assert bench.runs.measured(third) == ((Shape(1, 1), 1.0), (Shape(1, 4), 3.5))


def test_another_users_jobs_and_jobs_without_a_name_of_their_own_tell_nothing(bench: Bench) -> None:
    bench.runs.heard(replace(JOB, name="train"), 0, rate=3.0)
    bench.runs.heard(replace(JOB, id="8", name="wrap"), 0, rate=3.0)
    for user, name in (("bob", "train"), ("alice", "wrap"), ("alice", "Train"), ("alice", "")):
        assert bench.runs.measured(replace(JOB, id="9", user=user, name=name)) == ()
