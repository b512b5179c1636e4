"""The SPANK plugin at the clients: what sbatch, salloc and srun take and refuse."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from slurm_helpers import Submit, WaitForState
from spank_helpers import plugstack

from hostile import HOSTILE
from limits import HANG_S
from pliant.errors import BadSpec
from pliant.grammar import find_token, parse, parse_option
from pliant.model import Request, Spec
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

CLIENTS = {"sbatch": ["sbatch", "--wrap=true"], "salloc": ["salloc"], "srun": ["srun"]}


@pytest.fixture
def alone(clean: Sandbox) -> Sandbox:
    """The sandbox without pliantd, which `clean` starts again."""
    clean.stop("pliantd")
    return clean


def python_says(option: str, value: str) -> str:
    with pytest.raises(BadSpec) as caught:
        parse_option(Request(), option, value)
    return str(caught.value)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_malformed_value_is_refused_in_one_line_in_the_parsers_words(
    alone: Sandbox, client: str
) -> None:
    for value in HOSTILE:
        argv = [CLIENTS[client][0], f"--moldable={value}", *CLIENTS[client][1:]]
        done = alone.run(argv if client == "sbatch" else [*argv, "true"])
        assert done.returncode != 0
        assert done.stderr == f"{client}: error: pliant: {python_says('moldable', value)}\n"
    assert alone.run(["squeue", "-h"]).stdout == ""
    assert not Path("/tmp/pliant-owned").exists()


@pytest.mark.parametrize(
    ("flag", "option", "value"),
    [
        ("malleable", "malleable", "grace=x"),
        ("class", "job-class", "fast"),
        ("throughput", "throughput", "1:5,1:6"),
        ("steps", "steps", "many"),
        ("colocate", "colocate", "perhaps"),
    ],
)
def test_every_option_is_checked_in_the_script_too(
    alone: Sandbox, flag: str, option: str, value: str
) -> None:
    script = f"#!/bin/bash\n#SBATCH --{flag}={value}\ntrue\n"
    done = alone.run(["sbatch"], stdin=script)
    assert done.returncode != 0
    said = python_says(option, value)
    assert said.startswith(option)
    assert done.stderr == f"sbatch: error: pliant: {flag}{said.removeprefix(option)}\n"


def test_no_abbreviation_that_scripts_use_becomes_ambiguous(alone: Sandbox) -> None:
    for words in (["--job=name"], ["--mem-per-c=10"], ["--thread-s=1"], ["--cont"], ["--comm=x"]):
        with_plugin = alone.run(["sbatch", "--test-only", *words, "--wrap=true"])
        with plugstack(alone, None):
            without = alone.run(["sbatch", "--test-only", *words, "--wrap=true"])
        assert ("ambiguous" in with_plugin.stderr) == ("ambiguous" in without.stderr)
        assert with_plugin.returncode == without.returncode


def test_switched_off_it_takes_any_value(alone: Sandbox, submit: Submit) -> None:
    with plugstack(alone, "off"):
        for value in HOSTILE:
            if len(value) < 10_000:
                submit("-H", f"--moldable={value}", "--malleable=x", "--class=?", "--colocate=é")


def test_every_option_reaches_the_token(alone: Sandbox, submit: Submit) -> None:
    job = submit(
        "-H", "--gres=gpu:1", "--moldable=gpus=1-4", "--malleable", "--class=best-effort",
        "--throughput=1:2.5", "--steps=100", "--colocate=no",
    )  # fmt: skip
    told = alone.run(["squeue", "-h", "-j", str(job), "-O", "admin_comment:|"], check=True).stdout
    said = "gpus=1-4;malleable;job-class=best-effort;throughput=1:2.5;steps=100;colocate=no"
    assert find_token(told.strip().removesuffix("|")) == Spec(parse(said))


@pytest.mark.parametrize("content", [None, b"", b"not a plugin"])
def test_a_plugin_file_that_is_missing_or_none_stops_no_job(
    alone: Sandbox, submit: Submit, wait_for_state: WaitForState, content: bytes | None
) -> None:
    plugin = alone.layout.plugin
    kept = plugin.rename(plugin.with_suffix(".kept"))
    try:
        if content is not None:
            plugin.write_bytes(content)
        wait_for_state(submit("--gres=gpu:1", script="srun true"), "COMPLETED")
    finally:
        kept.replace(plugin)


def test_the_library_exports_slurms_names_alone(alone: Sandbox) -> None:
    told = subprocess.run(
        ["nm", "-D", "--defined-only", alone.layout.plugin],
        capture_output=True, text=True, check=True, timeout=HANG_S,
    ).stdout  # fmt: skip
    names = {line.split()[2] for line in told.splitlines()}
    assert names == {
        "plugin_name", "plugin_type", "plugin_version", "spank_plugin_version",
        "slurm_spank_init", "slurm_spank_task_init",
    }  # fmt: skip
