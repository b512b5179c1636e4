"""Each hook for PBS, as the build makes it, under the double of PBS's module."""

from __future__ import annotations

import ast
import json
import os
import sys
import time
import types
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from grammar_cases import BAD, pairs

from pbs_double import CUSTOM, Environment, Event, Job, Pbs, Resources, run
from pliant.filter.pbs.state import Ground, Room, State, read_state, state_text
from pliant.grammar import find_token, request_text, spec_text
from pliant.hooks import hook_text
from pliant.model import Mode

QUEUE = Ground(
    kinds=(Room(4, 4, 64, 256_000, "a100"),),
    rooms=(Room(1, 2, 32, 128_000, "a100"), Room(2, 1, 16, 64_000, "a100")),
)
ASKED = {"select": "1:ncpus=8:ngpus=4:mem=16gb", "moldable": "gpus=1-4"}


@cache
def hook(name: str) -> types.CodeType:
    return compile(hook_text(name), f"<{name}>", "exec")


@pytest.fixture(autouse=True)
def nobody_was_submitted() -> None:
    sys.modules.pop("_pliant_kept", None)


class Site:
    """A state file and a configuration, as pliantd and the installer write them."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "pbs_state.json"
        self.config = directory / "hook.json"
        self.options: dict[str, object] = {}
        self.says()

    def says(self, mode: Mode = Mode.ENFORCE, age_s: float = 0.0, **more: Any) -> None:
        queues = (("workq", QUEUE),)
        said = State(time.time() - age_s, mode, default_queue="workq", queues=queues)
        self.write(state_text(State(**{**{n: getattr(said, n) for n in said.__slots__}, **more})))

    def write(self, text: str) -> None:
        self.state.unlink(missing_ok=True)
        self.state.write_text(text)
        self.state.chmod(0o644)

    def configured(self) -> str:
        said = {"state": str(self.state), "owner": os.geteuid(), **self.options}
        self.config.write_text(json.dumps(said))
        self.config.chmod(0o644)
        return str(self.config)

    def queuejob(self, resources: dict[str, Any], *, alarm_at: int = 0, **job: Any) -> Seen:
        return self.seen("queuejob", Job("queuejob", resources, **job), alarm_at=alarm_at)

    def seen(self, name: str, job: Job, *, alarm_at: int = 0, **more: Any) -> Seen:
        pbs = Pbs(Event(name, job=job, **more), config=self.configured())
        return Seen(run(hook(name), pbs, alarm_at), job, pbs)


class Seen:
    """What a hook said, and the job after it."""

    def __init__(self, verdict: tuple[str, str], job: Job, pbs: Pbs) -> None:
        self.verdict = verdict
        self.pbs = pbs
        self.job: Any = job
        values = job.Resource_List.values
        self.resources = {name: str(v) for name, v in values.items() if v is not None}
        self.variables = {n: v for n, v in self.job.Variable_List.items() if "PBS_O_" not in n}
        found = find_token(self.resources.get("pliant", ""))
        self.token = spec_text(found) if found else ""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


# queuejob


def test_a_job_gets_the_largest_shape_that_fits_now(site: Site) -> None:
    seen = site.queuejob(ASKED)
    assert seen.verdict == ("accept", "")
    assert seen.resources["select"] == "1:ncpus=8:ngpus=2:mem=16384mb"
    assert seen.token == "moldable=gpus=1-4;own=4;set=2;fp=1,0,8,0,16384,0,0"
    assert seen.variables == {
        "PLIANT_SHAPE": "2",
        "PLIANT_NODES": "1",
        "PLIANT_GPUS": "2",
        "PLIANT_TYPE": "gpu",
        "PLIANT_SHARE": "1",
        "PLIANT_RESTART_COUNT": "0",
        "PLIANT_RETURNS": "",
    }


@pytest.mark.parametrize(
    ("resources", "select", "place"),
    [
        ({"ncpus": 8, "ngpus": 1, "moldable": "gpus=1-2"}, "1:ncpus=8:ngpus=2", None),
        (
            {"select": "1:ncpus=4:ngpus=4", "moldable": "gpus=3-4+nodes=1:3"},
            "3:ncpus=4:ngpus=1",
            "scatter",
        ),
        (
            {"select": "1:ngpus=4:mpiprocs=4:ncpus=8", "moldable": "gpus=1-4"},
            "1:ngpus=2:mpiprocs=2:ncpus=4",
            None,
        ),
        ({"select": "ncpus=4:ngpus=3", "moldable": "gpus=1:3"}, "1:ncpus=4:ngpus=1", None),
        ({"select": "1:ncpus=4", "moldable": '"gpus=1,nodes=1"'}, "1:ncpus=4:ngpus=1", None),
        ({"select": "1:ncpus=4:ngpus=1", "moldable": "type=cpu+cores=8"}, "1:ncpus=8", None),
        (
            {"select": "1:ngpus=4", "moldable": "gpus=1-4", "throughput": "1:9+2:5"},
            "1:ngpus=1",
            None,
        ),
        ({"select": "1:ngpus=4:ncpus=17", "moldable": "gpus=1-4"}, "1:ngpus=2:ncpus=17", None),
        ({"select": "1:ngpus=4:ncpus=33", "moldable": "gpus=1-4"}, "1:ngpus=4:ncpus=33", None),
        ({"select": "1:ngpus=8", "moldable": "gpus=4-8", "walltime": 60}, "1:ngpus=4", None),
    ],
)
def test_select_and_place_say_the_shape(
    site: Site, resources: dict[str, Any], select: str, place: str | None
) -> None:
    seen = site.queuejob(resources)
    assert (seen.resources["select"], seen.resources.get("place")) == (select, place)
    assert not {"ncpus", "ngpus"} & set(seen.resources)


@pytest.mark.parametrize(
    "resources",
    [
        {"select": "1:ngpus=4+1:ngpus=2"},
        {"select": "1:ngpus=4", "place": "excl"},
        {"select": "1:ngpus=4", "place": "pack:group=rack"},
        {"select": "2:ngpus=2", "place": "pack"},
        {"select": "1:ngpus=4:vnode=gn2"},
        {"select": "1:ngpus=4:scratch=5"},
        {"select": "1:ngpus=4:ncpus=7:mpiprocs=2"},
        {"select": "4:"},
        {"select": "1:ngpus=-1"},
        {"select": "1:ngpus=4:mem=lots"},
        {"nodes": "2:ppn=4"},
        {"ngpus": 4, "scratch": "5"},
        {"select": "9" * 30 + ":ngpus=1"},
    ],
)
def test_what_is_not_understood_keeps_its_shape(site: Site, resources: dict[str, Any]) -> None:
    asked = {**resources, "moldable": "gpus=1-4", "malleable": "yes"}
    seen = site.queuejob(asked)
    assert seen.verdict == ("accept", "")
    assert seen.resources == {n: str(v) for n, v in asked.items()} | {
        "pliant": seen.resources["pliant"]
    }
    assert (seen.token, seen.variables) == ("malleable", {"PLIANT_RETURNS": "85"})


@pytest.mark.parametrize(
    "job",
    [
        {"array_indices_submitted": "1-9"},
        {"depend": "afterok:1.head"},
        {"Hold_Types": "u"},
        {"Execution_Time": 4_000_000_000},
    ],
)
def test_a_job_that_cannot_start_now_waits_as_it_was_written(
    site: Site, job: dict[str, Any]
) -> None:
    seen = site.queuejob(ASKED, **job)
    assert seen.resources["select"] == ASKED["select"]
    assert seen.token == "moldable=gpus=1-4;own=4;fp=1,0,8,0,16384,0,0"


def test_one_is_not_made_larger_where_others_were_submitted_meanwhile(site: Site) -> None:
    asked = {"select": "1:ngpus=1", "moldable": "gpus=1-2"}
    site.says(age_s=1)
    first = site.queuejob({})
    assert (first.resources, first.variables) == ({}, {})
    assert site.queuejob(asked).resources["select"] == "1:ngpus=1"
    site.says()
    assert site.queuejob(asked).resources["select"] == "1:ngpus=2"


@pytest.mark.parametrize("more", [{"careful": True}, {"molds": False}])
def test_one_is_not_made_larger_where_the_site_says_so(site: Site, more: dict[str, Any]) -> None:
    site.says(**more)
    seen = site.queuejob({"select": "1:ngpus=1", "moldable": "gpus=1-2"})
    assert seen.resources["select"] == "1:ngpus=1"


def test_a_room_counts_for_jobs_that_end_in_time(site: Site) -> None:
    rooms = (Room(1, 2, 32, 0, "", time.time() + 1000),)
    site.says(queues=(("workq", Ground(QUEUE.kinds, rooms)),))
    for walltime, select in ((500, "1:ngpus=2"), (2000, "1:ngpus=4"), (None, "1:ngpus=4")):
        sys.modules.pop("_pliant_kept", None)
        asked = {"select": "1:ngpus=4", "moldable": "gpus=1-4", "walltime": walltime}
        assert site.queuejob(asked).resources["select"] == select


def test_a_type_of_gpu_is_a_resource_of_the_chunk(site: Site) -> None:
    site.says(type_resource="gpu_model")
    asked = {"select": "1:ngpus=1:gpu_model=v100", "moldable": "gpu-type=a100:h100"}
    seen = site.queuejob(asked)
    assert seen.resources["select"] == "1:ngpus=1:gpu_model=a100"
    assert seen.variables["PLIANT_SHAPE"] == "1@a100"


def test_variables_speak_where_a_site_has_no_resources(site: Site) -> None:
    job = Job(
        "queuejob",
        {"select": "1:ngpus=4"},
        {"PLIANT_MOLDABLE": r"gpus=1-4\,nodes=1"},
        custom=("pliant",),
    )
    seen = site.seen("queuejob", job)
    assert seen.resources["select"] == "1:ngpus=2"


@pytest.mark.parametrize("job", [{}, {"queue": "debug"}])
def test_a_job_that_says_nothing_or_goes_where_pliant_is_off_is_left_alone(
    site: Site, job: dict[str, Any]
) -> None:
    site.says(modes=(("debug", Mode.OFF),))
    asked = ASKED if job else {"select": "1:ngpus=4"}
    seen = site.queuejob(asked, **job)
    assert (seen.verdict, seen.resources, seen.variables) == (("accept", ""), asked, {})
    assert seen.job.Resource_List.writes == []


@pytest.mark.parametrize("asked", [{}, ASKED])
def test_a_job_does_not_inherit_the_marks_of_the_job_that_submits_it(
    site: Site, asked: dict[str, Any]
) -> None:
    variables = {"PLIANT_RETURNS": "85", "PLIANT_HELD": "1"}
    seen = site.seen("queuejob", Job("queuejob", asked, variables))
    assert [seen.variables[name] for name in variables] == ["", ""]


@pytest.mark.parametrize(("mode", "age_s"), [(Mode.OBSERVE, 0), (Mode.ENFORCE, 60)])
def test_observed_or_with_an_old_state_only_what_is_noted_changes(
    site: Site, mode: Mode, age_s: float
) -> None:
    site.says(mode, age_s)
    seen = site.queuejob(ASKED)
    assert seen.job.Resource_List.writes == ["pliant"]
    assert seen.token == "moldable=gpus=1-4;own=4;fp=1,0,8,0,16384,0,0"
    assert seen.variables["PLIANT_SHAPE"] == "4"
    wrong = site.queuejob({**ASKED, "moldable": "gpus=0"})
    assert (wrong.verdict, wrong.job.Resource_List.writes) == (("accept", ""), [])


def test_hostile_and_malformed_values_are_refused_in_one_sentence(site: Site) -> None:
    for option, value in pairs(BAD):
        name = option.replace("-", "_")
        if not value or (option, value) == ("malleable", "yes") or value[0] in "\"'":
            continue  # nothing is said, or it is said otherwise in PBS
        site.says()
        seen = site.queuejob({"select": "1:ngpus=1", name: value})
        verdict, words = seen.verdict
        assert verdict == "reject", (option, value)
        assert words.startswith("pliant: ")
        assert words.isascii()
        assert words.isprintable()
        assert seen.job.Resource_List.writes == []


def spoil_missing(site: Site) -> None:
    site.state.unlink()


def spoil_damaged(site: Site) -> None:
    site.write(site.state.read_text()[:-40])


def spoil_nested(site: Site) -> None:
    site.write("[" * 100_000)


def spoil_version(site: Site) -> None:
    site.write(site.state.read_text().replace('"pliant_state":1', '"pliant_state":2'))


def spoil_counts(site: Site) -> None:
    site.write(site.state.read_text().replace("[4,4,", "[-4,4,"))


def spoil_huge(site: Site) -> None:
    site.write(site.state.read_text() + " " * 300_000)


def spoil_binary(site: Site) -> None:
    site.state.write_bytes(b"\xff\xfe" * 100)


def spoil_rights(site: Site) -> None:
    site.state.chmod(0o666)


def spoil_owner(site: Site) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file away")
    os.chown(site.state, 12345, -1)


def spoil_link(site: Site) -> None:
    site.state.rename(site.state.with_suffix(".real"))
    site.state.symlink_to(site.state.with_suffix(".real"))


def spoil_fifo(site: Site) -> None:
    site.state.unlink()
    os.mkfifo(site.state, 0o600)


def spoil_directory(site: Site) -> None:
    site.state.unlink()
    site.state.mkdir()


def spoil_future(site: Site) -> None:
    site.says(age_s=-3600)


@pytest.mark.parametrize(
    "spoil",
    [value for name, value in globals().items() if name.startswith("spoil_")],
    ids=lambda spoil: spoil.__name__,
)
def test_without_a_state_to_trust_a_job_is_noted_and_left_as_it_is(site: Site, spoil: Any) -> None:
    spoil(site)
    seen = site.queuejob(ASKED)
    assert (seen.verdict, seen.job.Resource_List.writes) == (("accept", ""), ["pliant"])
    assert seen.token == "moldable=gpus=1-4;own=4;fp=1,0,8,0,16384,0,0"
    assert site.queuejob({**ASKED, "moldable": "gpus=0"}).verdict == ("accept", "")


@pytest.mark.parametrize("text", ["", "[]", '{"state": 7, "_names": 1}', "{", '{"__doc__": "x"}'])
def test_a_configuration_that_is_damaged_changes_nothing(site: Site, text: str) -> None:
    site.config.write_text(text)
    job = Job("queuejob", ASKED)
    pbs = Pbs(Event("queuejob", job=job), config=str(site.config))
    assert run(hook("queuejob"), pbs) == ("accept", "")
    assert Seen(("accept", ""), job, pbs).resources["select"] == ASKED["select"]


def test_the_alarm_at_any_point_accepts_a_job_whole_or_untouched(site: Site) -> None:
    whole = site.queuejob(ASKED).resources
    points = [*range(2, 40), *range(40, 4000, 53)]  # the first line is "try:"
    seen = []
    for at in points:
        sys.modules.pop("_pliant_kept", None)
        site.says()
        found = site.queuejob(ASKED, alarm_at=at)
        assert found.verdict == ("accept", "")
        assert found.resources in (ASKED, whole)
        seen.append(bool(found.pbs.log))
    assert any(seen)
    assert not seen[-1]  # the last points are beyond the hook's end


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("at", ["pliant", "select"])
def test_what_goes_wrong_while_a_job_is_changed_leaves_it_as_it_was(
    site: Site, trouble: type[BaseException], at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Once(Resources):
        done = False

        def __setitem__(self, name: str, value: Any) -> None:
            super().__setitem__(name, value)
            if name == at and not Once.done:
                Once.done = True
                raise trouble

    job = Job("queuejob", Resource_List=Once("queuejob", ASKED, tuple(CUSTOM)))
    seen = site.seen("queuejob", job)
    assert (seen.verdict, seen.resources, seen.variables) == (("accept", ""), ASKED, {})


def test_a_site_without_the_token_resource_submits_as_if_pliant_were_not_there(site: Site) -> None:
    job = Job("queuejob", ASKED, custom=("moldable",))
    seen = site.seen("queuejob", job)
    assert (seen.verdict, seen.resources, seen.variables) == (("accept", ""), ASKED, {})


def test_no_hook_of_the_server_ever_looks_at_other_jobs(site: Site) -> None:
    assert site.queuejob(ASKED).pbs.looked == 0
    assert site.queuejob({}).pbs.looked == 0
    assert changed(site, {"select": "1:ngpus=1"}).pbs.looked == 0


def test_a_request_for_thousands_of_shapes_is_left_to_pliantd(site: Site) -> None:
    kinds = (Room(64, 64, 64, 256_000),)
    site.says(queues=(("workq", Ground(kinds, QUEUE.rooms)),))
    seen = site.queuejob({"select": "1:ngpus=4", "moldable": "gpus=1-256+nodes=1-16"})
    assert seen.resources["select"] == "1:ngpus=4"
    assert seen.token == "moldable=gpus=1-256,nodes=1-16;own=4;fp=1,0,1,0,0,0,0"


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


def test_a_shape_that_cannot_be_told_leaves_no_old_one_behind(site: Site) -> None:
    seen = changed(site, {"select": "1:ngpus=1+1:ngpus=2"})
    assert seen.variables == dict.fromkeys(
        ("PLIANT_SHAPE", "PLIANT_NODES", "PLIANT_GPUS", "PLIANT_TYPE", "PLIANT_SHARE"), ""
    )


def test_a_new_request_is_put_into_the_token(site: Site) -> None:
    seen = changed(site, {"moldable": "gpus=1:2", "job_class": "trial"})
    assert seen.token == (
        "moldable=gpus=1-2;malleable;job-class=trial;own=4;set=2;fp=1,0,8,0,16384,0,0;renewed"
    )


def test_a_request_that_is_taken_back_takes_the_token_with_it(site: Site) -> None:
    seen = changed(site, {"moldable": "", "malleable": ""})
    assert seen.job.Resource_List.writes == ["pliant"]
    assert (seen.token, seen.variables) == ("", {"PLIANT_RETURNS": ""})


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


def test_run_count_that_begins_anew_is_not_forgotten(site: Site) -> None:
    seen = changed(
        site, {}, 0, run_count=3, variables={"PLIANT_RESTART_COUNT": "2", "PLIANT_HELD": "3"}
    )
    assert seen.variables == {"PLIANT_RESTART_COUNT": "5", "PLIANT_HELD": ""}


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


def test_a_job_that_has_saved_goes_back_to_the_queue_held_by_us(site: Site) -> None:
    seen = ended(site, 85)
    assert seen.verdict[0] == "reject"
    assert seen.job.done == ["Hold_Types", "rerun"]
    assert (str(seen.job.Hold_Types), seen.variables["PLIANT_HELD"]) == ("s", "4")


def test_one_of_an_array_goes_back_without_a_hold(site: Site) -> None:
    assert ended(site, 85, id="7[3].head").job.done == ["rerun"]


def test_it_waits_until_a_time_where_the_site_says_so(site: Site) -> None:
    site.options = {"back": "time", "wait_s": 90}
    seen = ended(site, 85)
    assert seen.job.done == ["Execution_Time", "rerun"]
    assert 80 < seen.job.Execution_Time - time.time() <= 90


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


def waiting(number: str, mark: str | None = "4", run_count: int = 4, hold: str = "s") -> Job:
    variables = {} if mark is None else {"PLIANT_HELD": mark}
    return Job("periodic", {}, variables, id=f"{number}.head", Hold_Types=hold, run_count=run_count)


JOBS = (
    waiting("1"),
    waiting("2", run_count=0),
    waiting("3", run_count=5),  # has run since: the hold is another one's
    waiting("4", mark=None),
    waiting("5", mark=""),
    waiting("6", hold="us"),
    waiting("7", hold="n"),
    waiting("8;reboot"),
    waiting("-9"),
    waiting("10[3]"),
)


def released(site: Site, tmp_path: Path, status: int = 0) -> tuple[Pbs, list[list[str]]]:
    said = tmp_path / "said"
    qrls = tmp_path / "qrls"
    qrls.write_text(f'#!/bin/sh\necho "$@" >>{said}\nexit {status}\n')
    qrls.chmod(0o755)
    site.options["qrls"] = str(qrls)
    pbs = Pbs(Event("periodic"), JOBS, config=site.configured())
    assert run(hook("periodic"), pbs) == ("accept", "")
    return pbs, [line.split() for line in said.read_text().splitlines()] if said.exists() else []


def test_while_pliantd_is_there_its_holds_are_its_own(site: Site, tmp_path: Path) -> None:
    pbs, calls = released(site, tmp_path)
    assert (calls, pbs.looked) == ([], 0)


@pytest.mark.parametrize("status", [0, 1])
def test_while_pliantd_is_away_our_holds_end_and_no_others(
    site: Site, tmp_path: Path, status: int
) -> None:
    site.says(age_s=600)
    _, calls = released(site, tmp_path, status)
    assert calls == [["-h", "s", "1.head", "2.head", "10[3].head"]]


def test_many_jobs_are_released_fifty_at_once(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "JOBS", tuple(waiting(str(n)) for n in range(120)))
    site.state.unlink()
    _, calls = released(site, tmp_path)
    assert [len(call) - 2 for call in calls] == [50, 50, 20]


# The state file


def test_the_state_file_is_read_as_it_was_written() -> None:
    said = State(
        1e9,
        Mode.ENFORCE,
        (("debug", Mode.OFF),),
        "workq",
        "gpu_model",
        molds=False,
        careful=True,
        queues=(("workq", QUEUE), ("long", Ground())),
    )
    text = state_text(said)
    assert read_state(text) == said
    assert [name for name, _ in read_state(text, "long").queues] == ["long"]
    assert [name for name, _ in read_state(text, "").queues] == ["workq"]
    assert read_state(text, "other").queues == ()


def test_the_requests_of_a_token_are_those_that_were_said(site: Site) -> None:
    seen = site.queuejob({**ASKED, "steps": "2000", "colocate": "no"})
    found = find_token(seen.resources["pliant"])
    assert found is not None
    assert request_text(found.request) == "moldable=gpus=1-4;steps=2000;colocate=no"


def test_every_hook_leaves_by_a_decision_alone() -> None:
    for name in ("queuejob", "modifyjob", "execjob_launch", "execjob_epilogue", "periodic"):
        (attempt,) = ast.parse(hook_text(name)).body
        assert isinstance(attempt, ast.Try)
