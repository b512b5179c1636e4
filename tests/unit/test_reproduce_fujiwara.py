"""The claims of Fujiwara et al.: small replays, how figures are added up, and what is said."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from pliant.simulator.metrics import Spread
from pliant.simulator.reproduce import fujiwara, fujiwara_runs
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim, Section
from pliant.simulator.reproduce.fujiwara_cpus import TRACE, Every, Windows
from pliant.simulator.reproduce.fujiwara_figures import Came
from pliant.simulator.reproduce.fujiwara_gpus import CHOICES, Gpus, Part
from pliant.simulator.reproduce.fujiwara_runs import (
    FCFS,
    LIST,
    MALLEABLE,
    MOLDABLE,
    POLICIES,
    SHORTEST,
    Cpu,
    Gpu,
    Point,
    Some,
    run_point,
)
from pliant.simulator.reproduce.fujiwara_said import (
    alike,
    at_least,
    by_size,
    lower,
    not_below,
    signed,
    up_to,
)
from pliant.simulator.reproduce.fujiwara_varied import gpu_claims
from pliant.simulator.reproduce.papers import reproduce

LINE = "{id} {submit} {wait} {run} {width} -1 -1 {width} -1 -1 1 {user} -1 -1 -1 -1 -1 -1\n"
TASKS = [
    # id, submitted, waited, ran, CPUs, user: two jobs of user 7 and one of user 8
    (1, 0, 0, 100, 2, 7),
    (2, 10, 140, 50, 1, 7),  # starts within a minute of the end of the first
    (3, 20, 400, 50, 1, 7),  # starts much later, though it waited from early on
    (4, 30, 0, 200, 4, 8),
]


def write(path: Path, tasks: list[tuple[int, int, int, int, int, int]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = ("id", "submit", "wait", "run", "width", "user")
    lines = [LINE.format(**dict(zip(names, task, strict=True))) for task in tasks]
    path.write_bytes(gzip.compress("".join(lines).encode()))
    return path


# --- replays --------------------------------------------------------------------------------------


def test_jobs_are_those_of_the_trace_however_tasks_are_scheduled(tmp_path: Path) -> None:
    """On 8 CPUs all four start at once; the third is still a job of its own."""
    came = run_point(Cpu(FCFS, 8, write(tmp_path / "t.swf.gz", TASKS)))
    assert (came.tasks, came.jobs, came.makespan_s) == (4, 3, 230)
    assert came.flow_s == Spread(100.0, 50.0, 200.0, 200.0, 200.0)
    # Tasks 1 and 2 from 0 to 100, then 50 and 200 s; volumes 250, 50 and 800.
    assert came.job_flow_s == Spread(350 / 3, 100.0, 200.0, 200.0, 200.0)
    assert came.job_stretch == Spread((0.4 + 1 + 0.25) / 3, 0.4, 1.0, 1.0, 1.0)
    assert came.own_job_flow_s == Spread(150.0, 100.0, 200.0, 200.0, 200.0)


def test_some_of_the_tasks_offline_and_with_the_policies_of_the_paper(tmp_path: Path) -> None:
    path = write(tmp_path / "t.swf.gz", TASKS)
    some = [run_point(Cpu(name, 4, path, Some(step=3), offline=True)) for name in POLICIES]
    assert {came.tasks for came in some} == {2}
    # Rigid: 2 CPUs for 100 s, then 4 for 200 s. Moldable: 2 CPUs each from the beginning.
    assert [came.makespan_s for came in some[:4]] == [300, 300, 300, 400]
    assert run_point(Cpu(FCFS, 4, path, Some(1, 3))).tasks == 2


def test_a_gpu_point_is_the_same_again() -> None:
    point = Gpu(MOLDABLE, 12, 100, 3)
    came = run_point(point)
    assert (came, came.tasks) == (run_point(point), 100)
    assert run_point(Gpu(FCFS, 12, 100, 3)).jobs == came.jobs
    assert run_point(Gpu(SHORTEST, 3, 100, 3)).restarts == 0


# --- what is run of a trace -----------------------------------------------------------------------


def test_stretches_lie_in_the_middle_of_equal_parts() -> None:
    assert Windows(2, 10, ()).of(100) == [Some(20, 30), Some(70, 80)]
    assert Windows(2, 100, ()).of(100) == [Some(0, 100), Some(50, 150)]
    assert Windows(1, 0, ()).of(100) == [Some()]
    assert [Windows(2, 1000, ()).text, Windows(1, 0, ()).text, Every(5, ()).text] == [
        "2 × 1,000 tasks",
        "the whole trace",
        "1 task of 5",
    ]


# --- what is said ---------------------------------------------------------------------------------


def test_changes_are_said_size_by_size() -> None:
    assert by_size({6: -0.5, 12: 0.25, 24: -0.0001}) == "-50.0 % (6), +25.0 % (12), 0.0 % (24)"
    assert signed(0.0) == "0.0 %"


@pytest.mark.parametrize(
    ("said", "found", "holds"),
    [
        (lambda found: at_least("it", 0.151, found, "here", "why"), {6: -0.2, 12: -0.16}, True),
        (lambda found: at_least("it", 0.151, found, "here", "why"), {6: -0.2, 12: -0.15}, False),
        (lambda found: up_to("it", 0.666, found, "here", "why"), {6: -0.5, 12: 0.2}, True),
        (lambda found: up_to("it", 0.666, found, "here", "why"), {6: -0.49, 12: 0.2}, False),
        (lambda found: lower("it", "lower", found, "here", "why"), {6: -0.1, 12: 0.0}, False),
        (lambda found: alike("it", "same", found, "here", "why"), {6: -0.1, 12: 0.1}, True),
        (lambda found: not_below("it", "worse", found, "here", "why"), {6: -0.11, 12: 3}, False),
    ],
)  # fmt: skip
def test_what_holds(said, found: dict[int, float], holds: bool) -> None:  # type: ignore[no-untyped-def]  # several kinds of functions
    claim = said(found)
    assert (claim.holds, claim.why) == (holds, "" if holds else "why")


# --- the whole paper, on made-up replays ----------------------------------------------------------


def flat(value: float) -> Spread:
    return Spread(value, value, value, value, value)


def made_up(point: Point) -> Came:
    """Malleable takes 0.2 of what rigid FCFS takes, moldable 0.5; and each is the larger part."""
    parts = {FCFS: 1.0, LIST: 0.9, SHORTEST: 0.8, MOLDABLE: 0.5, MALLEABLE: 0.2}
    part = parts.get(point.policy, 0.6)
    if isinstance(point, Gpu):
        part *= 1 + point.overhead_s
    one = flat(1000 * part)
    return Came(10, 3, one, one, one, one, one, one, 0.95, 1000 * part, 0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fujiwara_runs, "run_point", made_up)


def by_text(section: Section) -> dict[str, Claim]:
    assert len({claim.text for claim in section.claims}) == len(section.claims)
    return {claim.text: claim for claim in section.claims}


@pytest.mark.usefixtures("quick")
def test_without_the_trace_hpc2n_is_not_testable(tmp_path: Path) -> None:
    section = reproduce("fujiwara", Asked(quick=True))
    claims = by_text(section)
    assert claims["moldable: mean flow time of tasks (figure 4a)"] == Claim(
        "moldable: mean flow time of tasks (figure 4a)",
        "predicted",
        "-15.1 % at least",
        "-50.0 % (6), -50.0 % (12), -50.0 % (24), -50.0 % (48); of 100 tasks",
        True,
    )
    lost = "on 12 and fewer malleable's gain over moldable is gone, with 150 s a preemption"
    assert claims[f"{lost} (figure 5)"].holds is True
    example = next(claim for text, claim in claims.items() if "section VI-A" in text)
    assert (example.ours, example.holds) == ("3 and 4", True)
    needs = [claim.why for claim in section.claims if claim.why.startswith("needs HPC2N's trace")]
    assert needs == [f"needs HPC2N's trace ({TRACE}): --data"] * 7
    assert "HPC2N: not run" in section.sizes
    elsewhere = reproduce("fujiwara", Asked(quick=True, data=tmp_path)).claims
    assert f"needs HPC2N's trace ({TRACE}): {tmp_path / TRACE}: no such file" in {
        claim.why for claim in elsewhere
    }


def test_a_claim_is_asked_again_of_each_seed_and_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Malleable gains too little, but for the second seed and by the other choice."""

    def by_seed(point: Point) -> Came:
        came = made_up(point)
        gains = point.policy != MALLEABLE or (
            isinstance(point, Gpu) and (point.seed == 1 or point.choices)
        )
        return came if gains else replace(came, flow_s=flat(990.0))

    monkeypatch.setattr(fujiwara_runs, "run_point", by_seed)
    parts = (Part(500, 2, fujiwara.ON_GPUS),)
    gpus = Gpus(parts, Part(100, 1, fujiwara.ON_GPUS), (CHOICES[0], CHOICES[-1]), 0)
    gpus.run(Asked())
    claims, table = gpu_claims(gpus)
    text = "malleable: mean flow time of tasks"
    why = next(claim.why for claim in claims if claim.text == text)
    asked = "[holds for 1 of 2 seeds alone, 1 of 2 choices with 100 tasks: whole_times 1.0]"
    assert why.endswith(asked)
    assert [text, "1 of 2", "1 of 2", "no", "yes"] in table.rows
    assert table.header == ["claim", "seeds", "choices", "as chosen", "whole_times 1.0"]


@pytest.mark.usefixtures("quick")
def test_with_the_trace_all_is_run_and_tables_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        fujiwara,
        "FULL",
        fujiwara.Sizes(
            (Part(1000, 2, (FCFS, MOLDABLE)), Part(500, 2, fujiwara.ON_GPUS)),
            Part(100, 1, fujiwara.ON_GPUS),
            CHOICES[:2],
            (Windows(1, 0, (FCFS, LIST, MOLDABLE)), Windows(2, 2, tuple(POLICIES))),
            fujiwara.QUICK.offline,
        ),
    )
    write(tmp_path / TRACE, TASKS)
    section = reproduce("fujiwara", Asked(data=tmp_path, seed=5))
    claims = by_text(section)
    assert [claim for claim in section.claims if claim.why.startswith("needs")] == []
    assert claims["moldable: mean flow time of tasks (figure 4a)"].ours.endswith("of 1,000 tasks")
    assert claims["malleable: mean flow time of tasks"].ours.endswith("of 500 tasks")
    worse = "on 240 CPUs and fewer the mean flow time of moldable tasks is worse than rigid"
    assert claims[f"{worse}: against strict FCFS"].holds is False
    assert claims[f"{worse}: against strict FCFS"].ours.endswith("the whole trace")
    checked = next(claim for text, claim in claims.items() if text.startswith("(not of the paper)"))
    assert (checked.ours, checked.holds) == ("1,000.00 s", False)
    assert "Seeds count up from 5." in section.sizes
    assert [chart.name.removeprefix("fujiwara-") for chart in section.charts] == (
        "3 4a 4b 4c 4d 5 7 8a 8b 8c 8d 9".split()
    )
    for chart in section.charts:
        for lines in chart.panels.values():
            assert {len(line) for line in lines.values()} == {len(chart.sizes)}
    for table in section.tables:
        assert {len(row) for row in table.rows} == {len(table.header)}
