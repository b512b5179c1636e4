"""What PBS adds to a job that does not say it: its chunk as PBS will have it decides."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pbs_recorded import Recorded
from pbs_site import Seen, Site

from pbs_double import Job as PbsJob
from pliant.batch import Change
from pliant.filter.pbs.state import Ground, Room
from pliant.grammar import parse, parse_shape, token_text
from pliant.model import Footprint, Job, Shape, Snapshot, Spec

FREE = Ground((Room(4, 4, 64, 256_000),), (Room(4, 4, 64, 256_000),))
WISH = {"moldable": "gpus=1-8+nodes=1-2"}
CHUNK, JOB, MOST = "default_chunk", "resources_default", "resources_max"
NARROW = (Room(1, 4, 4, 64_000), Room(2, 4, 2, 64_000))
"""One node with four cores, and two with two."""


@pytest.fixture(autouse=True)
def nobody_was_submitted() -> None:
    sys.modules.pop("_pliant_kept", None)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.says(queues=(("workq", FREE),))
    return site


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


# The hook


def submitted(site: Site, asked: dict[str, Any], **said: Any) -> Seen:
    """Submit to a queue that says something."""
    site.limits = {"workq": said}
    seen = site.queuejob(asked)
    assert seen.verdict == ("accept", "")
    return seen


@pytest.mark.parametrize("of", ["", "workq"])
@pytest.mark.parametrize("name", ["Qlist", "arch", "gpu_model", "scratch", "gpu_share"])
def test_where_each_chunk_has_something_else_by_default_the_shape_stays(
    site: Site, of: str, name: str
) -> None:
    """As where it stands in the job's own chunk: pliantd does not know which vnodes have it."""
    site.limits = {of: {CHUNK: {"ncpus": 1, name: "workq"}}}
    asked = {"select": "1:ncpus=1:ngpus=1", **WISH}
    seen = site.queuejob({**asked, "malleable": "yes"})
    assert (seen.resources["select"], seen.token) == ("1:ncpus=1:ngpus=1", "malleable")
    words = f"'{name.lower()}', which each chunk has by default, keeps the shape"
    assert any(words in line for line in seen.pbs.log)


@pytest.mark.parametrize(
    ("chunk", "select", "given"),
    [
        ({"ncpus": 4}, "1:ngpus=2", "1:ngpus=2"),
        ({"ncpus": 2}, "1:ngpus=2", "2:ngpus=4"),
        ({"ncpus": 4}, "1:ngpus=2:ncpus=1", "2:ngpus=4:ncpus=1"),
        ({"mem": "65gb"}, "1:ngpus=2", "1:ngpus=2"),
        ({"mem": "1gb"}, "1:ngpus=2", "2:ngpus=4"),
        ({"mpiprocs": 2, "ncpus": 2}, "1:ngpus=2", "1:ngpus=2"),  # a rank to a GPU, 4 cores
    ],
)
def test_what_a_chunk_has_by_default_is_to_be_free_too(
    site: Site, chunk: dict[str, Any], select: str, given: str
) -> None:
    site.says(queues=(("workq", Ground(NARROW, NARROW)),))
    asked = {"select": select, "moldable": "gpus=2:8+nodes=1-2"}
    assert submitted(site, asked, default_chunk=chunk).resources["select"] == given


def test_what_is_not_as_by_default_any_more_is_said(site: Site) -> None:
    chunk = {"mpiprocs": 2, "ncpus": 4, "mem": "1gb", "ngpus": 2}
    seen = submitted(site, {"select": "1", "moldable": "gpus=2:4"}, default_chunk=chunk)
    assert seen.resources["select"] == "1:ncpus=8:ngpus=4:mpiprocs=4"
    assert seen.token == "moldable=gpus=2:4;own=2;set=4;fp=1,1,2,0,1024,0,0"


@pytest.mark.parametrize(
    ("select", "many", "given"),
    [
        ("1:ncpus=4", 2, ":ngpus=0"),
        ("1:ncpus=4", 0, ""),
        ("1:ncpus=4:ngpus=9", 2, ":ngpus=0"),
        ("1:ncpus=4:ngpus=9", 0, ":ngpus=0"),
    ],
)
def test_a_job_of_cores_says_so_where_each_chunk_has_gpus_by_default(
    site: Site, select: str, many: int, given: str
) -> None:
    asked = {"select": select, "moldable": "type=cpu"}
    seen = submitted(site, asked, default_chunk={"ngpus": many})
    assert seen.resources["select"] == "1:ncpus=4" + given


def test_a_queues_default_counts_before_the_servers(site: Site) -> None:
    site.limits = {"": {CHUNK: {"ngpus": 1, "mem": "300gb"}}, "workq": {CHUNK: {"mem": "1gb"}}}
    seen = site.queuejob({"select": "1:ncpus=2", "moldable": "gpus=1-4"})
    assert seen.resources["select"] == "1:ncpus=2:ngpus=4"
    assert seen.token == "moldable=gpus=1-4;own=1;set=4;fp=1,0,2,0,1024,0,0"


@pytest.mark.parametrize(
    ("said", "asked", "after"),
    [
        ({JOB: {"ncpus": 2}}, {"ngpus": 1}, {"ngpus": "4"}),
        ({JOB: {"ngpus": 2, "ncpus": 3}}, {"ncpus": 1}, {"ncpus": "1", "ngpus": "4"}),
        ({JOB: {"ncpus": 99}}, {"ngpus": 1}, {"ngpus": "1"}),
        ({JOB: {"ncpus": 99}}, {"select": "1:ngpus=1"}, {"select": "1:ngpus=4"}),
        ({JOB: {"ncpus": 2}, CHUNK: {"ncpus": 99}}, {"ngpus": 1}, {"ngpus": "4"}),
        ({JOB: {"scratch": 2}}, {"ngpus": 1}, {"ngpus": "1"}),
        ({JOB: {"walltime": 60}}, {"ngpus": 1}, {"ngpus": "4"}),
        ({JOB: {"select": "1:ngpus=2"}}, {}, {"select": "1:ngpus=4"}),
        ({JOB: {"select": "1:ngpus=2"}}, {"ngpus": 1}, {"ngpus": "1"}),
        ({JOB: {"nodes": "2"}}, {"ngpus": 1}, {"ngpus": "1"}),
        ({JOB: {"place": "excl"}}, {"ngpus": 1}, {"ngpus": "4"}),  # PBS packs such a job
        ({MOST: {"ngpus": 2}}, {"ncpus": 1}, {"ncpus": "1"}),
        ({MOST: {"ngpus": 3}, JOB: {"ngpus": 1}}, {"ncpus": 1}, {"ncpus": "1", "ngpus": "2"}),
        ({MOST: {"mem": "300gb"}}, {"ngpus": 1}, {"ngpus": "1"}),
        ({MOST: {"mem": "300gb"}}, {"select": "1:ngpus=1"}, {"select": "1:ngpus=4"}),
        ({MOST: {"nodect": 1, "walltime": 60}}, {"ngpus": 1}, {"ngpus": "4"}),
    ],
)
def test_a_job_has_what_its_queue_gives_it(
    site: Site, said: dict[str, Any], asked: dict[str, Any], after: dict[str, str]
) -> None:
    seen = submitted(site, {**asked, "moldable": "gpus=1:2:4"}, **said)
    rest = {n: v for n, v in seen.resources.items() if n not in ("moldable", "pliant")}
    assert rest == after


@pytest.mark.parametrize("of", ["", "workq"])
@pytest.mark.parametrize(
    ("place", "select", "given"),
    [
        ("excl", "1:ngpus=2", "1:ngpus=2"),
        ("scatter:exclhost", "1:ngpus=2", "1:ngpus=2"),
        ("pack", "2:ngpus=2", "2:ngpus=2"),
        ("scatter", "1:ngpus=2", "2:ngpus=4"),
    ],
)
def test_so_it_has_its_place(site: Site, of: str, place: str, select: str, given: str) -> None:
    site.limits = {of: {JOB: {"place": place}}}
    seen = site.queuejob({"select": select, **WISH})
    assert seen.resources["select"] == given


def test_but_not_where_it_says_one(site: Site) -> None:
    asked = {"select": "1:ngpus=2", "place": "free", **WISH}
    seen = submitted(site, asked, resources_default={"place": "excl"})
    assert (seen.resources["select"], seen.resources["place"]) == ("2:ngpus=4", "scatter")


def test_a_qalter_finds_the_shape_with_its_defaults(site: Site) -> None:
    site.limits = {"workq": {CHUNK: {"ngpus": 2, "mpiprocs": 2, "ncpus": 2}}}
    first = site.queuejob({"select": "1:ncpus=2", "moldable": "gpus=2:4"})
    assert first.resources["select"] == "1:ncpus=4:ngpus=4:mpiprocs=4"
    old = PbsJob("modifyjob", first.resources, first.variables, job_state=1)
    back = site.seen("modifyjob", PbsJob("modifyjob", {"moldable": ""}), job_o=old)
    assert back.resources["select"] == "1:ncpus=2:ngpus=2:mpiprocs=2"
    other = site.seen("modifyjob", PbsJob("modifyjob", {"select": "3:ncpus=2"}), job_o=old)
    assert other.variables["PLIANT_SHAPE"] == "3x2"


# pliantd


def job(snapshot: Snapshot, job_id: str) -> Job:
    return next(one for one in snapshot.waiting if one.id == job_id)


def queue_says(recorded: Recorded, **attributes: Any) -> None:
    recorded.answers["queues"]["Queue"]["workq"].update(attributes)


def asks(recorded: Recorded, select: str, moldable: str, spec: Spec, added: str = "") -> None:
    one = recorded.job("35")
    resources = {"select": select, "moldable": moldable, "pliant": token_text(spec)}
    one["Resource_List"].update(resources)
    one["schedselect"] = select + added


def changed(recorded: Recorded, shape: str) -> str:
    """Return the select of a job that is given a shape."""
    pbs = recorded.pbs()
    seen, asked = job(pbs.observe(), "35"), parse_shape(shape)
    assert pbs.change([Change(seen, asked, seen.noted(asked))]) == [None]
    return str(recorded.job("35")["Resource_List"]["select"])


def two_to_four(footprint: Footprint | None = None) -> Spec:
    return Spec(parse("gpus=2:4"), Shape(1, 2), None, footprint)


def test_a_job_whose_chunk_pbs_starts_by_something_else_keeps_its_shape(recorded: Recorded) -> None:
    words = "'qlist', which each chunk has by default, keeps the shape"
    asks(recorded, "1:ngpus=2", "gpus=2:4", two_to_four(), ":Qlist=workq")
    assert job(recorded.pbs().observe(), "35").frozen == words
    asks(recorded, "1:ngpus=2", "gpus=2:4", two_to_four())
    assert job(recorded.pbs().observe(), "35").frozen == ""
    queue_says(recorded, default_chunk={"Qlist": "workq"})  # as it will have it once it is changed
    assert job(recorded.pbs().observe(), "35").frozen == words


@pytest.mark.parametrize("noted", [None, Footprint(), Footprint(cpus_per_task=4)])
def test_pliantd_counts_what_a_chunk_has_by_default(
    recorded: Recorded, noted: Footprint | None
) -> None:
    """Also of a job that a hook has seen which did not know of it."""
    asks(recorded, "1:ngpus=2", "gpus=2:4", two_to_four(noted), ":ncpus=4")
    seen = job(recorded.pbs().observe(), "35")
    assert (seen.frozen, seen.demand(Shape(1, 4)).cpus) == ("", 4)
    queue_says(recorded, default_chunk={"ncpus": 4})
    assert changed(recorded, "4") == "1:ngpus=4"
    assert job(recorded.pbs().observe(), "35").shape == Shape(1, 4)
    assert changed(recorded, "2") == "1:ngpus=2"


def test_a_shape_that_no_node_has_with_its_defaults_is_none(recorded: Recorded) -> None:
    queue_says(recorded, default_chunk={"ncpus": 8, "mpiprocs": 2})
    asks(recorded, "1:ngpus=2", "gpus=2:4", two_to_four(), ":ncpus=8:mpiprocs=2")
    assert job(recorded.pbs().observe(), "35").shapes == (Shape(1, 2), Shape(1, 4))
    for node in recorded.answers["nodes"]["nodes"].values():
        node["resources_available"]["ncpus"] = 12
    assert job(recorded.pbs().observe(), "35").shapes == (Shape(1, 2),)


def test_a_select_of_several_chunks_adds_nothing(recorded: Recorded) -> None:
    recorded.job("35")["schedselect"] = "1:ngpus=1+2:ncpus=3"
    assert job(recorded.pbs().observe(), "35").frozen == ""
