"""Commands are run with a time limit, without a shell, and in an environment of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pliant.batch.slurm.commands import MAX_WORD, Answer, Commands
from pliant.errors import BadAnswer, Refused, Unavailable


def program(directory: Path, script: str) -> Commands:
    """Return commands whose scontrol is a script."""
    path = directory / "scontrol"
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    return Commands(bin_dir=str(directory), timeout_s=5)


def test_a_command_gets_its_words_and_input_unchanged(tmp_path: Path) -> None:
    commands = program(tmp_path, 'printf "%s\\n" "$@"; cat; echo no >&2; exit 3')
    hostile = "$(id) `id` ; | > x\ny é"
    told = commands.run(["scontrol", hostile], stdin="in\udcff")
    assert told == Answer(f"{hostile}\nin\udcff", "no\n", 3)


def test_the_environment_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SQUEUE_FORMAT", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "LC_ALL"):
        monkeypatch.setenv(name, "theirs")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    commands = program(tmp_path, "/usr/bin/env | /usr/bin/sort")
    told = dict(line.split("=", 1) for line in commands.run(["scontrol"]).out.splitlines())
    ours = {name: told[name] for name in ("TZ", "LC_ALL", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN")}
    assert ours == {"TZ": "UTC", "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
    assert not {"SQUEUE_FORMAT", "SLURM_CLUSTERS", "SLURM_CONF"} & set(told)


def test_slurm_conf_and_a_calls_own_variables_are_passed(tmp_path: Path) -> None:
    program(tmp_path, 'echo "$SLURM_CONF $SQUEUE_FORMAT2"')
    commands = Commands(conf="/etc/my.conf", bin_dir=str(tmp_path))
    told = commands.run(["scontrol"], env={"SQUEUE_FORMAT2": "x"}).out
    assert told == "/etc/my.conf x\n"


def test_a_command_that_does_not_end_is_unavailable(tmp_path: Path) -> None:
    commands = program(tmp_path, "echo begun; exec sleep 60")
    with pytest.raises(Unavailable, match=r"scontrol: no answer within 0\.2 s"):
        Commands(bin_dir=commands.bin_dir, timeout_s=0.2).run(["scontrol"])


def test_a_command_that_closes_its_output_and_stays_is_unavailable(tmp_path: Path) -> None:
    commands = program(tmp_path, "exec sleep 60 >&- 2>&-")
    with pytest.raises(Unavailable, match="does not end"):
        Commands(bin_dir=commands.bin_dir, timeout_s=0.3).run(["scontrol"])


def test_output_without_end_is_a_bad_answer(tmp_path: Path) -> None:
    commands = program(tmp_path, "exec yes")
    with pytest.raises(BadAnswer, match="more than 100000 bytes"):
        Commands(bin_dir=commands.bin_dir, max_output=100_000).run(["scontrol"])


def test_a_missing_command_is_unavailable_and_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="scontrol: No such file or directory; are Slurm's"):
        Commands(bin_dir=str(tmp_path)).run(["scontrol"])


def test_a_controller_that_is_away_is_told_from_a_refusal(tmp_path: Path) -> None:
    away = "slurm_update error: Unable to contact slurm controller (connect failure)"
    with pytest.raises(Unavailable, match="Unable to contact slurm controller"):
        program(tmp_path, f"echo '{away}' >&2; exit 1").run(["scontrol"])
    refused = program(tmp_path, "echo 'scontrol: error: Invalid user' >&2; exit 1").run(
        ["scontrol"]
    )
    assert (refused.status, refused.words) == (1, "Invalid user")


def test_words_are_one_line_of_bounded_length() -> None:
    told = Answer("", "scontrol: error: a\n\x1b[31mb\n" + "c" * 1000, 1).words
    assert told.startswith("a; ?[31mb; ccc")
    assert len(told) == 303
    assert Answer("", "", 7).words == "exit status 7"


def test_an_argument_that_no_program_can_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be passed on"):
        program(tmp_path, "true").run(["scontrol", "x" * (MAX_WORD + 1)])
