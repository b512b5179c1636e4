"""No order of events, with any one fault in it, leads to what may never be."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from pliant import handover
from pliant.batch.pbs import fences, pbs, queries
from pliant.batch.pbs import handing as on_pbs
from pliant.batch.slurm import handing as on_slurm
from pliant.daemon.elastic import Elastic
from pliant.daemon.handing import HandOvers
from pliant.filter.pbs import launched
from pliant.handover import OURS, PINNED, SETTLE_S, Do, HandOver, Outcome, Scene, Step
from pliant.model import Job, JobState
from prove.changed import changed
from prove.explore import explored
from prove.missing import ON_SLURM
from prove.on_pbs import OnPbs
from prove.on_slurm import OnSlurm
from prove.reached import OF_ALL, OF_ONE, ON_PBS
from prove.reached import ON_SLURM as ON_SLURM_ALONE
from prove.rules import check
from prove.sameness import same_by
from prove.shown import edges_of
from prove.world import GROWS, JOB, MAKES_ROOM, SHRINKS, SPREADS, Kind, Machine, Wrong

MOST = 200_000
TURNS = 5
OUTLASTS_S = {"Slurm": 0.0, "PBS": 60.0}
"""For how long a pin or a fence may outlast its use: on PBS as long as a pbs_mom that was started
again with -p does not see that a program has ended.
"""


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("system", "kind", "least"),
    [
        (OnSlurm, SHRINKS, 21_000),
        (OnSlurm, GROWS, 28_000),
        (OnSlurm, SPREADS, 27_000),
        (OnSlurm, MAKES_ROOM, 76_000),
        (OnPbs, SHRINKS, 15_000),
        (OnPbs, GROWS, 15_000),
        (OnPbs, MAKES_ROOM, 15_000),
    ],
)
def test_whatever_goes_wrong_once_nothing_is_lost_left_or_overruled(
    system: type[Machine], kind: Kind, least: int
) -> None:
    found = explored(system, faults=1, kind=kind, most=MOST)
    print(f"{found.states} states, {found.moves} moves")
    assert found.wrong == []
    assert found.restless() == []
    lasts = found.longest()
    assert (lasts.s <= OUTLASTS_S[system.name], lasts.turns <= TURNS) == (True, True), lasts
    assert found.states > least
    own = ON_SLURM_ALONE if system is OnSlurm else ON_PBS
    assert found.made.keys() == OF_ALL | own | OF_ONE[system.name, kind.name]
    assert found.edges == (edges_of(kind.name) if system is OnSlurm else set())


def test_what_is_taken_from_a_program_that_runs_is_noticed() -> None:
    """As Slurm takes it at once where NumNodes= alone comes at a job that has just started."""
    machine = OnSlurm(same_by)
    world = machine.begin(SPREADS)
    spread = changed(world.job, nodes=2, on=SPREADS.nodes)
    world = changed(world, batch=world.batch.with_job(spread))
    after = machine.tells(world, "update", f"jobid={JOB}", "NumNodes=1")
    with pytest.raises(Wrong, match="its program runs on what may be another's now"):
        check(machine, world, after)


@pytest.mark.parametrize("name", ON_SLURM)
def test_a_rule_that_is_missing_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, what, instead = ON_SLURM[name]
    monkeypatch.setattr(place, what, instead)
    found = explored(OnSlurm, faults=1, most=MOST, to_the_end=False)
    assert found.wrong or found.restless()


@pytest.mark.parametrize(
    ("system", "place"), [(OnSlurm, on_slurm.Handing), (OnPbs, on_pbs)], ids=("Slurm", "PBS")
)
def test_so_is_a_guest_that_asks_for_more_by_now(
    system: type[Machine], place: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "_has_outgrown", lambda *_: False)
    found = explored(system, faults=1, kind=MAKES_ROOM, most=MOST, to_the_end=False)
    assert any("asks for more" in words for words, _ in found.wrong)


def test_so_is_a_job_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_slurm.Handing, "_unpin_changed", lambda *_: None)
    found = explored(OnSlurm, faults=1, most=MOST, to_the_end=False)
    assert any("asks for more" in words for words, _ in found.wrong)


@pytest.mark.parametrize("undoes", [False, True])
def test_what_pliantd_does_without_end_is_noticed(
    monkeypatch: pytest.MonkeyPatch, *, undoes: bool
) -> None:
    """Once the hand-over is over: a pin and its release, in turn; or the release alone."""

    def goes_on(elastic: Any, _snapshot: object) -> None:
        machine = elastic.overs._hands._machine
        job = machine.fake.state.jobs[JOB]
        if elastic.overs.all() or not job.runs:
            return
        pin = undoes and job.priority not in OURS
        machine.run(
            ("scontrol", "update", f"jobid={JOB}", f"Priority={PINNED}") if pin else RELEASE
        )

    def leaves(elastic: Any, what: Do, job: Job) -> None:
        if what is not Do.RELEASE or elastic.overs.all():
            does(elastic, what, job)

    does = Elastic._do
    monkeypatch.setattr(Elastic, "give_back", goes_on)
    monkeypatch.setattr(Elastic, "_do", leaves)
    found = explored(OnSlurm, faults=0, most=MOST)
    if undoes:
        assert found.restless()
    else:
        assert {words for words, _ in found.wrong} == {
            "it goes on telling Slurm what changes nothing"
        }


RELEASE = ("scontrol", "release", str(JOB))


def test_what_stays_longer_than_it_is_of_use_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pin and a fence of a job that runs again: they come to an end, but not soon."""

    def later(over: HandOver, scene: Scene, outcome: Outcome) -> Step:
        step, job = tidy(over, scene, outcome), scene.job
        is_new = job.state is JobState.RUNNING and scene.now_s < job.started_s + SETTLE_S
        return Step(Do.WAIT) if is_new else step

    tidy = handover._tidy
    monkeypatch.setattr(handover, "_tidy", later)
    found = explored(OnSlurm, faults=0, most=MOST)
    assert (found.wrong, found.restless()) == ([], [])
    assert found.longest().s > 0.0


_MUTANTS_OF_PBS: dict[str, tuple[object, str, object]] = {
    "no fence": (fences.Fences, "put", lambda *_: None),
    "a fence comes with the next look": (on_pbs.Handing, "before_end", lambda *_: None),
    "nobody is woken": (queries.Queries, "kick", lambda _queries: True),
    "an owner's change is not seen": (on_pbs, "stands", lambda *_: True),
    "the first start is not refused": (launched, "is_false_start", lambda *_: False),
    "nor the one after a lost one": (launched, "refused_next", lambda *_: ""),
    "nobody asks whether it would return": (pbs.Pbs, "must_go_back", lambda *_: None),
    "nobody asks whether others are kept out": (on_pbs.Handing, "must_keep_out", lambda *_: None),
    "a time to begin that has come is none": (on_pbs, "_begins_s", lambda row, _over: row.begin_s),
    "nothing is told to PBS": (on_pbs.Handing, "_tell", lambda *_: None),
    "it is never given up": (handover, "_given_up", lambda _over, _scene: None),
    "nobody looks whether PBS sees its end": (OnPbs, "happens", Machine.happens),
    "nobody asks whether its program waits": (
        HandOvers,
        "_heard",
        lambda _overs, _of, step, _: step,
    ),
}


@pytest.mark.parametrize("name", _MUTANTS_OF_PBS)
def test_so_is_one_of_pbs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, what, instead = _MUTANTS_OF_PBS[name]
    monkeypatch.setattr(place, what, instead)
    found = explored(OnPbs, faults=1, most=MOST, to_the_end=False)
    assert found.wrong or found.restless()
