"""Programs whose heartbeats stop once they were asked for a checkpoint: said, and requeued if said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_daemon_elastic import JOB, MALLEABLE, TWO, Bench, always, cluster, drained, never

from pliant.daemon.stalled import QUIET_S
from pliant.errors import Refused
from pliant.handover import PINNED, Outcome
from pliant.model import Job, Malleable, Snapshot, Spec
from pliant.plan import Plan, Reshape
from pliant.store import Decision
from pliant.wire.runs import WATCH_S

GRACE_S = 30.0
ASKED_S = 2000.0
DUE_S = ASKED_S + GRACE_S + QUIET_S + WATCH_S
RETURNS = replace(MALLEABLE, malleable=Malleable(30, "", requeues_stalled=True))
REQUEUES = replace(JOB, spec=Spec(RETURNS, own=JOB.shape))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()


def begin(bench: Bench, job: Job) -> None:
    """Ask its program, which beat once a second until 2000."""
    bench.elastic.runs.heard(job, 0, launched=True, step=999, rate=1.0)
    bench.now_s = ASKED_S
    bench.look(job)
    bench.elastic.runs.heard(job, 0, launched=True, step=1000, rate=1.0)
    (found,) = bench.seen(job).running
    assert list(
        bench.elastic.begin(Plan(reshapes=(Reshape(found, TWO, ("n1",), "price"),)), always)
    )


def ask(bench: Bench, job: Job = JOB) -> None:
    """Ask its program, and let the grace period pass."""
    begin(bench, job)
    bench.now_s = ASKED_S + GRACE_S + 1
    bench.elastic.overs.turn()
    assert bench.elastic.overs.of("7") is None
    beats(bench, job, 1000, GRACE_S + 1)


def beats(bench: Bench, job: Job, step: int, ago_s: float) -> None:
    """Its wrapper says how far it is, and since when."""
    bench.elastic.runs.heard(job, job.restarts, launched=True, step=step, rate=1.0, beat_s=ago_s)


def hangs(bench: Bench, job: Job = JOB) -> None:
    """Its heartbeats stop at the wish, and that is heard."""
    ask(bench, job)
    bench.now_s = DUE_S
    beats(bench, job, 1000, DUE_S - ASKED_S)
    bench.look(job)


def said(bench: Bench) -> list[Decision]:
    return [one for one in bench.store.decisions("7") if one.what == "stalled"]


def test_it_is_said_of_a_job_that_hangs_since_it_was_asked(bench: Bench) -> None:
    hangs(bench)
    (decision,) = said(bench)
    assert decision.reason == (
        "no heartbeat since the checkpoint was requested 115 s ago: it is at step 1000; the program "
        "hangs, probably by that; it is left as it is (stalled=leave)"
    )
    (row,) = bench.store.handovers("7")
    assert row.outcome == Outcome.STALLED
    bench.look(JOB)
    assert said(bench) == [decision]  # once
    assert bench.elastic.overs.of("7") is None


def test_it_is_known_to_the_next_pliantd(bench: Bench) -> None:
    ask(bench)
    bench.start()
    bench.now_s = DUE_S
    beats(bench, JOB, 1000, DUE_S - ASKED_S)
    bench.look(JOB)
    assert len(said(bench)) == 1


@pytest.mark.parametrize("job", [JOB, REQUEUES])
@pytest.mark.parametrize(
    "why", ["goes on", "not long enough", "nothing is heard", "slow steps", "another run"]
)
def test_nothing_is_said_of_one_that_may_not_hang(bench: Bench, why: str, job: Job) -> None:
    ask(bench, job)
    bench.now_s = DUE_S
    if why == "goes on":
        beats(bench, job, 1020, 0.0)
    elif why == "not long enough":
        bench.now_s = DUE_S - 1
        beats(bench, job, 1000, bench.now_s - ASKED_S)
    elif why == "slow steps":
        bench.elastic.runs.heard(job, 0, step=1000, rate=0.02, beat_s=DUE_S - ASKED_S)
    elif why == "another run":
        job = replace(job, restarts=1)
        beats(bench, job, 1000, 0.0)
    bench.look(job)
    assert said(bench) == []
    assert bench.elastic.overs.of("7") is None


@pytest.mark.parametrize("why", ["it is no job of Pliant's", "it is asked again"])
def test_nothing_is_said_of_one_that_is_not_to_be_looked_after(bench: Bench, why: str) -> None:
    ask(bench)
    job = replace(JOB, spec=None) if why == "it is no job of Pliant's" else JOB
    if job is JOB:
        list(bench.elastic.begin(Plan(reshapes=(Reshape(bench.one(), TWO, (), "price"),)), always))
        assert bench.elastic.overs.of("7") is not None
    bench.now_s = DUE_S
    beats(bench, job, 1000, DUE_S - ASKED_S)
    bench.look(job)
    assert said(bench) == []


@pytest.mark.parametrize("why", ["two wrappers speak for it", "it could not start again"])
def test_it_is_not_requeued_where_it_would_not_go_on(bench: Bench, why: str) -> None:
    ask(bench, REQUEUES)
    bench.now_s = DUE_S
    beats(bench, REQUEUES, 1000, DUE_S - ASKED_S)
    if why == "two wrappers speak for it":
        for word in "ab":
            bench.elastic.runs.spoke(REQUEUES, 0, word, others=True)
        assert bench.elastic.runs.are_several(REQUEUES)
    else:
        cluster(bench, REQUEUES, 0)
        bench.close(drained)
    bench.look(REQUEUES)
    assert len(said(bench)) == 1
    assert bench.elastic.overs.of("7") is None


@pytest.mark.parametrize("job", [JOB, REQUEUES])
def test_one_that_could_not_be_told_is_taken_for_no_one_that_hangs(bench: Bench, job: Job) -> None:
    begin(bench, job)
    bench.elastic.overs.failed("7", 0, bench.name(), untold=True)
    bench.elastic.overs.turn()
    assert bench.store.handovers("7")[-1].outcome == Outcome.UNTOLD
    assert bench.store.decisions("7")[0].reason == Outcome.UNTOLD
    bench.now_s = DUE_S
    beats(bench, job, 1000, DUE_S - ASKED_S)
    bench.look(job)
    assert (said(bench), bench.elastic.overs.of("7")) == ([], None)


@pytest.mark.parametrize("job", [JOB, REQUEUES])
def test_nor_is_one_whose_wrapper_hears_it_no_more(bench: Bench, job: Job) -> None:
    """It tells no step then."""
    ask(bench, job)
    bench.now_s = DUE_S
    bench.elastic.runs.heard(job, 0, launched=True)
    bench.look(job)
    assert (said(bench), bench.elastic.overs.of("7")) == ([], None)


def test_one_that_tells_no_steps_is_never_taken_for_one_that_hangs(bench: Bench) -> None:
    bench.elastic.runs.heard(JOB, 0, launched=True)
    bench.now_s = ASKED_S
    bench.look(JOB)
    bench.elastic.runs.heard(JOB, 0, launched=True)
    list(bench.elastic.begin(Plan(reshapes=(Reshape(bench.one(), TWO, (), "price"),)), always))
    bench.now_s = DUE_S
    bench.elastic.overs.turn()
    bench.elastic.runs.heard(JOB, 0, launched=True)
    bench.look(JOB)
    assert said(bench) == []


def test_it_is_requeued_as_it_is_where_its_owner_said_so(bench: Bench) -> None:
    hangs(bench, REQUEUES)
    assert said(bench)[0].reason.endswith("it is requeued from its last checkpoint")
    over = bench.elastic.overs.of("7")
    assert over is not None
    assert (over.shape, over.run, over.saved_s) == (JOB.shape, 0, DUE_S)
    assert bench.store.handovers("7")[-1].reason == (
        "it hangs since a checkpoint was requested, and says stalled=requeue"
    )


@pytest.mark.parametrize(
    "now",
    [
        replace(REQUEUES, frozen="its owner holds it"),
        replace(REQUEUES, requeues=False),
        replace(REQUEUES, spec=Spec(RETURNS, own=JOB.shape, pinned=True)),
    ],
    ids=["held", "not to be requeued", "pinned"],
)
def test_what_its_owner_said_since_comes_first(bench: Bench, now: Job) -> None:
    ask(bench, REQUEUES)
    bench.now_s = DUE_S
    beats(bench, now, 1000, DUE_S - ASKED_S)
    bench.look(now)
    assert bench.elastic.overs.of("7") is None
    bench.look(REQUEUES)  # it may be again
    assert bench.elastic.overs.of("7") is not None


def test_nothing_is_requeued_where_pliant_does_not_act(bench: Bench) -> None:
    ask(bench, REQUEUES)
    bench.now_s = DUE_S
    beats(bench, REQUEUES, 1000, DUE_S - ASKED_S)
    bench.elastic.looked(Snapshot(DUE_S, (), (), running=(REQUEUES,)), never)
    assert bench.elastic.overs.of("7") is None
    assert len(said(bench)) == 1


def test_a_job_that_hung_is_not_asked_again(bench: Bench) -> None:
    hangs(bench)
    assert bench.one().shapes == (JOB.shape,)
    with pytest.raises(Refused, match="hung since a checkpoint was requested"):
        bench.elastic.resize(bench.one(), TWO, "alice")
    again = replace(JOB, restarts=1)
    bench.elastic.runs.heard(again, 1, launched=True, step=10)
    bench.now_s += 1000
    bench.elastic.runs.heard(again, 1, launched=True, step=1000)
    assert bench.one(again).shapes == (JOB.shape,)


def test_one_that_goes_on_after_all_is_asked_again(bench: Bench) -> None:
    hangs(bench)
    bench.now_s += 5
    beats(bench, JOB, 1003, 0.0)
    bench.look(JOB)
    assert said(bench)[0].reason == "its heartbeats have come again: it goes on"
    assert bench.store.handovers("7")[-1].outcome == Outcome.NOT_SAVED
    assert bench.one().shapes == JOB.shapes


def test_one_whose_checkpoint_comes_after_all_is_handed_over(bench: Bench) -> None:
    hangs(bench)
    assert bench.elastic.overs.saved_late(JOB, 0, bench.name())
    over = bench.elastic.overs.of("7")
    assert over is not None
    assert over.shape == TWO
    assert JOB.priority != PINNED
