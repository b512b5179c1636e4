"""The whole of pliantd, under seeds: nothing is lost, left, overruled or told otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from limits import HANG_S
from prove.fake_slurm import HELD
from prove.seeds.faults import Fault, Faults, Strikes
from prove.seeds.loops import BEGAN_S, Killed, Loop, Time
from prove.seeds.records import Ran, _was_unseen
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
