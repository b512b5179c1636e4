"""The submit filter: what a submission becomes, told as whole answers."""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.filter import Answer, Inventory, View, filter_submission
from pliant.grammar import find_token
from pliant.grammar.token import pack, parse_spec
from pliant.model import (
    Abilities,
    Footprint,
    Job,
    Kind,
    Mode,
    Node,
    Partition,
    Pool,
    Shape,
    Snapshot,
    Spec,
)
from pliant.placement import Free

NODES = tuple(
    Node(f"n{n}", 16, 16, 32000, 32000, (Pool("a100", 4, 4, 4, told_mib=40_000),))
    for n in range(1, 5)
)
NAMES = tuple(node.name for node in NODES)
SNAPSHOT = Snapshot(
    now_s=0.0,
    nodes=NODES,
    partitions=(
        Partition("gpu", NAMES, default=True),
        Partition("small", NAMES[:1], max_nodes=1),
        Partition("seen", NAMES, mode=Mode.OBSERVE),
        Partition("off", NAMES, mode=Mode.OFF),
    ),
)
VIEW = View(Inventory.of(SNAPSHOT))
ONE_NODE = {"min_nodes": "1", "max_nodes": "1"}


def asked(moldable: str = "", **fields: str) -> dict[str, str]:
    """A submission of sbatch as 22.05 has it."""
    unset = dict.fromkeys(
        ("cpus_per_task", "ntasks_per_node", "ntasks_per_tres", "shared"), "65534"
    )
    flag = {"option.moldable": moldable} if moldable else {}
    return {"batch": "1", "begin_time": "0", "min_cpus": "1"} | unset | flag | fields


def token(answer: Answer) -> str:
    """What the answer's token says, in words."""
    word = answer.as_fields.get("token", "")
    if not word:
        return ""
    _, body, check = word.split(":")
    raw = urlsafe_b64decode(body)
    assert f"{zlib.adler32(raw):08x}" == check
    assert parse_spec(raw.decode()) == answer.spec
    return raw.decode()


# Who is touched


@pytest.mark.parametrize(
    "submission",
    [
        {},
        asked(tres_per_node="gres:gpu:2", comment="my words"),
        asked(comment=" pliant:gpus=1-4"),
        asked("gpus=1-4", partition="off"),
        asked("gpus=1-4", partition="gpu,off"),
        asked("gpus=1-4", partition="nowhere"),
        asked("nonsense", partition="off"),
    ],
)
def test_who_says_nothing_or_says_it_where_pliant_is_off_is_left_alone(
    submission: dict[str, str],
) -> None:
    assert filter_submission(submission, VIEW) == Answer()


def test_an_observed_partition_gets_the_token_and_nothing_else() -> None:
    answer = filter_submission(
        asked("gpus=1-4", partition="seen", tres_per_node="gres:gpu:2", num_tasks="4"), VIEW
    )
    assert token(answer) == "moldable=gpus=1-4;own=2;fp=4,0,1,0,0,0,0"
    assert answer == Answer(spec=answer.spec)
    without = filter_submission(asked("gpus=1-4", partition="seen"), VIEW)
    assert token(without) == "moldable=gpus=1-4;fp=1,0,1,0,0,0,0"
    assert without.fields == {} and "asks for no GPU" in without.lines[0]


def test_what_is_malformed_is_refused_in_the_parsers_words_or_only_told_where_observed() -> None:
    wrong = "moldable gpus: 'x': a number of GPUs from 1 to 4096, or a share like 1/4, is expected"
    assert filter_submission(asked("gpus=x"), VIEW) == Answer(refusal=f"pliant: {wrong}")
    assert filter_submission(asked("gpus=x"), VIEW).as_fields == {"refuse": f"pliant: {wrong}"}
    seen = filter_submission(asked("gpus=x", partition="seen"), VIEW)
    assert seen == Answer(lines=(f"pliant: {wrong}; nothing of it is used",))


def test_a_job_that_is_not_moldable_gets_its_token_alone() -> None:
    answer = filter_submission(
        {"option.job-class": "trial", "option.malleable": "(null)", "tres_per_job": "gres:gpu:9"},
        VIEW,
    )
    assert token(answer) == "malleable;job-class=trial"
    assert answer == Answer(spec=answer.spec, fields={"requeue": "1"}, most_gpus=Fraction(9))


def test_flags_win_over_the_comment_option_by_option() -> None:
    submission = asked("gpus=2", comment="pliant:gpus=4,nodes=2;steps=7 and more")
    assert token(filter_submission(submission, VIEW)).startswith("moldable=gpus=2;steps=7;own=2")
    twice = asked("gpus=2", comment="pliant:gpus=1;moldable=gpus=2")
    assert "stands twice" in filter_submission(twice, VIEW).refusal


# The own shape, and the form it gets


@pytest.mark.parametrize(
    ("fields", "own", "footprint", "changes"),
    [
        ({"tres_per_node": "gres:gpu:2"}, "2", "1,0,1,0,0,0,0", ONE_NODE),
        ({"tres_per_node": "gres/gpu:a100:2"}, "2@a100", "1,0,1,0,0,0,0", ONE_NODE),
        ({"tres_per_node": "gres:gpu"}, "1", "1,0,1,0,0,0,0", ONE_NODE),
        ({"tres_per_node": "gres:gpu:2", **ONE_NODE}, "2", "1,0,1,0,0,0,0", {}),
        (
            {"tres_per_job": "gres:gpu:4"}, "4", "1,0,1,0,0,0,0",
            {"gres": "gpu:4", "tres_per_job": "", **ONE_NODE},
        ),
        (
            {"tres_per_job": "gres:gpu:8"}, "2x4", "1,0,1,0,0,0,0",
            {"gres": "gpu:4", "tres_per_job": "", "min_nodes": "2", "max_nodes": "2",
             "min_cpus": "2"},
        ),
        (
            {"tres_per_job": "gres:gpu:4", "min_nodes": "2", "max_nodes": "2", "min_cpus": "2"},
            "2x2", "1,0,1,0,0,0,0", {"gres": "gpu:2", "tres_per_job": ""},
        ),
        (
            {"tres_per_task": "gres:gpu:1", "num_tasks": "4", "cpus_per_task": "2",
             "min_cpus": "8"},
            "4", "1,1,2,0,0,0,0", {"gres": "gpu:4", "tres_per_task": "", **ONE_NODE},
        ),
        (  # 24.11 keeps the CPUs there too
            {"tres_per_task": "cpu=2,gres/gpu=1", "num_tasks": "4", "cpus_per_task": "2",
             "min_cpus": "8"},
            "4", "1,1,2,0,0,0,0", {"gres": "gpu:4", "tres_per_task": "cpu=2", **ONE_NODE},
        ),
        (  # tasks on each node cannot be changed later
            {"tres_per_task": "gres:gpu:1", "num_tasks": "4", "ntasks_per_node": "2",
             "min_cpus": "4", "min_nodes": "2", "max_nodes": "2"},
            "2x2", "1,1,1,0,0,0,0",
            {"gres": "gpu:2", "tres_per_task": "", "ntasks_per_node": "65534", "pn_min_cpus": "2"},
        ),
        (
            {"tres_per_job": "gres:gpu:2", "ntasks_per_tres": "2"}, "2", "1,2,1,0,0,0,0",
            {"gres": "gpu:2", "tres_per_job": "", "ntasks_per_tres": "65534", "num_tasks": "4",
             "min_cpus": "4", **ONE_NODE},
        ),
        (
            {"tres_per_job": "gres:gpu:2", "cpus_per_tres": "gres:gpu:3",
             "mem_per_tres": "gres:gpu:500"},
            "2", "1,0,1,3,0,0,500",
            {"gres": "gpu:2", "tres_per_job": "", "cpus_per_tres": "", "mem_per_tres": "",
             "cpus_per_task": "6", "min_cpus": "6", "min_mem_per_node": "1000", **ONE_NODE},
        ),
        (
            {"tres_per_node": "gres:gpu:1", "num_tasks": "4", "min_cpus": "4",
             "min_mem_per_cpu": "100"},
            "1", "4,0,1,0,0,100,0", {},  # on how many nodes stays Slurm's choice
        ),
        (
            {"tres_per_node": "gres:gpu:1", "num_tasks": "24", "min_cpus": "24", "min_nodes": "2",
             "max_nodes": "2"},
            "2x1", "12,0,1,0,0,0,0", {"pn_min_cpus": "12"},
        ),
        (
            {"tres_per_node": "gres:gpu:2", "ntasks_per_node": "3", "min_nodes": "2",
             "max_nodes": "2", "min_cpus": "12", "cpus_per_task": "2", "min_mem_per_node": "600"},
            "2x2", "3,0,2,0,600,0,0", {"num_tasks": "6", "pn_min_cpus": "6"},
        ),
        (
            {"tres_per_node": "gres:shard:2"}, "1/2", "1,0,1,0,0,0,0", ONE_NODE,
        ),
    ],
)  # fmt: skip
def test_each_way_to_ask_becomes_the_per_node_form(
    fields: dict[str, str], own: str, footprint: str, changes: dict[str, str]
) -> None:
    # Every total is allowed, so that the own shape stays.
    moldable = "gpus=1/4-16" + (",gpu-type=a100" if "a100" in own else "")
    answer = filter_submission(asked(moldable, **fields), VIEW)
    in_total = {"tres_per_job", "tres_per_task"} & fields.keys() and "min_nodes" not in fields
    nodes = ",nodes=1-4" if in_total else ""  # Slurm may choose: all that the partition has
    assert token(answer) == f"moldable={moldable}{nodes};own={own};fp={footprint}"
    assert answer.fields == changes


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"shared": "0"}, "--exclusive"),
        ({"reservation": "mine"}, "--reservation"),
        ({"het_job_offset": "0"}, "heterogeneous"),
        ({"batch": "0"}, "only jobs of sbatch"),
        ({"clusters": "a,b"}, "--clusters"),
        ({"tres_per_socket": "gres:gpu:1"}, "--gpus-per-socket"),
        ({"tres_per_node": "gres:gpu:1", "pn_min_cpus": "4"}, "--mincpus: say -c"),
        ({"tres_per_node": "gres:gpu:1", "cpus_per_task": "2", "pn_min_cpus": "4"}, "--mincpus"),
        ({"tres_per_task": "gres:gpu:2", "num_tasks": "2"}, "--gpus-per-task above 1"),
        ({"tres_per_node": "gres:gpu:a100:1,gres:gpu:h100:1"}, "several kinds"),
        ({"tres_per_node": "gres:gpu:1,gres:shard:1"}, "several kinds"),
        ({"tres_per_node": "gres:gpu:1,gres:tmpfs:10"}, "other GRES beside GPUs ('tmpfs')"),
        ({"tres_per_node": "gres:gpu:1K"}, "no node could hold"),
        ({"tres_per_node": "gres:gpu:a:b:1"}, "'gres:gpu:a:b:1' is not a form"),
        ({"tres_per_job": "gres:gpu:x;set=16\n:1", "min_nodes": "1"}, "'gres:gpu:x;set=16?:1' is"),
        ({"tres_per_job": "gres:gpu:\u00e9"}, "is not a form"),
        ({"tres_per_node": "gres:shard:3"}, "no whole part"),
        ({"tres_per_job": "gres:gpu:3", "min_nodes": "2"}, "3 GPUs do not divide over 2 nodes"),
        ({"tres_per_node": "gres:gpu:1", "min_nodes": "2", "num_tasks": "3"}, "3 tasks do not"),
        ({"tres_per_node": "gres:gpu:1", "num_tasks": "3", "ntasks_per_node": "2"}, "3 tasks do not"),
        (
            {"tres_per_node": "gres:gpu:1", "num_tasks": "4", "ntasks_per_node": "2"}
            | {"min_nodes": "1", "max_nodes": "1"},
            "4 tasks, 2 on each node, need 2 nodes: say -N2",
        ),
        ({"tres_per_job": "gres:gpu:17"}, "no node could hold the job"),
        ({"tres_per_node": "gres:gpu:1", "partition": "small", "min_nodes": "2"}, "could ever give"),
    ],
)  # fmt: skip
def test_what_cannot_change_is_left_as_written_and_told(fields: dict[str, str], why: str) -> None:
    answer = filter_submission(asked("gpus=1-2", **fields), VIEW)
    assert answer.fields == {} and answer.spec is None and not answer.refusal
    assert why in answer.lines[0]
    assert answer.lines[0].endswith("; the job is submitted as written")


def test_tasks_by_the_node_are_at_most_so_many() -> None:
    written = {"tres_per_node": "gres:gpu:1", "num_tasks": "2", "ntasks_per_node": "2"}
    answer = filter_submission(asked("gpus=2,nodes=2", **written, **two_nodes()), VIEW)
    assert "num_tasks" not in answer.fields
    assert token(answer).endswith(";fp=1,0,1,0,0,0,0")


def two_nodes() -> dict[str, str]:
    return {"min_nodes": "2", "max_nodes": "2"}


def test_what_else_a_rigid_job_says_is_kept() -> None:
    answer = filter_submission(
        asked("gpus=1-2", shared="0") | {"option.job-class": "best-effort"}, VIEW
    )
    assert token(answer) == "job-class=best-effort"
    assert "asks for no GPU" in answer.lines[1]


# Which shape


def shape_of(submission: dict[str, str], view: View = VIEW) -> tuple[str, tuple[str, ...]]:
    answer = filter_submission(submission, view)
    return str(answer.shape), answer.lines


def test_a_job_waits_with_its_own_shape_else_with_the_largest() -> None:
    assert shape_of(asked("gpus=1-4", tres_per_node="gres:gpu:2")) == ("2", ())
    assert shape_of(asked("gpus=1-4")) == ("4", ())
    assert shape_of(asked("gpus=1:2:3,nodes=1-2")) == ("3", ())
    assert shape_of(asked("gpus=2:4:8,nodes=1-2")) == ("2x4", ())
    assert shape_of(asked("gpus=1/4-1/2")) == ("1/2", ())
    assert shape_of(asked("gpus=1/3:1")) == (
        "1", ("pliant: gpus=1/3: no node here could ever give it, left out",),
    )  # fmt: skip


def test_an_own_shape_outside_the_range_becomes_the_nearest_and_it_is_said() -> None:
    assert shape_of(asked("gpus=1:4", tres_per_node="gres:gpu:3")) == (
        "4",
        (
            "pliant: it asks for 3 besides, which is not among the shapes that it may have:"
            " it is submitted with 4",
        ),
    )
    answer = filter_submission(asked("gpus=1:4", tres_per_node="gres:gpu:3"), VIEW)
    assert token(answer) == "moldable=gpus=1:4;own=3;set=4;fp=1,0,1,0,0,0,0"


def test_totals_that_no_shape_has_are_said() -> None:
    submission = asked("gpus=1-4,nodes=2")
    assert shape_of(submission) == (
        "2x2", ("pliant: gpus=1:3: does not divide over the nodes, left out",),
    )  # fmt: skip
    assert shape_of(asked("gpus=1-64"))[1] == (
        "pliant: gpus=5:6:7:8:9:10:11:12:...: no node here could ever give it, left out",
    )


def test_what_no_node_could_ever_give_leaves_the_job_as_written() -> None:
    answer = filter_submission(asked("gpus=8:9"), VIEW)
    assert answer.fields == {} and answer.spec is None
    assert answer.lines[0] == (
        "pliant: no node here could ever give 8; nodes= would spread the job over several;"
        " the job is submitted as written"
    )
    typed = filter_submission(asked("gpus=1,gpu-type=h100"), VIEW)
    assert typed.fields == {} and "could ever give 1@h100" in typed.lines[0]


def test_a_share_needs_the_memory_that_was_asked() -> None:
    assert shape_of(asked("gpus=1/4-1/2,gpu-mem=20000M"))[0] == "1/2"
    assert shape_of(asked("gpus=1/4:1,gpu-mem=20000M")) == (
        "1", ("pliant: gpus=1/4: not every GPU here is known to have gpu-mem= for it, left out",),
    )  # fmt: skip


def test_shares_of_gpus_whose_memory_nobody_knows_are_left_out_but_for_the_own_one() -> None:
    pools = (Pool("a100", 4, 4, 4),)
    nodes = tuple(replace(node, pools=pools) for node in NODES)
    view = View(Inventory.of(replace(SNAPSHOT, nodes=nodes)))
    assert shape_of(asked("gpus=1/4:1,gpu-mem=1G"), view)[0] == "1"
    quarter = {"tres_per_node": "gres:shard:1"}
    assert shape_of(asked("gpus=1/4:1/2,gpu-mem=1G", **quarter), view)[0] == "1/4"
    only = filter_submission(asked("gpus=1/4-1/2,gpu-mem=1G", tres_per_node="gres:gpu:1"), view)
    assert only.fields == {} and "gpu-mem= for a share" in only.lines[0]


def test_cpus_and_memory_count_too() -> None:
    wide = {"tres_per_node": "gres:gpu:1", "cpus_per_tres": "gres:gpu:8"}
    assert shape_of(asked("gpus=1-4", **wide)) == (
        "1", ("pliant: gpus=3:4: no node here could ever give it, left out",),
    )  # fmt: skip


def test_a_job_for_gpu_or_cpu_waits_in_its_cpu_form_unless_it_can_leave_the_other() -> None:
    submission = asked("gpus=1-2,type=gpu:cpu,cores=8", tres_per_node="gres:gpu:2")
    stays = filter_submission(submission, VIEW)
    assert token(stays) == (
        "moldable=gpus=1-2,type=cpu:gpu,cores=8;own=2;set=1x0@cpu;fp=1,0,1,0,0,0,0".replace(
            "cpu:gpu", "gpu:cpu"
        )
    )
    assert stays.fields == {
        "tres_per_node": "", "min_cpus": "8", "cpus_per_task": "8", **ONE_NODE,
    }  # fmt: skip
    portable = View(Inventory.of(replace(SNAPSHOT, abilities=Abilities(gpu_to_cpu=True))))
    leaves = filter_submission(submission, portable)
    assert str(leaves.shape) == "2" and leaves.fields == ONE_NODE
    cpu = filter_submission(asked("gpus=1,type=gpu:cpu,cores=8"), portable)
    assert cpu.fields == {
        "gres": "nogpu:1", "min_cpus": "8", "cpus_per_task": "8", **ONE_NODE,
    }  # fmt: skip
    assert token(cpu).endswith(";own=1x0@cpu;fp=1,0,1,0,0,0,0")


def test_a_cpu_job_may_range_over_nodes_without_any_gres() -> None:
    answer = filter_submission(
        asked("nodes=1-2,cores=all,type=cpu"),
        View(Inventory.of(replace(SNAPSHOT, abilities=Abilities(gpu_to_cpu=True)))),
    )
    assert answer.fields == {"min_cpus": "16", "cpus_per_task": "16", **ONE_NODE}


def test_fewer_cores_than_written_are_not_kept_up_by_what_sbatch_adds() -> None:
    written = {"cpus_per_task": "8", "min_cpus": "8", "pn_min_cpus": "8", "tres_per_task": "cpu=8"}
    answer = filter_submission(asked("type=cpu,cores=4", **written), VIEW)
    assert answer.fields == {
        "cpus_per_task": "4", "min_cpus": "4", "pn_min_cpus": "4", "tres_per_task": "cpu=4",
        **ONE_NODE,
    }  # fmt: skip


# The hole


def busy(*free: int) -> View:
    """A view in which the nodes have so many free GPUs."""
    nodes = tuple(
        replace(node, pools=(replace(node.pools[0], free=count),))
        for node, count in zip(NODES, free, strict=True)
    )
    snapshot = replace(SNAPSHOT, nodes=nodes)
    return View(Inventory.of(snapshot), Free(snapshot))


def test_what_fits_now_is_given_at_once_and_is_gone_for_the_next() -> None:
    view = busy(3, 1, 0, 0)
    submission = asked("gpus=1-4", tres_per_node="gres:gpu:4")
    answers = [filter_submission(submission, view) for _ in range(3)]
    assert [(str(answer.shape), answer.started) for answer in answers] == [
        ("3", True),
        ("1", True),
        ("4", False),
    ]
    assert token(answers[0]) == "moldable=gpus=1-4;own=4;set=3;fp=1,0,1,0,0,0,0"
    assert answers[0].fields == {"gres": "gpu:3", **ONE_NODE}
    assert answers[2].fields == ONE_NODE


_SAID = st.sampled_from(("gpus=1-4", "gpus=4:8,nodes=1-2", "gpus=x", "type=gpu:cpu,cores=4"))
_SUBMISSIONS = st.builds(
    lambda said, **fields: asked(said, **{k: v for k, v in fields.items() if v}),
    _SAID,
    tres_per_node=st.sampled_from(("", "gres:gpu:1", "gres:gpu:2")),
    num_tasks=st.sampled_from(("", "2", "3")),
    partition=st.sampled_from(("", "small", "seen", "off")),
    time_limit=st.sampled_from(("", "10", "700")),
    begin_time=st.sampled_from(("0", "5")),
    priority=st.sampled_from(("", "0")),
    dependency=st.sampled_from(("", "afterok:1")),
)


@given(st.lists(_SUBMISSIONS, min_size=2, max_size=6))
def test_what_is_known_of_a_request_answers_as_a_first_look_does(
    some: list[dict[str, str]],
) -> None:
    known, free = busy(3, 1, 0, 0), busy(3, 1, 0, 0).free
    for submission in some:
        first = View(Inventory.of(SNAPSHOT), free)
        assert filter_submission(submission, known) == filter_submission(submission, first)


def test_a_request_is_looked_into_once_whatever_its_time_limits() -> None:
    view = busy(0, 0, 0, 0)
    for minutes in range(1, 20):
        filter_submission(asked("gpus=1-4", time_limit=str(minutes)), view)
    assert len(view.inventory.known) == 1
    filter_submission(asked("gpus=1-4", min_mem_per_node="100"), view)
    assert len(view.inventory.known) == 2


def test_what_is_known_does_not_grow_for_ever() -> None:
    for memory in range(1, 1100):
        filter_submission(asked("gpus=1-4", min_mem_per_node=str(memory)), VIEW)
    assert len(VIEW.inventory.known) <= 1024


@pytest.mark.parametrize(
    ("moldable", "fields", "noted"),
    [
        ("gpus=2-8", {"num_tasks": "4"}, "gpus=2-8,nodes=1-4;own=4;set=2x2;fp=1,1,1,0,0,0,0"),
        ("gpus=3-5", {}, "gpus=3-5,nodes=1-4;own=4;set=2x2;fp=1,0,1,0,0,0,0"),
        (
            "gpus=2-8", {"num_tasks": "4", "min_nodes": "1", "max_nodes": "2"},
            "gpus=2-8,nodes=1-2;own=4;set=2x2;fp=1,1,1,0,0,0,0",
        ),
        (
            "gpus=2-8", {"num_tasks": "4", "min_nodes": "2", "max_nodes": "3"},
            "gpus=2-8,nodes=2-3;own=2x2;fp=1,1,1,0,0,0,0",
        ),
    ],
)  # fmt: skip
def test_a_total_of_gpus_starts_on_all_the_nodes_that_slurm_could_spread_it_over(
    moldable: str, fields: dict[str, str], noted: str
) -> None:
    submission = asked(moldable, tres_per_job="gres:gpu:4", **fields)
    answer = filter_submission(submission, busy(2, 2, 0, 0))
    assert (token(answer), answer.started, answer.lines) == (f"moldable={noted}", True, ())
    assert answer.fields["gres"] == "gpu:2" and answer.fields.get("min_nodes", "2") == "2"


@pytest.mark.parametrize(
    ("moldable", "fields"),
    [
        ("gpus=2-4", {"num_tasks": "1"}),
        ("gpus=2-4", {"min_nodes": "1", "max_nodes": "1"}),
        ("gpus=2-4", {"partition": "small"}),
        ("gpus=2-4,nodes=1", {"num_tasks": "2"}),
        ("gpus=2-4,type=gpu:cpu", {}),
    ],
)
def test_what_slurm_would_not_spread_or_its_owner_bounds_keeps_its_number_of_nodes(
    moldable: str, fields: dict[str, str]
) -> None:
    answer = filter_submission(asked(moldable, tres_per_job="gres:gpu:4", **fields), VIEW)
    assert token(answer).startswith(f"moldable={moldable};own=4;")


def test_tasks_that_do_not_follow_the_gpus_leave_the_spreading_to_slurm() -> None:
    answer = filter_submission(asked("gpus=2-4", tres_per_job="gres:gpu:4", num_tasks="2"), VIEW)
    assert answer == Answer(
        lines=(
            "pliant: Slurm may spread its 2 tasks and 4 GPUs over nodes as it likes: nodes=1"
            " beside gpus= would let the shape change; the job is submitted as written",
        )
    )


TWO_NODES = {"min_nodes": "2", "max_nodes": "2"}


@pytest.mark.parametrize(
    "fields", [{}, {"array_inx": "1-3", "option.moldable": "gpus=4-8"}, TWO_NODES]
)
def test_a_total_that_is_what_the_job_asks_for_already_leaves_it_to_slurm_with_3_and_1(
    fields: dict[str, str],
) -> None:
    answer = filter_submission(
        asked("gpus=4", tres_per_job="gres:gpu:4") | fields, busy(3, 1, 0, 0)
    )
    assert answer == Answer(
        lines=(
            "pliant: it asks for 4 GPUs already, which Slurm itself spreads over nodes;"
            " the job is submitted as written",
        )
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"tres_per_job": "gres:gpu:4"},
        {"tres_per_task": "gres:gpu:1", "num_tasks": "4"},
        {"tres_per_job": "gres:gpu:4", **TWO_NODES},
        {"tres_per_task": "gres:gpu:1", "num_tasks": "4", **TWO_NODES},
    ],
)
def test_a_total_that_is_the_least_it_may_have_waits_as_it_was_written_with_3_and_1(
    fields: dict[str, str],
) -> None:
    own, nodes = ("2x2", "") if "min_nodes" in fields else ("4", ",nodes=1-4")
    waits = filter_submission(asked("gpus=4-8", **fields), busy(3, 1, 0, 0))
    assert (str(waits.shape), waits.fields, waits.started) == (own, {}, False)
    assert token(waits).startswith(f"moldable=gpus=4-8{nodes};own={own};fp=")
    starts = filter_submission(asked("gpus=4-8", **fields), busy(3, 3, 0, 0))
    assert (str(starts.shape), starts.fields["gres"], starts.started) == ("2x3", "gpu:3", True)


def test_a_total_with_one_gpu_on_each_node_can_only_be_even() -> None:
    fields = {"tres_per_job": "gres:gpu:2", **TWO_NODES}
    answer = filter_submission(asked("gpus=2-8", **fields), busy(0, 0, 0, 0))
    assert (str(answer.shape), answer.fields["gres"]) == ("2x1", "gpu:1")


def test_tasks_that_slurm_may_put_on_several_nodes_stay_so_until_another_shape_is_set() -> None:
    fields = {"tres_per_node": "gres:gpu:2", "num_tasks": "4", "min_cpus": "4"}
    waits = filter_submission(asked("gpus=1-4", **fields), busy(0, 0, 0, 0))
    assert (str(waits.shape), waits.fields) == ("2", {})
    starts = filter_submission(asked("gpus=1-4", **fields), busy(1, 0, 0, 0))
    assert (str(starts.shape), starts.fields) == ("1", {"gres": "gpu:1", **ONE_NODE})
    named = filter_submission(asked("gpus=1-4", **fields, **ONE_NODE), busy(0, 0, 0, 0))
    assert named.fields == {}


@pytest.mark.parametrize(
    ("fields", "nodes"), [({"num_tasks": "24"}, 2), ({"num_tasks": "4", "array_inx": "1-3"}, 1)]
)
def test_tasks_on_several_nodes_that_could_not_be_left_so_keep_the_shape(
    fields: dict[str, str], nodes: int
) -> None:
    answer = filter_submission(asked("gpus=1-4", tres_per_node="gres:gpu:2", **fields), VIEW)
    assert answer == Answer(
        lines=(
            f"pliant: Slurm may spread its {fields['num_tasks']} tasks over nodes as it likes:"
            f" -N{nodes} would let the shape change; the job is submitted as written",
        )
    )


def test_the_owners_own_speeds_choose_before_the_number_of_gpus() -> None:
    submission = asked("gpus=1-4") | {"option.throughput": "1:5,2:9,3:9.5,4:8"}
    assert shape_of(submission, busy(4, 0, 0, 0))[0] == "3"


def test_a_free_node_is_only_for_jobs_that_may_use_it() -> None:
    view = busy(0, 4, 0, 0)
    assert shape_of(asked("gpus=1:4", partition="small", tres_per_node="gres:gpu:1"), view) == (
        "1", (),
    )  # fmt: skip
    assert filter_submission(asked("gpus=1:4", partition="small"), view).started is False


@pytest.mark.parametrize(
    "fields",
    [
        {"array_inx": "1-9"},
        {"dependency": "afterok:1"},
        {"priority": "0"},
        {"begin_time": "2000000000"},
        {"req_nodes": "n1"},
        {"exc_nodes": "n1"},
        {"features": "a|b"},
        {"licenses": "x"},
    ],
)
def test_what_cannot_start_now_or_is_not_known_enough_waits_as_it_is(
    fields: dict[str, str],
) -> None:
    submission = asked("gpus=1-4", tres_per_node="gres:gpu:2", **fields)
    answer = filter_submission(submission, busy(4, 4, 4, 4))
    assert (str(answer.shape), answer.started) == ("2", False)


def test_a_policy_that_does_not_mold_leaves_the_own_shape() -> None:
    view = replace(busy(4, 4, 4, 4), molds=False)
    assert shape_of(asked("gpus=1-4", tres_per_node="gres:gpu:2"), view) == ("2", ())
    either = asked("gpus=1-4,type=gpu:cpu", tres_per_node="gres:gpu:2")
    assert shape_of(either, view) == ("2", ())


def able(abilities: Abilities, *free: int) -> View:
    """A view of a site with other abilities."""
    view = busy(*free)
    return replace(view, inventory=replace(view.inventory, abilities=abilities))


def test_where_limits_deny_a_submission_has_the_shape_that_its_owner_wrote() -> None:
    for free in (4, 1):
        view = able(Abilities(limits_deny=True), free, 0, 0, 0)
        assert shape_of(asked("gpus=1-4", tres_per_node="gres:gpu:2"), view) == ("2", ())
        assert str(filter_submission(asked("gpus=2-4"), view).shape) == "2"
    assert str(filter_submission(asked("gpus=2-4"), busy(4, 4, 4, 4)).shape) == "4"


@pytest.mark.parametrize(
    ("free", "shape"), [((4, 4, 4, 4), "2"), ((1, 1, 0, 0), "1"), ((0, 0, 0, 0), "2")]
)
def test_where_a_limit_may_bound_a_job_it_never_gets_more_than_its_owner_wrote(
    free: tuple[int, ...], shape: str
) -> None:
    narrow = Abilities(limited_qos=frozenset({"narrow"}))
    submission = asked("gpus=1-4,nodes=1-2", tres_per_node="gres:gpu:2", qos="narrow", **ONE_NODE)
    assert shape_of(submission, able(narrow, *free))[0] == shape
    without = asked("gpus=3-4", qos="narrow")
    assert str(filter_submission(without, able(narrow, 4, 4, 4, 4)).shape) == "3"
    cores = asked("type=gpu:cpu,cores=16", tres_per_node="gres:gpu:1", qos="narrow")
    assert str(filter_submission(cores, able(narrow, *free)).shape) == "1"
    free_of_it = asked("gpus=1-4", tres_per_node="gres:gpu:2", qos="normal")
    assert shape_of(free_of_it, able(narrow, 4, 4, 4, 4)) == ("4", ())


def test_where_a_qos_asks_for_so_much_at_least_no_job_gets_less_than_its_owner_wrote() -> None:
    big = Abilities(least_qos=frozenset({"big"}))
    submission = asked("gpus=1-4", tres_per_node="gres:gpu:2", qos="big")
    assert shape_of(submission, able(big, 1, 1, 0, 0)) == ("2", ())
    assert shape_of(submission, able(big, 3, 0, 0, 0)) == ("3", ())
    default = asked("gpus=1-4", tres_per_node="gres:gpu:2", default_qos="big")
    assert shape_of(default, able(big, 1, 1, 0, 0)) == ("2", ())


def test_of_equal_shapes_the_owners_own_type_of_gpu_is_taken() -> None:
    two = tuple(replace(node, pools=(Pool("a100", 2, 2), Pool("h100", 2, 2))) for node in NODES)
    snapshot = replace(SNAPSHOT, nodes=two)
    for own in ("a100", "h100"):
        submission = asked("gpus=2,gpu-type=a100:h100", tres_per_node=f"gres:gpu:{own}:2")
        answer = filter_submission(submission, View(Inventory.of(snapshot), Free(snapshot)))
        assert str(answer.shape) == f"2@{own}"


@pytest.mark.parametrize("fields", [{"exc_nodes": "n1"}, {"features": "a"}, {"req_nodes": "n1"}])
def test_a_job_without_a_request_that_names_nodes_or_features_waits_as_the_smallest(
    fields: dict[str, str],
) -> None:
    submission = asked("gpus=1-8,nodes=1-2", **fields)
    assert str(filter_submission(submission, busy(0, 0, 0, 0)).shape) == "1"
    assert str(filter_submission(asked("gpus=1-8,nodes=1-2"), busy(0, 0, 0, 0)).shape) == "2x4"


def test_the_filter_asks_for_the_hole_with_all_that_it_knows() -> None:
    asked_for: list[Job] = []

    class Recorder:
        def fit(self, job: Job, shape: Shape) -> None:
            asked_for.append(replace(job, shape=shape))

        def take(self, *given: object) -> object:
            raise AssertionError(given)

    filter_submission(
        asked("gpus=1-2", time_limit="30", features="a&b", partition="gpu,small", num_tasks="2"),
        View(Inventory.of(SNAPSHOT), Recorder()),
    )
    assert asked_for == [replace(asked_for[0], shape=Shape(1, gpus)) for gpus in (2, 1)]
    assert asked_for[0] == Job(
        id="",
        partitions=("gpu", "small"),
        shape=Shape(1, 2),
        shapes=(Shape(1, 1), Shape(1, 2)),
        footprint=Footprint(tasks_per_node=2),
        spec=asked_for[0].spec,
        time_limit_s=1800,
        features=frozenset("ab"),
    )


# Hostile text


HOSTILE = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["gres:gpu:2", "gres/gpu:a100:1", "gres:gpu:-1", "gres:shard:0", "4294967294", "99999999999",
         "-1", "1e3", "x\n AdminComment=y", "$(id)", "pliant:gpus=1-4", "gpus=1-2", "gpu", "\0", "0",
         "1", "4", "cpu=2,gres/gpu=1", "gres:gpu:99999999999999999999", "gres:gpu:x;own=9:1", "gpu:\n:1"]
    ),
)  # fmt: skip
FIELDS = st.sampled_from(
    ["option.moldable", "comment", "tres_per_node", "tres_per_job", "tres_per_task", "min_nodes",
     "max_nodes", "num_tasks", "cpus_per_task", "min_cpus", "ntasks_per_node", "ntasks_per_tres",
     "partition", "features", "reservation", "array_inx", "mem_per_tres", "cpus_per_tres",
     "time_limit", "min_mem_per_node", "min_mem_per_cpu", "batch", "option.steps", "account"]
)  # fmt: skip


def test_nobody_makes_the_filter_look_at_millions_of_shapes() -> None:
    answer = filter_submission(asked("gpus=1-4096,nodes=1-4096"), VIEW)
    assert answer.refusal == (
        "pliant: moldable: '16777216': gpus= times nodes= times gpu-type= may be at most 4096:"
        " name fewer of them"
    )
    assert find_token(pack("moldable=gpus=1-4096,nodes=1-4096")) is None, "nor the cycle"
    for total in ("999999999999999999", "4294967293"):
        answer = filter_submission(asked("gpus=1-4", tres_per_job=f"gres:gpu:{total}"), VIEW)
        assert "no node could hold the job" in answer.lines[0]


@given(st.dictionaries(FIELDS, HOSTILE, max_size=10))
def test_any_submission_gets_an_answer_of_plain_words(fields: dict[str, str]) -> None:
    answer = filter_submission({"option.moldable": "gpus=1-4"} | fields, busy(4, 2, 1, 0))
    for text in (answer.refusal, *answer.lines, *answer.fields.values()):
        assert text.isascii() and "\n" not in text and len(text) < 400
    for name, value in answer.fields.items():
        numeric = not name.startswith(("gres", "tres", "cpus_per_tres", "mem_per"))
        assert value.isdigit() if numeric else set(value) <= set("abcdefghinoprstu0123456789:=,")
    if answer.spec is not None:
        assert isinstance(answer.spec, Spec) and token(answer)
    if answer.shape is not None:
        assert answer.shape.kind is Kind.GPU
