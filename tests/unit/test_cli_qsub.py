"""`pliant qsub`: what the real qsub is given, word by word, and what is left where it refuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from fake_qsub import FakePbs

from hostile import values
from limits import HANG_S
from pliant.cli.qsub import Submission, handed_on, native, prepare
from pliant.cli.qsub_words import Item, Option, items_of, read_command_line, read_script
from pliant.errors import BadInput, BadSpec, Refused, Unavailable
from pliant.filter.pbs.names import RESOURCES
from pliant.grammar import parse_option
from pliant.model import Request

ALL = tuple(RESOURCES.values())
PLAIN = b"#!/bin/sh\n#PBS -l select=1:ngpus=4\nhostname\n"
FLAGGED = (
    b"#!/bin/sh\n#PBS -l select=1:ngpus=4,moldable=gpus=1-4 -N 'my job'\n\n# a note\n"
    b"#PBS --malleable\nhostname\n#PBS --colocate\n"
)
CLEANED = (
    b"#!/bin/sh\n#PBS -l select=1:ngpus=4 -N my\\ job\n\n# a note\n#\nhostname\n#PBS --colocate\n"
)


def submission(
    *words: str, script: bytes | None = PLAIN, environment: Mapping[str, str] | None = None
) -> Submission:
    return prepare(words, lambda _name: script, environment or {})


def handed(
    *words: str, script: bytes | None = PLAIN, made: tuple[str, ...] = ALL
) -> tuple[list[str], bytes | None]:
    return handed_on(words, submission(*words, script=script), FakePbs(made))


# One request


def test_words_without_a_flag_pass_as_they_are() -> None:
    words = ["-hN", "name", "-l", "select=1,walltime=1:00", "train.sh"]
    assert handed(*words) == (words, None)
    words = ["-lselect=1", "--", "prog", "--moldable=mine", "-l", "moldable=x"]
    assert handed(*words, script=None) == (words, None)


def test_a_flag_becomes_a_resource() -> None:
    assert handed("--moldable=gpus=1-4,nodes=1:2", "-l", "select=1:ngpus=4", "train.sh") == (
        ["-l", "select=1:ngpus=4", "-l", "moldable=gpus=1-4+nodes=1-2", "train.sh"],
        None,
    )


def test_all_flags_become_resources_that_need_no_quotes() -> None:
    words = (
        "--moldable", "gpus=1-2", "--malleable", "--class=best-effort", "--throughput=1:5.2,2:9",
        "--steps", "20000", "train.sh",
    )  # fmt: skip
    assert handed(*words)[0][1::2] == [
        "moldable=gpus=1-2",
        "malleable=yes",
        "job_class=best-effort",
        "throughput=1:5.2+2:9",
        "steps=20000",
    ]


@pytest.mark.parametrize(
    "words",
    [("--colocate",), ("--colocate=no",), ("-l", "colocate=yes"), ("--native", "--colocate")],
)
def test_what_does_nothing_on_pbs_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(BadSpec, match=r"^colocate: on PBS "):
        submission(*words, "train.sh")
    with pytest.raises(BadSpec, match=r"^colocate: on PBS "):
        submission("train.sh", script=b"#PBS --colocate\n")


def test_a_resource_of_ours_is_checked_and_written_without_quotes() -> None:
    words = ("-l", 'select=1,moldable="gpus=1,nodes=1",walltime=9:00', "train.sh")
    assert handed(*words)[0] == [
        *("-l", "select=1,walltime=9:00", "-l", "moldable=gpus=1+nodes=1", "train.sh")
    ]
    with pytest.raises(BadSpec, match=r"^moldable gpus: '0'"):
        submission("-l", "moldable=gpus=0", "train.sh")
    assert handed("-lmalleable=yes", "-lMALLEABLE=grace=9", "t.sh")[0] == [
        *("-l", "malleable=grace=9s", "t.sh")
    ]


def test_where_the_site_has_not_made_the_resources_variables_say_it() -> None:
    words = ("--moldable=gpus=1,nodes=1", "--steps=9", "-v", "A=1,B", "train.sh")
    assert handed(*words, made=("moldable",))[0] == [
        *("-v", "A=1,B", "-v", "A=1,B,PLIANT_MOLDABLE=gpus=1+nodes=1,PLIANT_STEPS=9", "train.sh")
    ]
    script = b"#PBS -v C=3\n#PBS --steps=9\n"
    argv, _ = handed("train.sh", script=script, made=())
    assert argv == ["-N", "train.sh", "-v", "C=3,PLIANT_STEPS=9", "{script}"]


@pytest.mark.parametrize("words", ["away", "qmgr: No permission"])
def test_where_that_cannot_be_told_qsub_is_asked(words: str) -> None:
    commands = FakePbs()
    commands.fails["qmgr"] = words
    argv, _ = handed_on([], submission("--steps=9", "t.sh"), commands)
    assert argv == ["-l", "steps=9", "t.sh"]


def test_a_script_with_our_words_is_replaced_by_one_without() -> None:
    assert handed("-q", "gpu", "dir/train.sh", script=FLAGGED) == (
        [
            *("-q", "gpu", "-l", "moldable=gpus=1-4", "-l", "malleable=yes", "{script}"),
        ],
        CLEANED,
    )
    unnamed = FLAGGED.replace(b" -N 'my job'", b"")
    assert handed("dir/train.sh", script=unnamed)[0][:2] == ["-N", "train.sh"]
    assert handed("-Nx", "dir/train.sh", script=unnamed)[0][:2] == ["-N", "x"]


def test_the_command_line_wins_over_the_script_and_a_flag_over_a_resource() -> None:
    assert "moldable=gpus=8" in handed("-l", "moldable=gpus=8", "t.sh", script=FLAGGED)[0]
    words = ("--moldable=gpus=8", "-l", "moldable=gpus=2", "t.sh")
    assert "moldable=gpus=8" in handed(*words)[0]


def test_a_script_from_stdin_is_handed_on() -> None:
    ours = ["-l", "moldable=gpus=1-4", "-l", "malleable=yes"]
    assert handed("-h", script=FLAGGED) == (["-h", *ours], CLEANED)
    assert handed("-h", script=PLAIN) == (["-h"], PLAIN)


@pytest.mark.parametrize("words", [["-I"], ["--version"], ["--", "prog"]])
def test_where_there_is_no_script_stdin_is_left_alone(words: list[str]) -> None:
    def refuse(_name: str) -> bytes:
        raise AssertionError("nothing is to be read")

    assert prepare(words, refuse, {}).script is None


def test_directives_may_begin_otherwise() -> None:
    script = b"#X --steps=9\n#PBS --steps=8\n"
    assert submission("-C", "#X", "t.sh", script=script).inside.ours == {"steps": "9"}
    found = submission("t.sh", script=script, environment={"PBS_DPREFIX": "#X"})
    assert found.inside.ours == {"steps": "9"}
    assert submission("-C", "", "t.sh", script=script).inside.ours == {}


# qsub's language


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ("a=1,B=2", [Item("a", "1", "a=1"), Item("b", "2", "B=2")]),
        ("a='x,y',b", [Item("a", "x,y", "a='x,y'"), Item("b", "", "b")]),
        ('a=1:"x y":z b=2', [Item("a", "1:x y:z", 'a=1:"x y":z'), Item("b", "2", "b=2")]),
        *((wrong, []) for wrong in ("", "a=1,", ",a", "=1", "a='x", "a=1&b")),
    ],
)
def test_resources_are_split_as_qsub_does(value: str, items: list[Item]) -> None:
    assert items_of(value) == items


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["-l", "x", "a.sh"], "a.sh"),
        (["-lx", "a.sh"], "a.sh"),
        (["-hN", "x", "a.sh"], "a.sh"),
        (["-hzI", "a.sh"], "a.sh"),
        (["-N"], ""),
        (["-"], ""),
        (["--", "a"], ""),
    ],
)
def test_the_script_is_the_first_word_that_is_no_option(words: list[str], script: str) -> None:
    assert read_command_line(words).script == script


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (b"#PBS -N a\\ b", [Option("N", "a b")]),
        (b"  #PBS -N 'a \"\\b'", [Option("N", 'a "\\b')]),
        (b'#PBS -N "', [Option("N", "")]),
        (b"#PBS -hz", [Option("h"), Option("z")]),
        (b"#PBS -l \\ \n a=1", [Option("l", "a=1")]),
        (b":\n#PBS -h", [Option("h")]),
        (b"# PBS -h", []),
        (b"##PBS -h", []),
        (b"#PBS", []),
    ],
)
def test_a_directive_is_read_as_qsub_reads_it(line: bytes, options: list[Option]) -> None:
    script = b"#!/bin/sh\n" + line + b"\n"
    found, same = read_script(script)
    assert ([*found.options], same) == (options, script)


def test_of_two_resources_in_a_script_the_first_counts() -> None:
    script = b"#PBS -l steps=1,select=1\n#PBS -l steps=2,select=2\n"
    found, _ = read_script(script)
    assert (found.ours, found.resources["select"]) == ({"steps": "1"}, "1")


def test_a_script_that_was_cleaned_says_nothing_to_pliant_any_more() -> None:
    found, again = read_script(CLEANED)
    assert (found.is_ours, again) == (False, CLEANED)


def test_bytes_that_are_no_text_survive_and_so_do_line_numbers() -> None:
    script = b"#!/bin/sh\r\n#PBS -N '\xff x' \\\r\n --steps=9\r\n\xfe\x00\x0b\x1c\n"
    assert read_script(script)[1] == b"#!/bin/sh\r\n#PBS -N \xff\\ x\r\n#\n\xfe\x00\x0b\x1c\n"


# What is wrong


def says(option: str, value: str) -> str:
    with pytest.raises(BadSpec) as wrong:
        parse_option(Request(), option, value)
    return str(wrong.value)


@pytest.mark.parametrize(("option", "value"), values())
def test_hostile_and_malformed_values_are_refused_in_the_parsers_words(
    option: str, value: str
) -> None:
    flag = "class" if option == "job-class" else option
    with pytest.raises(BadSpec) as wrong:
        submission(f"--{flag}={value}", "t.sh")
    assert str(wrong.value) == says(option, value)
    if not set(value) & set("\"',& \n"):  # else -l has its own way with it
        with pytest.raises(BadSpec) as wrong:
            submission("-l", f"{RESOURCES[option]}={value}", "t.sh")
        assert str(wrong.value) == says(option, value)


def test_a_flag_without_its_value_is_refused() -> None:
    with pytest.raises(BadSpec, match=r"moldable: a value is expected: --moldable=..."):
        submission("--moldable")


# Several requests of which one runs


NATIVE = ("--native", "--moldable=gpus=1:2:4", "-l", "select=1:ncpus=4:ngpus=4,walltime=9:00")


def natives(commands: FakePbs, *words: str, script: bytes | None = PLAIN) -> list[str]:
    return native(submission(*words, script=script), commands)


def selects(commands: FakePbs) -> list[str]:
    return [word for said in commands.said for word in said if word.startswith("select=")]


def test_each_shape_is_a_request_joined_to_all_others_and_released_at_the_end() -> None:
    commands = FakePbs()
    assert natives(commands, *NATIVE, "dir/train.sh") == ["1.head", "2.head", "3.head"]
    rest = ["-N", "train.sh", "-l", "walltime=9:00", "-l"]
    assert commands.said == [
        ["qsub", "-h", *rest, "select=1:ncpus=4:ngpus=4"],
        ["qsub", "-h", "-W", "depend=runone:1.head", *rest, "select=1:ncpus=4:ngpus=2"],
        ["qsub", "-h", "-W", "depend=runone:1.head", *rest, "select=1:ncpus=4:ngpus=1"],
        ["qrls", "-h", "u", "1.head", "2.head", "3.head"],
    ]
    every = set(commands.jobs)
    assert all(joined == every - {one} for one, joined in commands.jobs.items())
    assert commands.held == set()
    assert commands.scripts == [PLAIN.decode()] * 3


def test_the_fastest_come_first_then_the_largest_then_those_without_gpus() -> None:
    commands = FakePbs()
    words = ("--moldable=type=gpu:cpu,gpus=1-3,cores=9", "--throughput=2:9,1:5", *NATIVE[2:])
    natives(commands, "--native", *words, "t.sh")
    assert selects(commands) == [
        *(f"select=1:ncpus=4:ngpus={gpus}" for gpus in (2, 1, 3)),
        "select=1:ncpus=9:ngpus=0",
    ]


def test_several_nodes_are_scattered() -> None:
    commands = FakePbs()
    natives(commands, "--native", "--moldable=gpus=4,nodes=1:2", *NATIVE[2:], "t.sh")
    assert commands.said[1][-4:] == ["-l", "select=2:ncpus=4:ngpus=2", "-l", "place=scatter"]


def test_what_the_script_asks_is_asked_of_each_shape() -> None:
    commands = FakePbs()
    script = b"#PBS --native -l select=1:ngpus=4 --moldable=gpus=2:4\n"
    natives(commands, script=script)
    assert selects(commands) == ["select=1:ngpus=4", "select=1:ngpus=2"]
    assert commands.scripts == ["#PBS -l select=1:ngpus=4\n"] * 2
    commands = FakePbs()
    natives(commands, "--native", "--moldable=gpus=2:4", "-lncpus=2,ngpus=4", "--", "prog", "a b")
    assert commands.said[0][-7:] == ["-l", "ncpus=2", "-l", "ngpus=4", "--", "prog", "a b"]


def test_one_shape_is_one_plain_request() -> None:
    commands = FakePbs()
    assert natives(commands, "--native", "--moldable=gpus=2", *NATIVE[2:]) == ["1.head"]
    assert commands.said == [["qsub", "-l", "walltime=9:00", "-l", "select=1:ncpus=4:ngpus=2"]]


def test_who_holds_them_keeps_holding_them() -> None:
    commands = FakePbs()
    natives(commands, *NATIVE, "-h", "t.sh")
    assert {said[0] for said in commands.said} == {"qsub"}
    assert commands.held == set(commands.jobs)


@pytest.mark.parametrize(
    ("what", "words", "kind"),
    [
        ("3", "qsub: would exceed queue's limit", Refused),
        ("3", "away", Unavailable),
        ("qrls", "qrls: Unauthorized Request", Refused),
        ("qrls", "away", Unavailable),
    ],
)
def test_where_one_is_refused_nothing_is_left(what: str, words: str, kind: type[Exception]) -> None:
    commands = FakePbs()
    commands.fails[what] = words
    with pytest.raises(kind) as wrong:
        natives(commands, *NATIVE, "t.sh")
    assert str(wrong.value).endswith("no answer within 60 s" if words == "away" else words)
    assert (commands.jobs, commands.said[-1][0]) == ({}, "qdel")


def test_what_cannot_be_taken_back_is_named_and_held() -> None:
    commands = FakePbs()
    commands.fails = {"3": "qsub: no", "qdel": "qdel: no"}
    with pytest.raises(Refused, match=r"^qsub: no; left behind, held: 1\.head 2\.head$"):
        natives(commands, *NATIVE, "t.sh")
    assert commands.held == set(commands.jobs)


def test_an_interruption_that_another_thread_takes_submits_nothing_either() -> None:
    """A process's signal goes to any of its threads that does not block it."""
    due = threading.Event()

    def taking() -> None:
        due.wait()
        signal.raise_signal(signal.SIGINT)

    def interrupt() -> None:
        due.set()
        other.join()

    other = threading.Thread(target=taking)
    other.start()
    commands = FakePbs()
    commands.interrupted_at, commands.interrupt = 2, interrupt
    with pytest.raises((Refused, KeyboardInterrupt)):
        natives(commands, *NATIVE, "t.sh")
    assert (commands.jobs, len(commands.scripts)) == ({}, 2)


def test_who_interrupts_finds_nothing_submitted() -> None:
    commands = FakePbs()
    commands.interrupted_at = 2
    with pytest.raises((Refused, KeyboardInterrupt)):
        natives(commands, *NATIVE, "t.sh")
    assert (commands.jobs, len(commands.scripts)) == ({}, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--steps=9",), "--moldable= is needed"),
        (("--moldable=gpus=1-2", "--malleable"), "malleable needs pliantd"),
        (("--moldable=gpus=1-17",), "17 shapes: each is a request, and at most 16"),
        (("--moldable=gpus=1/4",), "1/4: shares and types of GPUs"),
        (("--moldable=type=cpu,cores=all",), "cores=all, need pliantd"),
        (("--moldable=gpus=1-2", "-I"), "-I: several requests are not submitted interactive"),
        (("--moldable=gpus=1-2", "-z"), "-z: several requests are not submitted without"),
        (("--moldable=gpus=1-2", "-W", "umask=7,block=true"), "-W block= is for one request"),
        (("--moldable=gpus=1-2", "-Wdepend=afterok:3"), "-W depend= is for one request"),
        (("--moldable=gpus=1-2", "-lselect=1+2:ngpus=1"), "several sorts of chunks"),
        (("--moldable=gpus=2,nodes=1:2", "-lngpus=2"), "several nodes are asked by -l select="),
    ],
)
def test_what_native_requests_cannot_say_is_refused(words: tuple[str, ...], message: str) -> None:
    commands = FakePbs()
    own = () if any("select" in word or "ngpus" in word for word in words) else NATIVE[2:]
    with pytest.raises(BadInput) as wrong:
        natives(commands, "--native", *own, *words, "t.sh", script=b"")
    assert message in str(wrong.value)
    assert str(wrong.value).startswith("--native: ")
    assert commands.said == []


def test_without_a_script_nothing_is_submitted() -> None:
    with pytest.raises(BadInput, match="which script"):
        natives(FakePbs(), *NATIVE, script=None)


# The whole command


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `pliant qsub` with a qsub that shows what it was given and ends with 7."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    (bin_dir / "qsub").write_text(
        f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:-1])\nname = sys.argv[-1]\n"
        "print(open(name).read() if '/' in name else name, end='')\nsys.exit(7)\n"
    )
    (bin_dir / "qmgr").write_text("#!/bin/sh\nexit 0\n")
    for program in bin_dir.iterdir():
        program.chmod(0o755)

    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from pliant.cli import main; main()", "qsub", *words],
            input=stdin,
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": f"{bin_dir}:{os.environ['PATH']}"},
            cwd=tmp_path,
            check=False,
            timeout=HANG_S,
        )

    return run


def test_the_real_qsub_takes_over_with_its_own_exit_code(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "train.sh").write_bytes(FLAGGED)
    done = run("-q", "gpu", "train.sh")
    expected = ["-q", "gpu", "-l", "moldable=gpus=1-4", "-l", "malleable=yes"]
    assert (done.returncode, done.stdout) == (7, f"{expected}\n{CLEANED.decode()}")


def test_a_wrong_flag_is_one_line_and_exit_2_and_nothing_is_submitted(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run("--moldable=gpus=4-1", "train.sh")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "pliant: moldable gpus: '4-1': the range runs backwards; write 1-4\n",
    )


def test_what_qsub_says_of_a_native_request_is_one_line_and_exit_2(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run(*NATIVE, stdin="true\n")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "pliant: exit status 7\n")
