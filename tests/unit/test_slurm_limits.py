"""What sacctmgr says of limits, as it prints them on 22.05."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from slurm_recorded import Recorded

from pliant.batch.slurm import Slurm
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.limits import ASSOCIATIONS, QOS, UNKNOWN, Limits, parse_limits
from pliant.batch.slurm.queries import AGAIN_S, CAREFUL
from pliant.cycle import kept_within_limits, view, why_left
from pliant.daemon.handing import Wanted
from pliant.daemon.places import Places
from pliant.errors import Unavailable
from pliant.grammar import parse
from pliant.model import (
    EVERYBODY,
    Abilities,
    Admits,
    Amounts,
    Cap,
    Caps,
    Demand,
    Footprint,
    Job,
    JobState,
    Node,
    Partition,
    Pool,
    Shape,
    Snapshot,
    Spec,
)
from pliant.plan import Plan

NONE = "normal||||||||||||||||||\n"
WIDE = "wide|DenyOnLimit|||||||||||||\n"
NARROW = "narrow||||||||||gres/gpu=2||||\n"
USERS = "|root||||||||\nnormal|lab||||||||\n"


TWO, CORES = (("ngpus", 2),), (("ncpus", 64),)


def limited(*qos: str, **most: Amounts) -> Limits:
    """Jobs of these QOS may be limited; one job of some may have so much."""
    return Limits(qos=frozenset(qos), most=tuple(most.items()))


@pytest.mark.parametrize(
    ("qos", "associations", "limits"),
    [
        (NONE, USERS, Limits()),
        (NONE + WIDE, USERS, Limits(deny=True)),
        (NONE + NARROW, USERS, limited("narrow", narrow=TWO)),
        (NONE + NARROW, USERS + "narrow|lab||||||||\n", limited("narrow", "", narrow=TWO)),
        (
            *("normal||||cpu=64||||||||||\n", USERS),
            limited("normal", "", **{"normal": CORES, "": CORES}),
        ),
        (
            *("normal||||cpu=64||||||||||\n", "wide|lab||||||||\n"),
            limited("normal", normal=CORES),
        ),
        (NONE, USERS + "|lab||gres/gpu=8||||||\n", limited(EVERYBODY)),
        (
            *("Wide||||||||||gres/gpu=2||||\n", "WIDE|lab||||||||\n"),
            limited("wide", "", **{"wide": TWO, "": TWO}),
        ),
        (NONE + "big||gres/gpu=2||||||||||||\n", USERS, Limits(least=frozenset({"big"}))),
        (NONE + "hi|||lo|||||||||||\n", USERS, Limits(preempting=frozenset({"hi"}))),
        ("", "", Limits()),
    ],
)
def test_a_limit_counts_for_the_jobs_that_it_may_bound(
    qos: str, associations: str, limits: Limits
) -> None:
    assert (
        replace(parse_limits(qos, associations), caps=(), above=None, qos_of=None, waived=())
        == limits
    )


def test_accounts_under_one_group_limit_are_known_by_its_account() -> None:
    rows = [
        "|root|||||||||||||",
        "|faculty|root|gres/gpu=64|||||||||||",
        "|lab|faculty||||||||||||",
        "|lab||gres/gpu=8|||||||||||",  # a user's own
        "|group|lab|gres/gpu=4|||||||||||",
        "|guests|root||||gres/gpu=9||||||||",  # of each job alone
        "|other|guests||||||||||||",
    ]
    rows = [f"{row}|" for row in rows]
    assert {row.count("|") for row in rows} == {ASSOCIATIONS[-1].count(",")}
    assert parse_limits(NONE, "\n".join(rows)).pools == (("group", "faculty"), ("lab", "faculty"))


OF_QOS = QOS[-1].removeprefix("format=").split(",")
OF_ACCOUNT = ASSOCIATIONS[-1].removeprefix("format=").split(",")


def row(names: Sequence[str], **values: str) -> str:
    return "|".join(values.get(name, "") for name in names) + "\n"


@pytest.mark.parametrize(
    "limit",
    [
        *("GrpTRESMins", "GrpTRESRunMins", "MaxTRESMins", "GrpWall"),
        *("MaxTRESRunMinsPU", "MaxTRESRunMinsPA"),
    ],
)
def test_a_limit_on_minutes_counts_for_jobs_of_its_qos(limit: str) -> None:
    found = parse_limits(NONE + row(OF_QOS, Name="Short", **{limit: "60"}), USERS)
    assert found.timed_qos == {"short"}
    assert found.qos == ({"short"} if limit != "GrpWall" else set())  # it bounds no shape
    assert parse_limits(row(OF_QOS, Name="normal", **{limit: "60"}), USERS).timed_qos == {
        *("normal", "")
    }


@pytest.mark.parametrize("limit", ["GrpTRESMins", "GrpTRESRunMins", "MaxTRESMins", "GrpWall"])
def test_a_limit_on_minutes_counts_for_jobs_of_its_account_and_of_those_below(limit: str) -> None:
    rows = [
        row(OF_ACCOUNT, Account="root"),
        row(OF_ACCOUNT, Account="Faculty", ParentName="root", **{limit: "60"}),
        row(OF_ACCOUNT, Account="lab", ParentName="faculty"),
        row(OF_ACCOUNT, Account="group", ParentName="lab"),
        row(OF_ACCOUNT, Account="other", ParentName="root"),
        row(OF_ACCOUNT, Account="other", **{limit: "60"}),  # a user's
        row(OF_ACCOUNT, Account="below", ParentName="other"),
        row(OF_ACCOUNT, Account="free", ParentName="root"),
    ]
    found = parse_limits(NONE, "".join(rows))
    assert found.timed_accounts == {"faculty", "lab", "group", "other"}
    assert found.qos == ({EVERYBODY} if limit != "GrpWall" else set())


def test_what_is_too_much_for_one_job_is_the_least_of_what_all_or_one_may_have_at_once() -> None:
    some = {
        "GrpTRES": "cpu=64,gres/gpu=8",
        "MaxTRES": "gres/gpu=4,mem=100G",
        "MaxTRESPU": "node=2",
        "MaxTRESPA": "gres/gpu=6",
        "MaxTRESMins": "gres/gpu=1",  # minutes
        "MaxTRESPerNode": "cpu=1",  # of a node
    }
    few = (("ncpus", 64), ("ngpus", 4), ("mem", 102400), ("nodect", 2))
    found = parse_limits(NONE + row(OF_QOS, Name="Few", **some), USERS).most
    assert found == (("few", few),)
    normal = row(OF_QOS, Name="normal", **some)
    assert parse_limits(normal, USERS).most == (("normal", few), ("", few))
    two = row(OF_ACCOUNT, DefaultQOS="long", Account="lab")
    assert parse_limits(normal, USERS + two).most == (("normal", few),)


@pytest.mark.parametrize("limit", ["GrpTRES", "MaxTRES", "MaxTRESPU", "MaxTRESPA"])
@pytest.mark.parametrize(
    ("said", "most"),
    [
        ("gres/gpu=2", (("few", TWO),)),
        ("gres/gpu=0", (("few", (("ngpus", 0),)),)),
        ("gres/gpu,cpu=,node=many,gres/gpu=\N{ARABIC-INDIC DIGIT TWO}", ()),
    ],
)
def test_each_of_them_is_one_where_it_is_a_number(
    limit: str, said: str, most: tuple[tuple[str, Amounts], ...]
) -> None:
    assert parse_limits(NONE + row(OF_QOS, Name="few", **{limit: said}), USERS).most == most


@pytest.mark.parametrize(
    ("qos", "of_partition", "gpus", "most"),
    [
        ("Few", "", 5, 4),
        ("few", "", 4, None),
        ("", "", 5, None),
        ("other", "", 9, None),
        ("few", "more", 5, None),  # either may count instead of the other
        ("few", "more", 9, 8),
        ("other", "few", 5, 4),
        ("few", "other", 5, 4),
    ],
)
def test_a_job_may_have_no_more_than_its_qos_or_its_partitions_lets_it(
    qos: str, of_partition: str, gpus: int, most: int | None
) -> None:
    abilities = Abilities(most=(("few", (("ngpus", 4),)), ("more", (("ngpus", 8),))))
    told = abilities.beyond(qos, Partition("p", (), qos=of_partition), 1, Demand(gpus))
    assert told == (f"its QOS lets one job have {most} GPUs at most" if most else "")


@pytest.mark.parametrize(
    ("qos", "nodes", "words"),
    [
        ("", 2, "its QOS lets one job have 4 GPUs at most"),
        ("", 1, ""),
        ("other", 2, ""),  # nor does its partition name one
    ],
)
def test_what_jobs_that_name_no_qos_may_have_counts_over_all_nodes_and_for_them_alone(
    qos: str, nodes: int, words: str
) -> None:
    abilities = Abilities(most=(("", (("ngpus", 4),)),))
    assert abilities.beyond(qos, Partition("p", ()), nodes, Demand(3)) == words


@pytest.mark.parametrize(
    ("limited", "qos", "partition", "expected"),
    [
        ((), "", Partition("p", ()), False),
        (("narrow",), "narrow", Partition("p", ()), True),
        (("narrow",), "Narrow", Partition("p", ()), True),
        (("narrow",), "normal", Partition("p", ()), False),
        (("narrow",), "", Partition("p", ()), False),
        (("",), "", Partition("p", ()), True),
        (("",), "normal", Partition("p", ()), False),
        ((EVERYBODY,), "normal", Partition("p", ()), True),
        (("narrow",), "", Partition("p", (), qos="narrow"), True),
        ((), "", Partition("p", (), max_cpus_per_node=8), True),
    ],
)
def test_a_job_may_be_limited_by_its_qos_its_partition_and_everybodys_limits(
    limited: tuple[str, ...], qos: str, partition: Partition, expected: bool
) -> None:
    abilities = Abilities(limited_qos=frozenset(limited))
    assert abilities.may_be_limited(qos, [partition]) is expected


def test_a_job_may_be_too_small_for_its_qos() -> None:
    abilities = Abilities(least_qos=frozenset({"big"}))
    partition = Partition("p", (), qos="big")
    assert [abilities.may_be_too_small(qos, []) for qos in ("BIG", "", "normal")] == [
        True,
        False,
        False,
    ]
    assert abilities.may_be_too_small("", [partition])


def test_every_limit_that_may_bound_what_a_job_gets_is_asked_for() -> None:
    """In the words of sacctmgr(1), of which each release from 22.05 on knows all."""
    group = "GrpTRES,GrpTRESMins,GrpTRESRunMins"
    most = f"{group},MaxTRES,MaxTRESPerNode,MaxTRESMins"
    caps = "User,Partition,GrpJobs,MaxJobs,MaxWall"
    assert ASSOCIATIONS[-1] == f"format=DefaultQOS,Account,ParentName,{most},GrpWall,{caps},QOS"
    jobs = "GrpJobs,MaxJobsPU,MaxJobsPA,MaxWall"
    each = "MaxTRESPU,MaxTRESPA,MaxTRESRunMinsPU,MaxTRESRunMinsPA"
    assert QOS[-1] == f"format=Name,Flags,MinTRES,Preempt,{most},{each},GrpWall,{jobs}"
    assert NONE.count("|") == QOS[-1].count(",")


ADA = Job(
    *("7", "ada", "Lab", "Long"),
    partitions=("gpu",),
    state=JobState.RUNNING,
    shape=Shape(1, 4),
    time_limit_s=7200,
    nodes=("n1",),
    shapes=tuple(Shape(1, gpus) for gpus in (1, 2, 3, 4)),
    footprint=Footprint(mem_per_gpu_mib=1000),
    spec=Spec(parse("gpus=1-4;malleable"), Shape(1, 4), Shape(1, 4)),
)
BOB = replace(ADA, id="8", user="bob", account="group", qos="short")


def row_of_ada(**values: str) -> str:
    """One of her associations."""
    return row(OF_ACCOUNT, Account="lab", User="ada", **values)


@pytest.mark.parametrize(
    ("of_qos", "of_accounts", "stops"),
    [
        ("", row(OF_ACCOUNT, Account="lab", User="ada", MaxJobs="0"), True),
        ("", row(OF_ACCOUNT, Account="lab", User="ada", MaxJobs="1"), False),
        ("", row(OF_ACCOUNT, Account="lab", User="bob", MaxJobs="0"), False),
        ("", row(OF_ACCOUNT, Account="lab", User="ada", GrpJobs="0"), True),
        ("", row(OF_ACCOUNT, Account="lab", User="ada", Partition="cpu", MaxJobs="0"), False),
        ("", row(OF_ACCOUNT, Account="faculty", ParentName="root", GrpJobs="1"), True),
        ("", row(OF_ACCOUNT, Account="faculty", ParentName="root", GrpJobs="2"), False),
        ("", row(OF_ACCOUNT, Account="other", ParentName="root", GrpJobs="0"), False),
        ("", row(OF_ACCOUNT, Account="lab", User="ada", MaxWall="01:00:00"), True),
        ("", row(OF_ACCOUNT, Account="lab", User="ada", MaxWall="02:00:00"), False),
        ("", row(OF_ACCOUNT, Account="lab", User="ada", MaxTRES="gres/gpu=3"), True),
        ("", row(OF_ACCOUNT, Account="lab", User="ada", MaxTRES="gres/gpu=4"), False),
        ("", row(OF_ACCOUNT, Account="lab", User="ada", GrpTRES="gres/gpu=3"), True),
        ("", row(OF_ACCOUNT, Account="faculty", ParentName="root", GrpTRES="gres/gpu=7"), True),
        ("", row(OF_ACCOUNT, Account="faculty", ParentName="root", GrpTRES="gres/gpu=8"), False),
        (row(OF_QOS, Name="ofgpu", GrpTRES="gres/gpu=7"), "", True),
        (row(OF_QOS, Name="ofgpu", MaxTRESPU="gres/gpu=4"), "", False),
        (row(OF_QOS, Name="ofgpu", MaxTRESPA="gres/gpu=3"), "", True),
        (row(OF_QOS, Name="long", GrpJobs="0"), "", True),
        (row(OF_QOS, Name="short", GrpJobs="0"), "", False),
        (row(OF_QOS, Name="ofgpu", MaxWall="30:00"), "", True),
        (row(OF_QOS, Name="long", MaxJobsPU="0"), "", True),
        (row(OF_QOS, Name="ofgpu", MaxJobsPU="1"), "", False),
        (row(OF_QOS, Name="ofgpu", MaxJobsPA="1"), "", False),
        (row(OF_QOS, Name="ofgpu", GrpJobs="1"), "", True),
        # the QOS of the partition goes before the job's, and both before the association
        (row(OF_QOS, Name="ofgpu", GrpJobs="9") + row(OF_QOS, Name="long", GrpJobs="0"), "", False),
        (
            row(OF_QOS, Name="ofgpu", GrpJobs="9")
            + row(OF_QOS, Name="long", Flags="OverPartQOS", GrpJobs="0"),
            *("", True),
        ),
        (
            row(OF_QOS, Name="ofgpu", GrpJobs="0")
            + row(OF_QOS, Name="long", Flags="DenyOnLimit,OverPartQOS", GrpJobs="9"),
            *("", False),
        ),
        (row(OF_QOS, Name="long", MaxJobsPU="9"), row_of_ada(MaxJobs="0"), False),
        (row(OF_QOS, Name="long", MaxJobsPA="9"), row_of_ada(MaxJobs="0"), False),
        (row(OF_QOS, Name="long", GrpJobs="9"), row_of_ada(MaxJobs="0"), True),
        (row(OF_QOS, Name="long", MaxWall="7-0"), row_of_ada(MaxWall="30:00"), False),
        (row(OF_QOS, Name="short", MaxWall="7-0"), row_of_ada(MaxWall="30:00"), True),
        (row(OF_QOS, Name="long", MaxTRES="gres/gpu=9"), row_of_ada(MaxTRES="gres/gpu=1"), False),
        (row(OF_QOS, Name="long", MaxTRES="cpu=9"), row_of_ada(MaxTRES="gres/gpu=1"), True),
        (row(OF_QOS, Name="long", GrpTRES="gres/gpu=9"), row_of_ada(GrpTRES="gres/gpu=1"), False),
        # of several accounts each one counts
        (
            "",
            row(OF_ACCOUNT, Account="faculty", ParentName="root", GrpJobs="1")
            + row_of_ada(GrpJobs="9"),
            True,
        ),
        # who has an association for a partition has no other one there
        ("", row_of_ada(MaxJobs="0") + row_of_ada(Partition="GPU", MaxJobs="9"), False),
        ("", row_of_ada(MaxJobs="0") + row_of_ada(Partition="GPU"), False),
        ("", row_of_ada(MaxJobs="0") + row_of_ada(Partition="cpu", MaxJobs="9"), True),
        ("", row_of_ada(MaxJobs="9") + row_of_ada(Partition="GPU", MaxJobs="0"), True),
        # a node counts once, however many jobs are on it
        (row(OF_QOS, Name="ofgpu", GrpTRES="node=1"), "", False),
        (row(OF_QOS, Name="ofgpu", GrpTRES="node=0"), "", True),
        (row(OF_QOS, Name="ofgpu", Flags="Relative", GrpTRES="gres/gpu=1"), "", False),
        (row(OF_QOS, Name="ofgpu", GrpTRES="mem=7000"), "", True),
        (row(OF_QOS, Name="ofgpu", GrpTRES="mem=8000"), "", False),
        (row(OF_QOS, Name="ofgpu", GrpTRES="mem=8G"), "", False),
        (row(OF_QOS, Name="ofgpu", GrpTRES="mem=7G,billing=1,license/x=0"), "", True),
    ],
)
def test_a_limit_that_is_lowered_below_what_runs_keeps_a_job_from_starting_again(
    of_qos: str, of_accounts: str, stops: bool
) -> None:
    tree = [
        row(OF_ACCOUNT, Account="root"),
        row(OF_ACCOUNT, Account="lab", ParentName="faculty"),
        row(OF_ACCOUNT, Account="group", ParentName="faculty"),
        row(OF_ACCOUNT, Account="other", ParentName="root"),
    ]
    if "|faculty|" not in of_accounts:
        tree.append(row(OF_ACCOUNT, Account="faculty", ParentName="root"))
    caps = parse_limits(of_qos, "".join(tree) + of_accounts).caps
    abilities, gpu = Abilities(caps=caps), Partition("gpu", ("n1",), qos="ofgpu")
    seen = Snapshot(0.0, (), (gpu,), running=(ADA, BOB), abilities=abilities)
    frozen = kept_within_limits(seen).running[0].frozen
    assert frozen.startswith("requeued, it might not start again: ") is stops


def seen_with(caps: str, *running: Job) -> Snapshot:
    """What is seen of jobs that run under the limits of a QOS."""
    partition = Partition("gpu", ("n1", "n2"))
    nodes = tuple(Node(n, 16, 16, 9000, 9000, (Pool("", 8, 4),)) for n in partition.nodes)
    abilities = Abilities(caps=parse_limits(caps, USERS).caps)
    return Snapshot(0.0, nodes, (partition,), running=running, abilities=abilities)


def test_a_job_becomes_no_more_than_a_limit_leaves_it_of_what_runs() -> None:
    """It would wait for the limit, and Slurm keeps no place for one that does."""
    long = row(OF_QOS, Name="long", MaxTRESPU="gres/gpu=5")
    small = replace(ADA, shape=Shape(1, 2))
    other = replace(ADA, id="8", shape=Shape(1, 2), spec=None)
    seen = seen_with(long, small, other)
    (now, _) = kept_within_limits(seen).running
    assert (now.frozen, [shape.gpus for shape in now.shapes]) == ("", [1, 2, 3])
    places = Places(lambda: 0.0, dict, dict)
    places.decided(seen, Plan())
    assert [places.beyond(now, Shape(1, gpus)) for gpus in (3, 4)] == [
        "",
        "QOS long lets jobs of a user have 5 GPUs together",
    ]
    assert [places.has_place(now, Wanted(Shape(1, gpus))) for gpus in (2, 3, 4)] == [
        *(True, True, False)
    ]


def test_nor_does_it_become_more_than_one_job_may_have() -> None:
    long = row(OF_QOS, Name="long", MaxTRES="gres/gpu=3")
    (now,) = kept_within_limits(seen_with(long, replace(ADA, shape=Shape(1, 2)))).running
    assert (now.frozen, [shape.gpus for shape in now.shapes]) == ("", [1, 2, 3])


def test_on_how_many_nodes_it_may_be_depends_on_those_that_the_others_have() -> None:
    long = row(OF_QOS, Name="long", MaxTRESPU="node=2")
    shapes = (Shape(1, 4), Shape(2, 4))
    one, other = (replace(ADA, id=id_, shapes=shapes) for id_ in ("7", "8"))
    (now, _) = kept_within_limits(seen_with(long, one, other)).running
    assert now.shapes == shapes
    (now, _) = kept_within_limits(seen_with(long, one, replace(other, nodes=("n2",)))).running
    assert (now.frozen, now.shapes) == ("", shapes[:1])


def test_one_that_ends_has_given_back_what_it_had() -> None:
    long = row(OF_QOS, Name="long", MaxJobsPU="1")
    ends = replace(ADA, id="8", state=JobState.ENDING)
    assert kept_within_limits(seen_with(long, ADA, ends)).running[0].frozen == ""
    assert kept_within_limits(seen_with(long, ADA, replace(ADA, id="8"))).running[0].frozen


def test_its_time_limit_is_judged_as_its_request_says_it() -> None:
    """One that was suspended ends later than that."""
    long = row(OF_QOS, Name="long", MaxWall="2:00:00")
    suspended = replace(ADA, time_limit_s=7266, limit_shown_s=7200)
    assert kept_within_limits(seen_with(long, suspended)).running[0].frozen == ""


NOT_KNOWN = "QOS long limits {}, so none of its jobs becomes larger"
OF_MEM = "QOS long lets jobs of a user have 3000 MiB of memory together"


@pytest.mark.parametrize(
    ("limit", "gpus", "words"),
    [
        ({"MaxTRESPU": "mem=3000"}, [1, 2, 3], OF_MEM),
        ({"MaxTRESPU": "billing=99"}, [1, 2], NOT_KNOWN.format("billing")),
        ({"MaxTRESPU": "gres/gpu:a100=99"}, [1, 2], NOT_KNOWN.format("gres/gpu:a100")),
        ({"MaxTRESPU": "gres/shard=99"}, [1, 2], NOT_KNOWN.format("gres/shard")),
        ({"MaxTRESPU": "gres/other=0,license/x=0,energy=0"}, [1, 2, 3, 4], ""),
        ({"MaxTRESPerNode": "gres/gpu=3"}, [1, 2], NOT_KNOWN.format("gres/gpu")),
        ({"MaxTRESPerNode": "license/x=0"}, [1, 2, 3, 4], ""),
    ],
)
def test_a_job_becomes_no_larger_where_it_is_not_known_how_much_of_a_limit_that_takes(
    limit: dict[str, str], gpus: list[int], words: str
) -> None:
    seen = seen_with(row(OF_QOS, Name="long", **limit), replace(ADA, shape=Shape(1, 2)))
    (now,) = kept_within_limits(seen).running
    assert (now.frozen, [shape.gpus for shape in now.shapes]) == ("", gpus)
    why = Caps(seen.abilities.caps, [ADA], {}).why_not(now, Shape(1, 4))
    assert why == words


WAITS = replace(
    ADA,
    state=JobState.WAITING,
    nodes=(),
    reason="Resources",
    shapes=(Shape(1, 2), Shape(2, 2), Shape(1, 4)),
    footprint=Footprint(cpus_per_gpu=2),
)


@pytest.mark.parametrize(
    ("of_qos", "of_accounts", "footprint", "left"),
    [
        (row(OF_QOS, Name="long", GrpTRES="cpu=64"), "", Footprint(cpus_per_gpu=2), "2x2 4"),
        (row(OF_QOS, Name="ofgpu", MaxTRESRunMinsPU="cpu=64"), "", Footprint(), "2 4"),
        (row(OF_QOS, Name="long", GrpTRES="gres/gpu=64"), "", WAITS.footprint, "2 2x2 4"),
        (row(OF_QOS, Name="long", MaxTRESPerNode="mem=9G"), "", Footprint(mem_per_node_mib=9), "4"),
        ("", row_of_ada(MaxTRESMins="node=9"), WAITS.footprint, "2 4"),
        ("", row_of_ada(GrpTRES="cpu=9", Partition="other"), WAITS.footprint, "2 2x2 4"),
        (
            *("", row(OF_ACCOUNT, Account="lab", ParentName="root", GrpTRES="cpu=9,node=9")),
            *(WAITS.footprint, "4"),
        ),
        ("", "", WAITS.footprint, "2 2x2 4"),
    ],
)
def test_a_waiting_job_is_changed_in_nothing_by_which_a_limit_would_be_set_aside(
    of_qos: str, of_accounts: str, footprint: Footprint, left: str
) -> None:
    """An administrator's update of CPUs, memory or nodes is one that Slurm asks no limit for."""
    seen = waiting_with(
        replace(WAITS, footprint=footprint), parse_limits(of_qos, USERS + of_accounts).waived
    )
    assert " ".join(str(shape) for shape in view(seen).waiting[0].shapes) == left
    whose = "QOS long is on memory" if of_qos else "the limit of account lab is on CPUs"
    alone = f"{whose}: a job of which Pliant changed that is not held to it"
    assert why_left(seen, seen.waiting[0]) == (alone if left == "4" else "")


def test_where_no_limit_is_known_none_is_set_aside() -> None:
    seen = waiting_with(WAITS, UNKNOWN.waived)
    assert view(seen).waiting[0].shapes == (Shape(1, 4),)


def waiting_with(job: Job, waived: tuple[Cap, ...]) -> Snapshot:
    """What is seen of a job that waits."""
    gpu = Partition("gpu", ("n1", "n2"), qos="ofgpu")
    return Snapshot(0.0, (), (gpu,), waiting=(job,), abilities=Abilities(waived=waived))


@pytest.mark.parametrize(
    ("enforced", "qos_of_ada", "words"),
    [
        ("associations,limits,qos", "long,normal", ""),
        ("associations,limits,qos", "+long", ""),
        ("associations,limits,qos", "normal", "ada may not have QOS Long any more"),
        ("associations,limits,qos", "", ""),  # it is not said
        ("associations,limits,qos", None, "ada has no association with account Lab any more"),
        ("associations,limits", "normal", ""),
    ],
)
def test_a_job_of_a_qos_that_its_user_may_not_have_any_more_is_left_alone(
    enforced: str, qos_of_ada: str | None, words: str
) -> None:
    commands = Enforcing()
    rows = [row(OF_ACCOUNT, Account="lab", User="bob", QOS="long")]
    if qos_of_ada is not None:
        rows.append(row_of_ada(QOS=qos_of_ada))
    commands.qos, commands.accounts = NONE, "".join(rows)
    commands.says = {"Enforce = none": f"Enforce = {enforced}"}
    abilities = Abilities(qos_of=Slurm(commands).site().qos_of)
    seen = Snapshot(0.0, (), (Partition("gpu", ("n1",)),), running=(ADA,), abilities=abilities)
    frozen = kept_within_limits(seen).running[0].frozen
    assert frozen == (f"requeued, it might not start again: {words}" if words else "")


@pytest.mark.parametrize(
    ("version", "enforced", "closed"),
    [
        ("22.05", "associations,limits", "partition gpu is closed to its account"),
        ("23.02", "associations,limits", ""),
        ("23.02", "none", ""),
        ("22.05", "none", ""),
        ("22.05", "nojobs,nosteps", ""),
    ],
)
def test_an_account_counts_as_those_above_it_where_slurm_looks_at_them(
    version: str, enforced: str, closed: str
) -> None:
    tree = row(OF_ACCOUNT, Account="lab", ParentName="faculty")
    commands = Enforcing()
    commands.qos, commands.accounts = NONE, tree
    commands.says = {"Enforce = none": f"Enforce = {enforced}", "22.05.8": f"{version}.8"}
    site = Slurm(commands).site()
    admits = Admits(accounts=frozenset({"faculty"}))
    gpu = Partition("gpu", ("n1",), admits=admits)
    seen = Snapshot(0.0, (), (gpu,), running=(ADA,), abilities=Abilities(above=site.above))
    frozen = kept_within_limits(seen).running[0].frozen
    assert frozen == (f"requeued, it might not start again: {closed}" if closed else "")


def test_one_whose_qos_lets_it_run_longer_than_its_partition_may_be_changed() -> None:
    limits = parse_limits(row(OF_QOS, Name="long", Flags="PartitionTimeLimit"), USERS)
    gpu = Partition("gpu", ("n1",), max_time_s=600)
    for any_time, words in (
        (limits.any_time_qos, ""),
        (frozenset[str](), "partition gpu lets a job run for 10 min at most"),
    ):
        seen = Snapshot(
            *(0.0, (), (gpu,)), running=(ADA,), abilities=Abilities(any_time_qos=any_time)
        )
        frozen = kept_within_limits(seen).running[0].frozen
        assert frozen == (f"requeued, it might not start again: {words}" if words else "")


@pytest.mark.parametrize(
    ("of_qos", "of_accounts", "words"),
    [
        (row(OF_QOS, Name="long", GrpJobs="1"), "", "QOS long lets 1 jobs run at once, and 2 do"),
        (
            *(row(OF_QOS, Name="long", MaxJobsPA="1"), ""),
            "QOS long lets 1 jobs of an account run at once, and 2 do",
        ),
        (
            *("", row_of_ada(MaxJobs="1")),
            "the limit of user ada of account lab lets 1 jobs run at once, and 2 do",
        ),
        (
            *("", row_of_ada(MaxWall="30:00")),
            "the limit of user ada of account lab lets one job run for 30 min at most",
        ),
        (
            *("", row(OF_ACCOUNT, Account="lab", ParentName="root", GrpTRES="cpu=1")),
            "the limit of account lab lets jobs have 1 CPUs together",
        ),
        (
            row(OF_QOS, Name="long", MaxTRES="node=0"),
            "",
            "QOS long lets one job have 0 nodes at most",
        ),
    ],
)
def test_a_limit_is_named_with_what_it_leaves(of_qos: str, of_accounts: str, words: str) -> None:
    caps = parse_limits(of_qos, USERS + of_accounts).caps
    seen = Snapshot(
        *(0.0, (), (Partition("gpu", ("n1",)),)),
        running=(ADA, replace(ADA, id="8")),
        abilities=Abilities(caps=caps),
    )
    frozen = kept_within_limits(seen).running[0].frozen
    assert frozen == f"requeued, it might not start again: {words}"


class Enforcing(Recorded):
    """The recorded cluster with accounting that enforces limits; ``qos`` None: slurmdbd is away."""

    def __init__(self) -> None:
        super().__init__("22.05")
        self.qos: str | None = None
        self.accounts = USERS
        self.asked = 0
        self.says = {"Enforce = none": "Enforce = limits"}

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        if argv[0] != "sacctmgr":
            answer = super().run(argv, env=env, stdin=stdin)
            text = answer.out
            for words, others in self.says.items():
                text = text.replace(words, others)
            return Answer(text, "", 0)
        self.asked += 1
        if self.qos is None:
            raise Unavailable("sacctmgr: slurmdbd is away")
        return Answer(self.qos if "qos" in argv else self.accounts, "", 0)


@pytest.mark.parametrize(
    ("enforced", "preempts", "least"),
    [
        ("limits", "preempt/qos", {"big", "hi"}),
        ("none", "preempt/qos", {"hi"}),
        ("limits", "preempt/none", {"big"}),
        ("none", "preempt/none", set[str]()),
    ],
)
def test_a_qos_that_preempts_asks_for_no_less_than_its_jobs_say(
    enforced: str, preempts: str, least: set[str]
) -> None:
    commands = Enforcing()
    commands.says = {"Enforce = none": f"Enforce = {enforced}", "preempt/none": preempts}
    commands.qos = NONE + "big||gres/gpu=2||||||||||||\n" + "hi|||lo|||||||||||\n"
    site = Slurm(commands).site()
    assert site.least_qos == least


def test_limits_are_read_with_the_configuration_and_kept_while_slurmdbd_is_away() -> None:
    now_s, commands = [0.0], Enforcing()
    slurm = Slurm(commands, clock=lambda: now_s[0])
    assert slurm.site().limits == UNKNOWN
    assert slurm.trouble() == f"sacctmgr: slurmdbd is away: {CAREFUL}"
    commands.qos, now_s[0] = NONE + NARROW, AGAIN_S - 1
    assert (slurm.site().limits, commands.asked) == (UNKNOWN, 1)
    now_s[0] = AGAIN_S
    narrow = parse_limits(commands.qos, USERS)
    assert (slurm.site().limits, slurm.trouble()) == (narrow, "")
    commands.qos, now_s[0] = None, 120.0
    assert (slurm.site().limits, slurm.trouble()) == (narrow, "")
    commands.qos = NONE
    assert slurm.site().limits == narrow
    slurm.forget_site()
    assert slurm.site().limits == Limits(above=(), qos_of=())


class Hanging(Enforcing):
    """Its slurmctld says how it is configured, and then nothing more."""

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        if argv[0] == "squeue":
            raise Unavailable("squeue: no answer within 10 s")
        return super().run(argv, env=env, stdin=stdin)


def test_slurmdbd_is_left_in_peace_for_a_while_however_often_slurmctld_fails() -> None:
    """Shorter where its limits were never known: until then no job is made larger."""
    now_s, commands = [0.0], Hanging()
    slurm = Slurm(commands, clock=lambda: now_s[0])

    def asked(*times_s: float) -> int:
        for now_s[0] in times_s:
            with pytest.raises(Unavailable, match="squeue"):
                slurm.observe()
        return commands.asked

    assert asked(0.0, 10.0, AGAIN_S - 1) == 1
    commands.qos = NONE
    assert asked(AGAIN_S) == 3  # both of its lists
    commands.qos = None
    assert asked(50.0, 51.0, 109.0) == 4
    assert asked(110.0) == 5
