"""`pliant top` and `pliant metrics`: what pliantd answers, what is shown, and how a screen ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import build
import pytest
from rich.console import Console

from fake_door import FakeDoor, munge_program
from limits import HANG_S
from pliant.cli import main
from pliant.cli.top_fit import title
from pliant.cli.top_screen import page
from pliant.cli.top_view import NO_MONITOR, TEXTS, Sheet, view
from pliant.daemon.answers import NOT_SHOWN, CountsAnswer, PartitionRow, StatusAnswer
from pliant.daemon.beats import Steps
from pliant.daemon.counting import ResizeCount, Took
from pliant.daemon.flagged import JobRow, ResizeRow
from pliant.daemon.overview import FRESH_S, overview
from pliant.daemon.rights import Asker
from pliant.daemon.watched import (
    MonitorRow,
    MonitorsRow,
    NodeRow,
    RunningRow,
    SpeedRow,
    TierSpeed,
    TopAnswer,
)
from pliant.model import Snapshot
from pliant.store import Tally
from pliant.wire.monitor import GpuUse, NodeGpu

NOW_S = 10_000.0
ROOT = Asker(0, "root", admin=True, sees_all=True)
ALICE = Asker(1000, "alice", admin=False, sees_all=True)
BLIND = replace(ALICE, sees_all=False, sees_nodes=False)


def looked() -> Snapshot:
    """Alice's job 7 has two GPUs on n1 and on n2, bob's task 8_1 one on n2, his 10 no GPU."""
    nodes = [build.node(f"n{n}") for n in (2, 1, 3)]
    jobs = [
        replace(build.running(7, "2x2", "n1 n2", 20_000), user="alice", name="train"),
        replace(build.running(8, "1", "n2", 20_000), id="8_1", number="9", user="bob"),
        replace(build.running(10, "1x0@cpu", "n1", 20_000), user="bob", whole_nodes=True),
    ]
    return replace(build.snapshot(nodes, [build.job(11)], jobs), now_s=NOW_S - 2)


def speed(job: str, value: float = 0.5, tier: str = "cpu", **fields: object) -> SpeedRow:
    unit = {"cpu": "cpu-s/s", "counters": "instructions/s"}[tier]
    row = SpeedRow(job, tier, value, unit, NOW_S - 20, cpu=0.5, memory_mib=512.0)
    return replace(row, **fields)  # type: ignore[arg-type]  # a test's own words


GPU = NodeGpu("GPU-1", 0, 0.5, 1024, 81920, 1)


def heard(name: str, *speeds: SpeedRow, heard_s: float = NOW_S - 20) -> dict[str, MonitorRow]:
    return {name: MonitorRow(name, heard_s, speeds, heard_s, (GPU,))}


def seen_by(
    who: Asker,
    *said: dict[str, MonitorRow],
    beats: Mapping[str, Steps] | None = None,
    most: int = 100,
) -> TopAnswer:
    monitors = {name: row for each in said for name, row in each.items()}
    return overview(looked(), monitors, beats or {}, who, NOW_S, most=most)


# What pliantd answers


def test_what_a_job_uses_on_all_its_nodes_is_one_row_and_who_is_beside_it() -> None:
    on_one = speed("7", gpus=(GpuUse("GPU-1", 1024, 0.5),), idle_since_s=(9000.0,))
    on_two = speed("7", 0.75, gpus=(GpuUse("GPU-2", 2048, 1.0), GpuUse("GPU-3", 1024)))
    found = seen_by(ROOT, heard("n1", on_one), heard("n2", on_two, speed("9")))
    assert [node.name for node in found.nodes] == ["n1", "n2", "n3"]
    assert found.nodes[1] == NodeRow("n2", True, 16, 14, 4, 1, NOW_S - 20, NOW_S - 20, (GPU,))
    assert found.nodes[2] == NodeRow("n3", True, 16, 16, 4, 4)
    assert found.jobs == (
        RunningRow(
            *("7", "alice", "train", "running", "2x2", ("n1", "n2"), -100.0, 2, 4),
            speeds=(TierSpeed("cpu", 1.25, "cpu-s/s", 2),),
            cpu=1.0,
            memory_mib=1024.0,
            gpus_used=3,
            gpu_busy=0.75,
            gpu_memory_mib=4096.0,
            idle_since_s=(9000.0,),
            beside=("10", "8_1"),
        ),
        RunningRow(
            *("8_1", "bob", "", "running", "1", ("n2",), -100.0, 1, 1),
            speeds=(TierSpeed("cpu", 0.5, "cpu-s/s", 1),),
            cpu=0.5,
            memory_mib=512.0,
            gpus_used=0,
            beside=("7",),
        ),
        RunningRow("10", "bob", "", "running", "1x0@cpu", ("n1",), -100.0, 16, 0, beside=("7",)),
    )
    assert (found.running, found.waiting, found.monitored, found.more) == (3, 1, 2, 0)


def test_speeds_of_two_tiers_are_never_added() -> None:
    counted = speed("7", 2e9, "counters")
    (job, *_) = seen_by(ROOT, heard("n1", speed("7")), heard("n2", counted)).jobs
    assert job.speeds == (
        TierSpeed("counters", 2e9, "instructions/s", 1),
        TierSpeed("cpu", 0.5, "cpu-s/s", 1),
    )


def test_a_programs_own_steps_stand_in_the_order_of_tiers_beside_what_monitors_say() -> None:
    steps = TierSpeed("heartbeat", 20.0, "steps/s", 2)  # of both its nodes
    beats = {"7": (NOW_S - 30, NOW_S - 5, 20.0)}
    counted = speed("7", 2e9, "counters")
    (job, *_) = seen_by(ROOT, heard("n1", speed("7")), heard("n2", counted), beats=beats).jobs
    assert job.speeds == (
        TierSpeed("counters", 2e9, "instructions/s", 1),
        steps,
        TierSpeed("cpu", 0.5, "cpu-s/s", 1),
    )
    alone = seen_by(ROOT, beats=beats)
    assert [job.speeds for job in alone.jobs] == [(steps,), (), ()]
    assert (alone.monitored, alone.jobs[0].cpu) == (0, None)


def test_steps_of_long_ago_and_of_an_earlier_run_are_not_told() -> None:
    last = NOW_S - FRESH_S
    assert seen_by(ROOT, beats={"7": (last - 9, last, 20.0)}).jobs[0].speeds
    assert not seen_by(ROOT, beats={"7": (last - 9, last - 1, 20.0)}).jobs[0].speeds
    again = looked()
    begun = [replace(job, start_s=NOW_S - 10) for job in again.running]
    found = overview(
        replace(again, running=tuple(begun)),
        {},
        {"7": (NOW_S - 30, NOW_S - 11, 20.0), "8_1": (NOW_S - 30, NOW_S - 2, 4.0)},
        ROOT,
        NOW_S,
        most=9,
    )
    assert [[speed.value for speed in job.speeds] for job in found.jobs] == [[], [4.0], []]


def test_what_a_silent_monitor_said_is_not_told_as_if_it_were_so_now() -> None:
    old_s = NOW_S - FRESH_S - 1
    old = speed("7", end_s=old_s)
    found = seen_by(ROOT, heard("n1", speed("7"), heard_s=old_s), heard("n2", old))
    assert (found.jobs[0].speeds, found.jobs[0].cpu, found.monitored) == ((), None, 1)
    assert (found.nodes[0].heard_s, found.nodes[0].seen) == (old_s, ())


def test_a_user_sees_what_private_data_lets_and_the_number_of_the_rest() -> None:
    said = heard("n2", speed("7"), speed("9"))
    assert seen_by(ALICE, said) == seen_by(ROOT, said)
    found = seen_by(BLIND, said)
    assert found.nodes == ()
    (job,) = found.jobs
    assert (job.id, job.nodes, job.beside, job.hidden) == ("7", ("n1", "n2"), (), 2)


def test_an_answer_has_so_many_rows_and_says_how_many_are_missing() -> None:
    found = seen_by(ROOT, most=2)
    assert (len(found.nodes), len(found.jobs), found.more) == (2, 2, 2)


# What is shown


HOSTILE = "a\x1b[2J\a\r\n[bold red]x[/]\u202e中文" + "w" * 300
ANSWER = TopAnswer(
    now_s=NOW_S,
    observed_s=NOW_S - 2,
    policy="moldable-equipartition",
    paused=False,
    waiting=12,
    running=3,
    monitored=1,
    nodes=(
        NodeRow("n1", True, 16, 4, 4, 1, NOW_S - 40, NOW_S - 40, (GPU, NodeGpu("GPU-2"))),
        NodeRow("n2", False, 16, 16, 4, 4),
    ),
    jobs=(
        RunningRow(
            *("7", "alice", HOSTILE, "running", "2", ("n1",), NOW_S - 3600, 4, 2),
            speeds=(TierSpeed("counters", 2.3456e9, "instructions/s", 1),),
            cpu=3.96,
            memory_mib=2048.0,
            gpus_used=1,
            gpu_busy=0.934,
            gpu_memory_mib=20_480.0,
            idle_since_s=(NOW_S - 3000, NOW_S - 1200, NOW_S - 20),
            beside=("8", "9", "10", "11"),
            hidden=2,
        ),
        RunningRow(
            *("8", "bob", "sim", "running", "1x0@cpu", ("n1",), NOW_S - 60, 0, 0),
            speeds=(TierSpeed("heartbeat", 12.5, "steps/s", 1), TierSpeed("cpu", 0.98, "cpu-s/s", 1)),
            cpu=0.98,
        ),
    ),
    queue=(
        JobRow("12", "eve", ("gpu",), "waiting", "Resources", "moldable=gpus=1-4", "enforce", "4", "4",
               ("1", "2", "4"), submitted_s=NOW_S - 600, last="waits; n1 is kept for it as 4 in 60 min"),
        JobRow("13", "eve", ("gpu",), "waiting", "Priority", "moldable=gpus=1-4", "observe", "2", "2",
               ("1", "2"), frozen="it has --exclusive", tasks=20, submitted_s=NOW_S - 60),
    ),
    queued=5,
    resizes=(
        ResizeRow("7", "alice", "2", "1", "", "saving", NOW_S - 20, NOW_S + 100, "others need a GPU"),
        ResizeRow("8", "bob", "4", "4", "job 12", "requeued", NOW_S - 30, 0.0, "a trial job needs it"),
    ),
)  # fmt: skip


def cells(answer: TopAnswer) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Each row of nodes and of jobs, by the names of the columns."""
    return by_name(view(answer).nodes), by_name(view(answer).jobs)


def by_name(sheet: Sheet) -> list[dict[str, str]]:
    """Each row of a table, by the names of the columns."""
    names = [column.name for column in sheet.columns]
    return [dict(zip(names, line, strict=True)) for line in sheet.cells]


def test_rows_say_in_short_what_is_known() -> None:
    nodes, jobs = cells(ANSWER)
    assert nodes == [
        {"node": "n1", "up": "yes", "jobs": "2", "cpus": "12/16", "gpus": "3/4", "busy_%": "50 -",
         "gpu_gib": "", "heard": "40 s ago"},
        {"node": "n2", "up": "no", "jobs": "0", "cpus": "0/16", "gpus": "0/4", "busy_%": "",
         "gpu_gib": "", "heard": "never"},
    ]  # fmt: skip
    name = jobs[0].pop("name")
    assert name.startswith("a?[2J???[bold red]x[/]?中文www") and name.isprintable()
    assert jobs == [
        {"running": "7", "user": "alice", "shape": "2", "nodes": "n1", "for": "60 min", "tier": "1",
         "speed": "2.35 G/s", "cpu": "4.0/4", "mem_gib": "2.0", "gpu_%": "93", "gpu_gib": "20.0",
         "idle_gpus": "2, 20 min", "with": "8,9,10 +3"},
        {"running": "8", "user": "bob", "name": "sim", "shape": "1x0@cpu", "nodes": "n1", "for": "60 s",
         "tier": "2+3", "speed": "12.5/s + 0.98", "cpu": "1.0", "mem_gib": "", "gpu_%": "",
         "gpu_gib": "", "idle_gpus": "", "with": ""},
    ]  # fmt: skip


def test_the_queue_says_why_a_job_waits_and_what_else_it_may_be() -> None:
    assert by_name(view(ANSWER).queue) == [
        {"waiting": "12", "user": "eve", "partition": "gpu", "own": "4", "allowed": "1 2 4",
         "for": "10 min", "reason": "Resources", "note": "n1 is kept for it as 4 in 60 min"},
        {"waiting": "13 x20", "user": "eve", "partition": "gpu", "own": "2", "allowed": "1 2",
         "for": "60 s", "reason": "Priority", "note": "left alone: it has --exclusive"},
    ]  # fmt: skip
    assert view(ANSWER).queue.more == 3


def test_changes_under_way_say_how_far_they_are() -> None:
    assert by_name(view(ANSWER).resizes) == [
        {"resizing": "7", "user": "alice", "change": "2 to 1", "step": "saving, 2 min left",
         "for": "20 s", "why": "others need a GPU"},
        {"resizing": "8", "user": "bob", "change": "4, room for job 12", "step": "requeued",
         "for": "30 s", "why": "a trial job needs it"},
    ]  # fmt: skip


def test_the_head_says_what_is_missing_and_what_is_wrong() -> None:
    assert view(ANSWER).head == (
        "2 nodes, 8 GPUs, 1 free; held and idle: 2 GPUs; 3 jobs run, 12 wait (5 flagged)",
        "policy moldable-equipartition, last look 2 s ago",
        "monitors of 1 of 2 nodes report",
    )
    worse = replace(ANSWER, monitored=0, paused=True, more=4, troubles=("slurmctld hangs",))
    assert view(worse).head[1:] == (
        "policy moldable-equipartition, PAUSED: no job is changed, last look 2 s ago",
        NO_MONITOR,
        "4 more nodes and jobs are not shown",
        "trouble: slurmctld hangs",
    )
    none = replace(ANSWER, nodes=(), jobs=(), queue=(), queued=0, resizes=())
    assert view(none).plain().splitlines() == [
        "3 jobs run, 12 wait",
        "policy moldable-equipartition, last look 2 s ago",
    ]


def test_steps_are_shown_where_no_monitor_reports() -> None:
    answer = seen_by(ROOT, beats={"7": (NOW_S - 30, NOW_S - 5, 20.0)})
    _, jobs = cells(answer)
    assert [(job["running"], job["tier"], job["speed"]) for job in jobs] == [
        ("7", "2", "20/s"),
        ("8_1", "", ""),
        ("10", "", ""),
    ]
    assert NO_MONITOR in view(answer).head


def test_of_many_gpus_there_is_a_mean_and_instances_have_no_use_of_their_own() -> None:
    many = tuple(NodeGpu(f"GPU-{n}", n, n / 10, 1024, 81920, 1) for n in range(10))
    mig = (NodeGpu("GPU-1", 0, None, 2048, 81920, 0), NodeGpu("MIG-1", 0, None, 1024, 10240, 1))
    rows = [replace(ANSWER.nodes[0], seen=seen) for seen in (many, mig)]
    nodes, _ = cells(replace(ANSWER, nodes=tuple(rows)))
    assert [node["busy_%"] for node in nodes] == ["45, a mean of 10", "- -"]
    assert [node["gpu_gib"] for node in nodes] == ["10/800", "2/80"]


# The command


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDoor]:
    munge_program(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("PLIANT_CONFIG", str(tmp_path / "pliant.toml"))
    found = FakeDoor(tmp_path, answers={"top": ANSWER})
    found.open()
    yield found
    found.close()


def pliant(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_one_reading_is_plain_text_in_a_pipe_and_json_for_programs(
    door: FakeDoor, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant("top", "--once") == 0
    printed = capsys.readouterr().out
    assert printed == view(ANSWER).plain()
    assert "\x1b" not in printed and len(printed.splitlines()) == 20
    assert pliant("top", "--json") == 0
    assert '"value": 2345600000.0' in capsys.readouterr().out


def test_a_dead_daemon_is_one_line_and_exit_2(
    door: FakeDoor, capsys: pytest.CaptureFixture[str]
) -> None:
    door.close()
    for words in (["--once"], ["--json"], []):
        assert pliant("top", *words) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1 and "Connection refused" in captured.err


@pytest.mark.parametrize("odd", ["0", "nan", "inf", "-1", "x"])
def test_an_odd_pace_is_refused(odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert pliant("top", "--every", odd) == 2
    assert "--every" in capsys.readouterr().err


# On a terminal


@dataclass
class Screen:
    """`pliant top` on a terminal of its own."""

    pid: int
    terminal: int
    out: str = ""

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + HANG_S
        while text not in self.out:
            assert time.monotonic() < deadline, f"never: {text!r} in {self.out!r}"
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.out += os.read(self.terminal, 65536).decode(errors="replace")

    def end(self) -> int:
        """Read what is left; return the exit code."""
        while True:
            try:
                more = os.read(self.terminal, 65536)
            except OSError:  # Linux: the other side has closed it
                more = b""
            if not more:
                return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            self.out += more.decode(errors="replace")


PLIANT = "import sys; from pliant.cli import main; main(sys.argv[1:])"


def on_terminal(*words: str, columns: int = 80, before: str = "") -> Screen:
    """Start it; ``before``: what its Python does first."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # where the tests run in the background
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "24"}
        argv = [sys.executable, "-c", before + PLIANT, "top", *words]
        os.execve(argv[0], argv, environment)  # noqa: S606  # no shell
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return Screen(pid, terminal)


ENTERS, LEAVES = "\x1b[?1049h", "\x1b[?1049l"


@pytest.mark.parametrize(("how", "code"), [("q", 0), ("\x03", 0), ("TERM", 143)])
def test_whatever_ends_it_leaves_the_terminal_as_it_was(
    door: FakeDoor, how: str, code: int
) -> None:
    screen = on_terminal("--every", "0.2")
    before = termios.tcgetattr(screen.terminal)
    screen.wait_for("q ends")
    assert ENTERS in screen.out
    assert not termios.tcgetattr(screen.terminal)[3] & termios.ICANON
    os.write(screen.terminal, b"\x1a")  # Ctrl-Z does not stop it with the screen taken
    screen.out = ""
    screen.wait_for("q ends")
    if how == "TERM":
        os.kill(screen.pid, signal.SIGTERM)
    else:
        os.write(screen.terminal, how.encode())
    screen.wait_for(LEAVES)
    while termios.tcgetattr(screen.terminal) != before:
        time.sleep(0.01)
    assert screen.end() == code
    assert screen.out.endswith(LEAVES)  # and no word after it


@pytest.mark.parametrize("columns", [20, 80, 140])
def test_a_hostile_name_breaks_no_line(door: FakeDoor, columns: int) -> None:
    screen = on_terminal("--once", columns=columns)
    assert screen.end() == 0
    assert "\x1b[2J" not in screen.out and "\a" not in screen.out and "\u202e" not in screen.out
    assert ("a?[2J???[bold red]x[/]" in screen.out) is (columns == 140)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.out).splitlines()
    assert max(map(len, shown)) <= columns


def test_a_daemon_that_dies_is_said_on_the_screen_until_it_is_back(door: FakeDoor) -> None:
    screen = on_terminal("--every", "0.2", columns=140)
    screen.wait_for("q ends")
    door.close()
    screen.wait_for("Connection refused")
    screen.wait_for("what is shown is old")
    door.open()
    while "Connection refused" in screen.out:
        screen.out = ""
        screen.wait_for("q ends")
    os.write(screen.terminal, b"q")
    assert screen.end() == 0


def crowded() -> TopAnswer:
    """Jobs of seven digits and of arrays, all columns of which are filled, on long nodes."""
    numbers = ["1234567", "1234568_1023", "12345.server", "42"]
    beside = tuple(f"12345{n:02}" for n in range(7))
    speeds = tuple(TierSpeed(tier, 123.4, "", 1) for tier in ("counters", "heartbeat"))
    jobs = [
        replace(ANSWER.jobs[0], id=number, user="someone", shape="2x4:a100", nodes=("gpu-node-0117",) * 3,
                speeds=speeds, beside=beside, cpu=123.4, cpus=128)
        for number in numbers
    ]  # fmt: skip
    return replace(
        ANSWER,
        nodes=tuple(replace(node, name=f"gpu-node-{node.name}") for node in ANSWER.nodes),
        jobs=(*jobs, replace(jobs[0], id="43", speeds=speeds[:1], beside=())),
        queue=tuple(
            replace(job, user="someone", partitions=("long-partition",)) for job in ANSWER.queue
        ),
    )


def drawn(answer: TopAnswer, width: int, height: int = 60) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height)
    lines = console.render_lines(page(view(answer), "", console), pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def under(lines: list[str], first: str) -> list[str]:
    """The rows of the table whose first column is called so."""
    (titles,) = [place for place, line in enumerate(lines) if line.split()[:1] == [first]]
    rows = lines[titles + 1 : -1]
    return rows[: rows.index("")] if "" in rows else rows


@pytest.mark.parametrize("answer", [crowded(), replace(crowded(), jobs=crowded().jobs[-2:])])
def test_on_every_screen_a_jobs_whole_number_stands_in_its_row(answer: TopAnswer) -> None:
    for width in range(40, 161):
        lines = drawn(answer, width)
        assert max(map(len, lines)) <= width
        for title_, ids in (
            ("Running", [job.id for job in answer.jobs]),
            ("Resizing", ["7", "8"]),
            ("Node", [node.name for node in answer.nodes]),
        ):
            assert [line.split()[0] for line in under(lines, title_)] == ids, width
        assert [line.split()[0] for line in under(lines, "Waiting")] == ["12", "13", "3"], width


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (200, "Running User Name Shape Nodes For Tier Speed Cpu Mem gib Gpu % Gpu gib Idle gpus With"),
        (120, "Running User Shape Tier Speed Cpu Gpu % Idle gpus With"),
        (80, "Running User Tier Speed Cpu Gpu % Idle gpus"),
        (60, "Running User Tier Speed Gpu % Idle gpus"),
        (40, "Running User Tier Speed"),
        (20, "Running User"),
    ],
)  # fmt: skip
def test_columns_are_left_out_in_their_order_and_no_number_is_cut(width: int, shown: str) -> None:
    lines = drawn(crowded(), width)
    (titles,) = [line for line in lines if line.split()[:1] == ["Running"]]
    assert " ".join(titles.split()) == shown
    jobs = view(crowded()).jobs
    for line, cells in zip(under(lines, "Running"), jobs.cells, strict=True):
        for column, cell in zip(jobs.columns, cells, strict=True):
            if column.name not in TEXTS and title(column.name) in shown:
                assert cell in line


def test_columns_that_say_nothing_are_left_out_first() -> None:
    quiet = replace(ANSWER.jobs[1], name="train", speeds=(), cpu=None)
    (titles,) = [line for line in drawn(replace(ANSWER, jobs=(quiet,)), 60) if "Running" in line]
    assert titles.split() == ["Running", "User", "Name", "Shape", "Nodes", "For", "Tier", "Speed"]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (160, ["Waiting", "User", "Partition", "Own", "Allowed", "For", "Reason", "Note"]),
        (80, ["Waiting", "User", "Own", "Allowed", "For", "Reason", "Note"]),
        (60, ["Waiting", "For", "Reason", "Note"]),
    ],
)
def test_a_narrow_queue_still_says_why_a_job_waits(width: int, shown: list[str]) -> None:
    lines = drawn(ANSWER, width)
    (titles,) = [line for line in lines if line.startswith("Waiting")]
    assert titles.split() == shown
    first, second, more = under(lines, "Waiting")
    assert "Resources" in first and "n1 is kept for it as 4 in 60 min" in first
    assert "left alone: it has" in second
    assert more == "3 more"


@pytest.mark.parametrize("height", [24, 30, 50])
@pytest.mark.parametrize(
    ("nodes", "queue", "jobs"), [(50, 50, 50), (2, 50, 50), (50, 0, 2), (0, 3, 50), (50, 50, 1)]
)
def test_a_screen_is_full_and_says_how_many_rows_it_has_no_room_for(
    nodes: int, queue: int, jobs: int, height: int
) -> None:
    many = replace(
        ANSWER,
        nodes=ANSWER.nodes[:1] * nodes,
        queue=ANSWER.queue[:1] * queue,
        queued=queue,
        jobs=ANSWER.jobs[:1] * jobs,
    )
    console = Console(file=StringIO(), width=80, height=height)
    shown = console.render_lines(page(view(many), "it is away", console), pad=False)
    lines = ["".join(segment.text for segment in line) for line in shown]
    assert lines[0] == "it is away" and lines[-1] == "q ends"
    assert height - 4 <= len(lines) <= height
    rows = sum(line.startswith(("n1 ", "7 ", "8 ", "12 ")) for line in lines)
    more = sum(int(line.split()[0]) for line in lines if line.endswith(" more"))
    assert rows + more == nodes + queue + jobs + len(ANSWER.resizes)


def test_without_rich_it_is_plain_text_again_and_again(door: FakeDoor) -> None:
    screen = on_terminal("--every", "0.2", before="import sys; sys.modules['rich'] = None; ")
    reading = view(ANSWER).plain().replace("\n", "\r\n")
    screen.wait_for(f"{reading}\r\n{reading}")
    os.write(screen.terminal, b"\x03")
    assert screen.end() == 0
    assert ENTERS not in screen.out


# Metrics


STATUS = StatusAnswer(
    *("0.1.0", "ctl", "easy", 1000.0, NOW_S, True),
    partitions=(PartitionRow("gpu", "enforce", True, 2, 8, 3), PartitionRow("cpu", "off", True, *[NOT_SHOWN] * 3)),
    running_flagged=4,
    troubles=("slurmctld hangs",),
    refused_credentials={"replayed": 2, "for another connection": 3},
    monitors=MonitorsRow(2, 40, 1, 2, 300, {"not root": 5, "malformed": 1}),
)  # fmt: skip


COUNTS = CountsAnswer(
    Tally(answered=17, unanswered=5, refused=3, molded=9, avoidable_gpu_s=60.0),
    (Tally(0.0, "gpu", molded=9),),
    (ResizeCount("policy", "done", 2),),
    Took([0, 0, 1, 2, 2, 2, 2, 2, 2], 2, 13.0),
)


def told(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_metrics_are_what_status_and_top_say(
    door: FakeDoor, capsys: pytest.CaptureFixture[str]
) -> None:
    door.answers |= {"status": STATUS, "counts": COUNTS}
    assert pliant("metrics") == 0
    found = told(capsys.readouterr().out)
    assert all(name.startswith("pliant_") for name in found)
    assert (
        found.items()
        >= {
            "pliant_up": "1.0",
            'pliant_build_info{version="0.1.0"}': "1.0",
            "pliant_paused": "1.0",
            "pliant_troubles": "1.0",
            'pliant_flagged_jobs{state="running"}': "4.0",
            'pliant_partition_mode_info{partition="gpu",mode="enforce"}': "1.0",
            'pliant_submissions_total{answer="answered"}': "17.0",
            'pliant_submissions_total{answer="unanswered"}': "5.0",
            'pliant_submissions_total{answer="refused"}': "3.0",
            'pliant_molded_starts_total{partition="gpu"}': "9.0",
            'pliant_gpu_seconds_total{state="avoidable"}': "60.0",
            'pliant_resizes_total{reason="policy",result="done"}': "2.0",
            'pliant_handover_seconds_bucket{le="5.0"}': "1.0",
            'pliant_handover_seconds_bucket{le="+Inf"}': "2.0",
            "pliant_handover_seconds_sum": "13.0",
            "pliant_handover_seconds_count": "2.0",
            'pliant_partition_gpus_free{partition="gpu"}': "3.0",
            'pliant_refused_credentials_total{kind="replayed"}': "2.0",
            'pliant_refused_credentials_total{kind="for another connection"}': "3.0",
            "pliant_monitor_reports_total": "40.0",
            'pliant_monitor_refused_total{kind="not root"}': "5.0",
            "pliant_idle_held_gpus": "2.0",
            'pliant_monitor_last_report_timestamp_seconds{node="n1"}': "9960.0",
        }.items()
    )
    assert 'pliant_partition_gpus{partition="cpu"}' not in found  # it may not be shown
    assert HOSTILE[:2] not in str(found) and "alice" not in str(found)


def test_a_file_for_node_exporter_says_that_pliantd_is_away(
    door: FakeDoor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pliant.prom"
    door.answers |= {"status": STATUS, "counts": COUNTS}
    assert pliant("metrics", "--textfile", str(file)) == 0
    assert told(file.read_text())["pliant_up"] == "1.0"
    assert file.stat().st_mode & 0o777 == 0o644
    door.close()
    assert pliant("metrics", "--textfile", str(file)) == 2
    assert told(file.read_text()) == {"pliant_up": "0.0"}
    assert "Connection refused" in capsys.readouterr().err
    assert pliant("metrics", "--textfile", str(tmp_path / "none" / "x")) == 2
    assert "its directory is not there" in capsys.readouterr().err
