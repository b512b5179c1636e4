"""Traces of processes on GPUs: which tasks they tell of, and what is refused with its line."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.cli import main
from pliant.errors import BadInput
from pliant.monitor.gpu_rows import rows_of
from pliant.monitor.gpus import Gpu, GpuProcess, GpuReading
from pliant.monitor.trace_file import TraceFile
from pliant.simulator.traces import Record, read_gpus
from pliant.simulator.traces.guess import FORMATS, guess, processors_of
from pliant.wire.gpu_trace import HEADER, Row, to_line

ANN = Row("0", "n1", "GPU-a", "0", "7", "100", "ann", "12", "8192", "93", "97")
BEN = ANN._replace(pid="8", user="ben", job="13")
HEAD = f"{HEADER}\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "gpus.csv"


def lines(row: Row, times: Iterable[int]) -> list[str]:
    return [to_line(row._replace(time=str(at_s))) for at_s in times]


def written(trace: Path, *looks: list[str]) -> Path:
    """Write looks in the order of time."""
    of_all = sorted((line for look in looks for line in look), key=lambda x: int(x.split(",")[0]))
    trace.write_text(HEAD + "".join(of_all))
    return trace


def task(first_s: float, run_s: float, user: str = "ann", pid: int = 7, gpus: int = 1) -> Record:
    name = f"n1/{pid}@{first_s:.0f}"
    return Record(name, first_s, run_s, gpus, gpus, user=user, gpus=gpus)


def test_a_process_is_a_task_from_when_it_was_first_seen_until_it_was_last(trace: Path) -> None:
    written(trace, lines(ANN, range(1000, 1601, 15)))
    assert list(read_gpus(trace)) == [task(1000, 600)]


@pytest.mark.parametrize(("last_s", "tasks"), [(1300, []), (1301, [task(1000, 301)])])
def test_what_was_seen_for_300_seconds_is_no_task_yet(
    trace: Path, last_s: int, tasks: list[Record]
) -> None:
    written(trace, lines(ANN, (1000, last_s)))
    assert list(read_gpus(trace)) == tasks


def test_tasks_on_one_gpu_share_it_and_run_as_long_as_each_would_alone(trace: Path) -> None:
    # Ann alone for 150 s, with Ben for 450 s, alone for 300 s.
    written(trace, lines(ANN, range(0, 901, 15)), lines(BEN, range(150, 586, 15)))
    assert list(read_gpus(trace)) == [
        task(0, 150 + 450 / 2 + 300),
        task(150, 435 / 2, "ben", 8),
    ]


def test_what_is_no_task_takes_its_share_too(trace: Path) -> None:
    written(trace, lines(ANN, range(0, 601, 15)), lines(BEN, range(150, 286, 15)))
    assert list(read_gpus(trace)) == [task(0, 450 + 150 / 2)]


def test_a_process_on_several_gpus_is_one_task_as_fast_as_the_fullest_of_them(trace: Path) -> None:
    second = ANN._replace(gpu="GPU-b", minor="1")
    written(
        trace,
        lines(ANN, range(0, 601, 15)),
        lines(second, range(150, 301, 15)),
        lines(BEN._replace(gpu="GPU-b", minor="1"), range(150, 301, 15)),
    )
    assert list(read_gpus(trace)) == [task(0, 435 + 165 / 2, gpus=2)]


def test_the_same_number_and_another_beginning_is_another_process(trace: Path) -> None:
    again = ANN._replace(started="900", user="ben")
    written(trace, lines(ANN, range(0, 601, 15)), lines(again, range(615, 1201, 15)))
    assert list(read_gpus(trace)) == [task(0, 600), task(615, 585, "ben")]


def test_a_process_may_be_missed_by_four_looks_and_not_by_five(trace: Path) -> None:
    idle = lines(Row("0", "n1", "GPU-a", "0", gpu_pct="0"), (0, 615, 630, 645, 660))
    first, then = lines(ANN, range(15, 601, 15)), lines(ANN, range(675, 1201, 15))
    written(trace, idle, first, then)
    assert list(read_gpus(trace)) == [task(15, 1185)]
    fifth = lines(Row("0", "n1", "GPU-a", "0"), (665,))
    written(trace, idle, fifth, first, then)
    assert list(read_gpus(trace)) == [task(15, 585), task(675, 525)]


def test_looks_that_do_not_tell_of_its_gpu_do_not_miss_it(trace: Path) -> None:
    other = lines(Row("0", "n1", "GPU-b", "1"), range(0, 1201, 15))
    written(trace, other, lines(ANN, range(0, 301, 15)), lines(ANN, range(600, 1201, 15)))
    assert list(read_gpus(trace)) == [task(0, 1200)]


def test_where_nobody_looked_a_process_went_on_if_it_is_the_same(trace: Path) -> None:
    before, after = range(0, 601, 15), range(5000, 5601, 15)
    written(trace, lines(ANN, before), lines(BEN, before), lines(ANN, after))
    assert list(read_gpus(trace)) == [task(0, 5600 / 2 + 600 / 2), task(0, 300, "ben", 8)]
    unknown = ANN._replace(started="", user="", job="")
    written(trace, lines(unknown, before), lines(unknown, after))
    assert list(read_gpus(trace)) == [task(0, 600, ""), task(5000, 600, "")]
    written(trace, lines(unknown, before), lines(unknown, range(900, 1501, 15)))
    assert list(read_gpus(trace)) == [task(0, 1500, "")]


def test_files_of_several_nodes_are_one_trace(trace: Path) -> None:
    here = lines(ANN, range(0, 601, 15))
    there = lines(ANN._replace(node="n2"), range(5, 606, 15))
    trace.write_text("".join([HEAD, *here, HEAD, *there]))
    one_after_the_other = list(read_gpus(trace))
    written(trace, here, there)
    assert list(read_gpus(trace)) == one_after_the_other
    assert one_after_the_other == [task(0, 600), replace(task(5, 600), id="n2/7@5")]


@pytest.mark.parametrize("torn", ["615,n1,GPU-a,0", "615,n1,GPU-a,0,7,100,ann,12,8192,93,9", "6"])
def test_a_line_that_was_being_written_is_left_out(trace: Path, torn: str) -> None:
    trace.write_text(HEAD + "".join(lines(ANN, range(0, 601, 15))) + torn)
    assert list(read_gpus(trace)) == [task(0, 600)]


def test_it_may_be_packed_and_lie_on_windows(trace: Path) -> None:
    text = HEAD + "".join(lines(ANN, range(0, 601, 15)))
    trace.write_bytes(gzip.compress(text.replace("\n", "\r\n").encode()))
    assert list(read_gpus(trace)) == [task(0, 600)]
    assert guess(trace) is FORMATS["gpus"]


@pytest.mark.parametrize(
    ("text", "number", "why"),
    [
        ("time,node\n", 1, f"the columns {HEADER} are expected"),
        (f"{HEAD}1,n1\n1,n1", 2, "2 fields: 11 are expected"),
        (
            HEAD + "".join([*lines(ANN, [30, 45]), HEAD, *lines(ANN, [31])]),
            5,
            "time 31 is before that of a line above (45) of node n1: sort -n puts the lines in order",
        ),
        (
            HEAD + "".join(lines(ANN, [30, 30])),
            3,
            "gpu GPU-a, pid 7: another line of the same time has it",
        ),
        (
            HEAD + "".join(lines(Row("0", "n1", "GPU-a", "0"), [30]) + lines(ANN, [30])),
            3,
            "gpu GPU-a, pid 7: another line of the same time has it",
        ),
        (
            HEAD + "".join(lines(ANN, [30]) + lines(Row("0", "n1", "GPU-a", "0"), [30])),
            3,
            "gpu GPU-a has another line of the same time",
        ),
        (
            HEAD + "".join(lines(ANN, [30]) + lines(ANN._replace(gpu="GPU-b", started=""), [30])),
            3,
            "pid 7: it began at 100 and at no time in lines of the same time",
        ),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_line(
    trace: Path, text: str, number: int, why: str
) -> None:
    trace.write_text(text)
    with pytest.raises(BadInput) as refused:
        list(read_gpus(trace))
    assert str(refused.value) == f"{trace}, line {number}: {why}"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_trace_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "gpus.csv")
        path.write_bytes(HEAD.encode() + data)
        try:
            assert list(read_gpus(path)) == []
        except BadInput as refused:
            assert str(refused).startswith(f"{path}, line ")


# written and read again


@dataclass(frozen=True)
class Stay:
    """A process that is on some GPUs from one look to another."""

    node: int
    pid: int
    first: int
    last: int
    gpus: frozenset[int]

    def is_there(self, look: int) -> bool:
        return self.first <= look <= self.last


GPUS = 3
steps = st.lists(st.integers(1, 200), min_size=1, max_size=12)


@st.composite
def stays(draw: st.DrawFn, looks: int) -> list[Stay]:
    found = []
    for pid in range(draw(st.integers(0, 6))):
        first = draw(st.integers(0, looks - 1))
        last = draw(st.integers(first, looks - 1))
        on = draw(st.frozensets(st.integers(0, GPUS - 1), min_size=1))
        found.append(Stay(draw(st.integers(1, 2)), pid, first, last, on))
    return found


def reading(here: list[Stay], at_s: float) -> GpuReading:
    def gpu(index: int) -> Gpu:
        on = [stay for stay in here if index in stay.gpus]
        processes = tuple(GpuProcess(stay.pid, 100, None, known=False) for stay in on)
        return Gpu(f"GPU-{index}", index, index, "T4", 0, 100, 50, processes)

    return GpuReading(at_s, "550", tuple(map(gpu, range(GPUS))))


def expected(stay: Stay, all_of_them: list[Stay], times: list[int]) -> Record:
    """What the paper makes of a stay, from its definition."""

    def sharing(look: int) -> int:
        here = [one for one in all_of_them if one.node == stay.node and one.is_there(look)]
        return max(sum(gpu in one.gpus for one in here) for gpu in stay.gpus)

    seen = range(stay.first, stay.last)
    run_s = sum((times[look + 1] - times[look]) / sharing(look) for look in seen)
    found = task(times[stay.first], run_s, "", stay.pid, len(stay.gpus))
    return replace(found, id=f"n{stay.node}/{stay.pid}@{times[stay.first]}")


@given(steps.flatmap(lambda found: st.tuples(st.just(found), stays(len(found)))))
def test_what_a_monitor_writes_is_read_as_the_tasks_that_there_were(
    drawn: tuple[list[int], list[Stay]],
) -> None:
    gaps, there = drawn
    times = [sum(gaps[:count]) for count in range(1, len(gaps) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        path, proc = Path(folder, "gpus.csv"), Path(folder, "proc")
        proc.mkdir()
        (proc / "stat").write_text("btime 5\n")
        file = TraceFile(path)
        for look, at_s in enumerate(times):
            for node in (1, 2):
                here = [stay for stay in there if stay.node == node and stay.is_there(look)]
                rows = rows_of(reading(here, at_s), f"n{node}", {}, proc)
                file.append("".join(map(to_line, rows)))
        file.close()
        found = list(read_gpus(path))
        assert processors_of(path, guess(path)) == 2 * GPUS
    right = [
        expected(stay, there, times) for stay in there if times[stay.last] - times[stay.first] > 300
    ]
    right.sort(key=lambda one: (one.submit_s, one.id))
    assert [replace(one, run_s=0) for one in found] == [replace(one, run_s=0) for one in right]
    assert [one.run_s for one in found] == pytest.approx([one.run_s for one in right])


# replayed


def test_a_trace_is_replayed_on_as_many_gpus_as_it_tells_of(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    idle = lines(Row("0", "n1", "GPU-b", "1"), range(0, 1201, 15))
    times = range(0, 1201, 15)
    written(trace, lines(ANN, times), lines(BEN, times), idle)
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "--trace", str(trace), "--policy", "easy-backfill"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert said.startswith(
        f"{trace} on 2 processors, policy easy-backfill\n"
        "jobs ended      2\n"
        "users, bags     2, 2\n"
        "makespan        600 s\n"
        "utilisation     100.0 % of 2 GPUs\n"
    )


def test_a_trace_without_a_task_is_one_line(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(trace, lines(ANN, (0, 15)))
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "--trace", str(trace)])
    assert (ended.value.code, capsys.readouterr().err) == (2, f"pliant: {trace}: no job\n")
