"""Which edges of the fake of Slurm are noted, and that all that it does is seen as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pliant.handover import RETURNS
from prove.changed import changed
from prove.edges import edges, noted
from prove.fake_slurm import HELD, REQUEUE_S, FakeSlurm, Jobs, Record
from prove.shown import SHOWN, TWO, UNSEEN, Listed, figures, listed, noted_anew, write
from prove.test_traced import log
from prove.traced import told

NOW_S = 20_000.0
PROMISES = Path(__file__).parents[2] / "docs" / "promises.md"
RUNS = Record(7, "RUNNING", submit_s=NOW_S - 600, start_s=NOW_S - 500)
WAITS = changed(RUNS, state="PENDING", run=1, start_s=0.0, submit_s=NOW_S, begin_s=NOW_S)
FENCE = ("create", "reservation", "ReservationName=pliant_7", "StartTime=1970-01-01T05:33:00")
ENDS = "EndTime=1970-01-01T05:36:00"


def fake(job: Record) -> FakeSlurm:
    return FakeSlurm(Jobs({7: job}, {}), NOW_S, ("n1", "n2"))


def test_a_resize_in_the_fake_is_what_a_log_tells_of_one() -> None:
    slurm, found = fake(RUNS), set[str]()
    with noted(found):
        slurm.told(("update", "jobid=7", f"Priority={RETURNS}"))
        slurm.told((*FENCE, "Nodes=n1", ENDS))
        slurm.told(("requeue", "7"))
        slurm.pass_to(NOW_S + 1)
        slurm.told(("update", "jobid=7", "Gres=gpu:2", "StartTime=1970-01-01T05:33:22"))
        slurm.pass_to(NOW_S + 3)
        slurm.told(("delete", "ReservationName=pliant_7"))
        slurm.end(7)
    begins = "[2026-11-27T08:20:00.000] slurmctld version 22.05.8 started on cluster drill"
    assert told([begins, *log()])[0].edges - {"waits > runs"} == found
    assert found == {
        "runs: in its own place > pinned",
        "runs: no fence > fenced",
        "runs, pinned > waits anew, for two minutes, pinned",
        "waits anew: asks for other GPUs",
        "waits anew: for two minutes > as it was told",
        "waits anew: fenced > no fence",
        "waits anew, pinned > runs anew",
        "runs anew > COMPLETED",
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("RUNNING", "SUSPENDED", ["runs anew > SUSPENDED anew"]),
        ("RUNNING", "PENDING", ["runs anew > waits anew"]),
        ("PENDING", "FAILED", ["waits anew > runs anew", "runs anew > FAILED"]),
    ],
)
def test_none_goes_unnoticed(old: str, new: str, expected: list[str]) -> None:
    first = Jobs({7: changed(WAITS, state=old)}, {})
    after = first.with_job(changed(WAITS, state=new))
    assert [*edges(first, after, 7)] == expected


def test_a_start_that_is_refused_is_one_and_a_requeue() -> None:
    slurm, found = fake(WAITS), set[str]()
    slurm.start_fails = {7: HELD}
    with noted(found):
        slurm.schedule()
    assert found == {"waits anew > runs anew", "runs anew > waits anew, for two minutes, held"}


def test_that_a_run_ends_is_one_once_it_has() -> None:
    slurm, found = fake(RUNS), set[str]()
    with noted(found):
        slurm.told(("requeue", "7"))
        slurm.cancel(7)
        assert found == set()
        slurm.pass_to(NOW_S + 1)
    assert found == {"runs > CANCELLED"}


def test_a_job_that_goes_on_may_be_given_another_begin_nodes_or_fence() -> None:
    begins_later = changed(WAITS, begin_s=NOW_S + REQUEUE_S)
    for job, expected in (
        (begins_later, "waits anew: as it was told > for two minutes"),
        (changed(WAITS, on=("n2",)), "waits anew: its nodes are changed"),
    ):
        first = Jobs({7: WAITS}, {})
        assert [*edges(first, first.with_job(job), 7)] == [expected]
    slurm, found = fake(begins_later), set[str]()
    slurm.told((*FENCE, "Nodes=n1", ENDS))
    with noted(found):
        slurm.told(("update", "ReservationName=pliant_7", "Nodes=n2"))
        slurm.told(("update", "ReservationName=pliant_7", "EndTime=1970-01-01T05:37:00"))
    assert found == {
        "waits anew: fenced > fenced elsewhere",
        "waits anew: its fence is to end at another time",
    }


def test_of_a_job_that_slurmctld_may_have_forgotten_no_edge_counts() -> None:
    begins = "slurmctld version 22.05.8 started on cluster drill"
    again, edge = "Requeuing JobId=7", "runs anew, pinned > waits anew, for two minutes, pinned"
    assert edge in told(log("_job_complete", again))[0].edges
    assert edge not in told(log("_job_complete", begins, again))[0].edges


def test_what_was_shown_once_remains_so(tmp_path: Path) -> None:
    old = {
        "a > b": Listed(frozenset({"growth"}), SHOWN),
        "a > c": Listed(frozenset({"growth"}), f"{UNSEEN}: never tried"),
        "a > e": Listed(frozenset({"growth"})),
        "a > g": Listed(TWO),
    }
    made = {"growth": frozenset({"a > b", "a > c"}), "resize": frozenset({"a > b", "a > d"})}
    edges = noted_anew(old, made, frozenset({"a > d", "a > f"}))
    assert edges == {
        "a > b": Listed(frozenset({"growth", "resize"}), SHOWN),
        "a > c": Listed(frozenset({"growth"}), f"{UNSEEN}: never tried"),
        "a > d": Listed(frozenset({"resize"}), SHOWN),
        "a > g": Listed(TWO),
    }
    write(edges, tmp_path / "table")
    assert listed(tmp_path / "table") == edges
    assert figures(edges) == "4 edges, of which real logs have shown 2, and 2 not"


def test_each_is_shown_or_not_seen_and_the_promises_say_how_many() -> None:
    edges = listed()
    assert {noted.seen.partition(":")[0] for noted in edges.values()} == {SHOWN, UNSEEN}
    assert figures(edges) in " ".join(PROMISES.read_text().split())
