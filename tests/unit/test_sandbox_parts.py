"""What a sandbox decides before anything runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.errors import BadInput, Unavailable
from pliant.sandbox import Options, accounting, accounts, config, parts, ports, processes, programs
from pliant.sandbox.layout import Layout
from pliant.sandbox.notified import Notified
from pliant.sandbox.options import check_name
from pliant.sandbox.reasons import why
from pliant.sandbox.record import Record, all_names, read_record

FOUR = config.Ports(ctld=1, dbd=2, pliant=3, nodes=(11, 12, 13, 14))
WHO = accounts.Accounts(slurm="slurm", slurmd="root", database="mysql")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(Path("/tmp"), "unit")
    object.__setattr__(made, "base", tmp_path)  # pytest's directories are too long for sockets
    made.etc.mkdir(parents=True)
    made.logs.mkdir()
    return made


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nodes": 0}, "--nodes 0: from 1 to 512"),
        ({"nodes": 513}, "--nodes 513: from 1 to 512"),
        ({"gpus": -1}, "--gpus -1: from 0 to 64"),
        ({"shards": 0}, "--shards 0: from 1 to 64"),
        ({"cpus": 2000}, "--cpus 2000: from 0 to 1024"),
        ({"mode": "on"}, "--mode 'on': one of enforce, observe, off, none"),
        (
            {"gpu_types": ("a100\nX=1",)},
            "--gpu-type 'a100\\nX=1': a word such as a100, or several: a100:h100",
        ),
        ({"gpu_types": ()}, "--gpu-type '': a word such as a100, or several: a100:h100"),
        (
            {"scheduler_parameters": "x\nSlurmUser=eve"},
            "--scheduler-parameters 'x\\nSlurmUser=eve': a list such as bf_interval=30,bf_continue",
        ),
    ],
)
def test_wrong_options_are_refused_in_one_line(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput) as told:
        Options(**wrong)  # type: ignore[arg-type]  # that is the test
    assert str(told.value) == message


@given(st.text())
def test_a_name_is_a_plain_word_or_refused_in_one_line(text: str) -> None:
    try:
        name = check_name(text)
    except BadInput as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert Path("/base", name).resolve() == Path("/base") / name
        assert name.isascii() and not name.startswith("-")


def test_a_directory_too_long_for_sockets_is_refused() -> None:
    with pytest.raises(BadInput, match="too long for Unix sockets"):
        Layout(Path("/" + "x" * 80), "n")


def test_the_nodes_differ_in_type_and_port_alone() -> None:
    made = config.nodes(Options(nodes=4, gpus=8, shards=2, gpu_types=("a100", "h100")), FOUR)
    assert [(n.name, n.port, n.gres, n.features) for n in made] == [
        ("n1", 11, "gpu:a100:8,shard:16,nogpu:no_consume:1", "a100"),
        ("n2", 12, "gpu:h100:8,shard:16,nogpu:no_consume:1", "h100"),
        ("n3", 13, "gpu:a100:8,shard:16,nogpu:no_consume:1", "a100"),
        ("n4", 14, "gpu:h100:8,shard:16,nogpu:no_consume:1", "h100"),
    ]
    assert {(n.cpus, n.mem_mib) for n in made} == {(32, 64000)}


@pytest.mark.parametrize("accounting", [False, True])
@pytest.mark.parametrize("gpus", [0, 1, 8])
def test_every_file_is_rendered_whole(layout: Layout, gpus: int, accounting: bool) -> None:
    options = Options(nodes=4, gpus=gpus, accounting=accounting)
    config.write_slurm(layout, options, FOUR, WHO, lua=True, cgroups=True)
    conf = (layout.etc / "slurm.conf").read_text().splitlines()
    values = dict(line.split("=", 1) for line in conf if line and not line.startswith("#"))
    assert values["SlurmUser"] == "slurm"
    assert values["JobSubmitPlugins"] == "lua"
    assert values["GresTypes"] == ("gpu,shard,nogpu" if gpus else "nogpu")
    assert ("AccountingStorageTRES" in values) == (accounting and gpus > 0)
    assert ("JobCompType" in values) == (not accounting)
    assert sum(line.startswith("NodeName=") for line in conf) == 4
    gres = (layout.etc / "gres.conf").read_text().splitlines()
    assert len(gres) == (1 + 4 * 3 if gpus else 1 + 4)
    assert (layout.etc / "cgroup.conf").read_text() == ""
    assert sorted(p.name for p in layout.etc.iterdir()) == [
        "cgroup.conf",
        "gres.conf",
        "slurm.conf",
    ]


@pytest.mark.parametrize("parameters", ["", "bf_interval=5"])
def test_no_scheduler_parameters_are_slurms_own(layout: Layout, parameters: str) -> None:
    options = Options(scheduler_parameters=parameters)
    config.write_slurm(layout, options, FOUR, WHO, lua=True, cgroups=True)
    conf = (layout.etc / "slurm.conf").read_text().splitlines()
    written = [line for line in conf if line.startswith("SchedulerParameters")]
    assert written == [f"SchedulerParameters={parameters}"] * bool(parameters)


def test_slurm_is_told_its_cgroup_plugin_where_it_could_not_find_one(
    layout: Layout, tmp_path: Path
) -> None:
    config.write_slurm(layout, Options(), FOUR, WHO, lua=True, cgroups=False)
    assert (layout.etc / "cgroup.conf").read_text() == "CgroupPlugin=cgroup/v1\n"
    mounts = tmp_path / "mounts"
    mounts.write_text("proc /proc proc rw 0 0\n")
    assert not config.cgroups_mounted(mounts)
    mounts.write_text("proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    assert config.cgroups_mounted(mounts)


def test_the_ports_are_free_and_nobody_elses() -> None:
    taken = set(range(ports.FIRST + 10, ports.FIRST + 100))
    chosen = ports.choose(20, taken, start=10)
    assert len(set(chosen)) == 20
    assert not taken & set(chosen)
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", chosen[0]))
        assert chosen[0] not in ports.choose(20, taken, start=10)


def test_ports_end_with_a_clear_line() -> None:
    everything = range(ports.FIRST, ports.LAST + 1)
    with pytest.raises(Unavailable, match="no 3 free TCP ports between 17000 and 32000"):
        ports.choose(3, everything, start=0)


def test_a_record_is_read_as_it_was_written(layout: Layout) -> None:
    import msgspec

    record = Record(Options(nodes=4, users=("alice",)), FOUR)
    config.write(layout.record, msgspec.json.encode(record).decode())
    assert read_record(layout) == record
    assert all_names(layout.base) == ["unit"]


@pytest.mark.parametrize("text", ["", "{", '{"options": 1}', "\x00\xff"])
def test_a_damaged_record_says_how_to_go_on(layout: Layout, text: str) -> None:
    layout.record.write_text(text)
    with pytest.raises(Unavailable) as told:
        read_record(layout)
    assert str(told.value).endswith("; pliant sandbox down --name unit")
    assert len(str(told.value).splitlines()) == 1


def test_the_reason_is_what_the_part_said_last(layout: Layout) -> None:
    assert why(layout, "munged", "ended (1)") == "munged ended (1), and wrote nothing"
    layout.output("munged").write_text("fine\nError: one\nError: two\nmunged: Error: three\nbye\n")
    assert why(layout, "munged", "ended (1)") == (
        "munged ended (1): Error: two; munged: Error: three"
    )


MARIADB = """\
2026-11-22  3:00:00 0 [Note] InnoDB: Using liburing
2026-11-22  3:00:00 0 [ERROR] InnoDB: {}
2026-11-22  3:00:00 0 [ERROR] InnoDB: Plugin initialization aborted with error Generic error
2026-11-22  3:00:00 0 [ERROR] Plugin 'InnoDB' registration as a STORAGE ENGINE failed.
2026-11-22  3:00:00 0 [ERROR] Unknown/unsupported storage engine: InnoDB
2026-11-22  3:00:00 0 [ERROR] Aborting

Installation of system tables failed!  Examine the logs in
/var/lib/mysql for more information.
"""


def test_of_a_database_that_gives_up_the_reason_is_said_and_not_that_it_does(
    layout: Layout,
) -> None:
    why_not = "Cannot allocate memory for the buffer pool"
    layout.output("mariadb-install-db").write_text(MARIADB.format(why_not))
    assert why(layout, "mariadb-install-db", "ended with 1") == (
        f"mariadb-install-db ended with 1: 2026-11-22  3:00:00 0 [ERROR] InnoDB: {why_not}"
    )


def test_the_database_keeps_its_temporary_tables_to_itself(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = tmp_path / "bin" / "mariadb-install-db"
    install.parent.mkdir()
    install.write_text('#!/bin/sh\necho "$@" >&2\necho "[ERROR] InnoDB: no room" >&2\nexit 3\n')
    install.chmod(0o755)
    (install.parent / "mariadbd").symlink_to(install)
    monkeypatch.setenv("PATH", str(install.parent), prepend=":")
    monkeypatch.setattr("shutil.chown", lambda *_: None)
    layout.run.mkdir()
    record = Record(Options(accounting=True), FOUR)
    with pytest.raises(Unavailable) as told:
        accounting.prepare(layout, record, WHO)
    assert str(told.value) == "mariadb-install-db ended with 3: [ERROR] InnoDB: no room"
    own = f"--tmpdir={layout.top}/mariadb.tmp"
    assert own in layout.output("mariadb-install-db").read_text().split()
    assert own in parts.command("mariadbd", layout, record.options, WHO).argv


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(programs, "_MORE", "/nowhere")
    with pytest.raises(Unavailable) as told:
        programs.require("slurmctld", "slurmdbd", "scontrol", "mariadbd")
    assert str(told.value) == (
        "slurmctld, slurmdbd, scontrol, mariadbd: not found; "
        "apt-get install slurm-wlm slurmdbd mariadb-server"
    )


def test_an_unknown_part_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput) as told:
        parts.command("slurmd-n3", Layout(Path("/b"), "x"), Options(nodes=2, mode="none"), WHO)
    assert str(told.value) == (
        "'slurmd-n3': this sandbox has munged, slurmctld, slurmd-n1, slurmd-n2"
    )


def test_a_process_is_found_by_its_mark_and_no_other_is_touched(layout: Layout) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    layout.run.mkdir()
    ours = processes.start(layout, "munged", sleep, {"PATH": os.environ["PATH"]})
    other = {**os.environ, processes.MARK: f"munged@{layout.top}-b"}
    with subprocess.Popen(sleep, env=other) as stranger:
        try:
            found = processes.find(layout)
            assert [(f.part, f.pid) for f in found] == [("munged", ours.pid)]
            assert processes.kill_all(layout) == []
            assert ours.wait(5) == -signal.SIGKILL
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_signal_does_not_reach_a_pid_that_is_anothers_by_now(layout: Layout) -> None:
    me = processes.Found(os.getpid(), "munged", 1, create_time=1.0)
    processes.send(me, signal.SIGKILL)  # we live on


def test_readiness_is_heard_among_other_words(tmp_path: Path) -> None:
    heard = Notified(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        assert not heard.ready()
        for said in (b"STATUS=NOT_READY=1", b"STATUS=up\nREADY=1"):
            daemon.sendto(said, str(tmp_path / "notify"))
    assert heard.ready()
    heard.close()
    assert list(tmp_path.iterdir()) == []


def test_a_user_starts_where_the_user_may_be(tmp_path: Path) -> None:
    person = accounts.Person("x", uid=4242, gid=4242, groups=(4242,), home=tmp_path)
    tmp_path.chmod(0o700)
    assert person.directory() == Path("/")


def test_an_unknown_user_is_told_in_one_line() -> None:
    for name in ("no-such-user", "a\nb", "a\0b", "../x", ""):
        with pytest.raises(BadInput, match="no such user on this machine") as told:
            accounts.person(name)
        assert len(str(told.value).splitlines()) == 1


def test_the_documentation_names_every_command_and_option() -> None:
    from pliant.cli.sandbox import sandbox

    page = Path(__file__).parents[2].joinpath("docs", "sandbox.md").read_text()
    for name, command in sandbox.commands.items():
        assert f"`pliant sandbox {name}" in page
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option in page, option
