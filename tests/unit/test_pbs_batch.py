"""PBS's backend over a recorded OpenPBS 23.06: what policies see, what qalter is told."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pbs_recorded import NOW_S, Recorded

from pliant.batch import Change
from pliant.batch.clients import Answer
from pliant.batch.pbs import Commands
from pliant.batch.pbs.job_rows import JobRow, parse_jobs
from pliant.batch.pbs.jobs import SHRINKS, nodes_of
from pliant.batch.pbs.node_rows import parse_nodes
from pliant.batch.pbs.reasons import reason
from pliant.batch.pbs.server_rows import caps, parse_queues, parse_server
from pliant.batch.pbs.values import (
    duration_s,
    instant_s,
    job_id,
    number,
    size_mib,
    table,
    tasks_in,
)
from pliant.cycle import kept_within_limits
from pliant.errors import BadAnswer, Refused, Unavailable
from pliant.grammar import find_token, parse, parse_shape, token_text
from pliant.model import (
    EVERYBODY,
    Demand,
    Job,
    JobState,
    Kind,
    Node,
    Partition,
    Pool,
    Reservation,
    Shape,
    Snapshot,
    Spec,
)
from pliant.plan import Mark


@pytest.fixture
def site() -> Recorded:
    return Recorded()


def job(snapshot: Snapshot, job_id: str) -> Job:
    return next(one for one in (*snapshot.waiting, *snapshot.running) if one.id == job_id)


# Look


def test_nodes_have_what_is_free_on_them(site: Recorded) -> None:
    assert site.pbs().observe().nodes == (
        Node("gn1", 16, 12, 65536, 61440, (Pool("a100", 4, 1),)),
        Node("gn2", 16, 12, 65536, 65536, (Pool("a100", 4, 0),)),
        Node("gn3", 16, 12, 65536, 65536, (Pool("v100", 4, 0),)),
    )


@pytest.mark.parametrize(
    ("state", "up", "free"),
    [
        ("free", True, 1),
        ("job-busy", True, 1),
        ("job-exclusive", True, 0),
        ("offline", False, 1),
        ("down,job-busy", False, 1),
        ("state-unknown,down", False, 1),
        ("", False, 1),
    ],
)
def test_a_node_is_up_and_open_by_its_state(
    site: Recorded, state: str, up: bool, free: int
) -> None:
    site.answers["nodes"]["nodes"]["gn1"]["state"] = state
    node = site.pbs().observe().nodes[0]
    assert (node.up, node.pools[0].free) == (up, free)


@pytest.mark.parametrize(
    ("said", "free"),
    [
        ({"max_running": 3}, 0),
        ({"max_running": 4}, 1),
        ({"max_running": 4, "max_user_run": 2}, 0),
        ({"max_group_run": 0}, 0),
    ],
)
def test_a_node_with_as_many_jobs_as_it_may_have_is_full(
    site: Recorded, said: dict[str, int], free: int
) -> None:
    """Whose the next one is is not known: another's job might be one too many, too."""
    site.answers["nodes"]["nodes"]["gn1"].update(said)
    node = site.pbs().observe().nodes[0]
    assert (node.pools[0].free, node.pools[0].total) == (free, 4)


def test_nobody_is_at_the_limit_of_an_empty_node(site: Recorded) -> None:
    node = site.answers["nodes"]["nodes"]["gn1"]
    node.update(max_running=1, resources_assigned={})
    del node["jobs"]
    assert site.pbs().observe().nodes[0].pools[0].free == 4


def test_a_queue_has_the_nodes_of_its_partition(site: Recorded) -> None:
    """Each scheduler starts its own queues' jobs on its own nodes."""
    resources = site.job("32")["Resource_List"]
    resources.update(select="1:ngpus=2", pliant=token_text(Spec(parse("gpus=2-4"), Shape(1, 2))))
    for name, many in {"gn1": 3, "gn2": 3, "gn3": 4}.items():
        site.answers["nodes"]["nodes"][name]["resources_available"]["ngpus"] = many
    assert job(site.pbs().observe(), "32").shapes == (Shape(1, 2), Shape(1, 3), Shape(1, 4))
    site.answers["nodes"]["nodes"]["gn3"]["partition"] = "p2"
    seen = site.pbs().observe()
    assert {row.nodes for row in seen.partitions} == {("gn1", "gn2")}
    assert job(seen, "32").shapes == (Shape(1, 2), Shape(1, 3))
    site.answers["queues"]["Queue"]["workq"]["partition"] = "p2"
    seen = site.pbs().observe()
    assert {row.name: row.nodes for row in seen.partitions}["workq"] == ("gn3",)
    assert job(seen, "32").shapes == (Shape(1, 2), Shape(1, 3), Shape(1, 4))


def test_queues_are_partitions(site: Recorded) -> None:
    every = ("gn1", "gn2", "gn3")
    site.answers["nodes"]["nodes"]["gn3"]["queue"] = "debug"
    assert site.pbs().observe().partitions == (
        Partition("workq", every[:2], default=True),
        Partition("debug", every, max_time_s=1800),
    )


def test_jobs_wait_in_pbs_order_for_reasons_that_the_gates_know(site: Recorded) -> None:
    seen = site.pbs().observe()
    assert [(one.id, one.reason, one.eligible) for one in seen.waiting] == [
        ("38", "BadConstraints", True),  # in the queue of higher priority
        ("32", "Resources", True),
        ("33", "Resources", True),
        ("34[]", "JobArrayTaskLimit", True),
        ("35", "Dependency", False),
        ("36", "JobHeldUser", False),
        ("37", "BeginTime", False),
        ("39", "Resources", True),
    ]
    assert [one.id for one in seen.running] == ["30", "31", "34[1]", "34[2]"]


def test_a_moldable_job_may_be_what_its_token_says(site: Recorded) -> None:
    seen = job(site.pbs().observe(), "32")
    assert (seen.name, seen.user, seen.time_limit_s, seen.frozen) == ("true", "ada", 1200, "")
    assert [str(shape) for shape in seen.shapes] == ["2", "3", "4"]
    assert (seen.shape, seen.demand(Shape(1, 3)).cpus) == (Shape(1, 4), 2)


def test_names_that_the_json_makes_numbers_of_stay_names(site: Recorded) -> None:
    seen = site.pbs().observe()
    assert [job(seen, one).name for one in ("30", "31")] == ["007", "100000.0"]


def test_a_running_malleable_job_may_change(site: Recorded) -> None:
    seen = job(site.pbs().observe(), "30")
    assert (seen.state, seen.nodes, seen.restarts) == (JobState.RUNNING, ("gn1",), 0)
    assert (seen.shape, [str(s) for s in seen.shapes]) == (Shape(1, 1), ["1", "2", "3", "4"])
    assert seen.start_s == 1795414938.0


def test_nor_one_whose_time_limit_pbs_sets_at_each_start(site: Recorded) -> None:
    """PBS takes the longest up to max_walltime that fits, as if nothing of it were used up."""
    for one in ("30", "32"):
        site.job(one)["Resource_List"].update(min_walltime="00:10:00", max_walltime="10:00:00")
    seen = site.pbs().observe()
    assert (job(seen, "30").shapes, job(seen, "30").frozen) == ((Shape(1, 1),), SHRINKS)
    assert job(seen, "32").frozen == ""


@pytest.mark.parametrize("said", ["", ",PBS_O_QUEUE=workq", 84])
def test_nor_one_that_nothing_would_send_back(site: Recorded, said: object) -> None:
    site.job("30")["Variable_List"]["PLIANT_RETURNS"] = said
    left = job(site.pbs().observe(), "30")
    assert (left.shapes, left.frozen) == (
        (Shape(1, 1),),
        "nothing here would bring it back to its place",
    )


@pytest.mark.parametrize(
    ("known", "start_s"),
    [
        ({"stime": 1, "mtime": 2, "etime": 3}, 1.0),
        ({"mtime": 2, "etime": 3}, 2.0),
        ({"etime": 3}, 3.0),
        ({}, 1795414937.0),  # when it came
    ],
)
def test_a_job_in_the_first_moment_of_its_run_has_a_start(
    site: Recorded, known: dict[str, int], start_s: float
) -> None:
    one = site.job("30")
    for name in ("stime", "mtime", "etime"):
        del one[name]
    one.update({name: f"Thu Jan  1 00:00:0{second} 1970" for name, second in known.items()})
    assert job(site.pbs().observe(), "30").start_s == start_s


def test_a_job_that_waits_has_no_start(site: Recorded) -> None:
    rows = {row.id: row for row in parse_jobs(json.dumps(site.answers["jobs"]))}
    assert (rows["32"].start_s, rows["32"].waits) == (0.0, True)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (Answer("Hook x\n    enabled = false\n", "", 0), "it is not enabled"),
        (Answer("", "qmgr obj=x svr=default: hook not found\n", 1), "hook not found"),
        (Answer("", "ada@head is unauthorized to access hooks data\n", 1), "unauthorized"),
    ],
)
@pytest.mark.parametrize(
    ("name", "of"), [("pliant_execjob_epilogue", "hook"), ("pliant_runjob", "keeps_out")]
)
def test_where_a_hook_that_lets_jobs_come_back_is_not_seen_none_is_asked_to_save(
    site: Recorded, says: Answer, why: str, name: str, of: str
) -> None:
    pbs = site.pbs()
    assert (job(pbs.observe(), "30").frozen, pbs.trouble()) == ("", "")
    running = job(pbs.observe(), "30")
    pbs.must_go_back(running)
    there = getattr(site, of)
    setattr(site, of, says)
    with pytest.raises(Refused, match=f"{name}: .*{why}.*: no running job is"):
        pbs.must_go_back(running)
    assert job(pbs.observe(), "30").frozen == "nothing here would bring it back to its place"
    assert job(pbs.observe(), "32").frozen == ""
    assert why in pbs.trouble()
    setattr(site, of, there)
    pbs.forget_site()
    assert (job(pbs.observe(), "30").frozen, pbs.trouble()) == ("", "")


def test_an_array_is_one_job_and_its_running_ones_are_their_own(site: Recorded) -> None:
    seen = site.pbs().observe()
    array = job(seen, "34[]")
    assert (array.tasks_waiting, array.array_tasks) == (1, "3-5")  # two at once, and two run
    assert job(seen, "34[1]").nodes == ("gn1",)
    site.job("34[]")["array_indices_remaining"] = "-"  # all of it has begun
    assert "34[]" not in {one.id for one in site.pbs().observe().waiting}


def test_a_reservation_keeps_its_nodes_and_its_queue_is_none_of_ours(site: Recorded) -> None:
    without = site.pbs().observe()
    unconfirmed = "Resv ID: R1.head\nreserve_state = RESV_UNCONFIRMED\nqueue = R1\n\n"
    site.reserve(unconfirmed)
    site.job("32")["queue"] = "R0"
    seen = site.pbs().observe()
    start_s = NOW_S + 12148  # 09:45:00
    assert seen.reservations == (Reservation("R0.head", ("gn1",), start_s, start_s + 1800),)
    assert seen.partitions == without.partitions
    inside = job(seen, "32")
    assert (inside.eligible, inside.frozen) == (
        *(False, "its queue is a reservation's, or sends it on"),
    )
    assert inside.shapes == (inside.shape,)


def test_of_reservations_nobody_is_asked_where_no_node_has_one(site: Recorded) -> None:
    site.reserve()
    del site.answers["nodes"]["nodes"]["gn1"]["resv"]
    assert site.pbs().observe().reservations == ()


def test_where_pbs_says_nothing_of_its_reservations_it_keeps_to_them_alone(site: Recorded) -> None:
    site.reserve()
    site.reserved = ""
    seen = site.pbs().observe()
    assert (seen.reservations, len(seen.nodes)) == ((), 3)


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"select": "1:ncpus=2:ngpus=1"}, "it carries 1 instead of 4"),
        ({"select": "1:ncpus=5:ngpus=4"}, "ncpus is 5 instead of 2"),
        ({"select": "1:ngpus=4+1:ncpus=1"}, "several sorts of chunks"),
        ({"place": "exclhost"}, "place='exclhost' keeps the shape"),
    ],
)
def test_a_request_that_is_another_now_is_left_alone(
    site: Recorded, resources: dict[str, str], words: str
) -> None:
    site.job("32")["Resource_List"].update(resources)
    seen = job(site.pbs().observe(), "32")
    assert words in seen.frozen
    assert seen.shapes == (seen.shape,)


@pytest.mark.parametrize(("class_", "ordinary"), [("trial", True), ("best-effort", False)])
def test_no_room_is_made_for_a_trial_job_that_takes_more_than_its_shape_says(
    site: Recorded, class_: str, ordinary: bool
) -> None:
    asked = site.job("32")["Resource_List"]
    asked["pliant"] = token_text(Spec(parse(f"job-class={class_}"), Shape(1, 4)))
    assert job(site.pbs().observe(), "32").ordinary == ""
    asked["place"] = "exclhost"
    found = job(site.pbs().observe(), "32")
    assert (found.ordinary != "", found.is_trial) == (ordinary, False)


@pytest.mark.parametrize(
    ("asks", "resources", "words"),
    [
        (True, {"place": "excl"}, "place='excl' keeps the shape"),
        (True, {"select": "1:ngpus=1+1:ngpus=2"}, "several sorts of chunks"),
        (False, {"place": "excl"}, ""),
    ],
)
def test_a_job_that_asked_in_vain_says_why_its_shape_stays(
    site: Recorded, asks: bool, resources: dict[str, str], words: str
) -> None:
    asked = site.job("32")["Resource_List"]
    asked.update(resources)
    del asked["pliant"]  # the hook notes nothing of a request that keeps its shape
    if not asks:
        del asked["moldable"]
    seen = job(site.pbs().observe(), "32")
    assert seen.spec is None
    assert seen.frozen.startswith(words) and bool(seen.frozen) is asks


def test_what_a_queue_allows_a_job_bounds_its_shapes(site: Recorded) -> None:
    site.answers["queues"]["Queue"]["workq"]["resources_max"] = {"ngpus": 3}
    assert [str(s) for s in job(site.pbs().observe(), "32").shapes] == ["2", "3", "4"]
    site.job("32")["Resource_List"]["select"] = "1:ncpus=2:ngpus=2"
    token = find_token(site.job("32")["Resource_List"]["pliant"])
    assert token
    site.answers["queues"]["Queue"]["workq"]["resources_max"] = {"ngpus": 3, "nodect": 1}
    assert site.pbs().observe().partitions[0].max_nodes == 1


def test_a_limit_of_several_jobs_makes_none_larger(site: Recorded) -> None:
    site.answers["server"]["Server"]["head"]["max_run_res.ngpus"] = "[u:PBS_GENERIC=4]"
    assert site.pbs().observe().abilities.limited_qos == {EVERYBODY}


def _as_printed(said: str) -> str:
    """What PBS prints of the server: a limit once for each of those that it is for."""
    return f'{{"Server":{{"head":{{"pbs_version":"23","query_other_jobs":"True",{said}}}}}}}'


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ('"max_run":"[o:PBS_ALL=9]","max_run":"[u:ada=0]"', True),
        ('"max_run":"[u:ada=9]","max_run":"[u:PBS_GENERIC=0]"', False),
        ('"max_run":"[u:PBS_GENERIC=0]","max_run":"[u:bob=9]"', True),
        ('"max_run":"[o:PBS_ALL=0]"', True),
        ('"max_run":"[g:staff=0]","max_run":"[p:x=0]"', False),  # whose it is, is not known
        ('"max_run_res":{"ngpus":"[u:bob=9]","ngpus":"[u:ada=0]"}', True),
        ('"max_run_res":{"ngpus":"[u:ada=64]","mem":"[o:PBS_ALL=999gb]"}', False),
        ('"max_run_res":{"foo":"[o:PBS_ALL=0]"}', False),
    ],
)
def test_a_limit_that_is_lowered_below_what_runs_keeps_a_job_where_it_is(
    site: Recorded, said: str, kept: bool
) -> None:
    (head,) = table(_as_printed(said), "Server", repeats=True).values()
    found = caps("the server", head)
    seen = site.pbs().observe()
    ada = replace(job(seen, "30"), user="ada", frozen="")
    abilities = replace(seen.abilities, caps=found)
    (now,) = kept_within_limits(replace(seen, running=(ada,), abilities=abilities)).running
    assert now.frozen.startswith("requeued, it might not start again: max_run") is kept


def test_what_a_queue_lets_one_job_have_is_asked_at_no_start(site: Recorded) -> None:
    """PBS does so at a submission, and where an owner changes a job."""
    queue = site.answers["queues"]["Queue"]["workq"]
    queue["resources_max"], queue["resources_min"] = {"walltime": "00:05:00"}, {"nodect": 2}
    seen = site.pbs().observe()
    (now,) = kept_within_limits(replace(seen, running=(job(seen, "30"),))).running
    assert now.frozen == ""


def test_limits_on_what_runs_are_read_of_the_server_and_of_its_queues(site: Recorded) -> None:
    site.answers["server"]["Server"]["head"]["max_run"] = "[u:ada=3]"
    site.answers["queues"]["Queue"]["workq"]["max_run"] = "[o:PBS_ALL=4]"
    found = [(cap.user, cap.partition, cap.limits) for cap in site.pbs().observe().abilities.caps]
    assert found == [("ada", "", (("jobs", 3),)), ("", "workq", (("jobs", 4),))]


def test_a_stopped_queue_and_a_stopped_scheduler_start_nothing(site: Recorded) -> None:
    site.answers["queues"]["Queue"]["debug"]["started"] = "False"
    assert not job(site.pbs().observe(), "38").eligible
    site.answers["server"]["Server"]["head"]["scheduling"] = "False"
    assert not job(site.pbs().observe(), "32").eligible


def test_an_empty_server_has_no_jobs(site: Recorded) -> None:
    del site.answers["jobs"]["Jobs"]
    seen = site.pbs().observe()
    assert (seen.waiting, seen.running) == ((), ())


def test_a_server_that_shows_nobodys_jobs_is_not_believed(site: Recorded) -> None:
    site.answers["server"]["Server"]["head"]["query_other_jobs"] = "False"
    with pytest.raises(BadAnswer, match="query_other_jobs"):
        site.pbs().observe()


@pytest.mark.parametrize("out", ["", "[]", "{", "7", '{"Jobs": 3}', '{"Jobs": [1]}', "[" * 9999])
def test_what_is_no_json_of_pbs_is_not_understood(out: str) -> None:
    for read in (parse_jobs, parse_nodes, parse_queues):
        try:
            found = read(out)
        except BadAnswer:
            continue
        assert found == []
    assert parse_jobs('{"Jobs": {"x": {}, "7.head": {"Resource_List": 4}}}')[0].id == "7"


def test_commands_run_in_utc_and_name_their_server() -> None:
    found = Commands(server="head").environment({})
    assert (found["TZ"], found["LC_ALL"], found["PBS_SERVER"]) == ("UTC", "C", "head")
    assert "PBS_SERVER" not in Commands().environment({})
    with pytest.raises(Unavailable, match="are PBS's client commands here"):
        Commands("/nowhere").run(["qstat"])


# Numbers that PBS takes and that are none


@pytest.mark.parametrize(
    "resources",
    [
        {"select": "1:ngpus=-3", "ngpus": -3},
        {"select": "1:ngpus=-1+1:ngpus=1", "ngpus": 0},
        {"select": "1:ncpus=-2:ngpus=1", "ncpus": -2},
        {"select": "1:ngpus=1:mem=-1gb", "mem": "-1gb"},
        {"select": "-1:ngpus=1", "nodect": -1},
        {"select": "1:ngpus=99999999999", "ngpus": 99999999999},
        {"select": "1:ngpus=-1e5", "ngpus": -1e5},
    ],
)
@pytest.mark.parametrize("flagged", [True, False])
def test_a_job_that_asks_for_less_than_nothing_takes_no_part(
    site: Recorded, resources: dict[str, object], flagged: bool
) -> None:
    asked = site.job("32")["Resource_List"]
    asked.update(resources)
    if not flagged:
        del asked["pliant"], asked["moldable"]
    seen = job(site.pbs().observe(), "32")
    assert (seen.eligible, seen.shapes, seen.demand(seen.shape)) == (
        *(False, (Shape(1, 0, kind=Kind.CPU),), Demand()),
    )
    assert ("below 0" in seen.frozen) is flagged


def test_a_job_with_less_than_nothing_gives_nobody_gpus(site: Recorded) -> None:
    before = site.pbs().observe().nodes
    for name, many in (("ngpus", 0), ("ncpus", 2)):  # of gn1, by PBS's own count
        site.answers["nodes"]["nodes"]["gn1"]["resources_assigned"][name] = many
    one = site.job("34[1]")
    one["exec_vnode"] = "(gn1:ncpus=1:ngpus=-3+gn1:ncpus=-2)"
    one["Resource_List"].update(select="1:ngpus=-3", ngpus=-3)
    seen = site.pbs().observe()
    assert seen.nodes == before
    run = job(seen, "34[1]")
    assert (run.nodes, run.demand(run.shape).gpus) == (("gn1",), 0)


def test_a_full_node_is_not_more_than_empty(site: Recorded) -> None:
    site.answers["nodes"]["nodes"]["gn1"]["resources_assigned"].update(ngpus=-3, ncpus=-4)
    node = site.pbs().observe().nodes[0]
    assert (node.free_cpus, node.pools[0].free) == (node.cpus, node.pools[0].total)


# Words


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("Not Running: Insufficient amount of resource: ngpus (R: 4 A: 1 T: 12)", "Resources"),
        ("Not Running: Not enough free nodes available", "Resources"),
        ("Not Running: Placement set queue=a has too few free resources", "Resources"),
        (
            "Can Never Run: can't fit in the largest placement set, and can't span psets",
            "BadConstraints",
        ),
        ("Not Running: Job would conflict with reservation or top job", "Priority"),
        ("Not Running: User has reached server running job limit.", None),
        ("Not Running: would exceed user's limit on resource ngpus in queue", "AssocGrpGRES"),
        ("Not Running: Insufficient amount of queue resource: ngpus", None),
        ("Can Never Run: Not enough total nodes available", "BadConstraints"),
        ("Job run at Mon Nov 23 at 06:22 on (gn1:ncpus=1)", "None"),
        ("", "None"),
    ],
)
def test_comments_say_why(site: Recorded, comment: str, said: str | None) -> None:
    site.job("32")["comment"] = comment
    (row,) = (row for row in parse_jobs(json.dumps(site.answers["jobs"])) if row.id == "32")
    assert reason(row) == (said or comment)


def test_words_of_pbs() -> None:
    assert [duration_s(text) for text in ("00:10:00", "90", 90, "1:30", "x", None)] == [
        *(600, 90, 90, 90, 0, 0),
    ]
    assert [size_mib(text) for text in ("64gb", "4194304kb", "1000", "lots", None)] == [
        *(65536, 4096, 1, 0, 0),
    ]
    assert [tasks_in(text) for text in ("1-5", "3", "1-9:2,20", "", "x")] == [5, 1, 6, 0, 0]
    assert [job_id(text) for text in ("7.head", "7[].head.site", "7[3]", "x", "7;8")] == [
        *("7", "7[]", "7[3]", "", ""),
    ]
    assert [number(text) for text in (True, "True", "12", 1e5, "1e999", None)] == [
        *(0, 0, 12, 100000, 0, 0),
    ]
    assert (instant_s("Mon Nov 23 06:22:18 2026"), instant_s("soon")) == (1795414938.0, 0.0)
    assert nodes_of("(gn1[0]:ngpus=1+gn1[1]:ngpus=1)+(gn2:ncpus=2)") == ("gn1[0]", "gn1[1]", "gn2")


def test_a_submission_for_which_pliantd_was_away_counts_as_unanswered() -> None:
    recorded = Recorded()
    assert {job.answered for job in recorded.pbs().observe().waiting} == {True}
    recorded.job("32")["Variable_List"]["PLIANT_UNANSWERED"] = 1  # a number, to PBS's JSON
    unanswered = [job.id for job in recorded.pbs().observe().waiting if not job.answered]
    assert unanswered == ["32"]


@pytest.mark.parametrize("name", ["PLIANT_RESTART_COUNT", "PLIANT_BACK", "PLIANT_HELD"])
@pytest.mark.parametrize("value", ["²", "²:²", "1:²:²", "-1:0", "9" * 5000, "9" * 39 + ":1", "inf"])
def test_no_variable_that_a_user_may_write_costs_the_look(
    site: Recorded, name: str, value: str
) -> None:
    before = site.pbs().observe()
    site.job("36").setdefault("Variable_List", {})[name] = value
    assert [one.id for one in site.pbs().observe().waiting] == [one.id for one in before.waiting]


# Change


def change(site: Recorded, shape: str, job_id: str = "32") -> tuple[str, list[tuple[str, ...]]]:
    pbs = site.pbs()
    seen = job(pbs.observe(), job_id)
    asked = parse_shape(shape)
    (error,) = pbs.change([Change(seen, asked, seen.noted(asked))])
    return str(error or ""), site.said


def test_a_change_is_one_qalter_and_a_kick(site: Recorded) -> None:
    error, said = change(site, "2")
    (argv, kick) = said
    assert (error, argv[:4], argv[-1]) == (
        *("", ("qalter", "-l", "select=1:ncpus=2:ngpus=2", "-l")),
        "32",
    )
    assert argv[4].startswith("pliant=pliant=v1:")
    assert kick == ("qmgr", "-c", "set server scheduling = True")
    after = job(site.pbs().observe(), "32")
    assert (after.shape, after.frozen) == (Shape(1, 2), "")


def says(site: Recorded, job_id: str, request: str) -> None:
    """Let a job's token say another request."""
    resources = site.job(job_id)["Resource_List"]
    spec = find_token(resources["pliant"])
    assert spec
    resources["pliant"] = token_text(replace(spec, request=parse(request)))


def test_all_cores_of_a_node_are_those_of_the_smallest(site: Recorded) -> None:
    says(site, "32", "type=gpu:cpu,cores=all")
    site.answers["nodes"]["nodes"]["gn3"]["resources_available"]["ncpus"] = 12
    assert Shape(1, 0, kind=Kind.CPU) in job(site.pbs().observe(), "32").shapes
    error, said = change(site, "1x0@cpu")
    assert (error, said[0][2]) == ("", "select=1:ncpus=12:ngpus=0")
    after = job(site.pbs().observe(), "32")
    assert (after.shape, after.frozen) == (Shape(1, 0, kind=Kind.CPU), "")
    assert change(site, "4")[0] == ""
    assert site.job("32")["Resource_List"]["select"] == "1:ncpus=2:ngpus=4"


def test_cores_that_do_not_divide_over_the_ranks_are_not_asked_for(site: Recorded) -> None:
    spec = Spec(parse("type=gpu:cpu,cores=all"), Shape(1, 1))
    select = "1:ncpus=15:mpiprocs=3:ngpus=1"
    site.job("32")["Resource_List"].update(select=select, pliant=token_text(spec))
    assert job(site.pbs().observe(), "32").shapes == (Shape(1, 1),)  # 3 ranks, and nodes of 16


def test_a_change_that_pbs_refuses_is_told_in_its_words(site: Recorded) -> None:
    site.refuses = "qalter: Unauthorized Request  32.head\n"
    error, said = change(site, "2")
    assert error == "job 32 to 2: qalter: Unauthorized Request  32.head"
    assert len(said) == 1  # nothing to kick for


def test_a_change_that_was_not_made_is_seen(site: Recorded) -> None:
    site.ignores = True
    assert change(site, "2")[0] == "job 32 to 2: PBS took the change and did not make it"


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("job_state", "R", "it does not wait any more"),
        ("Hold_Types", "u", "its owner wins"),
        ("Resource_List", {"select": "1:ngpus=9"}, "its owner wins"),
    ],
)
def test_a_job_that_is_another_since_it_was_seen_is_its_owners(
    site: Recorded, attribute: str, value: object, words: str
) -> None:
    pbs = site.pbs()
    seen = job(pbs.observe(), "32")
    site.job("32")[attribute] = value
    (error,) = pbs.change([Change(seen, Shape(1, 2), seen.noted(Shape(1, 2)))])
    assert words in str(error)
    assert site.said == []


def test_a_note_changes_the_token_alone(site: Recorded) -> None:
    pbs = site.pbs()
    seen = job(pbs.observe(), "32")

    def pinned(one: Job) -> object:
        assert one.spec
        return replace(one.spec, pinned=True)

    noted = pbs.annotate(seen, pinned)  # type: ignore[arg-type]  # it is a Spec
    assert noted.frozen == "its owner pinned it"
    assert [word for word in site.said[0] if "=" in word] == [site.said[0][2]]
    site.refuses = "qalter: Job has finished"
    with pytest.raises(Refused, match="job 32: qalter: Job has finished"):
        pbs.annotate(seen, pinned)  # type: ignore[arg-type]  # as above
    with pytest.raises(Refused, match="does not wait any more"):
        pbs.annotate(replace(seen, id="99"), pinned)  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize("value", ["yes", "no"])
def test_what_does_nothing_on_pbs_is_not_set(site: Recorded, value: str) -> None:
    pbs = site.pbs()
    seen = job(pbs.observe(), "32")
    with pytest.raises(Refused, match=r"^job 32: colocate: on PBS Pliant lets no jobs share"):
        pbs.annotate(seen, lambda _: Spec(parse(f"gpus=1-4;colocate={value}")))
    assert site.said == []


def test_who_would_pin_a_job_that_runs_is_told_what_pbs_has_for_it(site: Recorded) -> None:
    pbs = site.pbs()
    runs = job(pbs.observe(), "30")
    site.refuses = "qalter: Cannot modify attribute while job running  Resource_List.pliant 30.head"
    with pytest.raises(Refused, match=r"^job 30: PBS lets nobody .* `qalter -r n 30` keeps"):
        pbs.annotate(runs, lambda one: replace(one.spec or Spec(parse("")), pinned=True))


def test_marks_are_refused_and_nothing_is_said(site: Recorded) -> None:
    pbs = site.pbs()
    (error,) = pbs.mark([Mark(job(pbs.observe(), "32"), "gn1", "")])
    assert str(error) == "job 32: PBS has no such mark"
    assert (pbs.unmark(), site.said) == ({}, [])


def test_a_job_that_can_never_run_as_we_set_it_gets_its_own_shape_back(site: Recorded) -> None:
    change(site, "2")
    site.said.clear()
    site.job("32")["comment"] = "Can Never Run: Insufficient amount of resource: ngpus"
    pbs = site.pbs()
    pbs.rescue(job(pbs.observe(), "32"))
    assert "select=1:ncpus=2:ngpus=4" in site.said[0]
    with pytest.raises(Refused, match="that Pliant set"):
        pbs.rescue(job(site.pbs().observe(), "33"))


def test_an_empty_answer_of_the_server_is_no_server() -> None:
    assert parse_server("{}").scheduling
    assert Answer("", "qstat: cannot connect to server head", 1).controller_is_away
    assert isinstance(parse_jobs('{"Jobs": {"1.h": {}}}')[0], JobRow)
