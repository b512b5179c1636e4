"""Measured speeds: what files of Sia's and Gavel's form say, and what in them is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.errors import BadInput
from pliant.model import Shape
from pliant.simulator.workloads.curves import Measured, Table, read_sia
from pliant.simulator.workloads.gavel import models, read_gavel, read_pairs

HEAD = "placement,local_bsz,step_time,sync_time"
ROWS = (
    "1,16,0.5,0.1",
    "2,16,0.5,0.1",
    "12,16,0.7,0.1",
    "11,16,1.25,0.9",
    "1,32,1.0,0.1",
    "1,8,0.25,0.0",
)
FALLING = Table("falls", ((Shape(1, 1), 2.0), (Shape(1, 2), 4.0), (Shape(2, 1), 1.6)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "bert"
    folder.mkdir()
    return folder / "placements.csv"


def test_a_table_is_read_at_the_batch_size_of_most_shapes(file: Path) -> None:
    file.write_text("\n".join((HEAD, *ROWS)))
    found = read_sia(file)
    assert found == Table("bert (placements, local batch 16)", FALLING.rates)
    assert read_sia(file, 32).rates == ((Shape(1, 1), 1.0),)
    file.write_text("\n".join((HEAD, "2,16,0.5,0.1", "2,16,0.3,0.1")))
    assert read_sia(file).rates == ((Shape(1, 2), 5.0),)


def test_columns_stand_in_any_order_and_nodes_and_replicas_say_the_same(file: Path) -> None:
    rows = ("16,0.5,0.1,1,1", "16,0.5,0.1,1,2", "16,0.7,0.1,2,3", "16,1.25,0.9,2,2")
    file.write_text("\n".join(("local_bsz,step_time,sync_time,num_nodes,num_replicas", *rows)))
    assert read_sia(file).rates == FALLING.rates


@pytest.mark.parametrize(
    ("rows", "number", "why"),
    [
        (["placement,local_bsz,step_time"], 1, "no column sync_time"),
        (
            ["local_bsz,step_time,sync_time"],
            1,
            "no column placement (or num_nodes and num_replicas)",
        ),
        ([HEAD, "1,16,0.5"], 2, "3 fields: 4 are expected"),
        ([HEAD, ROWS[0], "x,16,0.5,0.1"], 3, "placement: 'x': the GPUs on each node, like 44"),
        ([HEAD, "1,16,0.5,0.6"], 2, "a step of 0.5 s, 0.6 s of it to synchronise"),
        ([HEAD, "1,16,0,0"], 2, "a step of 0.0 s, 0.0 s of it to synchronise"),
        ([HEAD, "1,1.5,1,0"], 2, "local_bsz: '1.5': a whole number is expected"),
        ([HEAD, "1,16,nan,0"], 2, "step_time: 'nan': a number is expected"),
        (
            [HEAD.replace("placement", "num_nodes,num_replicas"), "2,1,16,1,0"],
            2,
            "1 replicas on 2 nodes",
        ),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_line(
    file: Path, rows: list[str], number: int, why: str
) -> None:
    file.write_text("\n".join(rows))
    with pytest.raises(BadInput) as refused:
        read_sia(file)
    assert str(refused.value) == f"{file}, line {number}: {why}"


def test_a_batch_size_that_lacks_is_told_with_those_there_are(file: Path) -> None:
    file.write_text("\n".join((HEAD, *ROWS)))
    with pytest.raises(BadInput, match="local_bsz 9: measured are 8, 16, 32"):
        read_sia(file, 9)
    file.write_text(HEAD)
    with pytest.raises(BadInput, match="local_bsz of any size: measured are none"):
        read_sia(file)


def test_speeds_are_taken_as_they_are_and_interpolated_between() -> None:
    speed = Measured(FALLING, Shape(1, 1))
    assert [speed(s) for s in (Shape(1, 2), Shape(2, 1), Shape(1, 3), Shape(1, 1, share=2))] == [
        2,
        0.8,
        2,
        0.5,
    ]
    assert speed == Measured(FALLING, Shape(1, 1)) and hash(speed) == hash(
        Measured(FALLING, Shape(1, 1))
    )
    assert FALLING.within(1).shapes == (Shape(1, 1),)
    assert FALLING.within(1, 2).shapes == (Shape(1, 1), Shape(2, 1))
    with pytest.raises(BadInput, match="empty: nothing was measured that tells of 2"):
        Measured(Table("empty", ()), Shape(1, 2))


A1, A2, B1 = (
    "('ResNet-18 (batch size 16)', 1)",
    "('ResNet-18 (batch size 16)', 2)",
    "('LM (batch size 5)', 1)",
)
SAID = {
    "v100": {
        A1: {"null": 10.0, A1: [8.0, 8.0], B1: [5, 10.0]},
        A2: {"null": 15.0, A2: [0.0, 0.0]},
        B1: {"null": 20.0, A1: [10.0, 5.0]},
        "CycleGAN": {"null": 0.0, A1: [1.0, 1.0]},
    },
    "v100_unconsolidated": {A1: {"null": 10.0}, A2: {"null": 7.0}},
    "k80": {B1: {A1: [0.0, 0.0]}},
}


def test_gavels_tables_are_read_alone_and_in_pairs(tmp_path: Path) -> None:
    path = tmp_path / "throughputs.json.gz"
    path.write_bytes(gzip.compress(json.dumps(SAID).encode()))
    found = read_gavel(path)
    resnet, lm = "ResNet-18 (batch size 16)", "LM (batch size 5)"
    assert found.alone == {
        "v100": {
            resnet: Table(
                f"{resnet} on v100", ((Shape(1, 1), 10), (Shape(1, 2), 15), (Shape(2, 1), 7))
            ),
            lm: Table(f"{lm} on v100", ((Shape(1, 1), 20),)),
        },
        "k80": {},
    }
    assert found.pairs == {
        "v100": {
            ((resnet, 1), (resnet, 1)): (0.8, 0.8),
            ((resnet, 1), (lm, 1)): (0.5, 0.5),
            ((resnet, 2), (resnet, 2)): (0, 0),
            ((lm, 1), (resnet, 1)): (0.5, 0.5),
        },
        "k80": {},
    }


def test_pairs_are_those_that_fit_on_one_gpu(tmp_path: Path) -> None:
    path = tmp_path / "throughputs.json"
    path.write_text(json.dumps(SAID))
    resnet, lm = "ResNet-18 (batch size 16)", "LM (batch size 5)"
    pairs = read_pairs(path, "v100")
    assert pairs == {
        (resnet, resnet): (0.8, 0.8),
        (resnet, lm): (0.5, 0.5),
        (lm, resnet): (0.5, 0.5),
    }
    assert models(pairs) == [lm, resnet]
    with pytest.raises(BadInput, match="type of GPU: 'p100': one of k80, v100 is expected"):
        read_pairs(path, "p100")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            {"v100": {A1: {"null": "fast"}}},
            f"v100, {A1}, null: 'fast': steps per second are expected",
        ),
        ({"v100": {A1: {"null": -1}}}, f"v100, {A1}, null: '-1': steps per second are expected"),
        ({"v100": {A1: {"null": 1, A1: [1]}}}, f"v100, {A1}, {A1}: '[1]': two speeds are expected"),
        (
            {"v100": {"('x', 0)": {}}},
            "v100: '('x', 0)': ('MODEL', GPUS), or a model, is expected",
        ),
    ],
)
def test_what_cannot_be_right_in_gavels_file_is_refused_with_its_place(
    tmp_path: Path, said: object, why: str
) -> None:
    path = tmp_path / "throughputs.json"
    path.write_text(json.dumps(said))
    with pytest.raises(BadInput) as refused:
        read_gavel(path)
    assert str(refused.value) == f"{path}: {why}"


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, head: bool
) -> None:
    path = tmp_path_factory.mktemp("curves") / "any"
    path.write_bytes(HEAD.encode() + b"\n" + text if head else text)
    for reader in (read_sia, read_gavel):
        try:
            reader(path)
        except BadInput as refused:
            assert "\n" not in str(refused)
