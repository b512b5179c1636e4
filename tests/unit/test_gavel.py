"""Gavel's tables of measured pairs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pliant.errors import BadInput
from pliant.simulator.gavel import programs, read_pairs

GAVEL = {
    "v100": {
        "A": {"null": 10.0, "A": [6.0, 5.0], "B": [9.0, 18.0], "C": [0.0, 0.0]},
        "B": {"null": 20.0, "A": [18.0, 9.0]},
        "C": {"null": 5.0},
        "D": {"null": 0.0, "A": [1.0, 1.0]},
    },
    "k80": {"('A', 1)": {"null": 4.0, "('A', 1)": [2.0, 2.0]}, "('A', 2)": {"null": 7.0}},
}


def written(tmp_path: Path, table: object) -> Path:
    path = tmp_path / "throughputs.json.gz"
    path.write_bytes(gzip.compress(json.dumps(table).encode()))
    return path


def test_gavels_pairs_are_read_relative_to_each_alone(tmp_path: Path) -> None:
    path = written(tmp_path, GAVEL)
    pairs = read_pairs(path, "v100")
    assert pairs == {("A", "A"): (0.6, 0.5), ("A", "B"): (0.9, 0.9), ("B", "A"): (0.9, 0.9)}
    assert programs(pairs) == ["A", "B"]
    assert read_pairs(path, "k80") == {("A", "A"): (0.5, 0.5)}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([], "'[]': a table by name is expected"),
        ({"p100": {}}, "type of GPU: 'v100': one of p100 is expected"),
        ({"v100": {"A": 1}}, "v100: 'A': '1': a table by name is expected"),
        ({"v100": {"A": {"null": "x"}}}, "'x': a number of steps per second is expected"),
        ({"v100": {"A": {"null": 1, "A": [1]}}}, "'[1]': the steps per second of two is expected"),
        ({"v100": {"A": {"null": -1}}}, "'-1': a number of steps per second is expected"),
    ],
)
def test_a_table_that_cannot_be_right_is_refused(tmp_path: Path, table: object, words: str) -> None:
    with pytest.raises(BadInput) as raised:
        read_pairs(written(tmp_path, table), "v100")
    assert words in str(raised.value)


CUT = gzip.compress(b"{", mtime=0)  # each process names its tests alike


@pytest.mark.parametrize("content", [b"", b"{}", CUT[:-4], CUT])
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "throughputs.json.gz"
    path.write_bytes(content)
    with pytest.raises(
        BadInput, match=r"a table of throughputs .* is expected|one of  is expected"
    ):
        read_pairs(path, "v100")
