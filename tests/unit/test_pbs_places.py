"""The place that a job's owner wrote, and that of a queue, win over the one of Pliant's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pbs_recorded import Recorded
from pbs_site import Seen, Site
from test_pbs_batch import change
from test_pbs_movejob import WHO, Moves

from pbs_double import Job
from pliant.filter.pbs.places import Place, read_note
from pliant.filter.pbs.state import Ground, Room
from pliant.grammar import find_token, parse, token_text
from pliant.model import Shape, Spec

THIN = Ground((Room(3, 1, 8, 64_000),), (Room(3, 1, 8, 64_000),))
"""Three nodes with one GPU."""
ONE, THREE = "1:ncpus=1:ngpus=1", "3:ncpus=1:ngpus=1"
SPREAD = {"select": ONE, "moldable": "gpus=1-3+nodes=1-3"}
EXCL = {"resources_default": {"place": "excl"}}
NOT_SO = "pliant: queue alone: not as Pliant has set the job: it gets 1 again instead of 3x1:"
NOR_SO = "pliant: queue alone: not with the place that Pliant has set: it gets place={}:"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.says(queues=(("workq", THIN), ("alone", THIN)))
    site.limits = {"workq": {}, "alone": {}}
    return site


@pytest.fixture
def moves(site: Site, tmp_path: Path) -> Moves:
    return Moves(site, tmp_path)


def submitted(site: Site, place: str = "") -> Seen:
    """Submit a job that is spread over all nodes."""
    seen = site.queuejob({**SPREAD, **({"place": place} if place else {})})
    assert seen.resources["select"] == THREE
    return seen


def moved(site: Site, resources: dict[str, str], variables: dict[str, str], to: str) -> Seen:
    job = Job("movejob", resources, variables, queue=to, job_state=1)
    return site.seen("movejob", job, src_queue="workq", **WHO)


def altered(site: Site, seen: Seen, said: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a job says after a qalter."""
    old = Job("modifyjob", seen.resources, seen.variables, job_state=1, queue="workq")
    new = site.seen("modifyjob", Job("modifyjob", said), job_o=old)
    assert new.verdict == ("accept", "")
    return {**seen.resources, **new.resources}, {**seen.variables, **new.variables}


@pytest.mark.parametrize(
    ("own", "place", "noted"),
    [
        ("", "scatter", "-*"),
        ("pack", "scatter", "pack*"),
        ("free:shared", "scatter:shared", "free:shared*"),
    ],
)
def test_who_is_spread_over_nodes_keeps_what_its_owner_wrote_as_a_note(
    site: Site, own: str, place: str, noted: str
) -> None:
    seen = submitted(site, own)
    assert (seen.resources["place"], seen.variables["PLIANT_PLACE"]) == (place, noted)


def test_so_does_who_may_be_spread_later_and_nobody_else(site: Site) -> None:
    seen = site.queuejob({**SPREAD, "moldable": "gpus=1+nodes=1-3", "place": "pack"})
    assert (seen.resources["select"], seen.variables["PLIANT_PLACE"]) == (ONE, "pack")
    assert "PLIANT_PLACE" not in site.queuejob({**SPREAD, "moldable": "gpus=1-3"}).variables


@pytest.mark.parametrize(
    ("own", "default", "gets"),
    [("", "excl", "excl"), ("", "pack", "pack"), ("free", "pack:exclhost", None)],
)
def test_a_job_that_is_moved_has_the_place_of_its_owner_or_of_its_new_queue(
    site: Site, moves: Moves, own: str, default: str, gets: str | None
) -> None:
    site.limits["alone"] = {"resources_default": {"place": default}}
    first = submitted(site, own)
    seen = moved(site, first.resources, first.variables, "alone")
    if gets is None:  # its own word is to be free, and it may be spread there
        assert seen.verdict == ("accept", "")
        return
    assert seen.verdict == ("reject", f"{NOT_SO} move it once more")
    option, token, other, place, job_id = moves.told()
    assert (option, other, place, job_id) == ("-l", "-l", f"place={gets}", "7.head")
    said = {"pliant": token.partition("=")[2], "place": gets}
    resources, variables = altered(site, first, said)
    assert (resources["select"], resources["place"]) == ("1:ncpus=1:ngpus=1", gets)
    assert (variables["PLIANT_PLACE"], variables["PLIANT_SHAPE"]) == ("-*", "1")
    assert moved(site, resources, variables, "alone").verdict == ("accept", "")


@pytest.mark.parametrize("default", ["free", "scatter", "vscatter", ""])
def test_and_is_moved_as_it_is_where_it_may_be_spread(site: Site, default: str) -> None:
    site.limits["alone"] = {"resources_default": {"place": default} if default else {}}
    first = submitted(site)
    assert moved(site, first.resources, first.variables, "alone").verdict == ("accept", "")


def test_so_it_is_with_a_job_of_an_earlier_release_which_has_no_note(
    site: Site, moves: Moves
) -> None:
    site.limits["alone"] = EXCL
    first = submitted(site)
    assert moved(site, first.resources, {}, "alone").verdict[0] == "reject"
    assert "place=excl" in moves.told()


def test_what_the_owner_writes_later_is_the_owners(site: Site) -> None:
    site.limits["alone"] = EXCL
    first = submitted(site)
    resources, variables = altered(site, first, {"place": "free", "select": ONE})
    assert variables["PLIANT_PLACE"] == "free"
    assert moved(site, resources, variables, "alone").verdict == ("accept", "")


@pytest.mark.parametrize(("own", "gets"), [("", "pack"), ("vscatter", "vscatter")])
def test_who_takes_the_request_back_has_its_place_too(site: Site, own: str, gets: str) -> None:
    site.limits["workq"] = {"resources_default": {"place": "pack"}}
    first = site.queuejob({**SPREAD, **({"place": own} if own else {})})
    if not own:  # pliantd has spread it, before there was such a default
        site.limits["workq"] = {}
        site.forget()
        first = submitted(site)
        site.limits["workq"] = {"resources_default": {"place": "pack"}}
    resources, _ = altered(site, first, {"moldable": ""})
    assert (resources["select"], resources["place"]) == (ONE, gets)


def test_who_has_its_own_shape_again_is_moved_with_the_place_of_its_new_queue(
    site: Site, moves: Moves
) -> None:
    site.limits["alone"] = EXCL
    resources, variables = altered(site, submitted(site), {"moldable": ""})
    assert (resources["place"], variables["PLIANT_PLACE"]) == ("free", "-*")
    resources = {name: text for name, text in resources.items() if name != "pliant"}
    refused = ("reject", f"{NOR_SO.format('excl')} move it once more")
    assert moved(site, resources, variables, "alone").verdict == refused
    assert moves.told() == ["-l", "place=excl", "7.head"]
    assert moved(site, {**resources, "place": "excl"}, variables, "alone").verdict[0] == "accept"


def test_the_note_of_a_job_is_none_of_a_job_that_it_submits(site: Site) -> None:
    """``qsub -V`` within a job gives that one all its variables."""
    noted = {"PLIANT_PLACE": "-*"}
    for moldable in ({}, {"moldable": "gpus=1-3"}):
        seen = site.queuejob({"select": ONE, "place": "scatter", **moldable}, variables=noted)
        assert seen.variables["PLIANT_PLACE"] == ""


@pytest.mark.parametrize("said", ["", "-**", "excl", "x", "*", "group=a", "pack+", "pack\n"])
def test_a_note_that_is_none_of_ours_says_nothing(said: str) -> None:
    assert read_note(said) is None


def test_a_note_is_read_as_it_is_written() -> None:
    for place in (Place(), Place("", ours=True), Place("pack"), Place("free:shared", ours=True)):
        assert read_note(str(place)) == place


# pliantd


def spread(recorded: Recorded, place: str = "scatter", note: str = "-*") -> None:
    """Let a waiting job have been spread over two nodes by Pliant."""
    one = recorded.job("35")
    spec = Spec(parse("gpus=2:4,nodes=1:2"), Shape(1, 2), Shape(2, 1))
    resources = {"select": "2:ngpus=1", "place": place, "pliant": token_text(spec)}
    one["Resource_List"].update(resources)
    if note:
        one["Variable_List"]["PLIANT_PLACE"] = note


@pytest.mark.parametrize("note", ["-*", ""])
@pytest.mark.parametrize("default", ["", "pack"])
@pytest.mark.parametrize("shape", ["2", "4"])
def test_pliantd_gives_the_place_back_with_one_node(note: str, default: str, shape: str) -> None:
    recorded = Recorded()
    if default:
        queue = recorded.answers["queues"]["Queue"]["workq"]
        queue["resources_default"] = {"place": default}
    spread(recorded, note=note)
    error, said = change(recorded, shape, "35")
    assert error == ""
    assert said[0][1:5] == ("-l", f"select=1:ngpus={shape}", "-l", f"place={default or 'free'}")


def test_and_that_of_the_owner(site: Site) -> None:
    recorded = Recorded()
    spread(recorded, note="vscatter*")
    assert "place=vscatter" in change(recorded, "2", "35")[1][0]
    recorded = Recorded()
    spread(recorded, "scatter:shared", "free:shared*")
    assert "place=free:shared" in change(recorded, "2", "35")[1][0]


def test_an_owner_who_wrote_several_nodes_has_them_as_it_wrote_them() -> None:
    recorded = Recorded()
    one = recorded.job("35")["Resource_List"]
    spec = Spec(parse("gpus=2:4,nodes=1:2"), Shape(2, 1), Shape(1, 2))
    one.update(select="1:ngpus=2", place="free", pliant=token_text(spec))
    _, said = change(recorded, "2x1", "35")
    assert [word for word in said[0] if word.startswith("place")] == []
    spec = find_token(one["pliant"]) or spec
    one.update(select="1:ngpus=2", pliant=token_text(replace(spec, set=Shape(1, 2))))
    recorded.said.clear()
    assert "place=scatter" in change(recorded, "2x2", "35")[1][0]


def test_who_wrote_one_chunk_without_gpus_is_spread_as_its_token_says() -> None:
    recorded = Recorded()
    one = recorded.job("35")
    one["Variable_List"].update(PLIANT_PLACE="-", PLIANT_WROTE="1x0@cpu")
    spec = Spec(parse("gpus=2:4,nodes=1:2"), Shape(2, 1), Shape(1, 2))
    said = {"select": "1:ngpus=2", "place": "free", "pliant": token_text(spec)}
    one["Resource_List"].update(said)
    assert "place=scatter" in change(recorded, "2x1", "35")[1][0]
