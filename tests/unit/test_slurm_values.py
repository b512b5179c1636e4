"""Slurm's words for times, sizes, node lists and GRES."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pliant.batch.slurm.gres import Gres, gres_list, tres
from pliant.batch.slurm.site import parse_config, version_of
from pliant.batch.slurm.values import (
    duration_s,
    host_list,
    indexes,
    instant_s,
    size_mib,
    split_outside,
    tasks_in,
    whole,
)
from pliant.errors import BadAnswer


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("(null)", ()),
        ("m3", ("m3",)),
        ("n[1-4,07-09],m3", ("n1", "n2", "n3", "n4", "n07", "n08", "n09", "m3")),
        ("n[1-2]-ib", ("n1-ib", "n2-ib")),
        ("r[1-2]n[08-10]", ("r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10")),
        ("a,b[2],a", ("a", "b2")),
        ("n[098-101]", ("n098", "n099", "n100", "n101")),
    ],
)
def test_a_node_list_is_expanded_in_its_order(text: str, names: tuple[str, ...]) -> None:
    assert host_list(text) == names


@pytest.mark.parametrize(
    "text", ["n[1-", "n]", "n[a]", "n[1-999999999]", "a,,b", "a b", "n[]", ","]
)
def test_a_list_that_no_cluster_has_is_refused(text: str) -> None:
    with pytest.raises(BadAnswer):
        host_list(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-02:03:04", 93784),
        ("02:03:04", 7384),
        ("3:04", 184),
        ("2-03", 183600),
        ("UNLIMITED", 0),
        ("INVALID", 0),
        ("Partition_Limit", 0),
        ("NOT_SET", 0),
        ("N/A", 0),
    ],
)
def test_times_are_read_in_seconds(text: str, seconds: int) -> None:
    assert duration_s(text) == seconds


def test_instants_are_seconds_since_the_epoch_or_utc() -> None:
    assert [instant_s(t) for t in ("1795206203", "2026-11-20T20:23:23", "N/A", "Unknown")] == [
        *(1795206203.0, 1795206203.0),
        *(0.0, 0.0),
    ]


@pytest.mark.parametrize(
    ("text", "mib"),
    [("100M", 100), ("62.50G", 64000), ("32000", 32000), ("1T", 1048576), ("500K", 1), ("0", 0)],
)
def test_sizes_are_read_in_mib_and_rounded_up(text: str, mib: int) -> None:
    assert size_mib(text) == mib


def test_an_arrays_tasks_are_counted() -> None:
    counted = [tasks_in(text) for text in ("3", "3-9%2", "1,5,7-8", "0-20:5", "0-99999%1")]
    assert counted == [1, 7, 4, 5, 100000]


@pytest.mark.parametrize(
    ("text", "gres"),
    [
        ("gres:gpu:2", (Gres("gpu", "", 2),)),
        ("gres/gpu:2", (Gres("gpu", "", 2),)),
        ("gres/gpu=2", (Gres("gpu", "", 2),)),
        ("gres:gpu:v100:2", (Gres("gpu", "v100", 2),)),
        ("gres/gpu:v100=2", (Gres("gpu", "v100", 2),)),
        ("gres:gpu", (Gres("gpu"),)),
        ("gres:gpu:3g.20gb", (Gres("gpu", "3g.20gb"),)),
        ("gpu:v100", (Gres("gpu", "v100"),)),
        ("cpu=3,gres/gpu=1", (Gres("gpu", "", 1),)),
        (",gres:gpu:2", (Gres("gpu", "", 2),)),
        ("gpu:(null):4(S:0-1),nogpu:no_consume:1", (Gres("gpu", "", 4), Gres("nogpu", "", 1))),
        ("gres:license_server:1,gres:cpufast:2", (Gres("license_server"), Gres("cpufast", "", 2))),
        (
            "gpu:v100:3(IDX:0-1,3),shard:v100:3(IDX:2)",
            (Gres("gpu", "v100", 3, (0, 1, 3)), Gres("shard", "v100", 3, (2,))),
        ),
        (
            "gpu:a:0(IDX:N/A),shard:a:5(4/4,1/4,-/4)",
            (Gres("gpu", "a", 0), Gres("shard", "a", 5, lent=((4, 4), (1, 4), (0, 4)))),
        ),
    ],
)
def test_gres_are_read_in_every_releases_form(text: str, gres: tuple[Gres, ...]) -> None:
    assert gres_list(text) == gres


def test_tres_are_read_as_words() -> None:
    assert tres("cpu=16,mem=32000M,node=1,gres/gpu=2") == {
        **{"cpu": "16", "mem": "32000M", "node": "1"},
        **{"gres/gpu": "2"},
    }


def test_versions_are_read_from_either_answer() -> None:
    assert version_of("slurm-wlm 22.05.8") == (22, 5)
    assert version_of("26.05.3") == (26, 5)
    with pytest.raises(BadAnswer, match="is not a version"):
        parse_config("SlurmUser = root(0)\n")


READERS: list[Callable[[str], object]] = [
    *(host_list, duration_s, instant_s, size_mib, tasks_in, whole, gres_list, tres, indexes),
    *(split_outside, parse_config),
]


@given(st.sampled_from(READERS), st.text(alphabet="n[]0123456789-,:()/=IDXNAgpushrd.TZ \n|%é"))
@example(host_list, "n[0-9][0-9][0-9][0-9][0-9][0-9]")
@example(size_mib, "9" * 15 + "P")
@example(whole, "9" * 5000)
@example(tasks_in, "0-999999999%3")
def test_no_text_makes_a_reader_fail_but_with_bad_answer(
    reader: Callable[[str], object], text: str
) -> None:
    with contextlib.suppress(BadAnswer):
        reader(text)
