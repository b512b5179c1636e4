"""The movejob hook for PBS: what Pliant made of a job keeps it out of no queue."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pbs_site import ASKED, QUEUE, Seen, Site

from pbs_double import Job
from pliant.grammar import find_token, spec_text

WORDS = "pliant: queue {}: not as Pliant has set the job: it gets 1 again instead of 2: move it once more"
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
        return self.site.seen("movejob", Job("movejob", first.resources, **more), src_queue="workq")

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
    *shape, said, job_id = moves.told()
    token = said.partition("=")[2]
    assert (shape, job_id) == (["-l", "select=1:ncpus=8:ngpus=1:mem=16384mb", "-l"], "7.head")
    spec = find_token(token)
    assert spec is not None
    assert spec_text(spec) == OWN
    again = {**seen.resources, "select": shape[1].partition("=")[2], "pliant": token}
    once_more = Job("movejob", again, queue="small", job_state=1)
    assert site.seen("movejob", once_more).verdict == ("accept", "")


@pytest.mark.parametrize("queue", ["route", "R12", "small@other"])
def test_so_does_who_goes_where_no_shapes_are_given(moves: Moves, queue: str) -> None:
    assert moves(queue).verdict == ("reject", WORDS.format(queue))
    assert moves.told()[1] == "select=1:ncpus=8:ngpus=1:mem=16384mb"


def test_so_does_everybody_where_pliantd_has_gone(site: Site, moves: Moves) -> None:
    first = site.queuejob(ASKED)
    site.state.unlink()
    job = Job("movejob", first.resources, queue="workq", job_state=1)
    assert site.seen("movejob", job).verdict == ("reject", WORDS.format("workq"))
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
    assert site.seen("movejob", job).verdict == ("accept", "")


def test_a_move_that_nothing_can_be_done_for_is_left_to_pbs(site: Site, moves: Moves) -> None:
    site.options["qalter"] = "/nowhere/qalter"
    seen = moves("route")
    assert seen.verdict == ("accept", "")
    assert "FileNotFoundError" in seen.pbs.log[0]


def test_the_alarm_lets_a_move_pass(site: Site) -> None:
    for line in (2, 30, 200, 400):
        first = site.queuejob(ASKED)
        job = Job("movejob", first.resources, queue="route", job_state=1)
        assert site.seen("movejob", job, alarm_at=line).verdict == ("accept", "")
