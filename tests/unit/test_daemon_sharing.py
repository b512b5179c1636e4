"""What is known of jobs beside each other, live: from steps and windows, and only what is certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from test_policies_marks import here, seen, sharing

from pliant.daemon.beats import Beats
from pliant.daemon.monitors import Measured
from pliant.daemon.patience import Patience
from pliant.daemon.sharing import KEEP_S, Sharing, sharing_trouble
from pliant.daemon.vain import Vain
from pliant.model import Job, Shape, Snapshot
from pliant.policies import live
from pliant.store import Store
from pliant.wire.monitor import UNITS, Window


@dataclass
class Windows:
    """What monitors said, by job."""

    kept: dict[str, list[Measured]] = field(default_factory=dict)

    def of(self, job_id: str) -> Mapping[str, tuple[Measured, ...]]:
        return {"n1": tuple(self.kept.get(job_id, ()))}

    def say(self, job_id: str, begin_s: float, end_s: float, value: float, tier: str) -> None:
        window = Window(job_id, begin_s, end_s, tier, value, UNITS[tier], end_s - begin_s)  # type: ignore[arg-type]  # words
        self.kept.setdefault(job_id, []).append(Measured(begin_s, end_s, window))


@dataclass
class Bench:
    """A table, and who is asked for its step."""

    windows: Windows = field(default_factory=Windows)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sharing = Sharing(self.windows, ask=self.asked.append)

    def look(self, now_s: float, *running: Job, waiting: tuple[Job, ...] = ()) -> Snapshot:
        found = replace(seen([*waiting], *running), now_s=now_s)
        return self.sharing.known(found)

    def told(self, snapshot: Snapshot) -> dict[str, dict[str, float]]:
        return {"+".join(sorted(one.jobs)): dict(one.speeds) for one in snapshot.company.known}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def runs(number: int, name: str, since_s: float = 0.0, on: str = "n1") -> Job:
    return replace(here(number, on), name=name, start_s=since_s)


def steps(bench: Bench, job_id: str, *told: tuple[float, int]) -> None:
    """A program tells how far it is, and when."""
    for at_s, step in told:
        bench.sharing.beats.heard(job_id, 0, step, at_s)


def test_steps_are_windows_and_what_is_said_again_is_nothing_new() -> None:
    beats = Beats()
    for step, at_s in ((10, 100.0), (20, 101.0), (30, 104.0), (30, 129.0), (80, 129.0)):
        beats.heard("1", 0, step, at_s)
    assert beats.of("1") == ((100.0, 104.0, 5.0), (104.0, 129.0, 2.0))
    assert beats.last() == {"1": (104.0, 129.0, 2.0)}
    beats.heard("1", 1, 20, 200.0)
    assert beats.of("1") == ()
    assert beats.last() == {}


def test_a_pair_is_known_relative_to_each_job_alone(bench: Bench) -> None:
    one, two = runs(1, "train"), runs(2, "eval", 20.0)
    bench.look(0.0, one)
    bench.windows.say("1", 2.0, 12.0, 4.0, "counters")
    assert bench.told(bench.look(13.0, one)) == {"1": {"1": 1.0}}
    bench.look(21.0, one, two)
    bench.windows.say("1", 19.0, 29.0, 1.0, "counters")  # it was alone for a part of it
    bench.windows.say("1", 21.0, 31.0, 2.0, "counters")
    bench.windows.say("2", 21.0, 31.0, 3.0, "counters")
    assert bench.told(bench.look(32.0, one, two)) == {"1": {"1": 1.0}}
    bench.look(40.0, two)
    bench.windows.say("2", 35.0, 45.0, 9.0, "counters")  # one may have left at any time of it
    bench.windows.say("2", 41.0, 51.0, 4.0, "counters")
    bench.look(52.0, two)
    again = replace(sharing(3), name="train")
    told = bench.told(bench.look(53.0, two, waiting=(again,)))
    assert told == {"2": {"2": 1.0}, "3": {"3": 1.0}, "2+3": {"2": 0.75, "3": 0.5}}


def test_cpu_time_says_nothing_of_a_pair(bench: Bench) -> None:
    one = runs(1, "train")
    bench.look(0.0, one)
    bench.windows.say("1", 2.0, 12.0, 1.0, "cpu")
    assert bench.told(bench.look(13.0, one)) == {}


def test_a_program_is_asked_for_steps_where_nothing_is_known(bench: Bench) -> None:
    one = runs(1, "train")
    bench.look(0.0, one)
    assert bench.asked == ["1"]
    bench.look(1.0, one)
    assert bench.asked == ["1"]
    bench.windows.say("1", 2.0, 12.0, 4e9, "counters")
    bench.look(13.0, one)
    asked = len(bench.asked)
    bench.look(30.0, one)
    assert len(bench.asked) == asked


def test_own_steps_count_before_counters_where_both_are_known(bench: Bench) -> None:
    one, two = runs(1, "train"), runs(2, "eval", 20.0)
    bench.look(0.0, one)
    steps(bench, "1", (1.0, 10), (11.0, 110))
    bench.windows.say("1", 2.0, 12.0, 4e9, "counters")
    bench.look(13.0, one)
    bench.look(21.0, one, two)
    steps(bench, "1", (21.0, 120), (31.0, 150))
    for job, speed in (("1", 1e9), ("2", 1e9)):
        bench.windows.say(job, 21.0, 31.0, speed, "counters")
    bench.look(32.0, one, two)
    bench.windows.say("2", 41.0, 51.0, 2e9, "counters")
    bench.look(40.0, two)
    told = bench.told(bench.look(52.0, two, waiting=(replace(sharing(3), name="train"),)))
    assert told["2+3"] == {"2": 0.5, "3": 0.3}


def test_of_a_job_with_gpus_only_its_own_steps_say_how_fast_it_is(bench: Bench) -> None:
    one = replace(runs(1, "train"), shape=Shape(1, 1), shapes=(Shape(1, 1),))
    bench.look(0.0, one)
    bench.windows.say("1", 2.0, 12.0, 4e9, "counters")
    assert bench.told(bench.look(13.0, one)) == {}
    steps(bench, "1", (13.0, 10), (23.0, 110))
    assert bench.told(bench.look(24.0, one)) == {"1": {"1": 1.0}}


def test_a_pair_is_known_though_each_is_measured_in_another_tier(bench: Bench) -> None:
    """One was counted before it told its first step, and the other never tells any."""
    one, two = runs(1, "train"), runs(2, "eval", 40.0)
    bench.look(0.0, one)
    bench.windows.say("1", 2.0, 12.0, 4e9, "counters")
    bench.look(13.0, one)
    steps(bench, "1", (13.0, 1), (23.0, 101))  # none of its counters come any more
    bench.look(24.0, one)
    bench.look(41.0, one, two)
    steps(bench, "1", (41.0, 102), (51.0, 142))
    bench.windows.say("2", 41.0, 51.0, 3e9, "counters")
    bench.look(52.0, one, two)
    bench.look(60.0, two)
    bench.windows.say("2", 61.0, 71.0, 4e9, "counters")
    again = replace(sharing(3), name="train")
    told = bench.told(bench.look(72.0, two, waiting=(again,)))
    assert told["2+3"] == {"2": 0.75, "3": 0.4}


def test_counters_are_counted_on_where_a_program_tells_steps_from_some_time_on(
    bench: Bench,
) -> None:
    one, two = runs(1, "train"), runs(2, "eval", 20.0)
    bench.look(0.0, one)
    bench.windows.say("1", 2.0, 12.0, 4e9, "counters")
    bench.look(13.0, one)
    bench.look(21.0, one, two)
    steps(bench, "1", (21.0, 1), (31.0, 100))  # which it never told alone
    bench.windows.say("1", 21.0, 31.0, 3e9, "counters")
    bench.look(32.0, one, two)
    assert bench.sharing.table.relative("1", "counters", frozenset("2")) == 0.75
    assert bench.sharing.table.relative("1", "heartbeat", frozenset("2")) is None


def test_what_was_measured_of_programs_outlives_pliantd(bench: Bench, tmp_path: Path) -> None:
    store = Store(tmp_path)
    bench.sharing.memory = store
    bench.look(0.0, runs(1, "train"), runs(2, "wrap", on="n2"))
    for job in "12":
        bench.windows.say(job, 2.0, 12.0, 4.0, "counters")
    bench.look(12.0 + KEEP_S, runs(1, "train"), runs(2, "wrap", on="n2"))
    store.close()
    later = Bench()
    later.sharing = Sharing(later.windows, memory=Store(tmp_path))
    waiting = (replace(sharing(3), name="train"), replace(sharing(4), name="wrap"))
    assert later.told(later.look(50.0, waiting=waiting)) == {"3": {"3": 1.0}}


def test_who_tells_nothing_is_asked_less_and_less(bench: Bench) -> None:
    for now_s in range(100):
        bench.look(float(now_s), runs(1, "train"))
    assert len(bench.asked) == 6  # at 0, 3, 9, 21, 45 and 93 s
    bench.look(100.0, runs(1, "train"), runs(2, "other", 99.0))
    assert bench.asked[6:] == ["1", "2"]


def test_who_answers_is_asked_until_his_speed_is_known(bench: Bench) -> None:
    pair = runs(1, "train"), runs(2, "other")
    for now_s in range(30):
        asked = len(bench.asked)
        bench.look(float(now_s), *pair)
        if "1" in bench.asked[asked:]:
            steps(bench, "1", (now_s + 0.1, 10 * (now_s + 1)))
    assert bench.asked.count("1") == 5  # at 0, 3, 6, and as nothing is known of the other 12, 24 s
    assert bench.asked.count("2") == 4  # at 0, 3, 9, 21 s


def test_of_company_that_was_not_seen_nothing_is_counted(bench: Bench) -> None:
    """Who came and went while nobody looked, as while pliantd was away, is not known."""
    one = runs(1, "train")
    bench.look(10.0, one)
    bench.windows.say("1", 40.0, 100.0, 4e9, "counters")
    assert bench.told(bench.look(200.0, one)) == {}
    bench.windows.say("1", 201.0, 211.0, 4e9, "counters")
    assert bench.told(bench.look(212.0, one)) == {"1": {"1": 1.0}}


def test_jobs_that_nobody_named_are_no_program(bench: Bench) -> None:
    one = runs(1, "wrap")
    bench.look(0.0, one)
    bench.windows.say("1", 2.0, 12.0, 4.0, "counters")
    other = replace(sharing(2), name="wrap")
    assert bench.told(bench.look(13.0, one, waiting=(other,))) == {"1": {"1": 1.0}}


@pytest.mark.parametrize("backfill_s", [1.0, 300.0])
def test_a_node_named_in_vain_is_closed_to_a_job_for_a_while(
    bench: Bench, backfill_s: float
) -> None:
    """In vain it is after some passes of backfill, however seldom these come."""
    patience = Patience(backfill_s)
    bench.sharing.vain = Vain(patience)
    waits, one = sharing(2, mark="n1"), runs(1, "train")
    assert bench.look(0.0, one, waiting=(waits,)).waiting[0].nodes_kept == frozenset()
    soon = bench.look(4 * backfill_s, one, waiting=(waits,))
    assert soon.waiting[0].nodes_kept == frozenset()
    later = bench.look(patience.wait_s + 1, one, waiting=(waits,))
    assert later.waiting[0].nodes_kept == {"n1"}
    unmarked = sharing(2, mark="-")
    again_s = patience.wait_s + patience.refuse_s
    assert bench.look(again_s - 1, one, waiting=(unmarked,)).waiting[0].nodes_kept == {"n1"}
    assert bench.look(again_s + 1, one, waiting=(unmarked,)).waiting[0].nodes_kept == frozenset()


def test_a_policy_that_pairs_jobs_where_none_may_share_is_told() -> None:
    found = seen([]).partitions
    plain = [replace(found[0], sharers=4)]
    policy = live("cosched-fcs", {})
    assert sharing_trouble(policy, plain) == (
        "policy cosched-fcs: no partition has OverSubscribe=YES:2: no two jobs share a node"
    )
    assert sharing_trouble(policy, found) == sharing_trouble(live("fms", {}), plain) == ""


def test_where_no_partition_is_shared_nothing_is_measured(bench: Bench) -> None:
    found = seen([], runs(1, "train"))
    plain = replace(found, partitions=(replace(found.partitions[0], sharers=1),))
    assert bench.sharing.known(plain) is plain
    assert bench.asked == []
