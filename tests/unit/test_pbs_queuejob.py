"""The queuejob hook for PBS, as the build makes it, under the double of PBS's module."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from grammar_cases import BAD, pairs
from pbs_site import ASKED, QUEUE, Seen, Site, hook

from hostile import values
from pbs_double import CUSTOM, Event, Job, Pbs, Resources, run
from pliant.filter.pbs.state import (
    Ground,
    Room,
    State,
    read_state,
    state_text,
)
from pliant.grammar import find_token, request_text
from pliant.model import Mode

MOLDABLE = {"moldable": "gpus=1-4"}
ASKED_BESIDE = ("moldable", "pliant")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_job_gets_the_largest_shape_that_fits_now(site: Site) -> None:
    seen = site.queuejob(ASKED)
    assert seen.verdict == ("accept", "")
    assert seen.resources["select"] == "1:ncpus=8:ngpus=2:mem=16384mb"
    assert seen.token == "moldable=gpus=1-4;own=1;set=2;fp=1,0,8,0,16384,0,0"
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
        (
            {"select": "1:ncpus=4:ngpus=1", "moldable": "gpus=1:3-4+nodes=1:3"},
            "3:ncpus=4:ngpus=1",
            "scatter",
        ),
        (
            {
                "select": "1:ngpus=4:mpiprocs=4:ncpus=8",
                "moldable": "gpus=1-4",
                "throughput": "2:9",
            },
            "1:ngpus=2:mpiprocs=2:ncpus=4",
            None,
        ),
        ({"select": "ncpus=4:ngpus=1", "moldable": "gpus=1:2"}, "1:ncpus=4:ngpus=2", None),
        ({"select": "1:ncpus=4", "moldable": '"gpus=1,nodes=1"'}, "1:ncpus=4:ngpus=1", None),
        (
            {"select": "1:ncpus=4:ngpus=1", "moldable": "type=cpu+cores=8"},
            "1:ncpus=8:ngpus=0",
            None,
        ),
        (
            {"select": "1:ngpus=4", "moldable": "gpus=1-4", "throughput": "1:9+2:5"},
            "1:ngpus=1",
            None,
        ),
        ({"select": "1:ngpus=1:ncpus=17", "moldable": "gpus=1-4"}, "1:ngpus=2:ncpus=17", None),
        ({"select": "1:ngpus=1:ncpus=33", "moldable": "gpus=1-4"}, "1:ngpus=1:ncpus=33", None),
        ({"select": "1:ngpus=8", "moldable": "gpus=4-8", "walltime": 60}, "1:ngpus=4", None),
    ],
)
def test_select_and_place_say_the_shape(
    site: Site, resources: dict[str, Any], select: str, place: str | None
) -> None:
    seen = site.queuejob(resources)
    assert (seen.resources["select"], seen.resources.get("place")) == (select, place)


@pytest.mark.parametrize(
    ("resources", "after"),
    [
        ({"ncpus": 8, "ngpus": 1, "moldable": "gpus=1-2"}, {"ncpus": "8", "ngpus": "2"}),
        ({"ngpus": 4, "moldable": "gpus=1-2"}, {"ngpus": "2"}),
        (
            {"ngpus": 8, "mpiprocs": 8, "ncpus": 16, "mem": "8gb", "moldable": "gpus=2:4:8"},
            {"ngpus": "4", "mpiprocs": "4", "ncpus": "8", "mem": "8192mb"},
        ),
        ({"ncpus": 4, "ngpus": 1, "moldable": "type=cpu+cores=8"}, {"ncpus": "8", "ngpus": "0"}),
        ({"ncpus": 2, "ngpus": 4, "moldable": "gpus=4+nodes=1:2"}, {"ncpus": "2", "ngpus": "4"}),
    ],
)
def test_without_a_select_the_values_say_the_shape(
    site: Site, resources: dict[str, Any], after: dict[str, str]
) -> None:
    seen = site.queuejob(resources)
    assert seen.verdict == ("accept", "")
    rest = {name: seen.resources[name] for name in seen.resources if name not in ASKED_BESIDE}
    assert rest == after


def test_a_remark_that_pbs_cannot_log_changes_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pbs, "logs", False)
    seen = site.queuejob({"select": "1:ngpus=4", "place": "excl", "malleable": "yes", **MOLDABLE})
    assert (seen.verdict, seen.token) == (("accept", ""), "malleable")


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
    assert seen.token == "moldable=gpus=1-4;own=1;fp=1,0,8,0,16384,0,0"


def test_one_is_not_made_larger_where_others_were_submitted_meanwhile(site: Site) -> None:
    asked = {"select": "1:ngpus=1", "moldable": "gpus=1-2"}
    site.says(age_s=1)
    first = site.queuejob({})
    assert (first.resources, first.variables) == ({}, {})
    assert site.queuejob(asked).resources["select"] == "1:ngpus=1"
    site.says()
    assert site.queuejob(asked).resources["select"] == "1:ngpus=2"


@pytest.mark.parametrize(
    "asked",
    [
        {"select": "1:ncpus=8:ngpus=4", "moldable": "gpus=1-4"},
        {"select": "1:ncpus=4:ngpus=3", "moldable": "gpus=3+nodes=1:3"},
        {"select": "1:ncpus=4:ngpus=4", "moldable": "gpus=4+type=gpu:cpu+cores=8"},
        {"ngpus": 4, "moldable": "gpus=1-4"},
    ],
)
def test_none_starts_worse_for_its_life_as_gpus_may_have_come_free_meanwhile(
    site: Site, asked: dict[str, Any]
) -> None:
    site.says(age_s=5)
    seen = site.queuejob(asked)
    assert {name: seen.resources[name] for name in asked} == {n: str(v) for n, v in asked.items()}
    assert "set=" not in seen.token


def test_one_that_its_owner_says_is_faster_is_no_worse_though_it_is_smaller(site: Site) -> None:
    asked = {"select": "1:ngpus=4", "moldable": "gpus=1-4", "throughput": "1:9+4:5"}
    assert site.queuejob(asked).resources["select"] == "1:ngpus=1"


@pytest.mark.parametrize("value", ["yes", "no"])
def test_colocate_is_refused_as_nothing_is_done_for_it(site: Site, value: str) -> None:
    seen = site.queuejob({**ASKED, "colocate": value})
    words = "pliant: colocate: on PBS Pliant lets no jobs share a node: leave it out"
    assert (seen.verdict, seen.job.Resource_List.writes) == (("reject", words), [])


def test_one_is_not_made_larger_where_the_policy_chooses_no_shapes(site: Site) -> None:
    site.says(molds=False)
    seen = site.queuejob({"select": "1:ngpus=1", "moldable": "gpus=1-2"})
    assert seen.resources["select"] == "1:ngpus=1"


def test_a_room_counts_for_jobs_that_end_in_time(site: Site) -> None:
    rooms = (Room(1, 2, 32, 0, "", time.time() + 1000),)
    site.says(queues=(("workq", Ground(QUEUE.kinds, rooms)),))
    for walltime, select in ((500, "1:ngpus=2"), (2000, "1:ngpus=1"), (None, "1:ngpus=1")):
        site.forget()
        asked = {"select": "1:ngpus=1", "moldable": "gpus=1-4", "walltime": walltime}
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
        {"select": "1:ngpus=1"},
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
    variables = dict.fromkeys(("RETURNS", "HELD", "WROTE", "UNANSWERED"), "1")  # HELD: 0.1.0's
    variables = {f"PLIANT_{name}": text for name, text in variables.items()}
    seen = site.seen("queuejob", Job("queuejob", asked, variables))
    assert [seen.variables[name] for name in variables] == [""] * 4


@pytest.mark.parametrize(("mode", "age_s"), [(Mode.OBSERVE, 0), (Mode.ENFORCE, 60)])
def test_observed_or_with_an_old_state_only_what_is_noted_changes(
    site: Site, mode: Mode, age_s: float
) -> None:
    site.says(mode, age_s)
    seen = site.queuejob(ASKED)
    assert seen.job.Resource_List.writes == ["pliant"]
    assert seen.token == "moldable=gpus=1-4;own=1;fp=1,0,8,0,16384,0,0"
    assert seen.variables["PLIANT_SHAPE"] == "1"
    assert seen.variables.get("PLIANT_UNANSWERED") == ("1" if age_s else None)
    wrong = site.queuejob({**ASKED, "moldable": "gpus=0"})
    assert (wrong.verdict, wrong.job.Resource_List.writes) == (("accept", ""), [])


def test_hostile_and_malformed_values_are_refused_in_one_sentence(site: Site) -> None:
    for option, value in [*pairs(BAD), *values()]:
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
    site.write(site.state.read_text().replace('"pliant_state":2', '"pliant_state":1'))


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
    assert seen.token == "moldable=gpus=1-4;own=1;fp=1,0,8,0,16384,0,0"
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
        site.forget()
        site.says()
        found = site.queuejob(ASKED, alarm_at=at)
        assert found.verdict == ("accept", "")
        left = {name: value for name, value in found.resources.items() if value != ""}
        assert left in (ASKED, whole)  # PBS lets no hook take a resource away again: it is empty
        seen.append(bool(found.pbs.log))
    assert any(seen)
    assert not seen[-1]  # the last points are beyond the hook's end


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("at", ["pliant", "select", "place"])
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

    asked = {"select": "1:ncpus=4:ngpus=1", "moldable": "gpus=1:3+nodes=1:3"}
    job = Job("queuejob", Resource_List=Once("queuejob", asked, tuple(CUSTOM)))
    seen = site.seen("queuejob", job)
    left = {name: value for name, value in seen.resources.items() if value not in ("", "free")}
    assert (seen.verdict, left, bool(seen.variables)) == (("accept", ""), asked, False)


def test_a_site_without_the_token_resource_submits_as_if_pliant_were_not_there(site: Site) -> None:
    job = Job("queuejob", ASKED, custom=("moldable",))
    seen = site.seen("queuejob", job)
    assert (seen.verdict, seen.resources, seen.variables) == (("accept", ""), ASKED, {})


@pytest.mark.parametrize("asked", [{}, ASKED, {**ASKED, "moldable": "gpus=0"}])
def test_the_hook_never_looks_at_other_jobs(site: Site, asked: dict[str, Any]) -> None:
    for spoil in (None, spoil_missing):  # with a state file and without one
        if spoil:
            spoil(site)
        assert site.queuejob(asked).pbs.looked == 0  # and the double would have raised


def test_a_request_for_thousands_of_shapes_is_left_to_pliantd(site: Site) -> None:
    kinds = (Room(64, 64, 64, 256_000),)
    site.says(queues=(("workq", Ground(kinds, QUEUE.rooms)),))
    seen = site.queuejob({"select": "1:ngpus=4", "moldable": "gpus=1-256+nodes=1-16"})
    assert seen.resources["select"] == "1:ngpus=4"
    assert seen.token == "moldable=gpus=1-256,nodes=1-16;own=4;fp=1,0,1,0,0,0,0"


# The state file


def test_the_state_file_is_read_as_it_was_written() -> None:
    said = State(
        1e9,
        Mode.ENFORCE,
        (("debug", Mode.OFF),),
        "workq",
        "gpu_model",
        molds=False,
        queues=(("workq", QUEUE), ("long", Ground())),
    )
    text = state_text(said)
    assert read_state(text) == said
    assert [name for name, _ in read_state(text, "long").queues] == ["long"]
    assert [name for name, _ in read_state(text, "").queues] == ["workq"]
    assert read_state(text, "other").queues == ()


def test_the_requests_of_a_token_are_those_that_were_said(site: Site) -> None:
    seen = site.queuejob({**ASKED, "steps": "2000", "job_class": "trial"})
    found = find_token(seen.resources["pliant"])
    assert found is not None
    assert request_text(found.request) == "moldable=gpus=1-4;job-class=trial;steps=2000"
