"""What a queue or the server of PBS lets one job have: in the hook, in the plan, in `pliant why`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pbs_recorded import NAMES, Recorded
from pbs_site import Site

from pbs_double import OF_SEVERAL, Text
from pbs_double import Job as PbsJob
from pliant.cycle import cycle
from pliant.daemon.cannot import cannot_rows
from pliant.filter.pbs.state import Ground, Room, State, state_text
from pliant.grammar import find_token, parse, token_text
from pliant.model import EVERYBODY, Demand, Job, Limits, Mode, Shape, Snapshot
from pliant.policies import by_name

FREE = Ground((Room(4, 4, 64, 256_000),), (Room(4, 4, 64, 256_000),))
WISH = {"moldable": "gpus=1-8+nodes=1-2"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


def limited(**said: Any) -> Limits:
    return Limits(**{name: tuple(value.items()) for name, value in said.items()})


def job(snapshot: Snapshot, job_id: str) -> Job:
    return next(one for one in snapshot.waiting if one.id == job_id)


@pytest.mark.parametrize(
    ("nodes", "demand", "words"),
    [
        (1, Demand(2, cpus=4, mem_mib=1024), ""),
        (1, Demand(3, cpus=4), "resources_max.ngpus is 2"),
        (2, Demand(1, cpus=3), "resources_max.ncpus is 4"),
        (2, Demand(1, cpus=1, mem_mib=1024), "resources_max.mem is 1024 MiB"),
        (3, Demand(cpus=1), "resources_max.nodect is 2"),
        (1, Demand(0, cpus=0), "resources_min.ncpus is 1"),
        (1, Demand(1, share=4, cpus=1), ""),
        (2, Demand(1, cpus=1, tasks=2), "resources_max.mpiprocs is 3"),
    ],
)
def test_a_limit_is_one_of_all_that_a_job_has(nodes: int, demand: Demand, words: str) -> None:
    most = {"nodect": 2, "ngpus": 2, "ncpus": 4, "mem": 1024, "mpiprocs": 3}
    assert limited(most=most, least={"ncpus": 1}).why_not(nodes, demand) == words


@pytest.mark.parametrize("of", ["", "workq"])
@pytest.mark.parametrize(
    ("said", "select", "given"),
    [
        ({"resources_max": {"ngpus": 2}}, "1:ngpus=1", "1:ngpus=2"),
        ({"resources_max": {"ncpus": 8}}, "1:ncpus=8:ngpus=1", "1:ncpus=8:ngpus=4"),
        ({"resources_max": {"mem": Text("4gb")}}, "1:ngpus=1:mem=4gb", "1:ngpus=4:mem=4096mb"),
        ({"resources_max": {"nodect": 1}}, "1:ngpus=1", "1:ngpus=4"),
        (
            {"resources_max": {"ncpus": 5}, "default_chunk": {"ncpus": 4}},
            *("1:ngpus=1", "1:ngpus=4"),
        ),
        ({"resources_max": {"walltime": 60}}, "1:ngpus=1", "2:ngpus=4"),
        ({"resources_max": {"ngpus": 10**12}}, "1:ngpus=1", "2:ngpus=4"),
    ],
)
def test_the_hook_gives_no_submission_more_than_a_job_may_have_at_this_moment(
    site: Site, of: str, said: dict[str, Any], select: str, given: str
) -> None:
    site.says(queues=(("workq", FREE),))
    site.limits = {of: said}
    seen = site.queuejob({"select": select, **WISH})
    assert (seen.resources["select"], seen.pbs.looked) == (given, 0)


def test_the_hook_takes_a_queues_most_before_the_servers(site: Site) -> None:
    site.says(queues=(("workq", FREE),))
    most = "resources_max"
    site.limits = {"": {most: {"ngpus": 2, "nodect": 1}}, "workq": {most: {"ngpus": 3}}}
    assert site.queuejob({"select": "1:ngpus=1", **WISH}).resources["select"] == "1:ngpus=3"


def test_a_queue_that_the_server_does_not_show_gives_the_shape_that_was_written(site: Site) -> None:
    """What PBS will hold against the job is not known then."""
    site.says(queues=(("workq", FREE), ("other", FREE)))
    seen = site.queuejob({"select": "1:ngpus=1", **WISH}, queue="other")
    assert (seen.verdict, seen.resources["select"]) == (("accept", ""), "1:ngpus=1")
    assert seen.token.startswith("moldable=gpus=1-8,nodes=1-2;")


def test_nor_less_than_it_must_have(site: Site) -> None:
    site.says(queues=(("workq", FREE),))
    site.limits = {"workq": {"resources_min": {"ngpus": 2}}}
    asked = {"select": "1:ngpus=4", "moldable": "gpus=1-4", "throughput": "1:9+4:1"}
    assert site.queuejob(asked).resources["select"] == "1:ngpus=4"


def test_a_qalter_is_not_refused_for_an_own_shape_that_is_beyond_a_limit_now(site: Site) -> None:
    site.says(queues=(("workq", FREE),))
    asked = {"select": "1:ngpus=4", "moldable": "gpus=1-4", "throughput": "2:9"}
    first = site.queuejob(asked)
    assert first.resources["select"] == "1:ngpus=2"
    old = PbsJob("modifyjob", first.resources, first.variables, job_state=1)
    for most, writes in ((4, ["select", "pliant"]), (3, ["pliant"])):
        site.limits = {"workq": {"resources_max": {"ngpus": most}}}
        changed = PbsJob("modifyjob", {"moldable": "", "throughput": ""})
        seen = site.seen("modifyjob", changed, job_o=old)
        assert (seen.verdict, seen.job.Resource_List.writes) == (("accept", ""), writes)


@pytest.mark.parametrize(
    ("asks", "token"),
    [
        ({"walltime": "1:00:00"}, "moldable=gpus=1-4;own=1;fp=1,0,1,0,0,0,0"),
        ({"moldable": "gpus=1-4"}, "moldable=gpus=1-4;own=1;fp=1,0,1,0,0,0,0"),
        ({"moldable": "gpus=2-4"}, "moldable=gpus=2-4;own=1;fp=1,0,1,0,0,0,0;renewed"),
        ({"software": "x"}, "moldable=gpus=1-4;own=1;fp=1,0,1,0,0,0,0"),
    ],
)
def test_nor_for_what_pliant_made_of_the_job_before_there_was_a_limit(
    site: Site, asks: dict[str, str], token: str
) -> None:
    """PBS holds limits against the whole job, whichever resource is changed."""
    site.says(queues=(("workq", FREE),))
    first = site.queuejob({"select": "1:ngpus=1", "moldable": "gpus=1-4"})
    assert first.resources["select"] == "1:ngpus=4"
    old = PbsJob("modifyjob", first.resources, first.variables, job_state=1)
    seen = site.seen("modifyjob", PbsJob("modifyjob", asks), job_o=old)
    assert "select" not in seen.resources
    site.limits = {"workq": {"resources_max": {"ngpus": 3}}}
    seen = site.seen("modifyjob", PbsJob("modifyjob", asks), job_o=old)
    assert (seen.resources["select"], seen.token) == ("1:ngpus=1", token)
    assert seen.variables["PLIANT_SHAPE"] == "1"


@pytest.mark.parametrize("of", ["", "workq"])
@pytest.mark.parametrize("limit", OF_SEVERAL)
@pytest.mark.parametrize("select", ["1:ncpus=4", "1:ngpus=8:ncpus=8"])
def test_where_limits_bound_several_jobs_nothing_is_more_than_was_written(
    site: Site, select: str, limit: str, of: str
) -> None:
    """Else PBS would refuse by max_queued_res what it takes as it was written."""
    site.says(queues=(("workq", FREE),))
    site.limits = {of: {limit: {"ngpus": "[u:PBS_GENERIC=4]"}}}
    asked = {"select": select, "moldable": "gpus=1-8+nodes=2-4"}
    assert site.queuejob(asked).resources["select"] == select


@pytest.mark.parametrize("of", ["", "workq"])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ngpus", "1:ngpus=1"),
        ("mem", "1:ngpus=1"),
        ("nodect", "1:ngpus=1"),
        ("scratch", "2:ngpus=4"),
    ],
)
def test_nor_where_all_that_runs_may_have_no_more_than_so_much(
    site: Site, of: str, name: str, given: str
) -> None:
    """A limit that PBS's scheduler looks at, which never starts what is beyond it."""
    site.says(queues=(("workq", FREE),))
    site.limits = {of: {"resources_available": {name: 2}}}
    assert site.queuejob({"select": "1:ngpus=1", **WISH}).resources["select"] == given


def test_a_hook_of_0_1_0_makes_nothing_larger_by_the_file() -> None:
    """It knows of no limit of one job."""
    assert json.loads(state_text(State(1e9, Mode.ENFORCE)))["careful"] is True


# pliantd


def server_says(recorded: Recorded, **attributes: Any) -> None:
    recorded.answers["server"]["Server"]["head"].update(attributes)


def queue_says(recorded: Recorded, **attributes: Any) -> None:
    recorded.answers["queues"]["Queue"]["workq"].update(attributes)


def limits_of(recorded: Recorded) -> Limits:
    return recorded.pbs().observe().partitions[0].limits


def test_the_queues_word_counts_before_the_servers(recorded: Recorded) -> None:
    server_says(
        recorded,
        resources_max={"ngpus": 2, "mem": "1000kb", "walltime": "9:00:00"},
        resources_min={"ngpus": 9},  # PBS knows none of the server
    )
    queue_says(recorded, resources_max={"ngpus": 4}, resources_min={"ncpus": 2, "mem": "1kb"})
    most = {"ngpus": 4, "mem": 0}  # rounded so that what is written in MiB is within it
    least = {"ncpus": 2, "mem": 1}
    assert limits_of(recorded) == limited(most=most, least=least)


@pytest.mark.parametrize("says", [server_says, queue_says])
def test_a_shape_beyond_a_limit_is_not_allowed_and_why_says_so(
    recorded: Recorded, says: Any
) -> None:
    says(recorded, resources_max={"ngpus": 3})
    recorded.job("32")["Resource_List"]["select"] = "1:ncpus=2:ngpus=2"
    spec = find_token(recorded.job("32")["Resource_List"]["pliant"])
    assert spec
    token = token_text(replace(spec, own=Shape(1, 2), set=None))
    recorded.job("32")["Resource_List"]["pliant"] = token
    snapshot = recorded.pbs().observe()
    seen = job(snapshot, "32")
    assert [str(shape) for shape in seen.shapes] == ["2", "3"]
    (row,) = cannot_rows(seen, snapshot.abilities, snapshot.partitions)
    assert (row.shapes, row.reason) == (("4",), "resources_max.ngpus is 3")


def says_token(recorded: Recorded, job_id: str, **says: Any) -> None:
    """Let a job's token say something else."""
    resources = recorded.job(job_id)["Resource_List"]
    spec = find_token(resources["pliant"])
    assert spec
    resources["pliant"] = token_text(replace(spec, **says))


def test_a_job_that_is_beyond_a_limit_as_it_was_written_keeps_its_own(recorded: Recorded) -> None:
    server_says(recorded, resources_max={"ngpus": 3})
    says_token(recorded, "32", own=Shape(1, 4), set=None)
    assert [str(shape) for shape in job(recorded.pbs().observe(), "32").shapes] == ["2", "3", "4"]


@pytest.mark.parametrize(("wish", "left"), [("gpus=2-4", ["2", "3"]), ("gpus=4", ["2"])])
def test_one_that_is_beyond_it_as_pliant_set_it_is_given_its_own_shape_back(
    recorded: Recorded, wish: str, left: list[str]
) -> None:
    server_says(recorded, resources_max={"ngpus": 3})
    says_token(recorded, "32", request=parse(wish), own=Shape(1, 2), set=Shape(1, 4))
    snapshot = recorded.pbs().observe()
    assert [str(shape) for shape in job(snapshot, "32").shapes] == left
    plan = cycle(replace(snapshot, nodes=()), by_name("moldable-equipartition"))
    assert [(mold.job.id, str(mold.shape)) for mold in plan.actions] == [("32", "2")]


def test_the_most_nodes_are_the_servers_too(recorded: Recorded) -> None:
    server_says(recorded, resources_max={"nodect": 2})
    assert recorded.pbs().observe().partitions[0].max_nodes == 2


def test_the_names_of_shares_play_no_part(recorded: Recorded) -> None:
    assert NAMES.share not in dict(limits_of(recorded).most)


@pytest.mark.parametrize("says", [server_says, queue_says])
@pytest.mark.parametrize(("name", "limits"), [("ngpus", True), ("NCPUS", True), ("foo", False)])
def test_what_all_that_runs_may_have_in_all_bounds_every_job(
    recorded: Recorded, says: Any, name: str, limits: bool
) -> None:
    says(recorded, resources_available={name: 2})
    of = frozenset({EVERYBODY}) if limits else frozenset()
    assert recorded.pbs().observe().abilities.limited_qos == of
