"""The other hooks for PBS, as the build makes them, under the double of PBS's module."""

from __future__ import annotations

import ast
import json
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pbs_site import ASKED, Seen, Site, hook

from pbs_double import Environment, Event, Job, Pbs, run
from pliant.filter.pbs.choose import MAX_LOOKED_AT
from pliant.filter.pbs.fences import Fence, fences_text
from pliant.filter.pbs.names import RESOURCES
from pliant.filter.pbs.said import read_request, words
from pliant.filter.pbs.state import (
    MAX_AGE_S,
    MAX_BYTES,
)
from pliant.grammar import parse, token_text
from pliant.hooks import HOOKS, hook_text
from pliant.hooks.reading import Settings
from pliant.model import Mode, Spec

PAGE = (Path(__file__).parents[2] / "docs" / "pbs.md").read_text()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


# modifyjob


def changed(site: Site, to: dict[str, Any], runs: int | None = None, **was: Any) -> Seen:
    """What a qalter leads to, of a job that queuejob has seen."""
    first = site.queuejob(was.pop("asked", {**ASKED, "malleable": "yes"}))
    old = Job("modifyjob", first.resources, {**first.variables, **was.pop("variables", {})}, **was)
    new = Job("modifyjob", to, run_count=runs)
    return site.seen("modifyjob", new, job_o=old)


def test_after_a_qalter_the_variables_say_the_new_shape(site: Site) -> None:
    seen = changed(site, {"select": "2:ncpus=4:ngpus=3"})
    assert seen.verdict == ("accept", "")
    assert seen.job.Resource_List.writes == []
    assert seen.variables == {
        "PLIANT_SHAPE": "2x3",
        "PLIANT_NODES": "2",
        "PLIANT_GPUS": "6",
    }
    assert seen.pbs.looked == 0


def test_a_shape_that_cannot_be_told_leaves_no_old_one_behind(site: Site) -> None:
    seen = changed(site, {"select": "1:ngpus=1+1:ngpus=2"})
    assert seen.variables == dict.fromkeys(
        ("PLIANT_SHAPE", "PLIANT_NODES", "PLIANT_GPUS", "PLIANT_TYPE", "PLIANT_SHARE"), ""
    )


def test_a_new_request_is_put_into_the_token(site: Site) -> None:
    seen = changed(site, {"moldable": "gpus=1:2", "job_class": "trial"})
    assert seen.token == (
        "moldable=gpus=1-2;malleable;job-class=trial;own=1;set=2;fp=1,0,8,0,16384,0,0;renewed"
    )


def test_a_request_that_is_taken_back_takes_the_token_with_it(site: Site) -> None:
    seen = changed(site, {"moldable": "", "malleable": ""})
    assert seen.job.Resource_List.writes == ["pliant"]
    assert (seen.token, seen.variables) == ("", {"PLIANT_RETURNS": ""})


TAKEN_BACK = {"moldable": "", "malleable": ""}


@pytest.mark.parametrize("state", [1, 2, 3])
def test_who_takes_the_request_back_has_a_waiting_job_as_it_was_written(
    site: Site, state: int
) -> None:
    seen = changed(site, TAKEN_BACK, job_state=state)
    assert seen.resources == {"select": "1:ncpus=8:ngpus=1:mem=16384mb", **TAKEN_BACK}
    own = {"SHAPE": "1", "GPUS": "1"}
    assert seen.variables == {"PLIANT_RETURNS": "", **{f"PLIANT_{n}": v for n, v in own.items()}}


def test_and_so_where_it_has_no_select(site: Site) -> None:
    asked = {"ncpus": 8, "ngpus": 1, "mem": "16gb", "moldable": "gpus=1-4"}
    seen = changed(site, TAKEN_BACK, asked=asked, job_state=1)
    assert seen.resources == {"ncpus": "8", "ngpus": "1", "mem": "16384mb", **TAKEN_BACK}


def test_on_how_many_nodes_its_chunks_may_be_stays_as_its_owner_wrote_it(site: Site) -> None:
    asked = {"select": "2:ncpus=8:ngpus=2", "moldable": "gpus=1-4+nodes=1:2", "place": "free"}
    seen = changed(site, {"moldable": ""}, asked={**asked, "throughput": "2:9"}, job_state=1)
    assert seen.resources["select"] == "2:ncpus=8:ngpus=2"
    assert "place" not in seen.job.Resource_List.writes


@pytest.mark.parametrize(
    ("to", "state"),
    [
        ({}, 4),
        ({}, 5),
        ({}, None),
        ({"select": "1:ncpus=8:ngpus=3"}, 1),
        ({"place": "scatter"}, 1),
    ],
)
def test_but_not_where_it_may_run_or_another_shape_is_asked_for(
    site: Site, to: dict[str, str], state: int | None
) -> None:
    seen = changed(site, {**TAKEN_BACK, **to}, job_state=state)
    assert seen.job.Resource_List.writes == ["pliant"]
    assert "own" not in seen.token


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ({"moldable": ""}, "malleable;own=1;fp=1,0,8,0,16384,0,0;renewed"),
        (
            {"moldable": "gpus=1"},
            "moldable=gpus=1;malleable;own=1;fp=1,0,8,0,16384,0,0;renewed",
        ),
    ],
)
def test_so_has_who_allows_no_more_what_pliant_set(
    site: Site, to: dict[str, str], says: str
) -> None:
    seen = changed(site, to, job_state=1)
    assert seen.resources["select"] == "1:ncpus=8:ngpus=1:mem=16384mb"
    assert (seen.token, seen.variables["PLIANT_SHAPE"]) == (says, "1")
    assert "PLIANT_RETURNS" not in seen.variables or seen.variables["PLIANT_RETURNS"] == "85"


@pytest.mark.parametrize("to", ["gpus=1:2", "gpus=1-3", "gpus=2-4"])
def test_what_its_owner_still_allows_is_left_to_pliantd(site: Site, to: str) -> None:
    seen = changed(site, {"moldable": to}, job_state=1)
    assert seen.job.Resource_List.writes == ["pliant"]
    assert ";set=2;" in seen.token


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ({"select": "1:ngpus=0"}, {"select": "1:ngpus=0"}),
        ({"select": "1:ncpus=4"}, {"select": "1:ncpus=4:ngpus=0"}),
        ({"select": "2:ngpus=0:ncpus=4:mem=4gb"}, {"select": "2:ngpus=0:ncpus=4:mem=4096mb"}),
        ({"ncpus": 4, "ngpus": 0}, {"ncpus": "4", "ngpus": "0"}),
    ],
)
@pytest.mark.parametrize("moldable", ["gpus=1-4", "gpus=4:8+nodes=1:2", "type=cpu:gpu+cores=2"])
@pytest.mark.parametrize("still", ["", "yes"])
def test_who_wrote_no_gpus_and_takes_the_request_back_has_none(
    site: Site, asked: dict[str, Any], written: dict[str, str], moldable: str, still: str
) -> None:
    first = {**asked, "moldable": moldable, "malleable": "yes"}
    assert "0@cpu" not in site.queuejob(first).variables["PLIANT_SHAPE"]
    seen = changed(site, {"moldable": "", "malleable": still}, asked=first, job_state=1)
    assert {name: seen.resources[name] for name in written} == written
    shape = f"{seen.job.Resource_List['select'] or 1}"[0] + "x0@cpu"
    assert (seen.variables["PLIANT_SHAPE"], seen.variables["PLIANT_GPUS"]) == (shape, "0")
    assert (";own=" + shape in seen.token, "set=" in seen.token) == (bool(still), False)


def test_who_takes_the_request_back_and_names_a_shape_has_that_in_its_variables(site: Site) -> None:
    seen = changed(site, {**TAKEN_BACK, "select": "1:ncpus=8:ngpus=3"}, job_state=1)
    assert (seen.job.Resource_List.writes, seen.variables["PLIANT_SHAPE"]) == (["pliant"], "3")


def test_nor_where_its_owner_had_changed_what_pliant_set(site: Site) -> None:
    first = site.queuejob({**ASKED, "malleable": "yes"})
    resources = {**first.resources, "select": "1:ncpus=8:ngpus=3"}
    old = Job("modifyjob", resources, first.variables, job_state=1)
    seen = site.seen("modifyjob", Job("modifyjob", TAKEN_BACK), job_o=old)
    assert seen.job.Resource_List.writes == ["pliant"]


def test_what_is_named_and_stays_as_it_was_is_no_change(site: Site) -> None:
    seen = changed(site, {**ASKED, "malleable": "yes", "select": "1:ncpus=8:ngpus=2:mem=16384mb"})
    assert (seen.job.Resource_List.writes, seen.variables) == ([], {})


def test_a_wrong_request_is_refused_and_the_job_stays(site: Site) -> None:
    seen = changed(site, {"moldable": "gpus=0"})
    assert seen.verdict == (
        "reject",
        "pliant: moldable gpus: '0': a number of GPUs from 1 to 4096, or a share like 1/4, is"
        " expected",
    )


def test_a_run_count_that_a_manager_sets_of_a_job_that_runs_is_set(site: Site) -> None:
    """PBS refuses a change of a running job with a variable in it, whole."""
    seen = changed(site, {}, 0, run_count=3, job_state=4)
    assert (seen.verdict[0], seen.variables) == ("accept", {})


def test_run_count_that_begins_anew_is_not_forgotten(site: Site) -> None:
    was = {"PLIANT_RESTART_COUNT": "2", "PLIANT_BACK": "3:2"}
    seen = changed(site, {}, 0, run_count=3, variables=was)
    assert seen.variables == {"PLIANT_RESTART_COUNT": "5", "PLIANT_BACK": "0:2"}


@pytest.mark.parametrize("mode", [Mode.ENFORCE, Mode.OFF])
def test_nor_where_the_job_says_nothing_any_more(site: Site, mode: Mode) -> None:
    was = {"PLIANT_RESTART_COUNT": "2", "PLIANT_BACK": "3:2"}
    asked = {"select": "1:ngpus=4"}
    site.says(mode)
    seen = changed(site, {"select": "1:ngpus=3"}, 0, asked=asked, run_count=3, variables=was)
    assert seen.variables == {"PLIANT_RESTART_COUNT": "5", "PLIANT_BACK": "0:2"}
    site.says(mode)
    both = changed(site, {"moldable": "", "malleable": ""}, 0, run_count=3, variables=was)
    assert both.variables.items() >= {"PLIANT_RESTART_COUNT": "5", "PLIANT_BACK": "0:2"}.items()


@pytest.mark.parametrize(
    ("to", "asked", "code"),
    [
        ("gpus=1-4;malleable", {**ASKED}, "85"),
        ("gpus=1-4;malleable", {"select": "1:ngpus=4"}, "85"),
        ("gpus=1-2", {**ASKED, "malleable": "yes"}, ""),
    ],
)
def test_what_pliant_set_gives_alone_says_whether_it_goes_back(
    site: Site, to: str, asked: dict[str, str], code: str
) -> None:
    token = token_text(Spec(parse(to), renewed=True))
    seen = changed(site, {"pliant": token}, asked=asked)
    assert seen.variables == {"PLIANT_RETURNS": code}
    assert seen.job.Resource_List.writes == []
    old = Job("modifyjob", {**asked, "pliant": token}, {"PLIANT_RETURNS": code})
    kept = site.seen("modifyjob", Job("modifyjob", {"select": "1:ngpus=1"}), job_o=old)
    assert "PLIANT_RETURNS" not in kept.variables


@pytest.mark.parametrize("to", [{"walltime": 60}, {}, {"select": "1:ngpus=1"}])
def test_a_change_of_a_job_that_says_nothing_is_left_alone(site: Site, to: dict[str, Any]) -> None:
    seen = changed(site, to, asked={"select": "1:ngpus=4"})
    assert (seen.verdict, seen.variables) == (("accept", ""), {})


def test_pliantd_itself_may_write_the_token(site: Site) -> None:
    seen = changed(site, {"pliant": "pliant=v1:whatever", "select": "1:ngpus=1"})
    assert seen.job.Resource_List.writes == []
    assert seen.variables["PLIANT_SHAPE"] == "1"


def test_the_alarm_in_modifyjob_lets_the_change_pass(site: Site) -> None:
    for at in (2, 30, 200, 400, 700):
        old = Job("modifyjob", ASKED, {"PLIANT_SHAPE": "4"})
        new = Job("modifyjob", {"select": "1:ngpus=1"})
        assert site.seen("modifyjob", new, job_o=old, alarm_at=at).verdict == ("accept", "")


# execjob_launch


def launched(site: Site, exec_vnode: str, env: dict[str, str], **job: Any) -> dict[str, str]:
    environment = Environment(env)
    running = Job("execjob_launch", {}, exec_vnode=exec_vnode, **job)
    seen = site.seen("execjob_launch", running, env=environment)
    assert seen.verdict == ("accept", "")
    return environment.arrives()


def test_a_program_finds_what_its_job_really_has(site: Site) -> None:
    told = {"PLIANT_SHAPE": "4@a100", "PLIANT_TYPE": "gpu", "PLIANT_RESTART_COUNT": "2"}
    found = launched(site, "(gn1:ngpus=2:ncpus=8)+(gn2:ngpus=2:ncpus=8)", told, run_count=2)
    assert found == {
        "PLIANT_SHAPE": "2x2@a100",
        "PLIANT_NODES": "2",
        "PLIANT_GPUS": "4",
        "PLIANT_TYPE": "gpu",
        "PLIANT_SHARE": "1",
        "PLIANT_RESTART_COUNT": "3",
    }


@pytest.mark.parametrize(
    ("exec_vnode", "told"),
    [
        ("(gn1:ncpus=8)", ("1x0@cpu", "0", "1", "cpu")),
        ("(gn1[0]:ngpus=1+gn1[1]:ngpus=1)", ("2", "2", "1", "gpu")),
        ("(gn1:ngpus=1)+(gn2:ngpus=3)", ("", "4", "2", "gpu")),
        ("(gn1:gpu_share=0.25:ncpus=2)", ("1/4", "1", "1", "gpu")),
        ("(gn1:gpu_share=0.3333)", ("1/3", "1", "1", "gpu")),
    ],
)
def test_shapes_of_all_kinds_are_told(site: Site, exec_vnode: str, told: tuple[str, ...]) -> None:
    site.options = {"share_resource": "gpu_share"}
    found = launched(site, exec_vnode, {"PLIANT_SHAPE": "8"}, run_count=1)
    assert tuple(found[f"PLIANT_{name}"] for name in ("SHAPE", "GPUS", "NODES", "TYPE")) == told


def test_the_devices_of_this_node_arrive_with_their_commas(site: Site) -> None:
    site.options = {"gpu_vnode": "{host}-gpu{gpu}"}
    vnodes = "(gn1-gpu10:ngpus=1+gn1-gpu2:ngpus=1)+(gn2-gpu0:ngpus=1)"
    found = launched(site, vnodes, {"PLIANT_SHAPE": "1", "CUDA_VISIBLE_DEVICES": "7"})
    assert found["CUDA_VISIBLE_DEVICES"] == "2,10"
    assert found["PLIANT_NODES"] == "2"


@pytest.mark.parametrize("vnodes", ["(gn1:ncpus=8)", "(gn1:ncpus=8)+(gn2-gpu0:ngpus=1)"])
def test_one_without_a_gpu_here_finds_none(site: Site, vnodes: str) -> None:
    site.options = {"gpu_vnode": "{host}-gpu{gpu}"}
    told = {"PLIANT_SHAPE": "1x0@cpu", "CUDA_VISIBLE_DEVICES": "7"}
    assert launched(site, vnodes, told)["CUDA_VISIBLE_DEVICES"] == ""
    site.options = {}
    assert launched(site, vnodes, told)["CUDA_VISIBLE_DEVICES"] == "7"


@pytest.mark.parametrize("vnode", ["gn1", "gn1[0]", "gn1-gpux"])
@pytest.mark.parametrize("pattern", ["", "{host}-gpu{gpu}", "gpu", "{host}{gpu}"])
def test_devices_that_cannot_be_told_are_left_alone(site: Site, vnode: str, pattern: str) -> None:
    site.options = {"gpu_vnode": pattern}
    found = launched(site, f"({vnode}:ngpus=1)", {"PLIANT_SHAPE": "1"})
    assert "CUDA_VISIBLE_DEVICES" not in found


def test_a_job_that_says_nothing_finds_nothing_of_ours(site: Site) -> None:
    assert launched(site, "(gn1:ngpus=2)", {"HOME": "/home/ada"}) == {"HOME": "/home/ada"}


def test_a_launch_goes_on_whatever_goes_wrong(site: Site) -> None:
    env = {"PLIANT_SHAPE": "1"}
    running = Job("execjob_launch", {}, exec_vnode="(gn1:ngpus=many)")
    seen = site.seen("execjob_launch", running, env=Environment(env))
    assert seen.verdict == ("accept", "")
    assert "ValueError" in seen.pbs.log[0]


# execjob_epilogue, periodic


def ended(site: Site, status: int | None, returns: str = "85", **more: Any) -> Seen:
    job = Job(
        "execjob_epilogue",
        {},
        {"PLIANT_RETURNS": returns},
        Exit_status=status,
        run_count=4,
        **more,
    )
    return site.seen("execjob_epilogue", job)


def test_its_starts_are_counted_anew_so_that_pbs_never_holds_it_for_them(site: Site) -> None:
    said, starts = {"PLIANT_RETURNS": "85", "PLIANT_RESTART_COUNT": "0"}, 0
    for times in range(1, 30):  # each time one start that our hook refuses, but for the first
        starts += 1 if times == 1 else 2
        runs = 1 if times == 1 else 2
        job = Job("execjob_epilogue", {}, said, Exit_status=85, run_count=runs)
        said = site.seen("execjob_epilogue", job).variables
        assert job.__dict__["run_count"] == 0
        assert said["PLIANT_RESTART_COUNT"] == str(starts)
        assert re.fullmatch(rf"0:{times}(:\d+)?", said["PLIANT_BACK"])
    found = launched(site, "(gn1:ngpus=2)", {"PLIANT_SHAPE": "2", **said}, run_count=2)
    assert found["PLIANT_RESTART_COUNT"] == "29"


def test_the_first_start_after_that_is_refused_and_no_other(site: Site) -> None:
    for runs, verdict in ((4, "accept"), (5, "reject"), (6, "accept"), (None, "accept")):
        seen = starts(site, "4:1", runs)
        assert (seen.verdict[0], seen.job.done) == (
            *(verdict, ["rerun"] if verdict == "reject" else []),
        )
    for back in ("", ":", "4", "four:1", "4:1:1:1", "-4:1", "4:²", "9" * 50 + ":1"):
        assert starts(site, back, 5).verdict == ("accept", "")


def starts(site: Site, back: str, runs: int | None) -> Seen:
    """Launch a job that goes back to the queue, on its first node."""
    said = {"PLIANT_SHAPE": "2", "PLIANT_RETURNS": "85", "PLIANT_BACK": back}
    job = Job("execjob_launch", {}, said, exec_vnode="(gn1:ngpus=2)", run_count=runs)
    return site.seen("execjob_launch", job, env=Environment(said))


@pytest.mark.parametrize(
    ("runs", "status", "back"),
    [
        (5, 271, "5:2"),  # it was ended before our hook could refuse that start
        (5, -16, "4:2"),  # it was refused
        (6, 0, "4:2"),
    ],
)
def test_a_start_that_was_not_refused_is_followed_by_one_that_is(
    site: Site, runs: int, status: int, back: str
) -> None:
    said = {"PLIANT_RETURNS": "85", "PLIANT_BACK": "4:2"}
    job = Job("execjob_epilogue", {}, said, Exit_status=status, run_count=runs)
    seen = site.seen("execjob_epilogue", job)
    assert (seen.verdict[0], seen.variables["PLIANT_BACK"]) == ("accept", back)


def test_a_refused_start_is_no_restart(site: Site) -> None:
    told = {"PLIANT_SHAPE": "2", "PLIANT_BACK": "3:2", "PLIANT_RESTART_COUNT": "0"}
    found = launched(site, "(gn1:ngpus=2)", told, run_count=5)
    assert found["PLIANT_RESTART_COUNT"] == "2"


def test_one_of_an_array_goes_back_without_a_time_to_begin(site: Site) -> None:
    assert ended(site, 85, id="7[3].head").job.done == ["run_count", "rerun"]


@pytest.mark.parametrize(("runs", "kept"), [(1, 1), (4, 4), (11, 10), (20, 10)])
def test_of_one_of_an_array_run_count_alone_tells_how_often_it_started(
    site: Site, runs: int, kept: int
) -> None:
    """PBS makes its variables anew for each start, and holds it from 21 on."""
    said = {"PLIANT_RETURNS": "85"}
    job = Job("execjob_epilogue", {}, said, Exit_status=85, run_count=runs, id="7[3].head")
    seen = site.seen("execjob_epilogue", job)
    assert (job.__dict__["run_count"], seen.variables["PLIANT_BACK"]) == (kept, f"{kept}:1")


@pytest.mark.parametrize("more", [{}, {"back": "hold"}])  # as 0.1.0 has configured it
def test_a_job_that_has_saved_goes_back_to_the_queue_until_a_time_and_is_not_held(
    site: Site, more: dict[str, object]
) -> None:
    site.options = {"wait_s": 90, **more}
    seen = ended(site, 85)
    assert seen.verdict[0] == "reject"
    assert seen.job.done == ["Execution_Time", "run_count", "rerun"]
    assert 80 < seen.job.Execution_Time - time.time() <= 90
    assert seen.variables["PLIANT_BACK"] == f"0:1:{seen.job.Execution_Time}"
    assert "PLIANT_HELD" not in seen.variables


@pytest.mark.parametrize(
    ("status", "returns", "more"),
    [
        (0, "85", {}), (1, "85", {}), (85, "", {}), (None, "85", {}), (271, "85", {}),
        (85, "85", {"Rerunable": False}),
    ],
)  # fmt: skip
def test_any_other_end_is_an_end(
    site: Site, status: int | None, returns: str, more: dict[str, Any]
) -> None:
    seen = ended(site, status, returns, **more)
    assert (seen.verdict, seen.job.done) == (("accept", ""), [])


SCHEDULERS = """\
Sched default
    partition = pbs-default
    scheduling = True

Sched gpus
    partition = p1
    scheduling = True

Sched fast
    partition = p2
    scheduling = False

Sched idle
    scheduling = True

"""


def kicked(
    site: Site,
    tmp_path: Path,
    *,
    ended_s: float,
    age_s: float = 60,
    scheduling: bool = True,
    listed: str = "",
) -> str:
    """What qmgr is told where a fence ended, or is to end, so long ago.

    ``listed``: what it says of schedulers.
    """
    site.says(age_s=age_s)
    said, qmgr, fences = tmp_path / "said", tmp_path / "qmgr", tmp_path / "fences.json"
    said.write_text("")
    (tmp_path / "listed").write_text(listed)
    lists = f"case $2 in list*) exec cat {tmp_path / 'listed'};; esac"
    qmgr.write_text(f'#!/bin/sh\n{lists}\necho "$@" >>{said}\n')
    qmgr.chmod(0o755)
    fences.write_text(fences_text([Fence("7", time.time() - ended_s)]))
    site.options |= {"qmgr": str(qmgr), "fences": str(fences)}
    pbs = Pbs(Event("periodic"), (), config=site.configured())
    pbs.scheduling = scheduling
    assert run(hook("periodic"), pbs) == ("accept", "")
    return said.read_text()


def test_whom_a_fence_kept_out_is_looked_at_again_where_pliantd_is_dead(
    site: Site, tmp_path: Path
) -> None:
    words = "-c set server scheduling = True\n"
    assert kicked(site, tmp_path, ended_s=20) == words
    assert kicked(site, tmp_path, ended_s=-20) == words  # none stands for one that is silent
    assert kicked(site, tmp_path, ended_s=20, age_s=10) == ""  # pliantd does so
    assert kicked(site, tmp_path, ended_s=700) == ""
    assert kicked(site, tmp_path, ended_s=20, scheduling=False) == ""  # somebody has stopped it


def test_so_is_who_waits_for_another_scheduler_than_the_default_one(
    site: Site, tmp_path: Path
) -> None:
    words = "-c set server scheduling = True\n", "-c set sched gpus scheduling = True\n"
    assert kicked(site, tmp_path, ended_s=20, listed=SCHEDULERS) == "".join(words)
    stopped = kicked(site, tmp_path, ended_s=20, listed=SCHEDULERS, scheduling=False)
    assert stopped == words[1]


def test_every_hook_leaves_by_a_decision_alone() -> None:
    for name in HOOKS:
        (attempt,) = ast.parse(hook_text(name)).body
        assert isinstance(attempt, ast.Try)


# The page


def test_the_page_says_every_resource_and_only_what_is_right() -> None:
    rows = re.findall(r"^\| `([a-z_]+)=([^`]+)` \|", PAGE, re.MULTILINE)
    assert [name for name, _ in rows] == [n for n in RESOURCES.values() if n != "colocate"]
    assert "`colocate` is refused" in PAGE
    for name, value in [*rows, *re.findall(r"`(moldable|malleable)=([^`]+)`", PAGE)]:
        read_request(words({name: value}, {}))


def test_the_page_says_every_key_of_the_configuration_and_its_default() -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| `([^`]+)` \|", PAGE, re.MULTILINE))
    assert {key: json.loads(value) for key, value in rows.items()} == asdict(Settings())


def test_the_page_says_every_hook_and_every_limit() -> None:
    assert [name for name in HOOKS if f"| `{name}` |" not in PAGE] == []
    assert f"{MAX_BYTES // 1024} KiB" in PAGE
    assert f"last {MAX_AGE_S:.0f} seconds" in PAGE
    assert f"more than {MAX_LOOKED_AT} combinations" in PAGE
