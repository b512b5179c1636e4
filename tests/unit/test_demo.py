"""The demonstration: its mix, its job script, and what it reads and computes from records."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pliant.cli.demo import demo
from pliant.demo import records, report
from pliant.demo.dry import dry_round
from pliant.demo.idle import Idle, idle
from pliant.demo.mix import KINDS, OF_EACH, SHARDS, USERS, Submission, mix
from pliant.demo.play import other_seeds
from pliant.demo.run import Run
from pliant.demo.script import sbatch, script
from pliant.demo.speed import PROGRAMS, speed
from pliant.errors import BadAnswer
from pliant.grammar import parse_shape

ROOT = Path(__file__).parents[2]
ASSET = ROOT / "tests" / "assets" / "scontrol-show-job-demo.txt"
CLUSTER = {"n1": 4, "n2": 4}


def job(name: str, own: str, moldable: str = "", at_s: float = 0.0) -> Submission:
    return Submission(name, "pliant-bob", at_s, parse_shape(own), moldable, "vision", 10.0)


def run(of: Submission, got: str, nodes: str, *instants: float) -> Run:
    submit_s, start_s, end_s = instants
    return Run(of, parse_shape(got), tuple(nodes.split()), submit_s, start_s, end_s)


def test_the_mix_has_every_kind_of_job_and_both_users() -> None:
    jobs = mix()
    asked = [one.moldable for one in jobs]
    assert len(jobs) >= 16
    assert {one.user for one in jobs} == set(USERS)
    assert sorted(asked) == sorted(OF_EACH * [moldable for _, moldable in KINDS])
    assert "" in asked  # rigid
    assert any("-" in text and "nodes" not in text for text in asked)  # a range
    assert any(text.count(":") == 2 for text in asked)  # a list
    assert any("1/4" in text for text in asked)  # a share
    assert any("nodes=1-2" in text for text in asked)
    assert any("type=gpu:cpu" in text for text in asked)


def test_the_same_seed_draws_the_same_mix_and_another_seed_another() -> None:
    assert mix(7) == mix(7)
    assert mix(7) != mix(8)


def test_a_job_may_always_run_as_its_user_asked_and_its_limit_covers_every_shape() -> None:
    for one in mix():
        assert one.own in one.shapes
        assert all(one.run_s(shape) <= 60 * one.limit_min for shape in one.shapes)


def test_a_stretched_mix_is_the_same_mix_in_slow_motion() -> None:
    for plain, slow in zip(mix(3), mix(3, stretch=4.0), strict=True):
        assert slow.at_s == pytest.approx(4 * plain.at_s)
        assert slow.work == pytest.approx(4 * plain.work)
        assert (slow.name, slow.own, slow.moldable) == (plain.name, plain.own, plain.moldable)


@pytest.mark.parametrize(
    ("own", "options"),
    [
        ("2", ["--nodes=1", "--gres=gpu:2"]),
        ("2x4", ["--nodes=2", "--gres=gpu:4"]),
        ("1/2", ["--gres=shard:2"]),
    ],
)
def test_a_user_asks_sbatch_for_the_own_shape(own: str, options: list[str]) -> None:
    argv = sbatch(job("vision-01", own, "gpus=1:2:4"), "/tmp/out")
    assert argv[-1] == "--moldable=gpus=1:2:4"
    assert argv[-1 - len(options) : -1] == options


def test_a_rigid_job_says_nothing_to_pliant() -> None:
    assert not [word for word in sbatch(job("vision-01", "2"), "/tmp/out") if "moldable" in word]


@pytest.mark.parametrize(
    ("shape", "environment"),
    [
        ("1", {"SLURM_GPUS_ON_NODE": "1"}),
        ("3", {"SLURM_GPUS_ON_NODE": "3", "SLURM_JOB_NUM_NODES": "1"}),
        ("2x4", {"SLURM_GPUS_ON_NODE": "4", "SLURM_JOB_NUM_NODES": "2"}),
        ("1/4", {"SLURM_GPUS_ON_NODE": "1", "SLURM_SHARDS_ON_NODE": str(SHARDS // 4)}),
        ("1/2", {"SLURM_GPUS_ON_NODE": "1", "SLURM_SHARDS_ON_NODE": str(SHARDS // 2)}),
        ("1x0@cpu", {}),
    ],
)
def test_the_job_script_takes_its_speed_from_what_it_was_given(
    shape: str, environment: dict[str, str]
) -> None:
    one = replace(job("vision-01", "1"), work=0.01)
    done = subprocess.run(
        ["/bin/sh"], input=script(one), env=environment, capture_output=True, text=True, check=True
    )
    words = done.stdout.split()
    got = parse_shape(shape)
    fast = speed(got, PROGRAMS["vision"])
    assert words[::2] == ["gpus", "speed", "seconds"]
    assert [float(word) for word in words[1::2]] == pytest.approx(
        [float(got.amount), fast, 0.01 / fast], rel=1e-4
    )


def test_slurms_records_are_read() -> None:
    text = ASSET.read_text()
    share, pair = job("x", "1/2"), job("y", "2x2")
    found = records.runs(text, {"1": share, "2": pair})
    assert [(str(one.shape), one.nodes, one.waited_s, one.flow_s) for one in found] == [
        ("1/2", ("n1",), 5.0, 8.0),
        ("2x2", ("n1", "n2"), 5.0, 8.0),
    ]


def test_a_missing_or_failed_job_is_told() -> None:
    text = ASSET.read_text()
    with pytest.raises(BadAnswer, match=r"no record of job 3 \(z\)"):
        records.runs(text, {"1": job("x", "1/2"), "3": job("z", "1")})
    with pytest.raises(BadAnswer, match=r"job 2 \(y\) is FAILED, not COMPLETED"):
        records.runs(text.replace("COMPLETED", "FAILED"), {"2": job("y", "2x2")})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ("n1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[1,3-4]", ("n1", "n3", "n4")),
    ],
)
def test_node_lists_are_read(text: str, names: tuple[str, ...]) -> None:
    assert records.node_names(text) == names


def test_an_allocation_without_gpus_is_a_cpu_shape() -> None:
    assert records.given("nogpu:1", 1) == parse_shape("1x0@cpu")


def test_gpus_that_nobody_could_use_are_idle_but_not_avoidably() -> None:
    wide, rigid = job("a", "2x3"), job("b", "2")
    runs = [run(wide, "2x3", "n1 n2", 0, 0, 10), run(rigid, "2", "n1", 5, 10, 20)]
    # Two GPUs are free for 10 s, one on each node, and then six; the second job needs a pair.
    assert idle(runs, CLUSTER) == Idle(capacity_s=160.0, idle_s=80.0, avoidable_s=0.0)


def test_gpus_that_an_allowed_shape_could_have_used_are_avoidably_idle() -> None:
    wide, waiting = job("a", "2x3"), job("b", "2", "gpus=1-2")
    runs = [run(wide, "2x3", "n1 n2", 0, 0, 10), run(waiting, "2", "n1", 5, 10, 20)]
    assert idle(runs, CLUSTER) == Idle(capacity_s=160.0, idle_s=80.0, avoidable_s=5.0)


def test_time_that_a_scheduler_takes_to_react_can_be_left_out() -> None:
    wide, waiting = job("a", "2x3"), job("b", "2", "gpus=1-2")
    runs = [run(wide, "2x3", "n1 n2", 0, 0, 10), run(waiting, "2", "n1", 5, 10, 20)]
    assert idle(runs, CLUSTER, settle_s=2.0).avoidable_s == 3.0


def test_what_is_kept_for_the_first_waiting_job_is_not_avoidably_idle() -> None:
    """One node is free; the first job needs both, and the second would outlast the claim."""
    early, first, second = job("a", "4"), job("b", "2x4"), job("c", "1")
    runs = [
        run(early, "4", "n1", 0, 0, 20),
        run(first, "2x4", "n1 n2", 5, 20, 30),
        run(second, "1", "n1", 6, 30, 40),
    ]
    assert early.limit_min == second.limit_min == 1
    assert idle(runs, CLUSTER).avoidable_s == 0.0


def test_a_hole_before_the_claim_is_avoidably_idle() -> None:
    """The same, but what runs has a long limit: the second job would have been gone in time."""
    early, first, second = job("a", "4"), job("b", "2x4"), job("c", "1")
    runs = [
        run(replace(early, work=400.0), "4", "n1", 0, 0, 20),
        run(first, "2x4", "n1 n2", 5, 20, 30),
        run(second, "1", "n1", 6, 30, 40),
    ]
    assert runs[0].job.limit_min == 3
    assert idle(runs, CLUSTER).avoidable_s == 14.0


def test_a_share_fits_onto_a_gpu_that_is_shared_already() -> None:
    full, half, other = job("a", "3"), job("b", "1/2"), job("c", "1/2")
    runs = [
        run(full, "3", "n1", 0, 0, 10),
        run(half, "1/2", "n1", 0, 0, 10),
        run(other, "1/2", "n1", 0, 4, 10),
    ]
    assert idle(runs, {"n1": 4}).avoidable_s == 2.0


def test_the_report_sets_both_rounds_beside_each_other() -> None:
    one = job("vision-01", "2", "gpus=1-4")
    off, on = [run(one, "2", "n1", 0, 10, 20)], [run(one, "1", "n1", 0, 0, 18)]
    lines = list(report.table(off, on))
    assert lines[2].split() == "vision-01 bob 2, gpus=1-4 2 10 20 1 0 18".split()
    measured = Idle(100.0, 20.0, 5.0), Idle(100.0, 10.0, 0.0)
    assert [line.split() for line in report.means(off, on, measured)][1:] == [
        "mean flow time, s 20.0 18.0 -10 %".split(),
        "mean wait, s 10.0 0.0 -100 %".split(),
        "makespan, s 20.0 18.0 -10 %".split(),
        "idle GPU time 20.0 % 10.0 %".split(),
        "of all GPU time, avoidably idle 5.0 % 0.0 %".split(),
    ]


def test_a_simulated_round_runs_every_job_at_a_shape_that_it_allows() -> None:
    jobs = mix()
    on = dry_round("enforce", jobs, print)
    assert [one.job for one in on] == list(jobs)
    assert [one for one in on if one.shape not in one.job.shapes] == []
    assert [one.end_s - one.start_s for one in on] == pytest.approx(
        [one.job.run_s(one.shape) for one in on]
    )


def test_with_pliant_off_every_job_runs_as_its_user_asked() -> None:
    assert [str(one.shape) for one in dry_round("off", mix(), print)] == [
        str(one.own) for one in mix()
    ]


def test_the_simulated_demonstration_says_so_first() -> None:
    done = CliRunner().invoke(demo, ["--simulated"])
    lines = done.output.splitlines()
    assert done.exit_code == 0
    assert lines[0].startswith("SIMULATED, no real Slurm (as asked):")
    assert len([line for line in lines if re.match(r"(vision|language|search)-\d\d ", line)]) >= 16
    assert any(line.startswith("mean flow time, s") for line in lines)


def test_the_readme_says_what_other_draws_of_the_mix_give_now() -> None:
    told = " ".join(other_seeds().split())
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert told.partition("little. ")[2] in readme
