"""What sacctmgr says of limits, as it prints them on 22.05."""

from __future__ import annotations

import pytest

from pliant.batch.slurm.limits import Limits, parse_limits
from pliant.model import EVERYBODY, Abilities, Partition

NONE = "normal||||||||||\n"
WIDE = "wide|DenyOnLimit|||||||||\n"
NARROW = "narrow|||||||||gres/gpu=2|\n"
USERS = "|||||||\nnormal|||||||\n"


@pytest.mark.parametrize(
    ("qos", "associations", "limits"),
    [
        (NONE, USERS, Limits()),
        (NONE + WIDE, USERS, Limits(deny=True)),
        (NONE + NARROW, USERS, Limits(qos=frozenset({"narrow"}))),
        (NONE + NARROW, USERS + "narrow|||||||\n", Limits(qos=frozenset({"narrow", ""}))),
        ("normal|||cpu=64|||||||\n", USERS, Limits(qos=frozenset({"normal", ""}))),
        ("normal|||cpu=64|||||||\n", "wide|||||||\n", Limits(qos=frozenset({"normal"}))),
        (NONE, USERS + "|gres/gpu=8||||||\n", Limits(qos=frozenset({EVERYBODY}))),
        ("Wide|||||||||gres/gpu=2|\n", "WIDE|||||||\n", Limits(qos=frozenset({"wide", ""}))),
        (NONE + "big||gres/gpu=2||||||||\n", USERS, Limits(least=frozenset({"big"}))),
        ("", "", Limits()),
    ],
)
def test_a_limit_counts_for_the_jobs_that_it_may_bound(
    qos: str, associations: str, limits: Limits
) -> None:
    assert parse_limits(qos, associations) == limits


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
