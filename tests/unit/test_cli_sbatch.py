"""`pliant sbatch`: what the real sbatch is given, word by word."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from limits import HANG_S
from pliant.cli.directives import read_command_line, read_script
from pliant.cli.sbatch import prepare
from pliant.errors import BadInput, BadSpec

PLAIN = b"#!/bin/sh\n#SBATCH --gres=gpu:2\nhostname\n"
FLAGGED = (
    b"#!/bin/sh\n#SBATCH --gres=gpu:2 --moldable=gpus=1-4 -t 5\n\n# a note\n"
    b"#SBATCH --malleable\nhostname\n#SBATCH --colocate\n"
)
CLEANED = (
    b"#!/bin/sh\n#SBATCH --gres=gpu:2 -t 5 # --moldable=gpus=1-4\n\n# a note\n"
    b"#SBATCH # --malleable\nhostname\n#SBATCH --colocate\n"
)


def prepared(
    *words: str, script: bytes | None = PLAIN, environment: Mapping[str, str] | None = None
) -> tuple[list[str], bytes | None]:
    return prepare(words, lambda _name: script, environment or {})


def test_words_without_a_flag_pass_as_they_are() -> None:
    words = ["-N", "2", "--gres", "gpu:2", "-Jname", "--", "train.sh", "--moldable=mine", "-N"]
    assert prepared(*words) == (words, None)


def test_a_flag_becomes_the_comment() -> None:
    assert prepared("--moldable=gpus=1-4", "--gres=gpu:2", "train.sh", "--epochs", "3") == (
        ["--comment=pliant:moldable=gpus=1-4", "--gres=gpu:2", "train.sh", "--epochs", "3"],
        None,
    )


def test_all_flags_stand_in_one_comment() -> None:
    words = (
        "--moldable", "gpus=1-2", "--malleable=grace=2m", "--class", "trial",
        "--throughput=1:5.2,2:9", "--steps", "20000", "--colocate=no", "train.sh",
    )  # fmt: skip
    assert prepared(*words)[0] == [
        "--comment=pliant:moldable=gpus=1-2;malleable=grace=120s;job-class=trial;"
        "throughput=1:5.2,2:9;steps=20000;colocate=no",
        "train.sh",
    ]


def test_an_optional_value_does_not_swallow_the_script() -> None:
    assert prepared("--malleable", "--colocate", "train.sh")[0] == [
        "--comment=pliant:malleable;colocate",
        "train.sh",
    ]


def test_the_owners_comment_follows_after_a_blank() -> None:
    assert prepared("--comment", "run 7", "--moldable=gpus=1-4", "train.sh")[0] == [
        "--comment=pliant:moldable=gpus=1-4 run 7",
        "train.sh",
    ]


def test_a_flag_wins_over_the_same_word_of_a_comment() -> None:
    words = ("--comment=pliant:gpus=1-8;steps=9 mine", "--moldable=gpus=2", "train.sh")
    assert prepared(*words)[0] == [
        "--comment=pliant:moldable=gpus=2;steps=9 mine",
        "train.sh",
    ]


def test_a_blank_before_a_comments_words_loses_none_of_them() -> None:
    words = ("--comment=pliant:  gpus=1-8;steps=9 mine  too", "--job-class=trial", "train.sh")
    assert prepared(*words)[0] == [
        "--comment=pliant:moldable=gpus=1-8;job-class=trial;steps=9 mine  too",
        "train.sh",
    ]


def test_the_scripts_comment_is_kept() -> None:
    script = b"#!/bin/sh\n#SBATCH --comment='run 7'\n"
    assert prepared("--moldable=gpus=1-4", "t.sh", script=script)[0] == [
        "--comment=pliant:moldable=gpus=1-4 run 7",
        "t.sh",
    ]


def test_a_script_with_flags_is_replaced_by_one_whose_flags_stand_behind_a_hash() -> None:
    assert prepared("-p", "gpu", "dir/train.sh", "7", script=FLAGGED) == (
        [
            "--job-name=train.sh",
            "--comment=pliant:moldable=gpus=1-4;malleable",
            "-p",
            "gpu",
            "{script}",
            "7",
        ],
        CLEANED,
    )


def test_the_command_line_wins_over_the_script() -> None:
    argv, _ = prepared("--moldable=gpus=8", "train.sh", script=FLAGGED)
    assert argv[1] == "--comment=pliant:moldable=gpus=8;malleable"


@pytest.mark.parametrize(
    ("script", "environment"),
    [
        (b"#!/bin/sh\n#SBATCH --moldable=gpus=1 --job-name=x\n", {}),
        (b"#!/bin/sh\n#SBATCH --moldable=gpus=1 -HsJx\n", {}),
        (b"#!/bin/sh\n#SBATCH --moldable=gpus=1\n", {"SBATCH_JOB_NAME": "x"}),
    ],
)
def test_a_name_that_the_owner_gave_stays(script: bytes, environment: dict[str, str]) -> None:
    argv, _ = prepared("train.sh", script=script, environment=environment)
    assert argv == ["--comment=pliant:moldable=gpus=1", "{script}"]


def test_a_script_from_stdin_is_handed_on() -> None:
    assert prepared("-t", "5", script=FLAGGED) == (
        ["--comment=pliant:moldable=gpus=1-4;malleable", "-t", "5"],
        CLEANED,
    )
    assert prepared("-t", "5", script=PLAIN) == (["-t", "5"], PLAIN)


def test_wrap_has_no_script() -> None:
    def refuse(_name: str) -> bytes:
        raise AssertionError("nothing is to be read")

    assert prepare(["--wrap", "hostname", "--moldable=gpus=1-2"], refuse, {}) == (
        ["--comment=pliant:moldable=gpus=1-2", "--wrap", "hostname"],
        None,
    )


def test_a_heterogeneous_job_is_refused_in_one_line() -> None:
    with pytest.raises(BadInput, match="heterogeneous"):
        prepared("--moldable=gpus=1-2", "-n1", ":", "-n2", "train.sh")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--moldable=gpus=0", "t.sh"), "moldable gpus: '0': "),
        (("--moldable",), "moldable: a value is expected: --moldable=..."),
        (("--job-class=urgent", "t.sh"), "job-class: 'urgent': one of trial, best-effort"),
        (("--moldable=gpus=1;steps=5", "t.sh"), "moldable gpus: '1;steps=5': "),
        (("--comment=pliant:rubbish=1", "--steps=5", "t.sh"), "'rubbish': one of "),
    ],
)
def test_what_is_wrong_is_said_before_sbatch_is_asked(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(BadSpec) as wrong:
        prepared(*words)
    assert str(wrong.value).startswith(message)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"#SBATCH -J a\\ b", {"named": True}),
        (b'#SBATCH --comment="a # b"', {"comment": "a # b"}),
        (b"#SBATCH --comment=a # --comment=b", {"comment": "a"}),
        (b"#SBATCH", {}),
        (b"#SBATCH # --moldable=gpus=1", {}),
        (b"##SBATCH --moldable=gpus=1", {}),
        (b" #SBATCH --moldable=gpus=1", {}),
        (b"#SBATCH --moldable 'gpus=1-2'", {"ours": {"moldable": "gpus=1-2"}}),
        (b"#SBATCH --job-name=\xff\xfe", {"named": True}),
    ],
)
def test_a_directive_is_read_as_sbatch_reads_it(line: bytes, words: dict[str, object]) -> None:
    found, _ = read_script(b"#!/bin/sh\n" + line + b"\n")
    nothing: dict[str, object] = {"ours": {}, "comment": None, "named": False}
    assert {key: getattr(found, key) for key in nothing} == nothing | words


def test_a_directive_that_was_cleaned_says_nothing_to_pliant_any_more() -> None:
    found, again = read_script(CLEANED)
    assert (found.ours, again) == ({}, CLEANED)


def test_bytes_that_are_no_text_survive() -> None:
    script = b"#!/bin/sh\r\n#SBATCH --job-name='\xff x' --moldable=gpus=1\r\n\xfe\x00\n"
    assert read_script(script)[1] == (
        b"#!/bin/sh\r\n#SBATCH --job-name='\xff x' # --moldable=gpus=1\r\n\xfe\x00\n"
    )


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["-N2", "a.sh"], "a.sh"),
        (["-N", "2", "a.sh"], "a.sh"),
        (["-HN", "2", "a.sh"], "a.sh"),
        (["-H", "a.sh"], "a.sh"),
        (["--exclusive", "a.sh"], "a.sh"),
        (["--exclusive=user", "a.sh"], "a.sh"),
        (["--exclude", "n1", "a.sh"], "a.sh"),
        (["--no-req", "a.sh"], "a.sh"),
        (["--nodes", "2", "a.sh"], "a.sh"),
        (["--", "-a.sh"], "-a.sh"),
        (["-t"], ""),
        (["-"], "-"),
    ],
)
def test_the_script_is_the_first_word_that_is_no_option(words: list[str], script: str) -> None:
    assert read_command_line(words).script == script


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `pliant sbatch` with an sbatch that shows what it was given and ends with 7."""
    fake = tmp_path / "bin" / "sbatch"
    fake.parent.mkdir()
    fake.write_text(
        f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:-1])\n"
        "name = sys.argv[-1]\n"
        "print(open(name).read() if '/' in name else name, end='')\nsys.exit(7)\n"
    )
    fake.chmod(0o755)

    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from pliant.cli import main; main()", "sbatch", *words],
            input=stdin,
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"},
            cwd=tmp_path,
            check=False,
            timeout=HANG_S,
        )

    return run


def test_the_real_sbatch_takes_over_with_its_own_exit_code(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "train.sh").write_bytes(FLAGGED)
    done = run("-t", "5", "train.sh")
    expected = ["--job-name=train.sh", "--comment=pliant:moldable=gpus=1-4;malleable", "-t", "5"]
    assert (done.returncode, done.stdout) == (7, f"{expected}\n{CLEANED.decode()}")


def test_a_wrong_flag_is_one_line_and_exit_2(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run("--moldable=gpus=4-1", "train.sh")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "pliant: moldable gpus: '4-1': the range runs backwards; write 1-4\n",
    )


def test_a_script_that_cannot_be_read_is_sbatchs_to_complain_about(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run("--moldable=gpus=1-4", "missing.sh")
    assert (done.returncode, done.stdout) == (
        7,
        "['--comment=pliant:moldable=gpus=1-4']\nmissing.sh",
    )
