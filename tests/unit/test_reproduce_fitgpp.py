"""Paper 001 run again: what is counted, how claims are decided, and a small run of all."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pliant.policies import by_name
from pliant.simulator.metrics import Span, Task
from pliant.simulator.reproduce import fitgpp, fitgpp_runs
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim
from pliant.simulator.reproduce.fitgpp_claims import SAID, claims_on, ranged
from pliant.simulator.reproduce.fitgpp_runs import (
    AT_ONCE,
    FIFO,
    FIGURES,
    FITGPP,
    HELPED,
    LRTP,
    PREEMPTED,
    PREEMPTIONS,
    RAND,
    TE_P95,
    TOLD_P50,
    Point,
    Runs,
    Setting,
    Short,
    figures_of,
    policy_of,
    run_settings,
    workload_of,
)
from pliant.simulator.reproduce.papers import reproduce
from pliant.simulator.workloads.fitgpp import MIXES

BASE = next(iter(MIXES))
SMALL = fitgpp.Sizes(300, 1, 2, 80, 1, (BASE, "few GPUs"), (1.5,), philly_every=2, philly_seeds=1)
PHILLY = "job_id,user,num_gpu,submit_time,model_name,duration,best_effort\n" + "\n".join(
    f"{n},u,{(1, 2, 8, 16)[n % 4]},{n},vgg16,{20 + n % 5},{n % 3 == 0:d}" for n in range(40)
)


def test_intervals_run_from_when_a_job_is_told_and_from_when_it_is_gone() -> None:
    spans = (Span(0, 100, 1, 30, True), Span(150, 250, 1, 0, True), Span(250, 300, 1))
    moved = Task("1", "", 0, 270, spans, preemptions=2, job_class="best-effort")
    tasks = [Short.of(moved), Short.of(Task("2", "", 0, 10, (Span(30, 40, 1),), job_class="trial"))]
    assert tasks[0] == Short("best-effort", 1 + 80 / 220, (80, 0), (50, 0))
    found = figures_of(tasks, helped=1)
    assert found == {
        "TE p50": 4, "TE p95": 4, "BE p50": 1 + 80 / 220, "BE p95": 1 + 80 / 220,
        "from told p50, s": 0, "from told p95, s": 80, "from gone p50, s": 0,
        "from gone p95, s": 50, AT_ONCE: 0.5, PREEMPTED: 1, PREEMPTIONS: 2, HELPED: 1,
    }  # fmt: skip
    assert tuple(found) == FIGURES


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fitgpp", by_name("fitgpp", s=4.0, p=1)),
        ("fitgpp, several", by_name("fitgpp", several=True)),
        ("lrtp, told once", by_name("lrtp", times=1)),
        ("rand", by_name("rand", seed=3)),
        ("rand, told once", by_name("rand", seed=3, times=1)),
    ],
)
def test_the_policies_and_their_variants(name: str, expected: object) -> None:
    assert policy_of(name, 3) == expected


def made(**changed: Mapping[str, float]) -> Runs:
    """Two seeds on which all is 100, but for what is said of a policy."""
    of = {
        policy: [{**dict.fromkeys(FIGURES, 100.0), **changed.get(policy, {})}] * 2
        for policy in (FIFO, FITGPP, LRTP, RAND)
    }
    return Runs(Setting(BASE), of)


def by_text(claims: list[Claim]) -> dict[str, Claim]:
    return {claim.text: claim for claim in claims}


def test_a_claim_holds_where_the_change_is_as_large_as_printed() -> None:
    claims = by_text(claims_on(made(fitgpp={TE_P95: 3.4}), lambda *_: "because"))
    first = claims[SAID[0].text]
    assert (first.paper, first.ours, first.holds) == ("-96.6 %", "-96.6 ± 0.0 % (100 to 3.4)", True)
    less = by_text(claims_on(made(fitgpp={TE_P95: 3.5}), lambda *_: "because"))[SAID[0].text]
    assert (less.holds, less.why) == (False, "because")
    fewer = "less than 7.0 % as many jobs are preempted as under LRTP"
    for mine, holds in ((7.0, False), (6.9, True)):
        found = by_text(claims_on(made(fitgpp={PREEMPTED: mine}), lambda *_: "because"))
        assert found[fewer].holds is holds


def test_intervals_of_nothing_have_no_half_and_without_preemptions_there_are_none() -> None:
    text = next(said.text for said in SAID if said.figure == TOLD_P50 and said.base == LRTP)
    at_once = by_text(claims_on(made(lrtp={TOLD_P50: 0.0}), lambda *_: "because"))[text]
    assert (at_once.holds, at_once.ours) == (False, "– (0 to 100)")
    assert at_once.why.startswith("under both most jobs run again at once")
    none = by_text(claims_on(made(lrtp={PREEMPTIONS: 0.0}), lambda *_: "because"))[text]
    assert (none.holds, none.kind) == (None, "not testable")


def test_what_other_choices_give_is_told_by_its_ends() -> None:
    others = {"one": made(fitgpp={TE_P95: 50.0}), "two": made(fitgpp={TE_P95: 10.0}), "x": made()}
    said = "over the other choices it is from -90.0 % (two) to 0.0 % (x)"
    assert ranged(others, SAID[0]) == said
    assert ranged({}, SAID[0]) == "no other choice was looked at"


def test_draws_of_rand_are_averaged_and_seeds_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(point: Point) -> Mapping[str, float]:
        return dict.fromkeys(FIGURES, 10.0 * point.seed + point.draw)

    monkeypatch.setattr(fitgpp_runs, "run_point", one)
    found = run_settings(Asked(seed=1), "x", [(Setting(BASE), 2, (FIFO, RAND), 3)])[0]
    values = {policy: [ran[TE_P95] for ran in rans] for policy, rans in found.of.items()}
    assert values == {FIFO: [11, 21], RAND: [12, 22]}
    assert (found.seeds, found.mean(RAND, TE_P95)) == (2, 17)


def test_some_jobs_of_a_file_other_ones_for_each_seed(tmp_path: Path) -> None:
    whole = Setting("", path=philly(tmp_path), nodes=4)
    shapes = {one.job.shape.nodes for one in workload_of(whole, 1, told=False).arrivals}
    assert shapes == {1, 2}
    some = whole._replace(every=10)
    for seed, expected in ((1, ["1", "11", "21", "31"]), (12, ["2", "12", "22", "32"])):
        found = workload_of(some, seed, told=False).arrivals
        assert [one.job.id for one in found] == expected
    single = workload_of(some._replace(one_node=True), 1, told=True).arrivals
    assert [one.job.id for one in single] == ["1", "21"]
    assert min(one.job.time_limit_s for one in single) > 0


def philly(directory: Path) -> Path:
    path = directory / fitgpp.PHILLY
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(PHILLY.encode()))
    return path


def test_fitgpp_is_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fitgpp, "QUICK", SMALL)
    section = reproduce("fitgpp", Asked(quick=True))
    assert section.sizes.startswith("300 jobs (the paper: 524288) × 1 seeds, RAND 2 times.")
    own, others = section.claims[: len(SAID) + 2], section.claims[len(SAID) + 2 :]
    assert {claim.kind for claim in others} == {"not testable"}
    assert "--data" in others[0].why
    assert by_text(list(own))[SAID[0].text].holds is not None
    assert [row[0] for row in section.tables[1].rows] == [
        "as above", "as above, 80 jobs", "few GPUs", "load 1.5",
    ]  # fmt: skip

    philly(tmp_path)
    monkeypatch.setattr(fitgpp, "QUICK", replace(SMALL, jobs=60, varied_jobs=40, loads=()))
    real = reproduce("fitgpp", Asked(quick=True, data=tmp_path))
    name = "Philly's mix, 60 nodes: "
    told = [claim for claim in real.claims if claim.text.startswith(name)]
    assert len(told) == len(SAID) + 2
    assert told[0].holds is not None
    assert real.tables[-1].title == "Philly's mix: 80 nodes, jobs of one node"
