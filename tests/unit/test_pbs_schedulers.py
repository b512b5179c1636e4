"""PBS's schedulers: each is woken after a fence, and what orders their jobs keeps shapes."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from pbs_recorded import LISTED, Recorded
from pbs_site import ASKED, Site
from test_pbs_publishing import told

from pliant.batch.clients import Answer
from pliant.batch.pbs.queries import KICK
from pliant.batch.pbs.schedulers import AT_TIMES, parse_schedulers
from pliant.cycle.explain import explain
from pliant.daemon.cannot import cannot_rows
from pliant.errors import Refused
from pliant.filter.pbs.schedulers import shaped_in
from pliant.filter.pbs.state import Ground, Room
from pliant.grammar import parse, token_text
from pliant.model import Job, Partition, Shape, Snapshot, Spec
from pliant.policies import live

OWN = """\
Sched gpus
    sched_host = head
    partition = p1
    scheduling = {}
    state = {}

"""
KICK_OWN = ("qmgr", "-c", "set sched gpus scheduling = True")


@pytest.fixture
def site() -> Recorded:
    return Recorded()


def parted(site: Recorded, scheduling: str = "True", state: str = "idle") -> None:
    """Let the queue of all jobs, and all nodes, be of a partition that has a scheduler."""
    site.answers["queues"]["Queue"]["workq"]["partition"] = "p1"
    for node in site.answers["nodes"]["nodes"].values():
        node["partition"] = "p1"
    site.schedulers = Answer(LISTED + OWN.format(scheduling, state), "", 0)


def job(snapshot: Snapshot, job_id: str) -> Job:
    return next(one for one in (*snapshot.waiting, *snapshot.running) if one.id == job_id)


def partition(snapshot: Snapshot, name: str) -> Partition:
    return next(one for one in snapshot.partitions if one.name == name)


# Who is woken


def kicks(site: Recorded) -> list[tuple[str, ...]]:
    """What a change of a waiting job tells qmgr."""
    pbs = site.pbs()
    pbs.observe()
    pbs._queries.kick()
    return [words for words in site.said if words[0] == "qmgr"]


def test_each_scheduler_is_woken(site: Recorded) -> None:
    assert kicks(site) == [KICK]
    site.said.clear()
    parted(site)
    assert kicks(site) == [KICK, KICK_OWN]


def test_one_that_somebody_has_stopped_stays_so(site: Recorded) -> None:
    parted(site, "False")
    assert kicks(site) == [KICK]


def test_a_job_is_resized_where_its_own_scheduler_can_start_it_again(site: Recorded) -> None:
    parted(site)
    pbs = site.pbs()
    running = job(pbs.observe(), "30")
    assert (running.frozen, len(running.shapes) > 1) == ("", True)
    pbs.must_go_back(running)


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        (LISTED + OWN.format("False", "idle"), "the scheduler gpus is stopped"),
        (LISTED + OWN.format("True", "down"), "the scheduler gpus is down"),
        (LISTED, "partition p1 has no scheduler"),
        ("", "partition p1: ada@head is unauthorized"),
    ],
)
def test_and_stays_as_it_is_where_none_would(site: Recorded, listed: str, why: str) -> None:
    parted(site)
    pbs = site.pbs()
    running = job(pbs.observe(), "30")
    said = Answer(listed, "" if listed else "ada@head is unauthorized", int(not listed))
    site.schedulers = said
    with pytest.raises(Refused, match=why):
        pbs.must_go_back(running)
    assert job(pbs.observe(), "30").frozen == f"it would not start again: {why}"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("scheduling = True", "scheduling = False"), "the scheduler default is stopped"),
        (("state = idle", "state = down"), "the scheduler default is down"),
    ],
)
def test_so_it_is_with_the_default_scheduler(
    site: Recorded, change: tuple[str, str], why: str
) -> None:
    site.schedulers = Answer(LISTED.replace(*change), "", 0)
    assert job(site.pbs().observe(), "30").frozen == f"it would not start again: {why}"


def test_one_without_a_partition_starts_nothing(site: Recorded) -> None:
    idle = OWN.format("False", "down").replace("    partition = p1\n", "")
    site.schedulers = Answer(LISTED + idle, "", 0)
    assert job(site.pbs().observe(), "30").frozen == ""


def test_which_is_taken_to_run_where_pbs_does_not_tell(site: Recorded) -> None:
    site.schedulers = Answer("", "no", 1)
    assert job(site.pbs().observe(), "30").frozen == ""


# What orders jobs


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ncpus*10 + walltime", "ncpus"),
        ("queue_priority + NGPUS", "ngpus"),
        ("eligible_time + 5*nodect", "nodect"),
        ("gpu_share / 2", "gpu_share"),
        ("job_priority + fairshare_perc + myncpus + ncpus_cost", ""),
        ("", ""),
    ],
)
def test_what_a_shape_changes_is_found_in_a_formula(text: str, names: str) -> None:
    assert shaped_in(text, "gpu_share") == names


WHY = ": another shape would change who is next"


def of_server(site: Recorded) -> str:
    site.answers["server"]["Server"]["head"]["job_sort_formula"] = "ncpus*10 + queue_priority"
    return f"job_sort_formula names ncpus{WHY}"


def of_scheduler(site: Recorded) -> str:
    listed = LISTED.replace("state =", "job_sort_formula = 3*ngpus\n    state =")
    site.schedulers = Answer(listed, "", 0)
    return f"job_sort_formula of default names ngpus{WHY}"


@pytest.mark.parametrize("formula", [of_server, of_scheduler])
def test_where_a_shape_would_change_who_is_next_jobs_keep_theirs(
    site: Recorded, formula: Any
) -> None:
    waiting, running = "32", "30"
    assert len(job(site.pbs().observe(), waiting).shapes) > 1
    why = formula(site)
    seen = site.pbs().observe()
    kept = job(seen, waiting)
    assert (kept.frozen, kept.shapes) == (why, (kept.shape,))
    untold = {one.name for one in seen.partitions if not one.keeps_shapes}
    runs = job(seen, running)
    assert (runs.frozen, runs.shapes) == ("", (runs.shape,))  # it may still make room
    assert partition(seen, "workq").keeps_shapes == why
    assert explain(seen, live("moldable-equipartition", {}), running).says.endswith(
        f"; it is not resized: {why}"
    )
    assert dict(told(site).queues).keys() == untold


def test_a_formula_of_other_things_changes_nothing(site: Recorded) -> None:
    site.answers["server"]["Server"]["head"]["job_sort_formula"] = "queue_priority + eligible_time"
    assert job(site.pbs().observe(), "32").frozen == ""


def test_nor_does_the_hook_where_the_servers_formula_names_what_a_shape_changes(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    assert site.queuejob(ASKED).resources["select"] == "1:ncpus=8:ngpus=2:mem=16384mb"
    site.forget()
    site.limits = {"": {"job_sort_formula": "job_priority"}}
    assert site.queuejob(ASKED).resources["select"] == "1:ncpus=8:ngpus=2:mem=16384mb"
    site.forget()
    site.limits = {"": {"job_sort_formula": "100*ngpus"}}
    seen = site.queuejob(ASKED)
    assert (seen.resources["select"], seen.verdict[0]) == (ASKED["select"], "accept")
    assert seen.token == "moldable=gpus=1-4;own=1;fp=1,0,8,0,16384,0,0"


def test_the_keys_of_a_sched_config_count_too(tmp_path: Path) -> None:
    (tmp_path / "sched_config").write_text('job_sort_key: "mem LOW" ALL\njob_sort_key: "a HIGH"\n')
    listed = LISTED.replace("/nowhere", str(tmp_path))
    assert (
        parse_schedulers(listed, hostname="head").order("") == "job_sort_key of default names mem"
    )
    assert parse_schedulers(listed, hostname="another").order("") == ""


# When a queue's jobs start


@pytest.mark.parametrize(
    ("config", "queue", "is_left"),
    [
        (None, "np_night", True),
        (None, "p_day", True),
        (None, "dedicated", True),
        (None, "workq", False),
        ("nonprimetime_prefix: work\n", "workq", True),
        ("nonprimetime_prefix: work\n", "np_night", False),
        ("backfill: true\n", "ded1", True),
    ],
)
def test_a_running_job_whose_queue_starts_jobs_at_certain_times_only_is_left_alone(
    site: Recorded, tmp_path: Path, config: str | None, queue: str, is_left: bool
) -> None:
    """It would lose its place until that time comes again; one that waits may be changed."""
    if config is not None:
        (tmp_path / "sched_config").write_text(config)
        listed = LISTED.replace("/nowhere", str(tmp_path)).replace("head", socket.gethostname())
        site.schedulers = Answer(listed, "", 0)
    queues = site.answers["queues"]["Queue"]
    queues[queue] = dict(queues["workq"])
    for one in ("30", "32"):
        site.job(one)["queue"] = queue
    seen = site.pbs().observe()
    assert job(seen, "30").frozen == (AT_TIMES if is_left else "")
    assert (len(job(seen, "30").shapes) == 1) is is_left
    assert job(seen, "32").frozen == ""


# Whom it ends others for

PREEMPT_PRIO = "its scheduler preempts by more than queues: preempt_prio is "


@pytest.mark.parametrize(
    ("said", "levels"),
    [
        ("express_queue, normal_jobs", ""),
        ("normal_jobs", ""),
        ("express_queue, normal_jobs, fairshare", "express_queue, normal_jobs, fairshare"),
        ("express_queue, normal_jobs,\n\tserver_softlimits+fairshare,\n\tqueue_softlimits", None),
        ("normal_jobs, express_queue", "normal_jobs, express_queue"),
    ],
)
def test_where_pbs_ends_others_for_ordinary_jobs_no_running_job_is_resized(
    site: Recorded, said: str, levels: str | None
) -> None:
    """It would end them in vain: a fence refuses the start of those whom it ended others for."""
    site.schedulers = Answer(LISTED.rstrip() + f"\n    preempt_prio = {said}\n\n", "", 0)
    if levels is None:  # in several lines, as qmgr prints what is long
        levels = "express_queue, normal_jobs, server_softlimits+fairshare, queue_softlimits"
    seen = site.pbs().observe()
    assert job(seen, "30").frozen == (PREEMPT_PRIO + levels if levels else "")
    assert job(seen, "32").frozen == ""


def test_nor_where_it_does_so_since_the_last_look(site: Recorded) -> None:
    pbs = site.pbs()
    running = job(pbs.observe(), "30")
    site.schedulers = Answer(LISTED.rstrip() + "\n    preempt_prio = fairshare\n\n", "", 0)
    with pytest.raises(Refused, match=f"^{PREEMPT_PRIO}fairshare$"):
        pbs.must_go_back(running)
    assert job(pbs.observe(), "30").frozen == PREEMPT_PRIO + "fairshare"


# Placement sets


def grouped(site: Recorded, *values: str, key: str = "switch", of: str = "server") -> None:
    """Let there be placement sets, by one resource that the nodes have."""
    server, queue = site.answers["server"]["Server"]["head"], site.answers["queues"]["Queue"]
    server["node_group_enable"] = "True"
    (server if of == "server" else queue[of])["node_group_key"] = key
    for node, value in zip(site.answers["nodes"]["nodes"].values(), values, strict=True):
        node["resources_available"]["switch"] = value


def shapes(site: Recorded, own: Shape = Shape(1, 2)) -> list[str]:  # noqa: B008  # it is frozen
    """What a waiting job may be that may be on two nodes too."""
    spec = Spec(parse("gpus=2:4,nodes=1:2"), own)
    site.job("35")["Resource_List"].update(
        select=f"{own.nodes}:ngpus={own.gpus}", pliant=token_text(spec)
    )
    return [str(shape) for shape in job(site.pbs().observe(), "35").shapes]


@pytest.mark.parametrize("of", ["server", "workq"])
@pytest.mark.parametrize("values", [("a", "a", "b"), ("a,x", "b,x", "b"), ("a", "a", "")])
def test_no_job_is_spread_over_nodes_where_they_lie_in_several_placement_sets(
    site: Recorded, values: tuple[str, ...], of: str
) -> None:
    assert shapes(site) == ALL
    grouped(site, *values, of=of)
    assert shapes(site) == ["2", "4"]
    seen = site.pbs().observe()
    rows = cannot_rows(job(seen, "35"), seen.abilities, seen.partitions)
    words = "node_group_key is switch: over several nodes only as its owner wrote"
    assert [(row.shapes, row.reason) for row in rows] == [(("2x1", "2x2"), words)]


def test_but_as_its_owner_wrote_it(site: Recorded) -> None:
    grouped(site, "a", "a", "b")
    assert shapes(site, Shape(2, 2)) == ["2", "4", "2x2"]


@pytest.mark.parametrize("values", [("a", "a", "a"), ("a,x", "b,x", "x")])
def test_and_where_all_nodes_of_a_queue_lie_in_one_set(
    site: Recorded, values: tuple[str, ...]
) -> None:
    grouped(site, *values, key="rack,switch")
    assert shapes(site) == ALL
    server = site.answers["server"]["Server"]["head"]
    grouped(site, "a", "b", "c")
    server["node_group_enable"] = "False"
    assert shapes(site) == ALL


SPREAD = {"select": "1:ncpus=1:ngpus=1", "moldable": "gpus=1-2+nodes=1-2"}
ALL = ["2", "2x1", "4", "2x2"]
THIN = Ground((Room(2, 1, 8, 64_000),), (Room(2, 1, 8, 64_000),))
TWO = "2:ncpus=1:ngpus=1"


def test_nor_does_the_hook_spread_one(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.says(queues=(("workq", THIN),))
    assert site.queuejob(SPREAD).resources["select"] == TWO
    on: dict[str, object] = {"node_group_enable": True}
    key = {"node_group_key": "switch"}
    for server, queue, select in (
        ({**on, **key}, {}, SPREAD["select"]),
        (on, key, SPREAD["select"]),
        ({**key, "node_group_enable": False}, {}, TWO),
        (on, {}, TWO),
    ):
        site.forget()
        site.limits = {"": server, "workq": queue}
        assert site.queuejob(SPREAD).resources["select"] == select
    site.limits = {"": {**on, **key}}
    assert site.queuejob({**SPREAD, "select": TWO}).resources["select"] == TWO
