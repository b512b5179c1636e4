"""Tracing the processes on GPUs: rows, the loop, and `pliant monitor --trace` down to a replay.

The binding is the real one; the driver's library is a stub of ours (tests/nvml_stub).
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from monitor_node import FakeNode
from test_monitor_gpus import stub

from limits import HANG_S
from pliant.cli import main
from pliant.monitor.gpu_rows import rows_of
from pliant.monitor.gpus import Gpu, GpuProcess, GpuReading, Instance
from pliant.monitor.service import Clocks, Node
from pliant.monitor.trace_file import TraceFile
from pliant.monitor.tracing import Instants, trace
from pliant.wire.gpu_trace import HEADER, Row

__all__ = ["stub"]  # a fixture
TESTS = Path(__file__).parents[1]
BOOTED_S = 1_799_000_000
ROOT = pwd.getpwuid(0).pw_name
NOBODY_HAS = 3_999_999  # as a user's number


@pytest.fixture
def fake(tmp_path: Path) -> FakeNode:
    """A node that was started at a known time: process N began N + 100 ticks after that."""
    found = FakeNode(tmp_path)
    found.write("proc/stat", f"cpu 1 2 3\nintr {'0 ' * 40000}\nbtime {BOOTED_S}\n")
    return found


def gpu(*processes: GpuProcess, letter: str = "a", minor: int = 0) -> Gpu:
    return Gpu(f"GPU-{letter}", 0, minor, "T4", 10, 100, 97, processes)


def empty(letter: str = "a", minor: str = "0") -> Row:
    return Row("1800000000.000", "n1", f"GPU-{letter}", minor, gpu_pct="97")


def rows(fake: FakeNode, jobs: dict[int, str], *gpus: Gpu) -> list[Row]:
    return list(rows_of(GpuReading(1.8e9, "550", gpus), "n1", jobs, fake.proc))


def test_a_row_tells_whose_process_is_on_which_gpu_since_when(fake: FakeNode) -> None:
    fake.process(150, uid=0)
    fake.process(250, uid=NOBODY_HAS)
    seen = rows(
        fake,
        {150: "12", 99: "13"},
        gpu(GpuProcess(150, 8192, 93, True), GpuProcess(250, None, None, True)),
    )
    assert seen == [
        empty()._replace(
            pid="150",
            started="1799000002.50",
            user=ROOT,
            job="12",
            memory_mib="8192",
            process_pct="93",
        ),
        empty()._replace(pid="250", started="1799000003.50", user=str(NOBODY_HAS)),
    ]


def test_who_is_known_on_one_gpu_is_known_on_all_and_strangers_on_none(fake: FakeNode) -> None:
    for pid in (150, 250):
        fake.process(pid, uid=0)
    first = gpu(GpuProcess(150, 1, None, True), GpuProcess(250, 2, None, False))
    second = gpu(GpuProcess(150, 3, None, False), letter="b", minor=1)
    known = {"pid": "150", "started": "1799000002.50", "user": ROOT}
    assert rows(fake, {250: "12"}, first, second) == [
        empty()._replace(**known, memory_mib="1"),
        empty()._replace(pid="250", memory_mib="2"),
        empty("b", "1")._replace(**known, memory_mib="3"),
    ]


def test_who_has_ended_since_is_nobody(fake: FakeNode) -> None:
    fake.write("proc/150/other", "")
    seen = rows(fake, {150: "12"}, gpu(GpuProcess(150, 1, 50, True)))
    assert seen == [empty()._replace(pid="150", memory_mib="1", process_pct="50")]


def test_gpus_without_processes_have_a_row_and_gpus_that_hide_them_have_none(
    fake: FakeNode,
) -> None:
    hides = replace(gpu(letter="b", minor=1), processes=None)
    divided = replace(gpu(letter="c", minor=2), util_pct=None)
    part = Gpu("MIG-1", 2, 2, "A100", 5, 50, None, (), Instance(1, 0, "GPU-c"))
    assert rows(fake, {}, gpu(), hides, divided, part) == [
        empty(),
        Row("1800000000.000", "n1", "MIG-1", "2"),
    ]


def test_time_never_goes_back() -> None:
    clocks = iter([(100.0, 0.0), (115.0, 15.0), (40.0, 30.0), (55.0, 45.0), (500.0, 60.0)])
    told: list[float] = []

    def at(place: int) -> float:
        if place == 0:
            told[:] = next(clocks)
        return told[place]

    instants = Instants(lambda: at(0), lambda: at(1))
    assert [instants.now_s() for _ in range(5)] == [100.0, 115.0, 130.0, 145.0, 500.0]


@dataclass
class Scripted:
    """GPUs that say what they were told to, and a clock that only waiting moves."""

    readings: Iterator[tuple[Gpu, ...]]
    now_s: float = 1000.0
    asked_s: list[float] = field(default_factory=list)

    def read(self, now_s: float) -> GpuReading:
        self.asked_s.append(now_s)
        return GpuReading(now_s, "550", next(self.readings))

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        return self.now_s > 1050.0


def test_each_look_is_appended_at_once_and_none_where_no_gpu_can_be_read(fake: FakeNode) -> None:
    pair = (gpu(), gpu(letter="b", minor=1))
    gpus = Scripted(iter([pair, (), pair, pair]))
    clocks = Clocks(lambda: gpus.now_s, lambda: gpus.now_s + 1e9, lambda: 0.0)
    appended: list[str] = []
    node = Node("n1", fake.proc, fake.cgroup, clocks)
    trace(node, gpus, appended.append, 15.0, gpus.wait)
    assert gpus.asked_s == [1000001000.0, 1000001015.0, 1000001030.0, 1000001045.0]
    assert appended == [
        f"{at_s}.000,n1,GPU-a,0,,,,,,,97\n{at_s}.000,n1,GPU-b,1,,,,,,,97\n"
        for at_s in (1000001000, 1000001030, 1000001045)
    ]


# with the binding, and a stub for the driver


def environment(library: Path, state: Path) -> dict[str, str]:
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "NVML_STUB_STATE": str(state),
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)]),
    }


GPUS = ["gpu GPU-aaaa 1 16384 9000 97 0 T4", "gpu GPU-bbbb 0 16384 4000 50 0 T4"]


def state(fake: FakeNode, name: str, on_a: str, on_b: str) -> str:
    """Write what the stub is to say: on each GPU these processes, or none."""
    lines = filter(None, ["driver 550.54.15", GPUS[0], on_a, GPUS[1], on_b])
    fake.write(name, "\n".join(lines) + "\n")
    return str(fake.top / name)


def held(fake: FakeNode, pid: int, parent: int, *devices: str) -> None:
    fake.process(pid, parent, uid=NOBODY_HAS)
    folder = fake.proc / str(pid) / "fd"
    folder.mkdir()
    for number, device in enumerate(devices):
        (folder / str(number)).symlink_to(device)


def test_a_trace_is_written_and_replayed(
    stub: Path, fake: FakeNode, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.stepd(100, "12.batch")
    fake.stepd(200, "13.batch")
    held(fake, 150, 100, "/dev/nvidia0", "/dev/nvidia1")
    held(fake, 250, 200, "/dev/nvidia1")
    long, both = "process Compute 150 4000", "process Compute 150 4000\nprocess Compute 250 5000"
    alone = state(fake, "alone", long, long)
    together = state(fake, "together", both, long)
    at_rest = state(fake, "at_rest", "", "")
    # Job 12 has both GPUs for ten minutes; job 13 shares one of them for the first five and more.
    looks = [(at_s, together if at_s <= 330 else alone) for at_s in range(0, 601, 15)]
    looks += [(at_s, at_rest) for at_s in (615, 630)]
    file = fake.top / "gpus.csv"
    subprocess.run(
        [
            sys.executable,
            str(TESTS / "gpu_tracing.py"),
            str(file),
            str(fake.proc),
            str(fake.cgroup),
        ],
        env=environment(stub / "new", Path(alone)),
        input="".join(f"{1_800_000_000 + at_s} {of}\n" for at_s, of in looks),
        text=True,
        check=True,
        timeout=HANG_S,
    )
    lines = file.read_text().splitlines()
    assert lines[:4] == [
        HEADER,
        f"1800000000.000,n1,GPU-aaaa,1,150,1799000002.50,{NOBODY_HAS},12,4000,,97",
        f"1800000000.000,n1,GPU-aaaa,1,250,1799000003.50,{NOBODY_HAS},13,5000,,97",
        f"1800000000.000,n1,GPU-bbbb,0,150,1799000002.50,{NOBODY_HAS},12,4000,,50",
    ]
    assert lines[-2:] == [
        "1800000630.000,n1,GPU-aaaa,1,,,,,,,97",
        "1800000630.000,n1,GPU-bbbb,0,,,,,,,50",
    ]
    assert len(lines) == 1 + 23 * 3 + 18 * 2 + 2 * 2
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "--trace", str(file), "--policy", "easy-backfill"])
    # Alone they run 345 / 2 + 255 s and 330 / 2 s; on two GPUs, one after the other.
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(
        f"{file} on 2 processors, policy easy-backfill\n"
        "jobs ended      2\n"
        "users, bags     1, 1\n"
        "makespan        592.5 s\n"
        "utilisation     86.1 % of 2 GPUs\n"
    )


# the command

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may look")
COMMAND = "import sys; from pliant.cli import main; main(['monitor', *sys.argv[1:]])"


@needs_root
def test_the_command_traces_real_processes_until_it_is_told_to_end(
    stub: Path, tmp_path: Path
) -> None:
    file, device, told = tmp_path / "gpus.csv", tmp_path / "nvidia0", tmp_path / "state"
    device.touch()
    sleep = shutil.which("sleep") or "sleep"
    with device.open() as opened, subprocess.Popen([sleep, "60"], stdin=opened) as process:
        try:
            told.write_text(
                f"driver 1\ngpu GPU-aaaa 0 16384 9000 97 0 T4\nprocess Compute {process.pid} 4000\n"
            )
            words = ["--trace", str(file), "--every", "0.1"]
            with subprocess.Popen(
                [sys.executable, "-c", COMMAND, *words],
                env=environment(stub / "new", told),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ) as monitor:
                while not file.exists() or file.read_text().count("\n") < 3:
                    assert monitor.poll() is None
                    time.sleep(0.05)
                monitor.send_signal(signal.SIGTERM)
                assert monitor.communicate(timeout=HANG_S)[0] == b""
            assert monitor.returncode == 0
        finally:
            process.kill()
    header, first, second, *_ = [line.split(",") for line in file.read_text().splitlines()]
    assert header == HEADER.split(",")
    assert float(first[0]) < float(second[0]) <= time.time()
    assert first[1:] == second[1:]
    assert first[2:5] == ["GPU-aaaa", "0", str(process.pid)]
    assert first[6:] == [ROOT, "", "4000", "", "97"]
    assert 0 <= float(first[0]) - float(first[5]) < 120
    assert file.stat().st_mode & 0o777 == 0o600


@needs_root
@pytest.mark.parametrize(
    ("driver", "code", "error"),
    [("new", 0, ""), ("none", 2, "pliant: {file}: nothing is appended, for no GPU can be read\n")],
)
def test_once_is_one_look(stub: Path, tmp_path: Path, driver: str, code: int, error: str) -> None:
    file, told = tmp_path / "gpus.csv", tmp_path / "state"
    told.write_text("driver 1\ngpu GPU-aaaa 0 16384 0 0 0 T4\n")
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "--once", "--trace", str(file)],
        env=environment(stub / driver, told),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.endswith(error.format(file=file))
    assert file.read_text().count("\n") == (2 if driver == "new" else 1)


@needs_root
def test_what_cannot_be_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = TraceFile(tmp_path / "taken")
    for words, error in (
        (
            ["--json", "--trace", "x"],
            "--json: a trace has its own form; it does not go with --trace",
        ),
        (["--trace", str(tmp_path / "taken")], f"{tmp_path}/taken: another process writes it"),
        (["--trace", str(tmp_path)], f"{tmp_path}: Is a directory"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["monitor", *words])
        assert (ended.value.code, capsys.readouterr().err) == (2, f"pliant: {error}\n")
    taken.close()
