"""The whole of pliantd, under seeds: nothing is lost, left, overruled or told otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from operator import contains
from pathlib import Path
from random import Random
from typing import Any

import pytest

from limits import HANG_S
from pliant.handover import GUEST, PINNED, RETURNS, Outcome
from prove.fake_slurm import HELD, REQUEUE_S, Record
from prove.seeds.cluster import Cluster
from prove.seeds.faults import Fault, Faults, Strikes
from prove.seeds.loops import BEGAN_S, Killed, Loop, Time
from prove.seeds.records import Ran, _was_unseen
from prove.seeds.rules import LOOKS, Place
from prove.seeds.seed import _Seed, run
from prove.seeds.site import Halt

TOP = Path(__file__).parents[1]
SEEDS = 50


@pytest.mark.parametrize("first", range(0, SEEDS, 5))
def test_whatever_a_seed_brings_all_is_as_it_must_be(first: int) -> None:
    for seed in range(first, first + 5):
        found = run(seed)
        assert found.wrong == [], f"make prove-seeds SEED={seed}"
        assert found.jobs >= 200
        assert found.hand_overs >= 20
        assert sum(found.faults.values()) >= 5


VOID: Mapping[str, Callable[[Faults], Strikes]] = {
    "priority written back": lambda faults: faults._writes_back,
    "wrapper killed": lambda faults: faults._wrapper,
    "slurmstepd killed": lambda faults: faults._stepd,
    "checkpoint goes wrong": lambda faults: faults._habit,
    "start killed": lambda faults: faults._kills_start,
    "pliantd killed": lambda faults: faults._kills,
    "pliantd ended and started": lambda faults: faults._ends,
    "pliantd started from an older store": lambda faults: faults._ages,
}
"""What finds nothing where a job waits that has never run, and no pliantd runs."""


def _struck(seed: _Seed, name: str, which: Callable[[Faults], Strikes]) -> Counter[str]:
    """What is counted after a fault that strikes the first job, and the seconds after it."""
    seed._submit(next(seed.jobs))
    seed.faults._strikes(Fault(name, "time", 0.0, 0.0, which(seed.faults)), 1)
    seed.time.pass_for(30.0)
    return seed.faults.came


@pytest.mark.parametrize("name", VOID)
def test_a_fault_that_strikes_nothing_is_not_counted(name: str, tmp_path: Path) -> None:
    seed = _Seed(1, tmp_path, flags=True, shown=False)
    assert _struck(seed, name, VOID[name]) == {}
    assert any("there is nothing to strike" in line for line in seed.trace.lines)


def test_a_start_that_is_refused_is_counted_when_it_is(tmp_path: Path) -> None:
    seed = _Seed(1, tmp_path, flags=True, shown=False)
    came = _struck(seed, "start refused", lambda faults: faults._refuses_start)
    assert came == {"start refused": 1}
    assert seed.cluster.state.jobs[1].reason == HELD


def test_what_is_due_in_a_process_that_stands_still_waits_until_it_goes_on() -> None:
    time, heard = Time(), list[str]()
    loop = Loop(time)
    time.at(BEGAN_S + 1, heard.append, "in it", loop=loop)
    time.at(BEGAN_S + 2, heard.append, "beside it")
    loop.stands_still_for(3.0)
    assert (heard, time.now_s) == (["beside it"], BEGAN_S + 3)
    time.pass_for(0.0)
    assert heard == ["beside it", "in it"]


def test_one_that_is_killed_while_it_stands_still_does_not_go_on() -> None:
    time, heard = Time(), list[str]()
    loop = Loop(time)
    time.at(BEGAN_S + 1, heard.append, "in it", loop=loop)
    time.at(BEGAN_S + 2, lambda: setattr(loop, "is_dead", True))
    with pytest.raises(Killed):
        loop.stands_still_for(3.0)
    time.pass_for(1.0)
    assert heard == []


def test_pliantd_stands_still_once_before_a_step_of_that_name(tmp_path: Path) -> None:
    seed, jobs = _Seed(1, tmp_path, flags=True, shown=False), list[str]()
    seed.site.halts.append(Halt("requeue", 150.0, jobs.append))
    for step in ("pin", "requeue", "requeue"):
        seed.site._halts(Loop(seed.time), step, "7")
    assert (jobs, seed.time.now_s, seed.site.lasting) == (["7"], BEGAN_S + 150, 0)


@pytest.mark.parametrize(
    ("ran", "is_unseen"),
    [
        (Ran(3, 1, 120.0, 170.0), True),
        (Ran(3, 1, 120.0, 220.0), False),
        (Ran(3, 1, 90.0, 170.0), False),
        (Ran(3, 1, 120.0), False),
    ],
)
def test_a_run_that_comes_and_goes_while_pliantd_stands_still_is_not_seen(
    ran: Ran, is_unseen: bool
) -> None:
    assert _was_unseen(ran, [(0.0, 50.0), (100.0, 200.0)]) is is_unseen


@pytest.fixture
def quiet(tmp_path: Path) -> _Seed:
    """A seed with one job that waits, of which no pliantd that runs takes anything away."""
    seed = _Seed(1, tmp_path, flags=True, shown=False)
    seed.site.start()
    seed.time.pass_for(10.0)
    seed.site.kill("for good", inf)
    seed.site.tidy()
    seed._submit(next(seed.jobs))
    return seed


def _puts(seed: _Seed, number: int = 1, **what: Any) -> None:
    """Let a job be so, whoever made it so."""
    seed.cluster._keep(replace(seed.cluster.state.jobs[number], **what))


def _after(looks: int, seed: _Seed) -> list[str]:
    """What is wrong after so many looks, in which nothing else happens."""
    for _ in range(looks):
        seed.rules.looked()
    return seed.rules.wrong


LATER_S = 7200.0
WRONG: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "a guest's pin": ({"priority": GUEST}, "and nobody makes room for it"),
    "the pin of one that returns": ({"priority": RETURNS}, "and nothing is under way"),
    "a victim's pin": ({"priority": PINNED}, "and has given up no place"),
    "a later begin": ({"begin_s": BEGAN_S + LATER_S}, "which nobody has said"),
}
"""What is left to a job that waits and is in no hand-over, and what the rules say of it."""


@pytest.mark.parametrize("name", WRONG)
def test_what_is_left_to_a_job_that_waits_is_wrong_after_some_looks(
    name: str, quiet: _Seed
) -> None:
    what, words = WRONG[name]
    _puts(quiet, **what)
    assert _after(LOOKS, quiet) == []
    assert [words in wrong for wrong in _after(1, quiet)] == [True]


@pytest.mark.parametrize("name", WRONG)
def test_it_is_not_while_its_hand_over_is_under_way(
    name: str, quiet: _Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    _puts(quiet, **WRONG[name][0])
    monkeypatch.setattr(quiet.site, "outcome", lambda _number: None)
    assert _after(LOOKS + 1, quiet) == []


def test_one_for_whom_room_is_made_waits_with_the_pin_of_a_guest(
    quiet: _Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    _puts(quiet, priority=GUEST)
    monkeypatch.setattr(quiet.site, "guests", lambda: frozenset(("1",)))
    assert _after(LOOKS + 1, quiet) == []


@pytest.mark.parametrize(
    ("more", "outcome", "words"),
    [
        (0, Outcome.SLOW, []),
        (0, Outcome.CHANGED, ["was changed by others"]),
        (1, Outcome.SLOW, ["more than it had"]),
    ],
    ids=("as much", "as much, and changed", "more"),
)
def test_who_gave_up_a_place_waits_with_a_victims_pin_for_as_much(
    more: int, outcome: Outcome, words: list[str], quiet: _Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = quiet.cluster.state.jobs[1].gpus
    quiet.rules._places[1] = Place(most=gpus, saved_s=BEGAN_S)
    _puts(quiet, priority=PINNED, gpus=gpus + more, nodes=1)
    monkeypatch.setattr(quiet.site, "outcome", lambda _number: outcome)
    wrong = _after(LOOKS + 1, quiet)
    assert len(wrong) == len(words)
    assert all(map(contains, wrong, words))


def test_a_time_to_begin_that_its_owner_has_said_is_nothing_that_is_left(quiet: _Seed) -> None:
    begin_s = BEGAN_S + LATER_S
    begin = f"StartTime={datetime.fromtimestamp(begin_s, UTC):%Y-%m-%dT%H:%M:%S}"
    assert quiet.owners._asks(quiet.cluster.state.jobs[1], begin, {"begin_s": begin_s})
    assert _after(LOOKS + 1, quiet) == []
    _puts(quiet, begin_s=begin_s + 60)  # which he has not
    assert len(_after(LOOKS + 1, quiet)) == 1


def test_nor_is_that_which_slurm_gives_who_is_requeued(quiet: _Seed) -> None:
    _puts(quiet, begin_s=quiet.cluster.state.jobs[1].submit_s + REQUEUE_S)
    assert _after(LOOKS + 1, quiet) == []


def test_two_jobs_with_one_gpu_are_wrong(quiet: _Seed) -> None:
    quiet._submit(next(quiet.jobs))
    _puts(quiet, 1, state="COMPLETING", gpus=3, nodes=1, on=("n1",))
    _puts(quiet, 2, state="COMPLETING", gpus=1, nodes=1, on=("n1",))
    assert quiet.rules.wrong == []
    _puts(quiet, 2, gpus=2)
    assert [wrong.startswith("two jobs have one GPU of n1") for wrong in quiet.rules.wrong] == [
        True
    ]


def test_a_slurmctld_that_forgets_gives_no_gpu_twice() -> None:
    cluster = Cluster(Time(), 1, Random(1))  # noqa: S311  # a draw, no secret
    for number in (1, 2):
        cluster._keep(Record(number, state="RUNNING", run=1, gpus=2))
    cluster._earlier.clear()
    for number, again in ((1, 2), (2, 2), (3, 1)):  # of two GPUs that are left one is another's
        cluster._keep(Record(number, state="RUNNING", run=again, gpus=1))
    cluster.goes_away(0.0)
    assert [job.gpus for job in cluster.state.jobs.values()] == [2, 1, 1]


def test_the_same_seed_brings_the_same() -> None:
    assert {_hash_of(7, order) for order in ("1", "2")} == {run(7).hash}


def _hash_of(seed: int, order: str) -> str:
    """The hash of a seed in a process of its own, with sets and words in another order."""
    done = subprocess.run(
        [sys.executable, "-c", f"from prove.seeds.seed import run; print(run({seed}).hash)"],
        cwd=TOP,
        env={**os.environ, "PYTHONHASHSEED": order},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    return done.stdout.strip()
