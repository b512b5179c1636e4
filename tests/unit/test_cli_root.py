"""The command line itself: help, exit codes, one line for every error, planning on a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from build import node
from build import snapshot as small_snapshot
from resizing import elastic, runs

from pliant import __version__
from pliant.batch.snapshot_file import write_snapshot
from pliant.cli import SECTIONS, cli, main, planning
from pliant.cli.completion import SHELLS
from pliant.cli.policy_options import policy_options
from pliant.errors import BadInput
from pliant.grammar import parse
from pliant.model import Job, Node, Partition, Pool, Shape, Snapshot, Spec


def pliant(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert (pliant("--version"), capsys.readouterr().out) == (0, f"pliant {__version__}\n")


def test_help_lists_every_command_in_its_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert pliant("--help") == 0
    text = capsys.readouterr().out
    for title, section in SECTIONS.items():
        assert f"{title}:" in text
        assert [name for name in section if f"\n  {name} " not in text] == []


def groups(group: click.Group, path: str) -> Iterator[tuple[str, click.Group]]:
    """A group and every group below it."""
    yield path, group
    for name in group.list_commands(click.Context(group)):
        child = group.get_command(click.Context(group), name)
        if isinstance(child, click.Group):
            yield from groups(child, f"{path} {name}")


def test_every_line_of_help_fits_a_terminal_and_none_is_cut() -> None:
    for path, group in groups(cli, "pliant"):
        context = click.Context(group, info_name=path, terminal_width=80)
        lines = group.get_help(context).splitlines()[1:]  # the usage ends with [ARGS]...
        assert [line for line in lines if len(line) > 80 or line.endswith("...")] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("paln",), "pliant: No such command 'paln'; see pliant --help\n"),
        (("why",), "pliant: Missing argument 'JOB'; see pliant why --help\n"),
        (("jobs", "--jsn"), "pliant: No such option '--jsn'"),
        (("why", "1", "x\x1b[2J\ny"), "pliant: Got unexpected extra argument (x?[2J y); see"),
        (
            ("plan", "--file", "/nonexistent/file"),
            "pliant: /nonexistent/file: No such file or directory\n",
        ),
        (("plan", "--policy", "fms"), "pliant: --policy and --with go with --file or --live:"),
        (("plan", "--file", "x", "--live"), "pliant: --file and --live exclude each other\n"),
        (("plan", "--save", "x"), "pliant: --save goes with --live\n"),
        (
            ("plan", "--live", "--save", "/nonexistent/x"),
            "pliant: --save: '/nonexistent/x': its directory is not there\n",
        ),
        (
            ("plan", "--file", "/dev/zero"),
            "pliant: /dev/zero: a regular file or a pipe is expected\n",
        ),
        (("plan", "--file", "/"), "pliant: /: a regular file or a pipe is expected\n"),
        (("plan", "--live", "--with", "x\n"), "pliant: --with: 'x?': OPTION=VALUE is expected\n"),
        (("jobs", "-o", "job,nope"), "pliant: -o: 'nope': one of job, user, partition, "),
        (("demo", "--simulated", "--name", "../x"), "pliant: --name '../x': up to 32 of "),
        (("sandbox", "shell", "--name", "nosuch"), "pliant: no sandbox 'nosuch'; bring one up: "),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_2(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant(*words) == 2
    said, error = capsys.readouterr()
    assert said == ""
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_a_mistake_of_our_own_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("line one\nline two")

    monkeypatch.setattr(cli, "main", broken)
    monkeypatch.delenv("PLIANT_DEBUG", raising=False)
    assert pliant("status") == 70
    assert capsys.readouterr().err == (
        "pliant: a mistake of Pliant's own: RuntimeError 'line one?line two'; "
        "PLIANT_DEBUG=1 shows where, please report it\n"
    )
    monkeypatch.setenv("PLIANT_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["status"])


@pytest.mark.parametrize("shell", [*SHELLS, None])
def test_completion_scripts_call_pliant(
    shell: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant("completion", *([shell] if shell else [])) == 0
    assert "_PLIANT_COMPLETE=" in capsys.readouterr().out


def test_completion_knows_commands_and_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_PLIANT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "pliant p")
    monkeypatch.setenv("COMP_CWORD", "1")
    pliant()
    assert sorted(capsys.readouterr().out.split()) == ["plain,pause", "plain,pin", "plain,plan"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A snapshot of one node with four GPUs and two jobs that want all of them."""
    pool = Pool("a100", 4, 4)
    own, allowed = Shape(1, 4), tuple(Shape(1, gpus) for gpus in (1, 2, 4))
    waiting = tuple(
        Job(
            number,
            user="ann",
            partitions=("gpu",),
            reason="Resources",
            priority=10 - place,
            shape=own,
            shapes=allowed,
            spec=Spec(parse("gpus=1:2:4"), own),
            time_limit_s=3600,
        )
        for place, number in enumerate(("7", "8"))
    )
    nodes = (Node("n1", 16, 16, 64000, 64000, (pool,)),)
    snapshot = Snapshot(1000.0, nodes, (Partition("gpu", ("n1",)),), waiting)
    path = tmp_path / "snapshot.json"
    path.write_bytes(write_snapshot(snapshot))
    return path


def test_a_plan_on_a_file_needs_no_daemon(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pliant("plan", "--file", str(file), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(row["id"], row["shape"], row["nodes"], row["change"]) for row in answer["starts"]] == [
        ("7", "2", ["n1"], "would be changed"),
        ("8", "2", ["n1"], "would be changed"),
    ]
    assert [row["done"] for row in answer["changes"]] == [False, False]


def test_a_plan_by_another_policy(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pliant("plan", "--file", str(file), "--policy", "easy-backfill") == 0
    assert capsys.readouterr().out == (
        "policy easy-backfill\n"
        "\n"
        "can start now:\n"
        "JOB  USER  NOW  STARTS_AS  NODES  REASON\n"
        "7    ann   4    4          n1     4 is free\n"
        "\n"
        "kept for the first waiting jobs:\n"
        "JOB  USER  SHAPE  STARTS     NODES  REASON\n"
        "8    ann   4      in 60 min  n1     first in the queue: it keeps the earliest opening\n"
    )


def test_a_plan_by_a_policy_is_what_it_would_be_on_a_cluster(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = {}
    for word in ("times=limits", "times=expected"):
        assert pliant("plan", "--file", str(file), "--policy", "fms", "--with", word, "--json") == 0
        claims[word] = json.loads(capsys.readouterr().out)["claims"]
    assert pliant("plan", "--file", str(file), "--policy", "fms", "--json") == 0
    assert json.loads(capsys.readouterr().out)["claims"] == claims["times=limits"]
    assert bool(claims["times=limits"]) > bool(claims["times=expected"])


def test_an_unknown_policy_is_told_the_known_ones(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant("plan", "--file", str(file), "--policy", "lifo") == 2
    assert capsys.readouterr().err.startswith("pliant: policy: 'lifo': one of moldable-equip")


def test_a_plan_shows_what_running_jobs_would_be_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    view = small_snapshot([node("n1")], [elastic(2)], [runs(elastic(1, user="ann"), "4", "n1")])
    (tmp_path / "x").write_bytes(write_snapshot(view))
    words = ("plan", "--file", str(tmp_path / "x"), "--policy", "malleable-equipartition", "--json")
    assert pliant(*words) == 0
    assert json.loads(capsys.readouterr().out)["changes"] == [
        {
            "id": "1",
            "user": "ann",
            "carried": "4",
            "shape": "2",
            "reason": "one GPU to each job, the rest by D'Hondt",
            "done": False,
        }
    ]


def test_a_file_that_is_no_snapshot_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_text('{"now_s": "soon"}')
    assert pliant("plan", "--file", str(tmp_path / "x")) == 2
    error = capsys.readouterr().err
    words = "not a snapshot: Expected `float`, got `str` - at `$.now_s`"
    assert error.startswith(f"pliant: {tmp_path / 'x'}: {words}")
    assert error.count("\n") == 1


def test_a_file_that_is_too_large_is_one_line(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(planning, "MAX_BYTES", file.stat().st_size)
    assert pliant("plan", "--file", str(file)) == 0
    with file.open("ab") as more:
        more.write(b"\n")
    capsys.readouterr()
    assert pliant("plan", "--file", str(file)) == 2
    said = "more than 0 MiB: no snapshot is as large"
    assert capsys.readouterr().err == f"pliant: {file}: {said}\n"


def test_a_plan_is_read_from_a_pipe_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    end, other = os.pipe()
    os.write(other, file.read_bytes())
    os.close(other)
    try:
        assert pliant("plan", "--file", f"/dev/fd/{end}") == 0
    finally:
        os.close(end)
    assert capsys.readouterr().out.startswith("policy moldable-equipartition\n")


def test_options_of_a_policy_are_json_or_text() -> None:
    assert policy_options(["sizes=all", "high-load=0.5", "overtaking=true"]) == {
        "sizes": "all",
        "high_load": 0.5,
        "overtaking": True,
    }
    with pytest.raises(BadInput, match="OPTION=VALUE is expected"):
        policy_options(["sizes"])
