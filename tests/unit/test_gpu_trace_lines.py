"""The lines of a trace of processes on GPUs, and the file that they are appended to."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.errors import BadInput
from pliant.monitor.trace_file import TraceFile
from pliant.wire.gpu_trace import HEADER, NotSoError, Row, to_line, to_row

LINE = "1800000000.000,n1,GPU-a,0,7,1799999000.25,ann,12,8192,93,97\n"
ROW = Row(
    *("1800000000.000", "n1", "GPU-a", "0", "7", "1799999000.25", "ann", "12", "8192", "93", "97")
)
HEAD = f"{HEADER}\n"

names = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
numbers = st.integers(0, 10**12 - 1).map(str)
percents = st.integers(0, 100).map(str)
maybe = st.just("")
rows = st.builds(
    Row,
    time=st.floats(0, 1e11).map(lambda at: f"{at:.3f}"),
    node=names,
    gpu=names,
    minor=maybe | numbers,
    pid=numbers,
    started=maybe | numbers,
    user=maybe | names,
    job=maybe | numbers,
    memory_mib=maybe | numbers,
    process_pct=maybe | percents,
    gpu_pct=maybe | percents,
)


def test_a_row_is_a_line_under_the_names_of_its_columns() -> None:
    assert HEADER == "time,node,gpu,minor,pid,started,user,job,memory_mib,process_pct,gpu_pct"
    assert (to_line(ROW), to_row(LINE.rstrip())) == (LINE, ROW)
    assert to_line(Row("5.000", "n1", "GPU-a", "0", gpu_pct="0")) == "5.000,n1,GPU-a,0,,,,,,,0\n"


@given(rows)
def test_what_is_written_is_read(row: Row) -> None:
    assert to_row(to_line(row).removesuffix("\n")) == row


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("1,n1,GPU-a,0", "4 fields: 11 are expected"),
        (LINE.replace("1800000000.000", "now"), "time: 'now': seconds of Unix time are expected"),
        (LINE.replace("1800000000.000", "-5"), "time: '-5': seconds of Unix time are expected"),
        (LINE.replace("1800000000.000", "²"), "time: '²': seconds of Unix time are expected"),
        (LINE.replace("1799999000.25", "1e9"), "started: '1e9': seconds of Unix time are expected"),
        (LINE.replace("1799999000.25", "inf"), "started: 'inf': seconds of Unix time are expected"),
        (LINE.replace(",7,", ",-7,"), "pid: '-7': a whole number is expected"),
        (
            LINE.replace(",7,", ",1234567890123,"),
            "pid: '1234567890123': a whole number is expected",
        ),
        (LINE.replace(",12,", ",12_3,"), "job: '12_3': a whole number is expected"),
        (LINE.replace(",93,", ",101,"), "process_pct: 101: 0 to 100 is expected"),
        (LINE.replace(",n1,", ",,"), "node and gpu are expected on each line"),
        (LINE.replace(",7,", ",,"), "pid: it is empty, and the line tells of a process"),
        (LINE.replace("ann", '"an'), "no CSV: unexpected end of data"),
    ],
)
def test_a_line_that_cannot_be_right_is_refused_with_the_reason(line: str, why: str) -> None:
    with pytest.raises(NotSoError) as refused:
        to_row(line.rstrip())
    assert str(refused.value) == why


# the file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gpus.csv"


def append(path: Path, *texts: str) -> None:
    file = TraceFile(path)
    for text in texts:
        file.append(text)
    file.close()


def test_a_new_file_is_private_and_begins_with_the_columns(path: Path) -> None:
    before = os.umask(0)
    try:
        append(path, LINE, LINE)
    finally:
        os.umask(before)
    assert (path.read_text(), path.stat().st_mode & 0o777) == (HEAD + LINE + LINE, 0o600)


def test_a_file_that_is_there_goes_on(path: Path) -> None:
    append(path, LINE)
    path.chmod(0o640)
    append(path, LINE)
    assert (path.read_text(), path.stat().st_mode & 0o777) == (HEAD + LINE + LINE, 0o640)


@pytest.mark.parametrize("torn", ["1800000015.000,n1,GP", "x" * 5000, "\0" * 4096])
def test_what_a_crash_left_of_a_line_is_cut_off(
    path: Path, torn: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text(HEAD + LINE + torn)
    append(path, LINE)
    assert path.read_text() == HEAD + LINE + LINE
    assert caplog.messages == [f"{path}: its last line was cut off: {len(torn)} bytes are left out"]


@pytest.mark.parametrize("begun", ["", HEADER[:9], HEADER, HEAD, f"{HEAD}1800"])
def test_a_file_that_is_hardly_begun_is_begun(path: Path, begun: str) -> None:
    path.write_text(begun)
    append(path, LINE)
    assert path.read_text() == HEAD + LINE


def test_a_file_that_was_moved_away_or_emptied_is_begun_anew(path: Path) -> None:
    file, moved = TraceFile(path), path.with_suffix(".1")
    file.append(LINE)
    path.rename(moved)
    file.append(LINE)
    path.with_suffix(".2").write_text("")
    path.unlink()
    path.with_suffix(".2").rename(path)  # as logrotate's `create` does
    file.append(LINE)
    assert (moved.read_text(), path.read_text()) == (HEAD + LINE, HEAD + LINE)
    os.truncate(path, 0)  # as its `copytruncate` does
    file.append(LINE)
    assert path.read_text() == HEAD + LINE
    file.close()


def test_what_is_no_trace_is_left_as_it_is(path: Path, tmp_path: Path) -> None:
    path.write_text("root:x:0:0\n")
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(tmp_path / "elsewhere")
    os.mkfifo(pipe)
    for where, why in (
        (path, "it is no trace of processes on GPUs: it begins otherwise"),
        (link, "a link is not followed"),
        (pipe, "it is no file: a trace is appended to one"),
        (tmp_path, "Is a directory"),
        (tmp_path / "none" / "gpus.csv", "No such file or directory"),
    ):
        with pytest.raises(BadInput) as refused:
            TraceFile(where)
        assert str(refused.value) == f"{where}: {why}"
    assert path.read_text() == "root:x:0:0\n"
    assert not (tmp_path / "elsewhere").exists()


def test_one_process_writes_a_trace(path: Path) -> None:
    file = TraceFile(path)
    with pytest.raises(BadInput, match="another process writes it"):
        TraceFile(path)
    file.close()
    append(path, LINE)


def test_a_full_disk_takes_no_part_of_a_look_and_is_told_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file, write = TraceFile(path), os.write
    file.append(LINE)
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda to, data: write(to, data[:20]))
        file.append(LINE * 2)
        full.setattr(os, "write", _no_room)
        file.append(LINE * 2)
    assert path.read_text() == HEAD + LINE
    file.append(LINE)
    file.close()
    assert path.read_text() == HEAD + LINE + LINE
    assert caplog.messages == [
        f"the trace is not written: {path}: No space left on device",
        f"the trace is written again: {path}",
    ]


def _no_room(_file: int, _data: bytes) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
