"""How a node's reports are kept and sent, with a pliantd and clocks made of numbers."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from pliant.cli import main
from pliant.errors import Unavailable
from pliant.monitor.reading import JobReading, NodeReading
from pliant.monitor.report import Sender, World
from pliant.monitor.sample import CountedBy
from pliant.monitor.speed import Parts, Speed
from pliant.monitor.spool import MOST, MOST_BYTES, Spool
from pliant.monitor.tier import Tier
from pliant.monitor.told import windows
from pliant.wire import monitor as wire

START = "0123456789abcdef" * 2
EPOCH_S = 1.8e9


def seen(at_s: float, *jobs: str, tier: Tier = Tier.CPU, value: float = 0.5) -> NodeReading:
    """A reading at ``at_s`` over ten seconds."""
    parts = Parts(cpu=0.5, run_share=0.75, thread_cpu=0.5)
    rows = tuple(
        JobReading(
            *(job, 100.0, CountedBy.CGROUP, 3 * 2**20, CountedBy.CGROUP, 2, 5),
            speed=Speed(value, tier, 10.0, parts),
            stalled=None,
            alarms=(),
        )
        for job in jobs
    )
    return NodeReading("n1", at_s, 10.0, None, (), rows)


@dataclass
class Cluster:
    """A node whose clocks only waiting moves, and a pliantd that may be away."""

    folder: Path
    now_s: float = 0.0
    skew_s: float = 0.0
    away: str = ""
    loses_answer: bool = False
    verdict: wire.ReportAnswer | None = None
    draw: float = 0.5
    said: list[str] = field(default_factory=list)
    asked: list[tuple[float, wire.Report]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spool = Spool(self.folder)

    def sender(self, start: str = START, most: int = MOST) -> Sender:
        self.spool.close()  # of the sender before
        self.spool = spool = spool_of(self.folder, most)
        world = World(self.epoch, lambda: self.now_s, lambda: self.draw, self.said.append)
        return Sender("n1", start, spool, self.ask, world)

    def epoch(self) -> float:
        return EPOCH_S + self.skew_s + self.now_s

    def ask(self, verb: str, fields: Mapping[str, str]) -> wire.ReportAnswer:
        assert verb == wire.REPORT
        report = wire.requested(fields)
        self.asked.append((self.now_s, report))
        if self.away:
            raise Unavailable(self.away)
        if self.loses_answer:
            self.loses_answer = False
            raise Unavailable("the answer was lost")
        return self.verdict or wire.ReportAnswer("taken")

    def go(self, sender: Sender, until_s: float, every_s: float = 10.0) -> None:
        """Let the monitor look every so many seconds, and the sender do what is due."""
        while self.now_s < until_s:
            due_s = self.now_s + sender.turn()
            look_s = (self.now_s // every_s + 1) * every_s
            self.now_s = min(due_s, look_s, until_s) if due_s > self.now_s else look_s
            if self.now_s == look_s:
                sender.take(seen(self.epoch(), "7"))
        sender.turn()

    def ends_told(self) -> list[float]:
        """When the windows that were told ended, by the node's clock since the start."""
        return [w.end_s - EPOCH_S - self.skew_s for _, report in self.asked for w in report.windows]

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "spool")


def test_a_reading_becomes_windows_of_jobs_whose_speed_is_known() -> None:
    known = seen(EPOCH_S, "7")
    unknown = JobReading("8", 1.0, CountedBy.CGROUP, 1, CountedBy.CGROUP, 1, 1, None, None, ())
    reading = NodeReading("n1", EPOCH_S, 10.0, None, (), (*known.jobs, unknown))
    assert list(windows(reading)) == [
        wire.Window(
            *("7", EPOCH_S - 10, EPOCH_S, "cpu", 0.5, "cpu-s/s", 10.0, 100.0, 3.0, 5),
            waited=0.25,
            cpu=0.5,
        )
    ]
    (counted,) = windows(seen(EPOCH_S, "7", tier=Tier.COUNTERS, value=2e9))
    assert (counted.tier, counted.value, counted.unit) == ("counters", 2e9, "instructions/s")


def test_a_minute_of_windows_is_one_report_at_this_nodes_own_moment(cluster: Cluster) -> None:
    sender = cluster.sender()
    cluster.go(sender, 215)
    assert [(at_s, r.number, len(r.windows)) for at_s, r in cluster.asked] == [
        (30.0, 1, 3),
        (90.0, 2, 6),
        (150.0, 3, 6),
        (210.0, 4, 6),
    ]
    assert cluster.ends_told() == [10.0 * n for n in range(1, 22)]
    assert cluster.files() == cluster.said == []


def test_nodes_that_are_started_together_report_at_different_moments(cluster: Cluster) -> None:
    moments = []
    for cluster.draw in (0.0, 0.25, 0.999):
        cluster.now_s, cluster.asked = 0.0, []
        cluster.go(cluster.sender(), 130)
        moments.append([round(at_s) for at_s, _ in cluster.asked])
    assert moments == [[60, 120], [15, 75], [60, 120]]


@pytest.mark.parametrize("away_s", [60.0, 600.0])
def test_while_pliantd_is_away_no_window_is_lost(cluster: Cluster, away_s: float) -> None:
    sender = cluster.sender()
    cluster.go(sender, 100)
    cluster.away = "pliantd at ctl:6830: Connection refused"
    before = len(cluster.asked)
    cluster.go(sender, 100 + away_s)
    tries = [at_s for at_s, _ in cluster.asked[before:]]
    assert [path.endswith(".report") for path in cluster.files()] == [True] * round(away_s / 60)
    del cluster.asked[before:]
    cluster.away = ""
    cluster.go(sender, 400 + away_s)
    ends = cluster.ends_told()
    assert ends == [10.0 * n for n in range(1, len(ends) + 1)]  # each once, the oldest first
    assert ends[-1] > 300 + away_s
    assert [r.number for _, r in cluster.asked] == list(range(1, len(cluster.asked) + 1))
    assert cluster.files() == []
    assert cluster.said == [
        f"pliantd takes no reports: pliantd at ctl:6830: Connection refused; they are kept in {cluster.folder}",
        "pliantd has taken the reports that were kept",
    ]
    pauses = [later - sooner for sooner, later in pairwise(tries)]
    assert pauses == [0.75 * min(60.0, 2.0**n) for n in range(len(pauses))]


def test_a_report_whose_answer_was_lost_is_sent_again_as_it_was(cluster: Cluster) -> None:
    sender = cluster.sender()
    cluster.loses_answer = True
    cluster.go(sender, 89)
    (_, first), (_, again) = cluster.asked
    assert (first.start, first.number, first.windows) == (again.start, again.number, again.windows)
    assert again.now_s > first.now_s  # so that ages are right however late it comes


@pytest.mark.parametrize("skew_s", [-7200.0, 7200.0])
def test_ages_are_right_whatever_the_nodes_clock_says(cluster: Cluster, skew_s: float) -> None:
    cluster.skew_s = skew_s
    cluster.go(cluster.sender(), 95)
    (_, report) = cluster.asked[-1]
    assert [report.now_s - w.end_s for w in report.windows] == [50.0, 40.0, 30.0, 20.0, 10.0, 0.0]


def test_what_an_earlier_monitor_kept_is_sent_first_and_as_its_own(cluster: Cluster) -> None:
    cluster.away = "no route"
    cluster.go(cluster.sender(), 100)
    cluster.away, cluster.asked = "", []
    later = "f" * 32
    cluster.go(cluster.sender(later), 300)
    told = [(report.start, report.number) for _, report in cluster.asked]
    assert told[:4] == [(START, 1), (START, 2), (later, 1), (later, 2)]


def test_what_was_gathered_is_written_to_disk_at_the_end(cluster: Cluster) -> None:
    sender = cluster.sender()
    sender.take(seen(EPOCH_S, "7", "8"))
    sender.run(lambda _seconds: True)
    (name,) = cluster.files()
    report = wire.from_bytes((cluster.folder / name).read_bytes())
    assert [window.job for window in report.windows] == ["7", "8"]
    assert cluster.asked == []


def test_what_is_refused_for_good_makes_way_and_is_said_once(cluster: Cluster) -> None:
    cluster.verdict = wire.ReportAnswer("refused", "n1: no node of this name is known")
    cluster.go(cluster.sender(), 300)
    assert len(cluster.asked) == 5
    assert cluster.files() == []
    assert cluster.said == ["pliantd refuses a report for good: n1: no node of this name is known"]


def test_what_is_not_taken_yet_stays_and_is_asked_again(cluster: Cluster) -> None:
    cluster.verdict = wire.ReportAnswer("again", "the first look is not done yet")
    cluster.go(cluster.sender(), 60)
    assert {report.number for _, report in cluster.asked} == {1}
    assert len(cluster.asked) > 3
    assert len(cluster.files()) == 1
    assert cluster.said == [
        f"pliantd takes no reports: the first look is not done yet; they are kept in {cluster.folder}"
    ]


def test_a_full_spool_loses_the_oldest_and_says_so_once(cluster: Cluster) -> None:
    sender = cluster.sender(most=3)
    cluster.away = "no route"
    cluster.go(sender, 600)
    assert len(cluster.files()) == 3
    assert cluster.said[1:] == [f"{cluster.folder}: it is full: the oldest reports are lost"]
    cluster.away, cluster.asked = "", []
    cluster.go(sender, 660)
    assert [report.number for _, report in cluster.asked][:3] == [8, 9, 10]
    assert cluster.said[2:] == ["pliantd has taken the reports that were kept; 7 of them were lost"]


# The spool


def spool_of(folder: Path, most: int = MOST, most_bytes: int = MOST_BYTES) -> Spool:
    spool = Spool(folder, most, most_bytes)
    spool.open()
    return spool


def taken(spool: Spool) -> list[bytes]:
    """Take all that is in a spool."""
    found = []
    while (content := spool.oldest()) is not None:
        found.append(content)
        spool.take_off()
    return found


def test_a_spool_is_for_its_user_alone_and_outlives_its_process(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "spool"
    first = spool_of(folder)
    for content in (b"a", b"b", b"c"):
        first.keep(content)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert first.oldest() == b"a"
    first.take_off()
    first.close()
    again = spool_of(folder)
    again.keep(b"d")
    assert taken(again) == [b"b", b"c", b"d"]
    assert list(folder.iterdir()) == []


def test_a_spool_is_bounded_in_bytes_too(tmp_path: Path) -> None:
    spool = spool_of(tmp_path / "spool", most_bytes=10)
    for content in (b"aaaa", b"bbbb", b"cccc"):
        spool.keep(content)
    assert (taken(spool), spool.lost) == ([b"bbbb", b"cccc"], 1)
    spool.keep(b"x" * 11)
    assert (taken(spool), spool.lost) == ([], 2)


def test_what_was_left_is_bounded_at_the_start(tmp_path: Path) -> None:
    first = spool_of(tmp_path / "spool")
    for content in (b"a", b"b", b"c"):
        first.keep(content)
    first.close()
    again = spool_of(tmp_path / "spool", most=2)
    assert (taken(again), again.lost) == ([b"b", b"c"], 1)


def test_half_a_file_and_others_files_are_no_reports(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    first = spool_of(folder)
    first.keep(b"a")
    first.close()
    (folder / "unfinished").write_bytes(b"hal")
    (folder / "notes.txt").write_bytes(b"mine")
    again = spool_of(folder)
    assert taken(again) == [b"a"]
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_a_file_that_somebody_took_away_is_counted(tmp_path: Path) -> None:
    spool = spool_of(tmp_path / "spool")
    spool.keep(b"a")
    spool.keep(b"b")
    next(iter(sorted((tmp_path / "spool").iterdir()))).unlink()
    assert (taken(spool), spool.lost) == ([b"b"], 1)


def test_on_a_full_disk_memory_keeps_what_comes_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "spool"
    spool = spool_of(folder, most=3)
    spool.keep(b"a")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", full)
        spool.keep(b"b")
        spool.keep(b"c")
        assert spool.trouble == f"{folder}: No space left on device"
    assert [path.name for path in folder.iterdir()] == [f"{1:016d}.report"]
    spool.keep(b"d")
    assert spool.trouble == ""
    assert (taken(spool), spool.lost) == ([b"b", b"c", b"d"], 1)


def test_without_a_folder_memory_must_do_and_it_is_said_once(cluster: Cluster) -> None:
    cluster.folder.write_text("no folder")
    cluster.go(cluster.sender(), 200)
    assert cluster.ends_told() == [10.0 * n for n in range(1, 16)]
    assert cluster.said == [f"{cluster.folder}: File exists: reports are kept in memory alone"]


def test_a_second_monitor_keeps_its_reports_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    first, second = spool_of(folder), spool_of(folder)
    first.keep(b"a")
    second.keep(b"b")
    assert second.trouble == f"{folder}: another monitor keeps its reports there"
    assert (taken(second), taken(first)) == ([b"b"], [b"a"])
    first.keep(b"c")
    first.close()
    second.keep(b"d")
    assert (second.trouble, taken(second)) == ("", [b"c", b"d"])


def test_a_link_in_the_folders_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "spool").symlink_to(tmp_path / "elsewhere")
    spool = spool_of(tmp_path / "spool")
    spool.keep(b"a")
    assert spool.trouble == f"{tmp_path}/spool: it is no folder of this user's own"
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert taken(spool) == [b"a"]


# The command


def test_the_command_says_what_it_needs_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PLIANT_CONFIG", str(tmp_path / "none.toml"))
    argv = ["monitor", "--report", "--spool", str(tmp_path / "spool")]
    for more, said in (
        (["--once"], "--report prints no readings: not with --once, --json or --trace"),
        ([], f"{tmp_path}/none.toml is not there: is Pliant installed on this host?"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*argv, *more])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "spool").exists()
