"""The movejob hook for PBS: what Pliant made of a job keeps it out of no queue."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pbs_site import ASKED, QUEUE, Seen, Site

from pbs_double import Job
from pliant.grammar import find_token, spec_text, token_text
from pliant.model import Shape

WORDS = "pliant: queue {}: not as Pliant has set the job: it gets 1 again instead of 2: move it once more"
WHO: dict[str, Any] = {"requestor": "ada"}
OWN = "moldable=gpus=1-4;own=1;fp=1,0,8,0,16384,0,0"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.says(queues=(("workq", QUEUE), ("small", QUEUE)))
    site.limits = {"small": {}, "route": {}, "R12": {}}
    return site


class Moves:
    """Moves a job that queuejob has seen, and keeps what qalter is told."""

    def __init__(self, site: Site, directory: Path) -> None:
        self.site, self.said = site, directory / "said"
        qalter = directory / "qalter"
        qalter.write_text(
            f'#!/bin/sh\nfor word; do echo "$word"; done >{self.said}.new\n'
            f"mv {self.said}.new {self.said}\n"
        )
        qalter.chmod(0o755)
        site.options["qalter"] = str(qalter)

    def __call__(self, queue: str, asked: dict[str, Any] = ASKED, **job: Any) -> Seen:
        first = self.site.queuejob(asked)
        more = {"queue": queue, "job_state": 1, **job}
        return self.site.seen(
            "movejob", Job("movejob", first.resources, **more), src_queue="workq", **WHO
        )

    def told(self) -> list[str]:
        """Return what qalter is told, once it is."""
        while not self.said.exists():
            time.sleep(0.01)
        return self.said.read_text().splitlines()


@pytest.fixture
def moves(site: Site, tmp_path: Path) -> Moves:
    return Moves(site, tmp_path)


LIMITS: list[dict[str, Any]] = [
    {"resources_max": {"ngpus": "1"}},
    {"resources_max": {"scratch": "5"}, "default_chunk": {"scratch": "1"}},
    {"max_queued_res": {"ngpus": "[u:PBS_GENERIC=4]"}},
]


@pytest.mark.parametrize("state", [1, 2, 3])
@pytest.mark.parametrize("limit", LIMITS)
def test_who_may_be_refused_for_what_pliant_set_gets_its_own_shape_again(
    site: Site, moves: Moves, limit: dict[str, Any], state: int
) -> None:
    site.limits["small"] = limit
    seen = moves("small", job_state=state)
    assert seen.verdict == ("reject", WORDS.format("small"))
    option, said, job_id = moves.told()
    token = said.partition("=")[2]
    assert (option, job_id) == ("-l", "7.head")
    spec = find_token(token)
    assert spec is not None
    assert spec_text(spec) == OWN
    changed = altered(site, seen, token)
    assert changed.resources["select"] == "1:ncpus=8:ngpus=1:mem=16384mb"
    again = {**seen.resources, **changed.resources}
    once_more = Job("movejob", again, queue="small", job_state=1)
    assert site.seen("movejob", once_more, **WHO).verdict == ("accept", "")


@pytest.mark.parametrize(
    ("who", "verdict"),
    [*((who, "reject") for who in ("ada", "root", "Scheduler", "eve", "op")), ("bob", "accept")],
)
def test_who_may_not_move_a_job_changes_nothing_of_it(
    site: Site, moves: Moves, who: str, verdict: str
) -> None:
    """PBS asks its hooks before it looks at who asks."""
    site.limits[""] = {"managers": "eve@head,root@head", "operators": "op@*"}
    first = site.queuejob(ASKED)
    job = Job("movejob", first.resources, queue="route", job_state=1)
    assert site.seen("movejob", job, src_queue="workq", requestor=who).verdict[0] == verdict


def altered(site: Site, seen: Seen, token: str, **meanwhile: str) -> Seen:
    """Let the server see the qalter of a token, once the owner has changed ``meanwhile``."""
    there = {**seen.resources, **meanwhile}
    old = Job("modifyjob", there, seen.variables, job_state=1, queue="workq")
    return site.seen("modifyjob", Job("modifyjob", {"pliant": token}), job_o=old)


def test_what_its_owner_has_changed_meanwhile_stands(site: Site, moves: Moves) -> None:
    seen = moves("route")
    token = moves.told()[1].partition("=")[2]
    changed = altered(site, seen, token, select="1:ncpus=8:ngpus=3")
    assert "select" not in changed.resources


def test_a_token_of_another_shape_gives_nothing_back(site: Site, moves: Moves) -> None:
    seen = moves("route")
    spec = find_token(seen.resources["pliant"])
    assert spec is not None
    for other in (spec, replace(spec, set=None, own=Shape(1, 3))):
        assert "select" not in altered(site, seen, token_text(other)).resources


def test_the_type_of_gpus_is_read_without_pliantds_file_too(site: Site, moves: Moves) -> None:
    """Its name stands in the hooks' own configuration: PBS deletes what no destination takes."""
    site.options["type_resource"] = "gpu_model"
    site.says(type_resource="gpu_model", queues=(("workq", QUEUE),))
    first = site.queuejob({**ASKED, "select": f"{ASKED['select']}:gpu_model=a100"})
    assert ":ngpus=2" in first.resources["select"]
    site.state.unlink()
    job = Job("movejob", first.resources, queue="route", job_state=1)
    assert site.seen("movejob", job, src_queue="workq", **WHO).verdict[0] == "reject"
    assert moves.told()


def test_so_is_a_job_whose_chunks_have_another_resource_by_default_by_now(
    site: Site, moves: Moves
) -> None:
    first = site.queuejob(ASKED)
    site.limits["workq"] = {"default_chunk": {"Qlist": "workq"}}
    job = Job("movejob", first.resources, queue="route", job_state=1)
    assert site.seen("movejob", job, src_queue="workq", **WHO).verdict[0] == "reject"
    assert moves.told()


@pytest.mark.parametrize("queue", ["route", "R12", "small@other"])
def test_so_does_who_goes_where_no_shapes_are_given(moves: Moves, queue: str) -> None:
    assert moves(queue).verdict == ("reject", WORDS.format(queue))
    assert moves.told()[1].startswith("pliant=pliant=v1:")


def test_so_does_everybody_where_pliantd_has_gone(site: Site, moves: Moves) -> None:
    first = site.queuejob(ASKED)
    site.state.unlink()
    job = Job("movejob", first.resources, queue="workq", job_state=1)
    assert site.seen("movejob", job, **WHO).verdict == ("reject", WORDS.format("workq"))
    assert moves.told()


def nothing(_site: Site) -> dict[str, Any]:
    return {}


def no_such_queue(_site: Site) -> dict[str, Any]:
    return {"queue": "nosuch"}


def own_too_large(site: Site) -> dict[str, Any]:
    site.limits["small"] = {"resources_max": {"ncpus": "7"}}
    return {}


def enough(site: Site) -> dict[str, Any]:
    site.limits["small"] = {"resources_max": {"ngpus": "2"}}
    return {}


def runs(site: Site) -> dict[str, Any]:
    site.limits["small"] = {"resources_max": {"ngpus": "1"}}
    return {"job_state": 4}


def as_written(site: Site) -> dict[str, Any]:
    site.limits["small"] = {"resources_max": {"ngpus": "1"}}
    return {"asked": {**ASKED, "moldable": "gpus=1"}}


def says_nothing(site: Site) -> dict[str, Any]:
    site.limits["small"] = {"resources_max": {"ngpus": "1"}}
    return {"asked": {"select": "1:ngpus=4"}}


@pytest.mark.parametrize(
    "case",
    [nothing, no_such_queue, own_too_large, enough, runs, as_written, says_nothing],
    ids=lambda c: c.__name__,
)
def test_all_other_moves_are_as_they_were_asked(
    site: Site, moves: Moves, case: Callable[[Site], dict[str, Any]]
) -> None:
    more = case(site)
    assert moves(**{"queue": "small", **more}).verdict == ("accept", "")


def test_nor_where_its_owner_has_changed_it(site: Site) -> None:
    site.limits["small"] = {"resources_max": {"ngpus": "1"}}
    first = site.queuejob(ASKED)
    resources = {**first.resources, "select": "1:ncpus=8:ngpus=3"}
    job = Job("movejob", resources, queue="small", job_state=1)
    assert site.seen("movejob", job, **WHO).verdict == ("accept", "")


def test_where_nothing_can_be_done_the_job_stays_where_it_is(site: Site, moves: Moves) -> None:
    """A routing queue whose destinations all refuse it would lose it."""
    site.options["qalter"] = "/nowhere/qalter"
    seen = moves("route")
    assert seen.verdict == ("reject", WORDS.format("route"))
    assert seen.pbs.log == ["pliant: /nowhere/qalter: No such file or directory"]


def test_the_alarm_lets_a_move_pass(site: Site) -> None:
    for line in (2, 30, 200, 400):
        first = site.queuejob(ASKED)
        job = Job("movejob", first.resources, queue="route", job_state=1)
        assert site.seen("movejob", job, alarm_at=line, **WHO).verdict == ("accept", "")


def test_who_wrote_no_gpus_is_moved_without_them(site: Site, moves: Moves) -> None:
    """Also where the shape that it was given is the own one of its token."""
    site.limits["small"] = {"resources_max": {"ngpus": "1"}}
    first = site.queuejob({"select": "1:ngpus=0", "moldable": "gpus=8+nodes=2"})
    assert (first.resources["select"], first.resources["place"]) == ("2:ngpus=4", "scatter")
    there: dict[str, Any] = {"queue": "small", "job_state": 1, "variables": first.variables}
    job = Job("movejob", first.resources, **there)
    seen = site.seen("movejob", job, src_queue="workq", **WHO)
    assert "it gets 1x0@cpu again instead of 2x4" in seen.verdict[1]
    token, place = (word.partition("=")[2] for word in moves.told()[1:4:2])
    old = Job("modifyjob", first.resources, first.variables, job_state=1, queue="workq")
    job = Job("modifyjob", {"pliant": token, "place": place})
    changed = site.seen("modifyjob", job, job_o=old)
    assert (changed.resources["select"], changed.resources["place"]) == ("1:ngpus=0", "free")
    again = Job("movejob", {**first.resources, **changed.resources}, **there)
    assert site.seen("movejob", again, **WHO).verdict == ("accept", "")
