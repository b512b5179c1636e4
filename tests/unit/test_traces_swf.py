"""Traces in the Standard Workload Format: what is read, and what is refused with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.errors import BadInput
from pliant.simulator.traces import Record, read_swf

HEAD = "; Version: 2.2\n; MaxProcs: 240\n;\n"
LINE = "   11   342072     32  43306   32  43307    -1   40  43200    -1  1   4   1  7 2  1 -1 -1"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "a.swf"


def line(**other: float | str) -> str:
    """One line, of a job of ten seconds on two processors."""
    fields: dict[str, float | str] = {
        "job": 1,
        "submit": 0,
        "wait": 0,
        "run": 10,
        "width": 2,
        "cpu": -1,
        "memory": -1,
    }
    fields |= {"asked": 2, "limit": 60, "asked_memory": -1, "status": 1, "user": 1, "group": 1}
    fields |= {"program": -1, "queue": -1, "partition": -1, "before": -1, "think": -1, **other}
    return " ".join(str(value) for value in fields.values())


def test_a_job_is_read(trace: Path) -> None:
    trace.write_text(f"{HEAD}{LINE}\n")
    assert list(read_swf(trace)) == [
        Record("11", 342072, 43306, 32, 40, 43200, 32, "4", "1", "7", "2", failed=False)
    ]


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n; done\n"])
def test_packed_or_not_and_however_it_ends(trace: Path, end: str) -> None:
    text = f"{HEAD}{line()}\n{line(job=2, submit=5)}{end}".encode()
    trace.write_bytes(text)
    plain = list(read_swf(trace))
    trace.write_bytes(gzip.compress(text))
    assert list(read_swf(trace)) == plain
    assert [record.id for record in plain] == ["1", "2"]


def test_what_is_not_known_is_taken_from_what_is(trace: Path) -> None:
    lines = (line(width=-1), line(job=2, asked=-1), line(job=3, limit=-1, wait=-1, user=-1))
    trace.write_text("\n".join(lines))
    seen = [(r.width, r.asked, r.limit_s, r.wait_s, r.user) for r in read_swf(trace)]
    assert seen == [(2, 2, 60, 0, "1"), (2, 2, 60, 0, "1"), (2, 2, 0, 0, "")]


def test_jobs_that_never_ran_are_left_out(trace: Path) -> None:
    trace.write_text("\n".join([line(run=0), line(run=-1), line(width=-1, asked=-1), line(job=9)]))
    assert [record.id for record in read_swf(trace)] == ["9"]


def test_parts_of_a_job_between_checkpoints_are_left_out(trace: Path) -> None:
    parts = (line(status=2, run=4), line(status=3, run=6, submit=-1), line(status=4, run=6))
    trace.write_text("\n".join([line(run=10), *parts, line(job=2, submit=5)]))
    assert [(record.id, record.run_s) for record in read_swf(trace)] == [("1", 10), ("2", 10)]


def test_jobs_whose_number_is_not_known_have_the_line_s(trace: Path) -> None:
    trace.write_text("\n".join([line(job=2), line(job=-1), line(job=-1)]))
    assert [record.id for record in read_swf(trace)] == ["2", "line2", "line3"]


@pytest.mark.parametrize(
    ("text", "number", "why"),
    [
        ("1 2 3", 4, "3 fields: 18 are expected"),
        (line(run="ten"), 4, "run time: 'ten': a number is expected"),
        (line(run="nan"), 4, "run time: 'nan': a number is expected"),
        (line(width=1e13), 4, "allocated processors: '10000000000000.0': a number is expected"),
        (line(run=-7), 4, "a negative number of processors or seconds"),
        (f"{line()}\n{line(submit=3)}", 5, "job number 1 stands twice"),
        (line(job=1.5), 4, "job number: 1.5: a whole number is expected"),
        (line(width=0.5), 4, "allocated processors: 0.5: a whole number is expected"),
        (line(asked=2.7), 4, "requested processors: 2.7: a whole number is expected"),
        (line(submit=-1), 4, "submit time -1 is not known"),
        (
            f"{line(submit=9)}\n{line(submit=8)}",
            5,
            "submit time 8 is before that of the line above",
        ),
        ("\x00" * 200_000, 4, "longer than 100000 bytes"),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_line(
    trace: Path, text: str, number: int, why: str
) -> None:
    trace.write_text(f"{HEAD}{text}")
    with pytest.raises(BadInput) as refused:
        list(read_swf(trace))
    assert str(refused.value).startswith(f"{trace}, line {number}: {why}")


def test_a_file_that_is_cut_off_is_refused(trace: Path) -> None:
    whole = gzip.compress(f"{HEAD}{line()}\n".encode())
    trace.write_bytes(whole[:-12])
    with pytest.raises(BadInput, match="the file is cut off or damaged"):
        list(read_swf(trace))
    trace.unlink()
    with pytest.raises(BadInput, match="No such file"):
        list(read_swf(trace))


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    trace = tmp_path_factory.mktemp("swf") / "any"
    trace.write_bytes(text)
    try:
        list(read_swf(trace))
    except BadInput as refused:
        assert "\n" not in str(refused)
