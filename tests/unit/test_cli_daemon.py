"""The commands that ask pliantd: what is asked, what is printed, how they end.

pliantd is a small server that speaks the second door's protocol; munge is a program that wraps
its input.
"""

from __future__ import annotations

import base64
import json
import os
import pwd
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from pliant.batch.slurm.site import Site as SlurmSite
from pliant.batch.slurm.site import parse_config
from pliant.cli import main
from pliant.cli.door import controllers, hosts, reader
from pliant.cli.output import Column, Style, plain_table, print_table
from pliant.daemon.answers import (
    NOT_SHOWN,
    CannotRow,
    ClaimRow,
    CostRow,
    DecisionRow,
    DoneAnswer,
    JobsAnswer,
    PartitionRow,
    ShapeRow,
    StatusAnswer,
    WhyAnswer,
    to_json,
)
from pliant.daemon.config import parse
from pliant.daemon.flagged import JobRow
from pliant.errors import BadInput, Unavailable
from pliant.figures import duration
from pliant.wire import Message, decode, encode, no, ok


@dataclass
class FakeDaemon:
    """Answers each verb with one answer and remembers what it was asked."""

    answers: dict[str, object] = field(default_factory=dict)
    asked: list[Message] = field(default_factory=list)

    def reply(self, line: bytes) -> bytes:
        credential = line.removeprefix(b"munge ").strip()
        proven = decode(base64.b64decode(credential))
        fields = {name: said for name, said in proven.fields.items() if name != "challenge"}
        assert proven.fields == {**fields, "challenge": "c"}
        request = Message(proven.word, fields)
        self.asked.append(request)
        answer = self.answers.get(request.word)
        if answer is None:
            return encode(no(f"'{request.word}': not known here"))
        return encode(answer if isinstance(answer, Message) else ok(json=to_json(answer)))


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDaemon]:
    munge = tmp_path / "bin" / "munge"
    munge.parent.mkdir()
    munge.write_text(
        f"#!{sys.executable}\nimport base64, sys\n"
        "print(base64.b64encode(sys.stdin.buffer.read()).decode())\n"
    )
    munge.chmod(0o755)
    monkeypatch.setenv("PATH", str(munge.parent), prepend=":")
    fake = FakeDaemon()
    door = socket.create_server(("127.0.0.1", 0))
    config = tmp_path / "pliant.toml"
    config.write_text(f'[daemon]\nlisten = "127.0.0.1:{door.getsockname()[1]}"\n')
    monkeypatch.setenv("PLIANT_CONFIG", str(config))

    def serve() -> None:
        while True:
            try:
                connection, _ = door.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                assert stream.readline() == b"hello\n"
                stream.write(b"ok challenge=c\n")
                stream.flush()
                stream.write(fake.reply(stream.readline()) + b"\n")

    threading.Thread(target=serve, daemon=True).start()
    yield fake
    door.shutdown(socket.SHUT_RDWR)
    door.close()


def pliant(*words: str) -> int:
    """Run the command line here and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    code = ended.value.code
    assert isinstance(code, int)
    return code


STATUS = StatusAnswer(
    version="0.1.0",
    host="ctl",
    policy="moldable-equipartition",
    started_s=1000.0,
    now_s=13000.0,
    paused=False,
    observed_s=12998.0,
    observe_took_s=0.12,
    cycle_took_s=0.004,
    cycles=2400,
    submissions=17,
    updates=45,
    failures=1,
    waiting=12,
    waiting_flagged=8,
    running=31,
    partitions=(PartitionRow("gpu", "enforce", True, 4, 32, 10),),
)
WAITING = JobRow(
    id="4711",
    user="ann",
    partitions=("gpu",),
    state="waiting",
    reason="Resources",
    request="moldable=gpus=1-4",
    mode="enforce",
    own="4",
    carried="4",
    allowed=("1", "2", "3", "4"),
    submitted_s=900.0,
    last="can start as 2: 2 GPUs are free on n1",
    last_s=995.0,
)


def test_status_says_how_the_daemon_is(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["status"] = STATUS
    assert pliant("status") == 0
    assert capsys.readouterr().out == (
        "pliantd 0.1.0 on ctl, up 3 h 20 min, policy moldable-equipartition\n"
        "last look 2 s ago: read in 120 ms, decided in 4 ms\n"
        "jobs: 12 waiting, 8 of them with Pliant's options; 31 running\n"
        "since the start: 17 submissions answered, 45 changes, 1 refused\n"
        "\n"
        "PARTITION  MODE     UP   NODES  GPUS  FREE\n"
        "gpu        enforce  yes      4    32    10\n"
    )


def test_a_user_is_forgotten_only_after_a_yes(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["forget"] = DoneAnswer("3 jobs of ann that have ended are forgotten")
    monkeypatch.setattr("sys.stdin", StringIO("n\n"))
    assert pliant("forget", "ann") == 2
    assert daemon.asked == []
    assert pliant("forget", "ann", "--yes") == 0
    assert daemon.asked == [Message("forget", {"user": "ann"})]
    assert "3 jobs of ann" in capsys.readouterr().out


def test_status_says_how_many_submissions_got_no_answer(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["status"] = replace(STATUS, unanswered=132)
    assert pliant("status") == 0
    line = "since the start: 17 submissions answered, 132 unanswered, 45 changes, 1 refused\n"
    assert line in capsys.readouterr().out


def test_status_says_which_credentials_were_refused(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["status"] = replace(STATUS, refused_credentials={"replayed": 2, "forged": 1})
    assert pliant("status") == 0
    assert "\nmunge credentials refused: 1 forged, 2 replayed\n" in capsys.readouterr().out
    assert pliant("status", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["refused_credentials"] == {"replayed": 2, "forged": 1}


def test_numbers_that_the_asker_may_not_see_are_a_dash(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    row = PartitionRow("gpu", "enforce", True, NOT_SHOWN, NOT_SHOWN, NOT_SHOWN)
    daemon.answers["status"] = replace(STATUS, partitions=(row,))
    assert pliant("status") == 0
    assert capsys.readouterr().out.endswith("\ngpu        enforce  yes      -     -     -\n")


def test_status_ends_with_1_while_something_is_wrong(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["status"] = StatusAnswer(
        "0.1.0", "ctl", "fms", 0.0, 5.0, True, troubles=("squeue does not answer\x1b[2J",)
    )
    assert pliant("status") == 1
    assert capsys.readouterr().out == (
        "pliantd 0.1.0 on ctl, up 5 s, policy fms, PAUSED: no job is changed\n"
        "since the start: 0 submissions answered, 0 changes, 0 refused\n"
        "trouble: squeue does not answer?[2J\n"
    )


def test_jobs_are_aligned_columns_where_no_terminal_is(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["jobs"] = JobsAnswer(1000.0, (WAITING,))
    assert pliant("jobs") == 0
    assert capsys.readouterr().out == (
        "JOB   USER  PARTITION  STATE      FOR  OWN  NOW  ALLOWED  REASON     NOTE\n"
        "4711  ann   gpu        waiting  2 min  4    4    1 2 3 4  Resources  "
        "can start as 2: 2 GPUs are free on n1\n"
    )


def test_jobs_has_the_columns_that_were_asked_for(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["jobs"] = JobsAnswer(1000.0, (WAITING,))
    assert pliant("jobs", "--noheader", "-o", "job,request") == 0
    assert capsys.readouterr().out == "4711  moldable=gpus=1-4\n"


def test_an_unknown_column_is_told_the_known_ones(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["jobs"] = JobsAnswer(1000.0, (WAITING,))
    assert pliant("jobs", "-o", "jobid") == 2
    assert capsys.readouterr().err.startswith("pliant: -o: 'jobid': one of job, user, partition,")


def test_no_jobs_is_said_on_stderr(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.answers["jobs"] = JobsAnswer(1000.0)
    assert pliant("jobs") == 0
    assert capsys.readouterr() == ("", "no job carries Pliant's options now\n")


def test_json_is_the_answer_itself(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.answers["jobs"] = JobsAnswer(1000.0, (WAITING,))
    assert pliant("jobs", "--json") == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=JobsAnswer) == JobsAnswer(
        1000.0, (WAITING,)
    )


def test_why_shows_the_shapes_tried(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.answers["why"] = WhyAnswer(
        1000.0,
        WAITING,
        text="it can start now as 2 on n1: two GPUs are free",
        left="Pliant observes in gpu",
        shapes=(
            ShapeRow("2", True, 1000.0, nodes=("n1",)),
            ShapeRow("4", False, 3100.0, "n1 has 2 free GPUs of 4", ("n1",)),
            ShapeRow("8", False, reason="no node has 8 GPUs"),
        ),
        before=(ClaimRow("4700", "bob", "2x4", 2000.0, ("n2", "n3"), "first in gpu"),),
        decisions=(DecisionRow(995.0, "mold", "2", "2 GPUs are free on n1"),),
    )
    assert pliant("why", "4711") == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "job 4711 of ann in gpu: waiting as 4 for Resources\n"
        "it says moldable=gpus=1-4\n"
        "it can start now as 2 on n1: two GPUs are free\n"
        "its shape is not changed: Pliant observes in gpu\n"
        "\n"
        "SHAPE  STARTS     NODES  WHY\n"
        "2      now        n1\n"
        "4      in 35 min  n1     n1 has 2 free GPUs of 4\n"
        "8      not known         no node has 8 GPUs\n"
        "\n"
        "kept for jobs that stand before it:\n"
        "JOB   USER  SHAPE  STARTS     NODES  REASON\n"
        "4700  bob   2x4    in 17 min  n2,n3  first in gpu\n"
        "\n"
        "decided so far, the latest first:\n"
    )
    assert printed.endswith("  mold  2      2 GPUs are free on n1\n")
    assert daemon.asked == [Message("why", {"job": "4711"})]


def test_a_no_is_exit_1_in_the_daemons_words(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["why"] = no("'9': no waiting or running job of this number is known")
    assert pliant("why", "9") == 1
    assert capsys.readouterr().err == (
        "pliant: '9': no waiting or running job of this number is known\n"
    )


def test_set_asks_for_the_request_in_its_one_form(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["set"] = DoneAnswer("job 4711 now says moldable=gpus=1-8")
    assert pliant("set", "4711", "gpus=8:1-7") == 0
    assert capsys.readouterr().out == "job 4711 now says moldable=gpus=1-8\n"
    assert daemon.asked == [Message("set", {"job": "4711", "spec": "moldable=gpus=1-8"})]


def test_a_bad_request_is_refused_before_anybody_is_asked(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant("set", "4711", "gpus=0") == 2
    assert capsys.readouterr().err.startswith("pliant: moldable gpus: '0': ")
    assert daemon.asked == []


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        (("pin", "4711"), Message("pin", {"job": "4711"})),
        (("pin", "--undo", "4711"), Message("unpin", {"job": "4711"})),
        (("pause",), Message("pause")),
        (("resume",), Message("resume")),
    ],
)
def test_what_is_asked(daemon: FakeDaemon, words: tuple[str, ...], request_: Message) -> None:
    daemon.answers[request_.word] = DoneAnswer("done")
    assert pliant(*words) == 0
    assert daemon.asked == [request_]


def test_an_answer_that_is_not_understood_is_one_line(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["status"] = ok(json="{")
    assert pliant("status") == 2
    assert capsys.readouterr().err.startswith("pliant: pliantd's answer is not understood: ")


def test_no_daemon_is_one_line(
    daemon: FakeDaemon,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = tmp_path / "other.toml"
    config.write_text('[daemon]\nlisten = "127.0.0.1:1"\n')
    monkeypatch.setenv("PLIANT_CONFIG", str(config))
    assert pliant("status") == 2
    assert capsys.readouterr().err == "pliant: pliantd at 127.0.0.1:1: Connection refused\n"


def test_a_configuration_that_cannot_be_looked_at_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "/" + 300 * "x"  # as in a directory that is closed to who asks
    monkeypatch.setenv("PLIANT_CONFIG", name)
    assert pliant("status") == 2
    error = f"pliant: {name}: File name too long: a readable TOML file is expected\n"
    assert capsys.readouterr() == ("", error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not there: is Pliant installed on this host?"),
        ("", "[daemon] listen is empty: pliantd has no door for commands;"),
        ("[daemon]\nlisten = 7\n", "[daemon] listen: '7': "),
    ],
)
def test_a_configuration_that_does_not_serve_is_one_line(
    text: str | None,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = tmp_path / "pliant.toml"
    if text is not None:
        config.write_text(text)
    monkeypatch.setenv("PLIANT_CONFIG", str(config))
    assert pliant("jobs") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"pliant: {config}")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("listen", "named", "expected"),
    [
        ("ctl:6830", "", ("ctl",)),
        ("0.0.0.0:6830", "", ("a", "b")),
        ("[::]:6830", "", ("a", "b")),
        ("0.0.0.0:6830", "me", ("me",)),
    ],
)
def test_where_the_daemon_is_looked_for(listen: str, named: str, expected: tuple[str, ...]) -> None:
    config = parse({"daemon": {"listen": listen}})
    assert hosts(config, named, lambda: ("a", "b")) == expected


def test_whose_answers_are_believed() -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    assert reader(parse({"daemon": {"user": me}})) == os.getuid()
    assert reader(parse({})) is None
    with pytest.raises(Unavailable, match="user 'no-such-user' is not known here"):
        reader(parse({"daemon": {"user": "no-such-user"}}))


@dataclass
class Controllers:
    """What pliantd says on each controller, and who was asked what."""

    said: dict[str, Message | Unavailable]
    asked: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, host: str, _port: int, request: Message, **_limits: object) -> Message:
        self.asked.append((host, request.word))
        answer = self.said[host]
        if isinstance(answer, Unavailable):
            raise answer
        return answer


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controllers:
    """A primary and a backup controller."""
    slurm, config = tmp_path / "slurm.conf", tmp_path / "pliant.toml"
    slurm.write_text("SlurmctldHost=ctl1\nSlurmctldHost=ctl2\n")
    config.write_text(f'[daemon]\nlisten = "0.0.0.0:1"\n[slurm]\nconf = "{slurm}"\n')
    monkeypatch.setenv("PLIANT_CONFIG", str(config))
    monkeypatch.delenv("PLIANT_HOST", raising=False)
    made = Controllers({})
    monkeypatch.setattr("pliant.cli.door.ask_over_tcp", made.ask)
    return made


GONE = Unavailable("pliantd at ctl2:1: Connection refused")
STANDS_BY = {"stands-by": "ctl1 stands by: slurmctld runs on ctl2"}


ONE, TWO = (ok(json=to_json(DoneAnswer(word))) for word in ("one", "two"))
STANDING = replace(no("ctl1 stands by"), fields={"message": "ctl1 stands by", **STANDS_BY})


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ((ONE, GONE), (0, "one\n", "")),
        ((STANDING, TWO), (0, "two\n", "")),
        ((STANDING, GONE), (1, "", "pliant: ctl1 stands by\n")),
        ((GONE, TWO), (0, "two\n", "")),
        ((GONE, GONE), (2, "", f"pliant: {GONE}\n")),
    ],
)
def test_of_two_controllers_the_one_that_acts_is_listened_to(
    two: Controllers,
    capsys: pytest.CaptureFixture[str],
    said: tuple[Message | Unavailable, Message | Unavailable],
    printed: tuple[int, str, str],
) -> None:
    two.said = dict(zip(("ctl1", "ctl2"), said, strict=True))
    assert (pliant("pin", "7"), *capsys.readouterr()) == printed


def test_a_pause_is_told_to_each_controller_and_where_it_is_not_that_is_said(
    two: Controllers, capsys: pytest.CaptureFixture[str]
) -> None:
    two.said = {"ctl1": ok(json=to_json(DoneAnswer("paused"))), "ctl2": GONE}
    assert pliant("pause") == 0
    assert two.asked == [("ctl1", "pause"), ("ctl2", "pause")]
    assert capsys.readouterr() == ("paused\n", f"pliant: {GONE}: pause again when it runs\n")


def test_slurms_hosts_are_found_without_asking_slurmctld(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=c SlurmctldHost=one(10.0.0.1)  # SlurmctldHost=no\nslurmctldhost = two\n"
        "#SlurmctldHost=old\nSlurmctldHostX=no\n"
    )
    assert controllers(parse({"slurm": {"conf": str(conf)}})) == ["10.0.0.1", "two"]


def test_a_host_without_the_files_of_pliant_toml_asks_as_it_does_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str]] = []

    def show_config(conf: str, bin_dir: str, _timeout_s: float) -> SlurmSite:
        asked.append((conf, bin_dir))
        return parse_config("SLURM_VERSION = 23.11.10\nSlurmctldHost[0] = ctl(10.0.0.1)\n")

    monkeypatch.setattr("pliant.cli.commands.show_config", show_config)
    slurm = {"conf": "/nowhere/slurm.conf", "bin_dir": "/nowhere/bin"}
    assert controllers(parse({"slurm": slurm})) == ["10.0.0.1"]
    assert asked == [("", "")]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5360, "89 min"), (5400, "1 h 30 min"),
     (7200, "2 h"), (172800, "2 d"), (180000, "2 d 2 h"), (-3, "0 s")],
)  # fmt: skip
def test_times_are_written_as_people_say_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_user_text_cannot_command_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a\x1b]0;x\x07\nb"], [Column("name", lambda row: row)], Style(header=False))
    assert capsys.readouterr().out == "a?]0;x??b\n"


def test_a_table_without_rows_has_its_titles() -> None:
    assert plain_table([Column("name", str), Column("n", str, right=True)], [], True) == (
        "NAME  N\n"
    )


def test_an_unknown_field_is_bad_input() -> None:
    with pytest.raises(BadInput):
        print_table([], [Column("name", str)], Style(fields="nome"))


@pytest.mark.parametrize(
    ("said", "job"),
    [
        ("4711_3", "4711_3"),
        ("4711[]", "4711[]"),
        ("4711[3]", "4711[3]"),
        ("4711.head", "4711"),
        ("4711[].head.cluster.org", "4711[]"),
        ("4711[3].pbs-1", "4711[3]"),
        ("0", "0"),  # PBS's first
        ("0[3].head", "0[3]"),
    ],
)
@pytest.mark.parametrize("verb", ["why", "history"])
def test_a_job_is_named_as_squeue_or_qstat_names_it(
    verb: str, said: str, job: str, daemon: FakeDaemon
) -> None:
    assert pliant(verb, said) == 1  # this pliantd knows of none
    assert [one.fields["job"] for one in daemon.asked] == [job]


def test_a_component_of_a_heterogeneous_job_has_a_number_of_its_own(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant("history", "4711+1") == 2
    assert capsys.readouterr().err == (
        "pliant: '4711+1': a component of a heterogeneous job has a number of its own:"
        " JobId= of scontrol show job 4711+1\n"
    )
    assert daemon.asked == []


@pytest.mark.parametrize(
    "job",
    [
        *("abc", "", "1;id", "00", "01", "1_x", "9" * 70_000, "\u0661"),
        *("1[x]", "1[1-3]", "1[", "1]", "1_3[3]", "1.", "1.-x", "1.a b", "1..a", "[3]"),
    ],
)
@pytest.mark.parametrize("words", [("why",), ("pin",), ("set",)])
def test_what_is_no_jobs_number_is_one_line_and_exit_2(
    words: tuple[str, ...], job: str, daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant(*words, job, *(("gpus=1",) if words == ("set",) else ())) == 2
    line = capsys.readouterr().err
    assert line.endswith(": a job's number, like 4711 or 4711_3, on PBS 4711[3], is expected\n")
    assert line.count("\n") == 1
    assert daemon.asked == []


def test_a_broken_configuration_is_told_and_does_not_stop_a_pause(
    daemon: FakeDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "pliant.toml").open("a") as config:
        config.write('cycle_s = "soon"\n[partitions]\ngpu = "perhaps"\n')
    daemon.answers["pause"] = DoneAnswer("paused")
    assert pliant("pause") == 0
    said = capsys.readouterr()
    assert said.out == "paused\n"
    assert said.err.count("\n") == 1
    assert "cycle_s" in said.err


def test_why_says_so_where_nothing_is_done(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    off = "Pliant is off in partition gpu"
    for mode, left, line in (
        ("observe", "", "Pliant observes in its partition: what follows is not done"),
        ("off", off, f"its shape is not changed: {off}"),
    ):
        job = replace(WAITING, mode=mode)
        daemon.answers["why"] = WhyAnswer(1000.0, job, text="it waits", left=left)
        assert pliant("why", "4711") == 0
        assert line in capsys.readouterr().out.splitlines()


def test_why_says_what_changes_have_cost_a_job_so_far(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    job = replace(WAITING, state="running", reason="")
    words = "it is not resized: its owner's max-resizes=3: it has been resized or made room 3 times"
    cost = CostRow(4, 3, 0, 62.5, 250.0)
    daemon.answers["why"] = WhyAnswer(1000.0, job, text=words, cost=cost)
    assert pliant("why", "4711") == 0
    assert capsys.readouterr().out.endswith(
        f"{words}\nresized 3 times, made room 0 times: 62.5 s lost, 0.069 GPU-h\n"
    )


def test_why_says_what_a_job_cannot_become(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    cannot = (CannotRow(("1x0@cpu", "2x0@cpu"), "a waiting job cannot give up its GPUs here"),)
    daemon.answers["why"] = WhyAnswer(1000.0, WAITING, text="it waits", cannot=cannot)
    assert pliant("why", "4711") == 0
    assert capsys.readouterr().out.endswith(
        "it waits\nit cannot become 1x0@cpu, 2x0@cpu: a waiting job cannot give up its GPUs here\n"
    )
