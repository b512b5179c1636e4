"""The loop of the monitor, and `pliant monitor`, on a made node whose clock is a number."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from monitor_node import FakeNode

from limits import HANG_S
from pliant.cli import main
from pliant.cli import monitor_view as command
from pliant.errors import Unavailable
from pliant.monitor.gpu_use import GpuUse
from pliant.monitor.gpus import Gpu, GpuProcess, GpuReading
from pliant.monitor.processes import JobHere
from pliant.monitor.reading import JobReading, NodeReading
from pliant.monitor.sample import CountedBy, Counts
from pliant.monitor.service import Clocks, Node, once, run
from pliant.monitor.speed import Parts, Speed, Stalled
from pliant.monitor.tier import Tier
from pliant.monitor.windows import Windows


@dataclass
class Clock:
    """A clock that only waiting moves; a job works half the time on it."""

    fake: FakeNode
    end_s: float
    now_s: float = 1000.0
    cost_s: float = 0.0
    cpu_s: float = 0.0
    waited: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fake.stepd(100, "12.batch")
        self.work()

    def work(self) -> None:
        half_s = self.now_s / 2
        self.fake.process(101, 100, own_s=half_s, threads={101: (half_s, half_s / 3)})

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.now_s += seconds
        self.work()
        return self.now_s > self.end_s

    def cpu(self) -> float:
        self.cpu_s += self.cost_s
        return self.cpu_s

    def node(self) -> Node:
        clocks = Clocks(lambda: self.now_s, lambda: self.now_s + 1e9, self.cpu)
        return Node("n1", self.fake.proc, self.fake.cgroup, clocks)


@dataclass
class Counter:
    """Counts a thousand instructions a second, anew each time that it was let go."""

    clock: Clock
    began_s: float | None = None
    let_go: list[float] = field(default_factory=list)

    def read(self, jobs: Sequence[JobHere]) -> Mapping[str, Counts]:
        now_s = self.clock.now_s
        if not jobs:
            self.began_s = None
            self.let_go.append(now_s)
            return {}
        if self.began_s is None:
            self.began_s = now_s
        since_s = now_s - self.began_s
        return {job.job: Counts(int(1000 * since_s), int(500 * since_s), since_s) for job in jobs}


def told(readings: list[NodeReading]) -> list[tuple[float, float, int, float]]:
    """When a reading was, over what, and the job's tier and speed."""
    found = []
    for each in readings:
        (row,) = each.jobs
        assert row.speed
        at_s, value = round(each.at_s - 1e9, 3), round(row.speed.value, 3)
        found.append((at_s, round(each.window_s, 3), int(row.speed.tier), value))
    return found


def test_one_reading_is_over_one_window(tmp_path: Path) -> None:
    clock = Clock(FakeNode(tmp_path), end_s=1e9)
    counter = Counter(clock)
    found = once(clock.node(), 2.0, clock.wait, counter)
    assert found
    assert told([found]) == [(1002.0, 2.0, 1, 1000.0)]
    assert found.jobs[0].speed
    assert found.jobs[0].speed.parts.run_share == pytest.approx(0.75)
    assert counter.let_go == [1002.0]


def test_one_reading_that_is_ended_meanwhile_is_none(tmp_path: Path) -> None:
    clock = Clock(FakeNode(tmp_path), end_s=1001.0)
    counter = Counter(clock)
    assert once(clock.node(), 2.0, clock.wait, counter) is None
    assert counter.let_go == [1002.0]


def test_readings_come_at_each_tick_until_the_end(tmp_path: Path) -> None:
    clock, readings = Clock(FakeNode(tmp_path), end_s=1030.0), list[NodeReading]()
    run(clock.node(), readings.append, 10.0, clock.wait)
    assert told(readings) == [(1000.0 + n, 10.0, 3, 0.5) for n in (10.0, 20.0, 30.0)]


def test_counters_are_read_in_windows_and_let_go_between(tmp_path: Path) -> None:
    clock, readings = Clock(FakeNode(tmp_path), end_s=1085.0), list[NodeReading]()
    counter = Counter(clock)
    windows = Windows(60.0, 10.0, phase_s=1013.0)
    run(clock.node(), readings.append, 20.0, clock.wait, counters=counter, windows=windows)
    assert told(readings) == [
        (1013.0, 13.0, 3, 0.5),
        (1023.0, 10.0, 1, 1000.0),
        (1043.0, 20.0, 3, 0.5),
        (1063.0, 20.0, 3, 0.5),
        (1073.0, 10.0, 3, 0.5),
        (1083.0, 10.0, 1, 1000.0),
    ]
    assert counter.let_go == pytest.approx([1023.0, 1083.0, 1103.0])


def test_a_costly_node_is_looked_at_less_often(tmp_path: Path) -> None:
    clock = Clock(FakeNode(tmp_path), end_s=1100.0, cost_s=0.25)
    run(clock.node(), lambda _: None, 1.0, clock.wait)
    assert clock.waited == [25.0] * 5


def test_a_node_without_proc_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file or directory"):
        Node("n1", tmp_path / "none").look()


@dataclass
class Driver:
    """A driver of GPUs: the job's process 101 is on the first of two."""

    is_open: bool = False

    def read(self, now_s: float) -> GpuReading:
        self.is_open = True
        return GpuReading(now_s, "550.54.15", GPUS, ("GPU-b: its name cannot be read",))

    def close(self) -> None:
        self.is_open = False


GPUS = (
    Gpu("GPU-a", 0, 1, "A", 900, 1000, 70, (GpuProcess(101, 800, 60, True),)),
    Gpu("GPU-b", 1, 0, None, 0, 1000, 0, ()),
)


def test_a_reading_has_the_nodes_gpus_and_those_of_each_job(tmp_path: Path) -> None:
    clock, driver = Clock(FakeNode(tmp_path), end_s=1e9), Driver()
    found = once(replace(clock.node(), gpus=driver), 2.0, clock.wait)
    assert found
    assert (found.gpus, found.unread) == (GPUS, ("GPU-b: its name cannot be read",))
    assert found.jobs[0].gpus == (GpuUse("GPU-a", 1, 1, 800, 60),)
    assert not driver.is_open


def test_the_driver_is_held_while_there_are_jobs(tmp_path: Path) -> None:
    clock, driver = Clock(FakeNode(tmp_path), end_s=1e9), Driver()
    node = replace(clock.node(), gpus=driver)
    node.look()
    assert driver.is_open
    shutil.rmtree(tmp_path / "proc/100")
    look = node.look()
    assert (look.jobs, driver.is_open) == ({}, False)
    assert look.gpus
    assert look.gpus.gpus == GPUS


# the command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--every", "0"), "pliant: Invalid value for '--every': 0.0 is not in the range"),
        (("--every", "nan"), "pliant: Invalid value for '--every': nan is not in the range"),
        (("--every", "soon"), "pliant: Invalid value for '--every': 'soon' is not a valid float"),
        (("x",), "pliant: Got unexpected extra argument (x); see pliant monitor --help\n"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_2(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["monitor", *words])
    said, error = capsys.readouterr()
    assert (ended.value.code, said, error.count("\n")) == (2, "", 1)
    assert error.startswith(message)


def test_who_is_not_root_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit) as ended:
        main(["monitor"])
    error = "pliant: only root can see which processes are a job's: run it as root\n"
    assert (ended.value.code, capsys.readouterr().err) == (2, error)


def test_readings_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    row = JobReading(
        job="12",
        cpu_s=61.25,
        cpu_by=CountedBy.CGROUP,
        memory_bytes=3 * 2**20,
        memory_by=CountedBy.CGROUP,
        processes=2,
        threads=4,
        speed=Speed(1.5, Tier.CPU, 2.0, Parts(1.5, 0.75, 0.375)),
        stalled=Stalled(0.25, 0.0, 0.0),
        alarms=("cpu",),
    )
    new = replace(row, job="13", speed=None, stalled=None, alarms=())
    found = NodeReading("n1", 1e9, 2.0, Stalled(0.0, 0.5, 0.5), ("memory", "io"), (row, new))
    command.print_reading(found)
    assert capsys.readouterr().out == (
        "n1, over 2.0 s: 2 job(s)\n"
        "the node's work is stalled for: memory, io\n"
        "JOB  TIER   CPU  RAN  CPU_S  MEM_MIB  PROCESSES  THREADS  STALLED\n"
        "12      3  1.50  75%   61.2        3          2        4  cpu\n"
        "13      -     -    -   61.2        3          2        4\n"
    )
    command.print_lines(found)
    assert [line[len("09-09 03:46:40 ") :] for line in capsys.readouterr().out.splitlines()] == [
        "job 12 tier=3 cpu=1.50 ran=75% cpu_s=61.2 mem_mib=3 processes=2 threads=4 stalled=cpu",
        "job 13 tier=- cpu=- ran=- cpu_s=61.2 mem_mib=3 processes=2 threads=4",
    ]
    command.print_reading(replace(found, alarms=(), jobs=()))
    assert capsys.readouterr().out == "n1, over 2.0 s: 0 job(s)\n"


def test_what_cannot_be_read_of_gpus_is_said_where_there_is_a_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = NodeReading("n1", 1e9, 2.0, None, (), (), unread=("no GPU can be read",))
    said = []
    for folder in (tmp_path, tmp_path / "none"):
        monkeypatch.setattr(command, "DRIVER", folder)
        command.print_reading(found)
        said.append(capsys.readouterr().out.splitlines()[1:])
    assert said == [["no GPU can be read"], []]


def test_counters_and_gpus_have_columns_where_a_job_has_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counted = Speed(3e9, Tier.COUNTERS, 2.0, Parts(1.5, 0.75, 0.375, ipc=1.256))
    row = JobReading("12", 61.25, CountedBy.CGROUP, 0, CountedBy.CGROUP, 2, 4, counted, None, ())
    one, other = GpuUse("GPU-a", 1, 1, 800, 60), GpuUse("MIG-b", 1, 1, 100, None)
    third = GpuUse("GPU-c", None, 1, None, None)
    slow = replace(row, job="13", speed=replace(counted, tier=Tier.CPU, parts=Parts(1, 1, 1)))
    rows = (replace(row, gpus=(one, other)), replace(slow, gpus=(one, third)))
    command.print_reading(NodeReading("n1", 1e9, 2.0, None, (), rows))
    assert capsys.readouterr().out == (
        "n1, over 2.0 s: 2 job(s)\n"
        "JOB  TIER   CPU   RAN   IPC  CPU_S  MEM_MIB  PROCESSES  THREADS  GPUS  GPU_MIB  STALLED\n"
        "12      1  1.50   75%  1.26   61.2        0          2        4  1         900\n"
        "13      3  1.00  100%         61.2        0          2        4  1,?\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_readings_are_lines_until_a_signal_ends_them_well(number: signal.Signals) -> None:
    code = "from pliant.cli import main; main(['monitor', '--json', '--every', '0.1'])"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        process.send_signal(number)
        assert process.wait(timeout=HANG_S) == 0
    assert first["node"] == second["node"] != ""
    assert first["at_s"] < second["at_s"]
