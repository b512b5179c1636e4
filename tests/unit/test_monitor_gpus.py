"""GPUs by NVML: the real binding, and under it a stub of the driver's library (tests/nvml_stub).

What is shown is the path of Pliant and the binding; how GPUs behave is what the stub was told.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpu_readings import Answer
from limits import HANG_S
from pliant.monitor.gpu_use import GpuUse, gpu_use
from pliant.monitor.gpus import Gpu, GpuProcess, GpuReading, Instance
from pliant.monitor.reading import JobReading, NodeReading
from pliant.monitor.sample import CountedBy
from pliant.monitor.speed import Parts, Speed
from pliant.monitor.tier import Tier
from pliant.monitor.told import node_gpus, windows
from pliant.wire import monitor as wire

TESTS = Path(__file__).parents[1]
NOW_S = 1_800_000_000.0
NOW_US = 1_800_000_000_000_000

# The second GPU by NVML's numbering is the first by the kernel's.
TWO = f"""\
driver 550.54.15
gpu GPU-aaaa 1 81559 20480 93 0 NVIDIA H100 80GB HBM3
process Compute 400 12288
process Compute 300 8192
sample 300 25 {NOW_US - 400_000}
sample 400 70 {NOW_US - 300_000}
gpu GPU-bbbb 0 81559 0 0 0 NVIDIA H100 80GB HBM3
"""
H100 = "NVIDIA H100 80GB HBM3"
BUSY = Gpu(
    uuid="GPU-aaaa",
    index=0,
    minor=1,
    name=H100,
    mem_used_mib=20480,
    mem_total_mib=81559,
    util_pct=93,
    processes=(GpuProcess(300, 8192, 25, True), GpuProcess(400, 12288, 70, True)),
)
SAMPLED_BEFORE = replace(
    BUSY, processes=(GpuProcess(300, 8192, None, True), GpuProcess(400, 12288, None, True))
)
IDLE = Gpu("GPU-bbbb", 1, 0, H100, 0, 81559, 0, ())


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the stub's drivers: new, old, very-old."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or shutil.which("make") is None:
        pytest.skip("no C compiler, or no make")
    build = tmp_path_factory.mktemp("nvml_stub")
    make = ["make", "-s", "-C", str(TESTS / "nvml_stub"), f"BUILD={build}", f"CC={compiler}"]
    subprocess.run(make, check=True, timeout=HANG_S)
    return build


class Node:
    """A node with the stub for a driver, and a process on it that reads the GPUs."""

    def __init__(self, library: Path, start: str) -> None:
        self.shared = tempfile.TemporaryDirectory()  # for "nobody" to read, as tmp_path is not
        Path(self.shared.name).chmod(0o755)
        self.state = Path(self.shared.name, "state")
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, str(TESTS / "gpu_readings.py")],
            env={
                **os.environ,
                "LD_LIBRARY_PATH": str(library),
                "NVML_STUB_STATE": str(self.state),
                "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)]),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, proc: Path) -> None:
        """Forget all that was read, and take another folder for /proc."""
        proc.mkdir()
        self.proc = proc
        self.tell(f"node {proc}")

    def run(self, pid: int, *opened: str) -> None:
        """Let a process be in /proc, with files open; "" is one that is closed just now: no link."""
        folder = self.proc / str(pid) / "fd"
        folder.mkdir(parents=True)
        for number, name in enumerate(opened):
            link = folder / str(number)
            link.symlink_to(name) if name else link.touch()

    def answer(self, state: str, now_s: float = NOW_S) -> Answer:
        self.state.write_bytes(os.fsencode(state))
        assert self.process.stdout is not None
        self.tell(repr(now_s))
        return msgspec.json.decode(self.process.stdout.readline(), type=Answer)

    def read(self, state: str, now_s: float = NOW_S) -> GpuReading:
        return self.answer(state, now_s).reading

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def end(self) -> int:
        self.process.communicate(timeout=HANG_S)
        self.shared.cleanup()
        return self.process.returncode


Boot = Callable[..., Node]
START = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"


@pytest.fixture(scope="module")
def booted(stub: Path) -> Iterator[Callable[[str, str], Node]]:
    """A node of each kind, which many tests use one after the other."""
    nodes: dict[tuple[str, str], Node] = {}

    def node(driver: str, start: str) -> Node:
        if (driver, start) not in nodes:
            nodes[driver, start] = Node(stub / driver, start)
        return nodes[driver, start]

    yield node
    assert [node.end() for node in nodes.values()] == [0] * len(nodes)


@pytest.fixture
def boot(booted: Callable[[str, str], Node], tmp_path: Path) -> Boot:
    """Start a node with the driver of this age; with none, there is no such folder."""

    def start(driver: str = "new", start: str = START) -> Node:
        node = booted(driver, start)
        node.begin(tmp_path / "proc")
        return node

    return start


def with_jobs(node: Node) -> Node:
    node.run(300, "/dev/null", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1")
    node.run(400, "/dev/nvidia0", "/dev/nvidia1")
    return node


def test_each_gpu_tells_its_memory_and_use_and_that_of_its_processes(boot: Boot) -> None:
    assert with_jobs(boot()).answer(TWO) == Answer(
        GpuReading(NOW_S, "550.54.15", (BUSY, IDLE)), logged=[]
    )


def test_a_gpu_is_found_by_its_device_file_and_not_by_its_index(boot: Boot) -> None:
    reading = with_jobs(boot()).read(TWO)
    assert [reading.of_minors(minors) for minors in ([0], [1], [0, 1], [2])] == [
        (IDLE,),
        (BUSY,),
        (BUSY, IDLE),
        (),
    ]


def test_a_pid_is_known_only_if_it_has_this_gpu_open_here(boot: Boot) -> None:
    node = boot()
    node.run(2, "/dev/nvidia1", "")
    node.run(3, "", "/nvidia1")  # in a container: as seen from outside
    node.run(4, "/dev/nvidia11", "/dev/nvidiactl", "/dev/nvidia-uvm")
    node.run(5, "/dev/nvidia0")
    node.run(6, "/home/ada/1")
    gpu = "driver 1\ngpu GPU-aaaa 1 100 10 5 0 T4\n"
    reading = node.read(gpu + "".join(f"process Compute {pid} 1\n" for pid in range(2, 8)))
    assert reading.gpus[0].processes == (
        GpuProcess(2, 1, None, True),
        GpuProcess(3, 1, None, True),
        GpuProcess(4, 1, None, False),
        GpuProcess(5, 1, None, False),
        GpuProcess(6, 1, None, False),
        GpuProcess(7, 1, None, False),  # in no /proc of ours
    )
    assert reading.unread == ()


def test_processes_of_all_three_kinds_are_listed_once_each(boot: Boot) -> None:
    state = """\
driver 1
gpu GPU-aaaa 0 100 10 5 0 T4
process MPSCompute 7 3
process Compute 8 4
process Graphics 8 4
process Graphics 9 -1
process Compute 7 3
process MPSCompute 6 2
"""
    node = boot()
    node.run(7, "/dev/nvidia0")
    node.run(8, "/dev/nvidia0")
    assert node.read(state).gpus[0].processes == (
        GpuProcess(6, 2, None, False),
        GpuProcess(7, 3, None, True),
        GpuProcess(8, 4, None, True),
        GpuProcess(9, None, None, False),  # it has memory, which is not told
    )


def test_the_samples_since_the_last_reading_count_as_their_mean_and_only_once(boot: Boot) -> None:
    gpu = "driver 1\ngpu GPU-aaaa 0 100 10 5 0 T4\nprocess Compute 7 1\nprocess Compute 8 1\n"
    node = boot()

    def percents(after_s: int, *samples: str) -> list[int | None]:
        listed = node.read(gpu + "\n".join(samples), NOW_S + after_s).gpus[0].processes
        assert listed is not None
        return [process.sm_pct for process in listed]

    long_past, ended = f"sample 8 60 {NOW_US - 31_000_000}", f"sample 9 60 {NOW_US}"
    newest, older = f"sample 7 30 {NOW_US - 200_000}", f"sample 7 20 {NOW_US - 400_000}"
    first = [newest, older, long_past, ended]
    assert percents(0, *first) == [25, None]
    assert percents(1, *first) == [None, None]
    nonsense = f"sample 7 4294967295 {NOW_US + 1_600_000}"
    assert percents(2, *first, f"sample 8 11 {NOW_US + 1_500_000}", nonsense) == [None, 11]
    # The clock was set back by an hour.
    assert percents(-3600, f"sample 8 12 {NOW_US - 3_600_000_000}") == [None, 12]


@pytest.mark.parametrize("code", [0, 6, 7])
def test_no_samples_are_no_fault_however_it_is_said(boot: Boot, code: int) -> None:
    answer = with_jobs(boot()).answer(TWO + f"fault nvmlDeviceGetProcessUtilization {code}\n")
    assert answer == Answer(GpuReading(NOW_S, "550.54.15", (SAMPLED_BEFORE, IDLE)), logged=[])


def test_each_instance_of_mig_is_a_row_with_its_processes(boot: Boot) -> None:
    state = """\
driver 550.54.15
gpu GPU-aaaa 3 40960 12288 0 1 NVIDIA A100-SXM4-40GB
mig MIG-1111 1 0 20096 12000 NVIDIA A100-SXM4-40GB MIG 3g.20gb
process Compute 300 11000
mig MIG-2222 2 0 20096 37 NVIDIA A100-SXM4-40GB MIG 3g.20gb
gpu GPU-bbbb 0 40960 0 0 0 NVIDIA A100-SXM4-40GB
"""
    node = boot()
    node.run(300, "/dev/nvidia3")
    a100 = "NVIDIA A100-SXM4-40GB"
    whole = Gpu("GPU-aaaa", 0, 3, a100, 12288, 40960, None, ())
    first = Gpu(
        uuid="MIG-1111",
        index=0,
        minor=3,
        name=f"{a100} MIG 3g.20gb",
        mem_used_mib=12000,
        mem_total_mib=20096,
        util_pct=None,
        processes=(GpuProcess(300, 11000, None, True),),
        instance=Instance(1, 0, "GPU-aaaa"),
    )
    second = Gpu(
        "MIG-2222", 0, 3, f"{a100} MIG 3g.20gb", 37, 20096, None, (), Instance(2, 0, "GPU-aaaa")
    )
    other = Gpu("GPU-bbbb", 1, 0, a100, 0, 40960, 0, ())
    reading = node.read(state)
    assert reading == GpuReading(NOW_S, "550.54.15", (whole, first, second, other))
    assert reading.of_minors([3]) == (whole, first, second)
    without_second = "".join(
        line for line in state.splitlines(keepends=True) if "MIG-2222" not in line
    )
    assert node.read(without_second).gpus == (whole, first, other)


NO_LIBRARY = "no GPU can be read: NVML Shared Library Not Found"


def test_a_node_without_a_driver_is_said_once_to_have_none(boot: Boot) -> None:
    node = boot("none")
    assert [node.answer(""), node.answer("", NOW_S + 1)] == [
        Answer(GpuReading(NOW_S, None, (), (NO_LIBRARY,)), [f"WARNING: {NO_LIBRARY}"]),
        Answer(GpuReading(NOW_S + 1, None, (), (NO_LIBRARY,)), []),
    ]


def test_a_driver_that_is_loaded_later_is_found(boot: Boot) -> None:
    node = with_jobs(boot())
    words = "no GPU can be read: Driver Not Loaded"
    assert [node.answer(TWO + "fault nvmlInitWithFlags 9\n"), node.answer(TWO)] == [
        Answer(GpuReading(NOW_S, None, (), (words,)), [f"WARNING: {words}"]),
        Answer(GpuReading(NOW_S, "550.54.15", (BUSY, IDLE)), [f"INFO: no longer so: {words}"]),
    ]


def test_a_python_without_the_binding_says_what_to_install(boot: Boot) -> None:
    node = boot(start="import sys; sys.modules['pynvml'] = None; " + START)
    words = "no GPU can be read: nvidia-ml-py is not installed: pip install 'pliant[gpu]'"
    assert node.answer(TWO) == Answer(GpuReading(NOW_S, None, (), (words,)), [f"WARNING: {words}"])


def test_an_old_driver_lists_its_processes_in_the_way_it_has(boot: Boot) -> None:
    assert with_jobs(boot("old")).answer(TWO) == Answer(
        GpuReading(NOW_S, "550.54.15", (BUSY, IDLE)), logged=[]
    )


def test_what_a_very_old_driver_does_not_have_is_not_known_and_said_once(boot: Boot) -> None:
    node = boot("very-old")
    lacking = tuple(
        f"driver 550.54.15, or this nvidia-ml-py, has no {call}"
        for call in (
            "nvmlDeviceGetProcessUtilization",
            "nvmlDeviceGetComputeRunningProcesses_v2",
        )
    )
    busy = Gpu("GPU-aaaa", 0, 1, H100, 20480, 81559, 93, None)
    idle = Gpu("GPU-bbbb", 1, 0, H100, 0, 81559, 0, None)
    reading = GpuReading(NOW_S, "550.54.15", (busy, idle), lacking)
    assert [node.answer(TWO), node.answer(TWO)] == [
        Answer(reading, [f"WARNING: {words}" for words in lacking]),
        Answer(reading, []),
    ]


def test_what_an_old_binding_does_not_have_is_said_likewise(boot: Boot) -> None:
    call = "nvmlDeviceGetProcessUtilization"
    node = with_jobs(boot(start=f"import pynvml; del pynvml.{call}; {START}"))
    words = f"driver 550.54.15, or this nvidia-ml-py, has no {call}"
    assert node.read(TWO) == GpuReading(NOW_S, "550.54.15", (SAMPLED_BEFORE, IDLE), (words,))


def test_a_gpu_without_mig_graphics_or_mps_is_nothing_to_speak_of(boot: Boot) -> None:
    kinds = [f"{kind}RunningProcesses_v{n}" for kind in ("Graphics", "MPSCompute") for n in (2, 3)]
    faults = "".join(f"fault nvmlDeviceGet{call} 3\n" for call in ("MigMode", *kinds))
    assert with_jobs(boot()).read(TWO + faults) == GpuReading(NOW_S, "550.54.15", (BUSY, IDLE))


LOST = "GPU-aaaa (/dev/nvidia1): cannot be read: GPU is lost"


def test_a_gpu_that_falls_off_the_bus_leaves_the_others_to_be_read(boot: Boot) -> None:
    node = with_jobs(boot())
    fallen = TWO + "fault * 15 GPU-aaaa\n"
    assert [node.answer(state) for state in (TWO, fallen, fallen, TWO)] == [
        Answer(GpuReading(NOW_S, "550.54.15", (BUSY, IDLE)), []),
        Answer(GpuReading(NOW_S, "550.54.15", (IDLE,), (LOST,)), [f"WARNING: {LOST}"]),
        Answer(GpuReading(NOW_S, "550.54.15", (IDLE,), (LOST,)), []),
        Answer(
            GpuReading(NOW_S, "550.54.15", (SAMPLED_BEFORE, IDLE)),
            [f"INFO: no longer so: {LOST}"],
        ),
    ]


def test_a_gpu_that_falls_off_the_bus_in_the_midst_of_a_reading_is_left_out(boot: Boot) -> None:
    node = with_jobs(boot())
    state = TWO + "fault nvmlDeviceGetUtilizationRates 15 GPU-aaaa\n"
    assert node.read(state) == GpuReading(NOW_S, "550.54.15", (IDLE,), (LOST,))


def test_a_gpu_that_is_lost_before_its_name_is_known_is_called_by_its_index(boot: Boot) -> None:
    words = "the GPU with NVML's index 0: cannot be read: GPU is lost"
    assert boot().read(TWO + "fault * 15 GPU-aaaa\n") == GpuReading(
        NOW_S, "550.54.15", (IDLE,), (words,)
    )


def test_a_restarted_driver_is_opened_again_within_the_reading(boot: Boot) -> None:
    node = boot()
    quiet = "driver 550.54.15\nsession 1\ngpu GPU-bbbb 0 81559 0 0 0 NVIDIA H100 80GB HBM3\n"
    node.read(quiet)
    exchanged = quiet.replace("session 1", "session 2").replace("550.54.15", "570.10")
    assert node.answer(exchanged) == Answer(
        GpuReading(NOW_S, "570.10", (Gpu("GPU-bbbb", 0, 0, H100, 0, 81559, 0, ()),)), []
    )


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (1, "Uninitialized"),
        (9, "Driver Not Loaded"),
        (18, "RM has detected an NVML/RM version mismatch."),
    ],
)
def test_a_driver_that_goes_in_the_midst_of_a_reading_ends_it(
    boot: Boot, code: int, why: str
) -> None:
    faults = f"fault nvmlDeviceGetName 42 *\nfault nvmlDeviceGetMemoryInfo {code} GPU-bbbb\n"
    words = f"no GPU can be read: {why}"
    assert boot().answer(TWO + faults) == Answer(
        GpuReading(NOW_S, None, (), (words,)), [f"WARNING: {words}"]
    )


def test_a_session_is_closed_and_opened_again(boot: Boot) -> None:
    node = boot()
    one = "driver 1\ngpu GPU-bbbb 0 81559 0 0 0 NVIDIA H100 80GB HBM3\n"
    first = node.read(one)
    node.tell("close")
    # Nothing but a new session would ask for this.
    refused = "no GPU can be read: Insufficient Permissions"
    assert node.read(one + "fault nvmlInitWithFlags 4\n") == GpuReading(NOW_S, None, (), (refused,))
    assert node.read(one) == first


UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "nvmlDeviceGetName": ({"name": None}, "its name"),
    "nvmlDeviceGetMemoryInfo": ({"mem_used_mib": None, "mem_total_mib": None}, "its memory"),
    "nvmlDeviceGetUtilizationRates": ({"util_pct": None}, "its utilisation"),
    "nvmlDeviceGetProcessUtilization": ({}, "its processes' utilisation"),
    "nvmlDeviceGetMigMode": ({}, "its MIG mode"),
}


@pytest.mark.parametrize("call", UNREADABLE)
def test_one_thing_that_cannot_be_read_is_missing_alone(boot: Boot, call: str) -> None:
    fields, what = UNREADABLE[call]
    words = f"GPU-bbbb (/dev/nvidia0): {what} cannot be read: the stub's own error"
    assert with_jobs(boot()).read(TWO + f"fault {call} 42 GPU-bbbb\n") == GpuReading(
        NOW_S, "550.54.15", (BUSY, replace(IDLE, **fields)), (words,)
    )


CALLS = [
    *"HandleByIndex_v2 UUID MinorNumber Name MemoryInfo MigMode UtilizationRates".split(),
    *"ProcessUtilization ComputeRunningProcesses_v3 GraphicsRunningProcesses_v3".split(),
    *"MaxMigDeviceCount MigDeviceHandleByIndex GpuInstanceId ComputeInstanceId".split(),
]
CODES = (2, 3, 4, 6, 7, 13, 15, 16, 20, 25, 42, 999)  # not of the session


def test_whatever_a_call_answers_for_one_gpu_the_other_is_read(boot: Boot) -> None:
    node = boot()
    mig = TWO.replace("gpu GPU-bbbb", "mig GPU-aaaa 1 0 10 0 slice\ngpu GPU-bbbb")
    faults = [f"fault nvmlDeviceGet{call} {code} GPU-aaaa\n" for call in CALLS for code in CODES]
    others = {
        (reading.driver, reading.gpus[-1])
        for fault in faults
        for state in (TWO, mig.replace(" 93 0 ", " 93 1 "))
        for reading in [node.read(state + fault)]
    }
    assert others == {("550.54.15", IDLE)}


def test_processes_that_cannot_be_listed_are_not_none(boot: Boot) -> None:
    faults = "".join(f"fault nvmlDeviceGetComputeRunningProcesses_v{n} 4 *\n" for n in (2, 3))
    reading = boot().read(TWO + faults)
    assert [gpu.processes for gpu in reading.gpus] == [None, None]
    assert reading.unread[-1] == (
        "GPU-bbbb (/dev/nvidia0): its Compute processes cannot be read: Insufficient Permissions"
    )


def test_a_gpu_without_a_minor_number_is_no_device_file_and_any_of_them_is_known(
    boot: Boot,
) -> None:
    node = with_jobs(boot())
    node.run(500, "/dev/nvidiactl", "/home/ada/1")
    faults = "fault nvmlDeviceGetMinorNumber 3 *\nfault nvmlDeviceGetMigMode 999 GPU-bbbb\n"
    state = TWO + "process Compute 500 1\n" + faults
    reading = node.read(state)
    assert [reading.of_minors([0, 1]), [gpu.minor for gpu in reading.gpus]] == [(), [None, None]]
    assert [gpu.processes for gpu in reading.gpus] == [
        BUSY.processes,
        (GpuProcess(500, 1, None, False),),
    ]
    assert reading.unread == (
        "GPU-aaaa: its minor number cannot be read: Not Supported",
        "GPU-bbbb: its minor number cannot be read: Not Supported",
        "GPU-bbbb: its MIG mode cannot be read: Unknown Error",
    )


@pytest.mark.parametrize(
    ("call", "what"),
    [("nvmlDeviceGetHandleByIndex_v2", "its handle"), ("nvmlDeviceGetUUID", "its UUID")],
)
def test_a_gpu_that_may_not_be_looked_at_is_left_out(boot: Boot, call: str, what: str) -> None:
    words = f"the GPU with NVML's index 0: {what} cannot be read: Insufficient Permissions"
    assert boot().read(TWO + f"fault {call} 4 GPU-aaaa\n") == GpuReading(
        NOW_S, "550.54.15", (IDLE,), (words,)
    )


def test_a_name_that_is_no_text_is_no_name(boot: Boot) -> None:
    words = "GPU-bbbb (/dev/nvidia0): its name cannot be read: it is no text"
    reading = boot().read("driver 1\ngpu GPU-bbbb 0 81559 0 0 0 \udcff\udcfe\n")
    assert reading == GpuReading(NOW_S, "1", (replace(IDLE, index=0, name=None),), (words,))


def test_who_may_not_see_open_files_knows_no_process_and_says_so(boot: Boot) -> None:
    node = with_jobs(boot())
    node.read(TWO)
    if os.geteuid() == 0:
        node.tell("nobody")
    for fd in node.proc.glob("*/fd"):
        fd.chmod(0)
    words = "which processes are on a GPU is known to root alone: permission denied"
    processes = (GpuProcess(300, 8192, None, False), GpuProcess(400, 12288, None, False))
    assert node.answer(TWO) == Answer(
        GpuReading(NOW_S, "550.54.15", (replace(BUSY, processes=processes), IDLE), (words,)),
        [f"WARNING: {words}"],
    )
    for fd in node.proc.glob("*/fd"):
        fd.chmod(0o700)


# what a job uses of them


def test_a_jobs_gpus_are_those_that_its_known_processes_are_on() -> None:
    mib = GpuProcess(400, None, None, True)
    shared = replace(IDLE, processes=(GpuProcess(300, 8192, 80, True), replace(mib, sm_pct=40)))
    stranger = replace(IDLE, uuid="GPU-cccc", processes=(GpuProcess(300, 1, 1, False),))
    found = GpuReading(NOW_S, "550.54.15", (BUSY, shared, stranger, replace(IDLE, processes=None)))
    assert gpu_use(found, {300, 500}) == (
        GpuUse("GPU-aaaa", 1, 1, 8192, 25),
        GpuUse("GPU-bbbb", 0, 1, 8192, 80),
    )
    assert gpu_use(found, {300, 400}) == (
        GpuUse("GPU-aaaa", 1, 2, 20480, 95),
        GpuUse("GPU-bbbb", 0, 2, None, 100),
    )
    assert gpu_use(found, {500}) == ()


# what pliantd is told of them


def told(found: GpuReading, *pids: int) -> tuple[wire.Window, tuple[wire.NodeGpu, ...]]:
    """What is told of a job with these processes, and of the node."""
    speed = Speed(0.5, Tier.CPU, 10.0, Parts(cpu=0.5, run_share=1.0, thread_cpu=0.5))
    job = JobReading(
        *("7", 100.0, CountedBy.CGROUP, 0, CountedBy.CGROUP, len(pids), len(pids), speed, None, ()),
        gpus=gpu_use(found, pids),
    )
    reading = NodeReading("n1", found.at_s, 10.0, None, (), (job,), found.gpus, found.unread)
    (window,) = windows(reading)
    return window, node_gpus(reading)


def test_pliantd_is_told_of_each_gpu_of_the_node_and_those_of_each_job(boot: Boot) -> None:
    window, gpus = told(with_jobs(boot()).read(TWO), 300, 500)
    assert gpus == (
        wire.NodeGpu("GPU-aaaa", 1, 0.93, 20480, 81559, 2),
        wire.NodeGpu("GPU-bbbb", 0, 0.0, 0, 81559, 0),
    )
    assert (window.gpus, window.all_gpus) == ((wire.GpuUse("GPU-aaaa", 8192, 0.25),), True)
    assert (
        wire.from_bytes(
            wire.to_bytes(wire.Report("n1", "0" * 32, 1, NOW_S, (window,), gpus, NOW_S))
        ).gpus
        == gpus
    )


def test_a_process_that_is_not_known_may_be_any_jobs(boot: Boot) -> None:
    stranger = TWO.replace("process Compute 300", "process Compute 299")
    window, _ = told(with_jobs(boot()).read(stranger), 400)
    assert (window.gpus, window.all_gpus) == ((wire.GpuUse("GPU-aaaa", 12288, 0.7),), False)


def test_where_no_gpu_can_be_read_nothing_is_told_of_any(boot: Boot) -> None:
    window, gpus = told(boot().read("driver 1\nfault nvmlInitWithFlags 9\n"), 300)
    assert (window.gpus, window.all_gpus, gpus) == ((), False, ())


def test_processes_that_cannot_be_listed_are_told_as_such(boot: Boot) -> None:
    call = "fault nvmlDeviceGetComputeRunningProcesses"
    faults = "".join(f"{call}_v{n} 4 GPU-bbbb\n" for n in (2, 3))
    window, gpus = told(with_jobs(boot()).read(TWO + faults), 300)
    assert (window.all_gpus, [gpu.processes for gpu in gpus]) == (False, [2, None])


def test_a_gpu_that_is_lost_is_missing_among_the_nodes(boot: Boot) -> None:
    fault = f"{TWO}fault nvmlDeviceGetComputeRunningProcesses_v3 15 GPU-bbbb\n"
    window, gpus = told(with_jobs(boot()).read(fault), 300)
    assert (window.all_gpus, [gpu.gpu for gpu in gpus]) == (True, ["GPU-aaaa"])


JOB = 1_987_654_322
"""More than any job's number."""


MONITOR = (
    *(sys.executable, "-c", "import sys; from pliant.cli import main; main(sys.argv[1:])"),
    *("monitor", "--json", "--every", "0.1"),
)


def stubbed(stub: Path, state: Path) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": str(stub / "new"), "NVML_STUB_STATE": str(state)}


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[int]:
    """A process at work below what is as a slurmstepd, with a GPU's device file open."""
    stepd = shutil.copy("/bin/sh", tmp_path / "slurmstepd")
    script = f"sleep 300 3<>{tmp_path}/nvidia1 & echo $!; wait"
    with subprocess.Popen(
        [f"slurmstepd: [{JOB}.batch]", "-c", script],
        executable=stepd,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        yield pid
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look")
def test_pliant_monitor_tells_the_nodes_gpus_and_a_jobs(
    stub: Path, worker: int, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.write_text(
        "driver 550.54.15\ngpu GPU-aaaa 1 81559 20480 93 0 NVIDIA H100\n"
        f"process Compute {worker} 8192\nprocess Compute 1 4096\n"
        "gpu GPU-bbbb 0 81559 0 0 0 NVIDIA H100\nfault nvmlDeviceGetUUID 15 GPU-bbbb\n"
    )
    done = subprocess.run(
        [*MONITOR, "--once"],
        env=stubbed(stub, state),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    (job,) = (row for row in found["jobs"] if row["job"] == str(JOB))
    use = {"uuid": "GPU-aaaa", "minor": 1, "processes": 1, "mem_mib": 8192, "sm_pct": None}
    assert job["gpus"] == [use]
    assert job["speed"]["tier"] in {1, 3}
    (gpu,) = found["gpus"]
    assert (gpu["uuid"], gpu["util_pct"], len(gpu["processes"])) == ("GPU-aaaa", 93, 2)
    assert len(found["unread"]) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look")
def test_a_driver_that_is_not_loaded_is_one_line_and_no_error(stub: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("driver 550.54.15\nfault nvmlInitWithFlags 9\n")
    with subprocess.Popen(
        MONITOR, env=stubbed(stub, state), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        readings = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.terminate()
        logged = process.stderr.read().splitlines()
        assert process.wait(timeout=HANG_S) == 0
    words = "no GPU can be read: Driver Not Loaded"
    assert [found["unread"] for found in readings] == [[words]] * 3
    assert [line for line in logged if "GPU" in line] == [f"WARNING pliant.gpus: {words}"]
