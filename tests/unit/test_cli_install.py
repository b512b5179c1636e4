"""What `pliant install slurm` does to files: nothing twice, nothing that it cannot take back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from limits import HANG_S
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.job_rows import JobRow
from pliant.cli import main
from pliant.cli.install.files import Change, Wish, apply, diff, planned, put_back, undone
from pliant.cli.install.jobs import Flagged, flagged, warn_of_jobs
from pliant.cli.install.lua_text import (
    calls_pliant,
    is_overridden,
    is_unreached,
    with_lua_block,
)
from pliant.cli.install.plugin import brought, build, shards_per_gpu
from pliant.cli.install.record import Record, temporary, write
from pliant.cli.install.site import Site, find_site, slurm_conf_values
from pliant.cli.install.steps import after_apply, after_remove
from pliant.cli.install.texts import (
    included,
    job_submit_plugins,
    takes_lua_plugin,
    unedited,
    with_include,
    with_lua_plugin,
)
from pliant.cli.install.wanted import Wanted
from pliant.cli.install.wishes import PARTS, wanted
from pliant.cli.lua_host import as_file, libraries
from pliant.cli.written import check_written
from pliant.daemon.config import parse as parse_config
from pliant.errors import BadInput, Unavailable
from pliant.grammar import parse, put_token
from pliant.model import Spec

# The plugin


@pytest.mark.parametrize(
    ("releases", "version", "taken"),
    [
        (["24.11"], "24.11.5", "24.11"),
        (["24.11"], "", "24.11"),  # Slurm was not asked, as in an image
        (["24.11"], "25.11.1", None),
        (["24.11", "25.11"], "25.11.1", "25.11"),
        (["24.11", "25.11"], "", None),
        ([], "24.11.5", None),
    ],
)
def test_a_plugin_that_a_package_brought_is_taken_for_its_own_release(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    releases: list[str],
    version: str,
    taken: str | None,
) -> None:
    monkeypatch.setattr("pliant.resources.folder", lambda name: tmp_path / name)
    for release in releases:
        write(tmp_path / "spank" / "built" / release / "pliant.so", "", 0o644)
    wanted = tmp_path / "spank" / "built" / taken / "pliant.so" if taken else None
    assert brought(version) == wanted


HEADERS = {"22.05": "0x160508", "24.11": "0x180b05", "": ""}


@pytest.mark.parametrize(
    ("releases", "version", "taken"),
    [
        (["22.05", "24.11"], "24.11.5", 1),
        (["24.11", "22.05"], "24.11.5", 0),
        (["22.05", "24.11"], "", 0),  # Slurm was not asked, as in an image
        ([""], "24.11.5", 0),  # they do not say
        ([], "24.11.5", None),  # make says what is missing
    ],
)
def test_the_plugin_is_built_with_the_headers_of_the_slurm_that_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    releases: list[str],
    version: str,
    taken: int | None,
) -> None:
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], _limit_s: float) -> Answer:
        asked.append(argv)
        return Answer("", "", 0)

    monkeypatch.setattr("pliant.cli.install.plugin.run", run)
    folders = headers(tmp_path, monkeypatch, releases)
    assert build(tmp_path, version) == tmp_path / "pliant.so"
    named = [word for word in asked[0] if word.startswith("SLURM_INCLUDE=")]
    assert named == ([] if taken is None else [f"SLURM_INCLUDE={folders[taken]}"])


def test_the_plugin_is_not_built_for_another_release_than_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = headers(tmp_path, monkeypatch, ["22.05"])
    with pytest.raises(Unavailable) as wrong:
        build(tmp_path, "24.11.5")
    assert str(wrong.value) == (
        "the SPANK plugin is not built: slurmctld is of 24.11.5, and the headers in "
        f"{folder}/slurm are of 22.05: install those of 24.11, or set SLURM_INCLUDE"
    )
    (other,) = headers(tmp_path / "opt", monkeypatch, ["24.11"])
    monkeypatch.setattr("pliant.cli.install.plugin.INCLUDES", (str(folder),))
    other.rename(tmp_path / "include")
    monkeypatch.setattr(
        "pliant.cli.install.plugin.run", lambda argv, _limit_s: Answer("", " ".join(argv), 1)
    )
    with pytest.raises(Unavailable, match=f"SLURM_INCLUDE={tmp_path}/include"):
        build(tmp_path, "24.11.5", str(tmp_path / "bin"))  # beside the commands


def headers(place: Path, monkeypatch: pytest.MonkeyPatch, releases: list[str]) -> list[Path]:
    """Make folders with Slurm's headers of some releases, the only ones there are."""
    folders = [place / f"include{number}" for number in range(len(releases))]
    for folder, release in zip(folders, releases, strict=True):
        write(folder / "slurm" / "spank.h", "", 0o644)
        number = HEADERS[release]
        text = f"#define SLURM_VERSION_NUMBER {number}\n" if number else ""
        write(folder / "slurm" / "slurm_version.h", text, 0o644)
    monkeypatch.setattr("pliant.cli.install.plugin.INCLUDES", tuple(map(str, folders)))
    monkeypatch.delenv("SLURM_INCLUDE", raising=False)
    return folders


# The texts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "# pliant: added\nJobSubmitPlugins=lua\n"),
        ("A=1", "A=1\n# pliant: added\nJobSubmitPlugins=lua\n"),
        ("#JobSubmitPlugins=lua\n", "#JobSubmitPlugins=lua\n# pliant: added\nJobSubmitPlugins=lua\n"),
        (
            "jobsubmitplugins = all_partitions # ours\nB=2\n",
            "# pliant: was: jobsubmitplugins = all_partitions # ours\n"
            "JobSubmitPlugins=all_partitions,lua\nB=2\n",
        ),
        (
            "JobSubmitPlugins=(null)\n",
            "# pliant: was: JobSubmitPlugins=(null)\nJobSubmitPlugins=lua\n",
        ),
    ],
)  # fmt: skip
def test_slurm_conf_names_lua_once_and_the_way_back_is_exact(before: str, after: str) -> None:
    assert with_lua_plugin(before) == after
    assert with_lua_plugin(after) == after
    assert unedited(after) == (before if before.endswith("\n") or not before else f"{before}\n")


@pytest.mark.parametrize(
    "text", ["JobSubmitPlugins=lua\n", "JobSubmitPlugins = defaults, job_submit/lua # x\n"]
)
def test_slurm_conf_that_names_lua_stays(text: str) -> None:
    assert with_lua_plugin(text) == text


def test_the_last_line_of_slurm_conf_counts() -> None:
    assert job_submit_plugins("JobSubmitPlugins=lua\nJobSubmitPlugins=defaults\n") == ("defaults",)


CONTINUED = "JobSubmitPlugins=throttle,\\\nall_partitions\n"


@pytest.mark.parametrize(
    ("text", "plugins", "takes"),
    [
        (CONTINUED, ("throttle", "all_partitions"), False),
        (CONTINUED.replace("\\", "\\ "), ("throttle", "all_partitions"), False),
        ("JobSubmitPlugins=throttle,\\\n  lua\n", ("throttle", "lua"), False),
        ("SchedulerParameters=a,\\\nb\nJobSubmitPlugins=throttle\n", ("throttle",), True),
        ("LaunchParameters=a \\\nJobSubmitPlugins=throttle\n", ("throttle",), False),
        ("LaunchParameters=a JobSubmitPlugins=throttle\n", ("throttle",), False),
        ("JobSubmitPlugins=throttle LaunchParameters=a\n", ("throttle",), False),
        ('JobSubmitPlugins="throttle"\n', ("throttle",), False),
        ("JobSubmitPlugins=throttle # \\\nA=1\n", ("throttle",), True),
        ("#JobSubmitPlugins=throttle,\\\n#all_partitions\n", (), True),
        ("A=1,\\", (), False),
        ("A=1\\\\\n", (), True),
    ],
)
def test_slurm_conf_is_edited_only_where_that_is_plain(
    text: str, plugins: tuple[str, ...], takes: bool
) -> None:
    assert (job_submit_plugins(text), takes_lua_plugin(text)) == (plugins, takes)


def test_a_line_of_ours_that_was_continued_since_goes_as_a_whole() -> None:
    edited = with_lua_plugin("JobSubmitPlugins=throttle\nA=1\n")
    assert unedited(edited.replace("throttle,lua", "throttle,\\\nlua")) == (
        "JobSubmitPlugins=throttle\nA=1\n"
    )


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("include /etc/slurm/plugstack.conf.d/*.conf\n", True),
        ("  include plugstack.conf.d/*.conf\n", True),
        ("include /etc/slurm/plugstack.conf.d/pliant.conf\n", True),
        ("# include /etc/slurm/plugstack.conf.d/*.conf\n", False),
        ("include /etc/slurm/other.d/*.conf\n", False),
        ("", False),
    ],
)
def test_the_drop_in_is_included_once(text: str, there: bool) -> None:
    path, directory = "/etc/slurm/plugstack.conf.d/pliant.conf", "/etc/slurm"
    assert included(text, path, directory) is there
    after = with_include(text, path, directory)
    assert after == (text if there else f"{text}# pliant: added\ninclude {path}\n")
    assert with_include(after, path, directory) == after
    assert unedited(after) == text


SITE_LUA = "function slurm_job_submit(a, b, c)\n   return slurm.SUCCESS\nend\n"


def test_the_lua_block_stands_at_the_end() -> None:
    assert with_lua_block(SITE_LUA, "x()") == f"{SITE_LUA}-- pliant: begin\nx()\n-- pliant: end\n"


def test_the_lua_block_stands_before_a_last_return() -> None:
    ended = f"{SITE_LUA}-- done\nreturn slurm.SUCCESS -- bye\n\n-- the end\n"
    edited = with_lua_block(ended, "x()\n")
    assert edited == (
        f"{SITE_LUA}-- done\n-- pliant: begin\nx()\n-- pliant: end\n"
        "return slurm.SUCCESS -- bye\n\n-- the end\n"
    )
    assert unedited(edited) == ended


RETURNS = "do return slurm.SUCCESS end\n"
SETS = "function slurm_job_submit(a, b, c) return 0 end\n"
CALLS = "local before = slurm_job_submit\nslurm_job_submit = function(...) return before(...) end\n"
BLOCK = "-- pliant: begin\nif x then y() end\n-- pliant: end\n"


def test_the_lua_block_stands_before_what_always_returns() -> None:
    edited = with_lua_block(f"{SITE_LUA}{RETURNS}{SETS}", "x()\n")
    assert edited == f"{SITE_LUA}-- pliant: begin\nx()\n-- pliant: end\n{RETURNS}{SETS}"
    assert with_lua_block(edited, "x()\n") == edited


@pytest.mark.parametrize(
    ("text", "unreached", "overridden"),
    [
        (f"{SITE_LUA}{BLOCK}", False, False),
        (f"{SITE_LUA}{BLOCK}return 0\n", False, False),
        (f"{SITE_LUA}{RETURNS}{BLOCK}", True, False),
        (f"do while x() do y() end return 0 end\n{BLOCK}", True, False),
        (f"if x then return 0 end\n{BLOCK}", False, False),  # not always
        (f"for i = 1, 2 do return i end\n{BLOCK}", False, False),
        (f"-- do return 0 end\nlocal s = 'do return 0 end'\n{BLOCK}", False, False),
        (f"{BLOCK}{SETS}", False, True),
        (f"{BLOCK}slurm_job_submit = nil\n", False, True),
        (f"{BLOCK}-- {SETS}", False, False),
        (f"{BLOCK}{CALLS}", False, False),
        (f"{BLOCK}{RETURNS}{SETS}", False, False),
        (f"{BLOCK}{SETS}return slurm.SUCCESS\n", False, True),
        (f"{BLOCK}if slurm_job_submit == nil then x() end\n", False, False),
        ('local p = require("pliant")\ndo return 0 end\n', False, False),
        ('do return 0 end\nlocal p = require("pliant")\n', True, False),
        (SITE_LUA, False, False),
    ],
)
def test_what_calls_pliant_in_vain_is_known(text: str, unreached: bool, overridden: bool) -> None:
    assert (is_unreached(text), is_overridden(text)) == (unreached, overridden)


def test_the_lua_block_of_an_earlier_release_is_replaced() -> None:
    old = with_lua_block(SITE_LUA, "old()")
    assert with_lua_block(old, "new()") == with_lua_block(SITE_LUA, "new()")


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('local pliant = require("pliant")\n', True),
        ("-- pliant could stand here\n", False),
        (with_lua_block(SITE_LUA, "pliant.job_submit()"), False),
        ("local compliant = 1\n", False),
    ],
)
def test_a_script_that_calls_pliant_by_its_owners_hand_is_known(text: str, calls: bool) -> None:
    assert calls_pliant(text) is calls


# The files


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "etc" / "pliant" / "installed")


def do(wishes: list[Wish], record: Record) -> list[Change]:
    changes = planned(wishes, record)
    apply(wishes, changes, record)
    return changes


def tree(root: Path) -> dict[str, bytes | None]:
    """Every path below a directory, files with their bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


def test_applying_twice_is_applying_once_and_removing_gives_all_back(
    tmp_path: Path, record: Record
) -> None:
    (tmp_path / "etc").mkdir()
    conf = tmp_path / "etc" / "slurm.conf"
    conf.write_bytes(b"A=\xff1")
    conf.chmod(0o640)
    before = tree(tmp_path)
    wishes = [
        Wish(tmp_path / "etc" / "new" / "deep" / "ours", "ours\n", ours=True),
        Wish(conf, "A=\udcff1\n# pliant: added\nB=2\n", ours=False),
    ]
    assert len(do(wishes, record)) == 2
    after = tree(tmp_path)
    assert do(wishes, Record(record.directory)) == []
    assert tree(tmp_path) == after
    assert after["etc/new/deep/ours"] == b"ours\n"
    assert conf.stat().st_mode & 0o7777 == 0o640

    again = Record(record.directory)
    put_back(undone(again, lambda _path: True), again)
    assert tree(tmp_path) == before
    assert conf.stat().st_mode & 0o7777 == 0o640


def test_a_newer_release_replaces_its_own_file_and_remembers_the_first_state(
    tmp_path: Path, record: Record
) -> None:
    path = tmp_path / "site.conf"
    path.write_text("site\n")
    do([Wish(path, "site\none\n", ours=False)], record)
    do([Wish(path, "site\ntwo\n", ours=False)], record)
    assert path.read_text() == "site\ntwo\n"
    put_back(undone(record, lambda _path: True), record)
    assert path.read_text() == "site\n"


def test_our_file_that_somebody_changed_is_left_and_said(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "pliant.lua"
    do([Wish(path, "one\n", ours=True)], record)
    path.write_text("one, and mine\n")
    changes = do([Wish(path, "two\n", ours=True)], record)
    assert [change.note for change in changes] == ["changed by someone else: left as it is"]
    assert [change.note for change in undone(record, lambda _path: True)] == [
        "changed since it was installed: left as it is"
    ]
    assert path.read_text() == "one, and mine\n"


def test_of_a_sites_file_that_was_changed_since_only_our_lines_go(
    tmp_path: Path, record: Record
) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text("A=1\n")
    do([Wish(path, with_lua_plugin("A=1\n"), ours=False)], record)
    path.write_text(path.read_text() + "NodeName=n9\n")
    put_back(undone(record, lambda _path: True), record)
    assert path.read_text() == "A=1\nNodeName=n9\n"
    assert not record.directory.exists()


def test_a_sites_file_that_was_deleted_since_is_given_back(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "etc" / "job_submit.lua"
    path.parent.mkdir()
    path.write_text(SITE_LUA)
    path.chmod(0o600)
    before = tree(tmp_path)
    do([Wish(path, with_lua_block(SITE_LUA, "x()"), ours=False)], record)
    path.unlink()
    changes = undone(record, lambda _path: True)
    assert [change.note for change in changes] == [
        "deleted since it was installed: given back as it was before"
    ]
    put_back(changes, record)
    assert tree(tmp_path) == before
    assert path.stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize(
    ("ours", "left"), [(False, SITE_LUA), (True, with_lua_block(SITE_LUA, "x()"))]
)
def test_a_file_whose_first_state_is_lost_is_not_deleted(
    tmp_path: Path, record: Record, ours: bool, left: str
) -> None:
    path = tmp_path / "job_submit.lua"
    path.write_text(SITE_LUA)
    do([Wish(path, with_lua_block(SITE_LUA, "x()"), ours, over=True)], record)
    record.backup(path).unlink()
    changes = undone(record, lambda _path: True)
    assert changes[0].note.startswith("its first state is lost: ")
    put_back(changes, record)
    assert path.read_text() == left


def test_an_image_gives_its_files_back_wherever_it_lies(tmp_path: Path) -> None:
    image, booted = tmp_path / "image", tmp_path / "booted"
    (image / "etc").mkdir(parents=True)
    (image / "etc" / "slurm.conf").write_text("A=1\n")
    before = tree(image)
    wishes = [
        Wish(image / "etc" / "slurm.conf", "A=1\nB=2\n", ours=False),
        Wish(image / "usr" / "pliant.so", "x", ours=True),
    ]
    do(wishes, Record(image / "etc" / "pliant" / "installed", image))
    image.rename(booted)
    record = Record(booted / "etc" / "pliant" / "installed", booted)
    put_back(undone(record, lambda _path: True), record)
    assert tree(booted) == before


def test_a_file_that_vanished_is_no_hindrance(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "ours"
    do([Wish(path, "x\n", ours=True)], record)
    path.unlink()
    put_back(undone(record, lambda _path: True), record)
    assert tree(tmp_path) == {"etc": None}


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old\n")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new\n", 0o600)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes what is another user's")
@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_another_user_put_into_a_directory_open_to_all_is_not_written(
    tmp_path: Path, kind: str
) -> None:
    """Root's shell could not write it either: see protected_symlinks in proc(5)."""
    (tmp_path / "precious").write_text("old\n")
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    path = shared / "report.html"
    path.symlink_to("../precious") if kind == "link" else path.write_text("old\n")
    os.chown(path, 65534, 65534, follow_symlinks=False)
    with pytest.raises(Unavailable, match=r"report.html: it is another user's"):
        write(path, "new\n", 0o600)
    with pytest.raises(BadInput, match=r"--html: .*: it is another user's"):
        check_written({"--html": str(path)})
    assert path.read_text() == "old\n"
    shared.chmod(0o755)  # of root's directories only root decides
    write(path, "new\n", 0o600)
    assert path.read_text() == "new\n"


def test_a_link_in_the_temporary_files_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("old\n")
    path = tmp_path / "report.html"
    temporary(path).symlink_to("precious")
    write(path, "new\n", 0o600)
    assert tree(tmp_path) == {"precious": b"old\n", "report.html": b"new\n"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_written_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"file/x: Not a directory: it is as it was"):
        write(tmp_path / "file" / "x", "text", 0o644)
    assert tree(tmp_path) == {"file": b""}


def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"  # or /dev/null, which root may write as `plan --live --save /dev/null`
    os.mkfifo(pipe)
    with pytest.raises(Unavailable, match="pipe: a regular file is expected: it is as it was"):
        write(pipe, "text", 0o600)
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_diff_shows_the_missing_newline() -> None:
    assert diff(Change(Path("/f"), "a", "a\nb\n")) == (
        "--- /f\n+++ /f\n@@ -1 +1,2 @@\n-a\n\\ no newline\n+a\n+b\n"
    )


def test_long_new_files_and_programs_are_named_only() -> None:
    assert diff(Change(Path("/f"), None, "x\n" * 61)) == (
        "+++ /f: a new file of 61 lines, all of it Pliant's\n"
    )
    assert diff(Change(Path("/f.so"), None, "\x7fELF\0")) == "+++ /f.so: a program of 5 bytes\n"


# The site and what is wanted there


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "etc" / "slurm").mkdir(parents=True)
    (root / "usr" / "lib64" / "slurm").mkdir(parents=True)
    (root / "usr" / "lib64" / "slurm" / "job_submit_lua.so").write_bytes(b"liblua5.3.so")
    (root / "etc" / "slurm" / "slurm.conf").write_text("SlurmUser=slurm\ninclude more.conf\n")
    (root / "etc" / "slurm" / "more.conf").write_text("JobSubmitPlugins=defaults # x\n")
    return root


def wants(site: Site, tmp_path: Path, compiles: str = "", dormant: str = "") -> Wanted:
    plugin = tmp_path / "pliant.so"
    plugin.write_bytes(b"\x7fELF\0")
    return wanted(site, PARTS, plugin, 4, lambda _name, _text: compiles, dormant)


def test_a_site_is_read_from_its_slurm_conf_with_includes(root: Path) -> None:
    assert find_site(root, "", "", "/opt/pliant/bin/pliantd") == Site(
        root=root,
        slurm_conf=Path("/etc/slurm/slurm.conf"),
        plugstack=Path("/etc/slurm/plugstack.conf"),
        plugin_dir=Path("/usr/lib64/slurm"),
        user="slurm",
        job_submit="defaults",
        version="",
        pliantd=Path("/opt/pliant/bin/pliantd"),
    )


def test_a_missing_slurm_conf_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no such file; --conf names slurm"):
        find_site(tmp_path, "", "", "")


def test_values_of_slurm_conf_are_read_without_regard_to_case() -> None:
    text = "slurmuser = slurm # who\n#PluginDir=/no\nPLUGSTACKCONFIG=/x\n"
    assert slurm_conf_values(text) == {"SlurmUser": "slurm", "PlugStackConfig": "/x"}


def test_all_parts_want_these_files_in_this_order(root: Path, tmp_path: Path) -> None:
    site = find_site(root, "", "", "/opt/pliant/bin/pliantd")
    found = wants(site, tmp_path)
    assert [str(wish.path.relative_to(root)) for wish in found.wishes] == [
        "etc/pliant/pliant.toml",
        "etc/systemd/system/pliantd.service",
        "etc/tmpfiles.d/pliant.conf",
        "usr/lib/pliant/pliant.so",
        "etc/slurm/plugstack.conf.d/pliant.conf",
        "etc/slurm/plugstack.conf",
        "etc/slurm/pliant.lua",
        "etc/slurm/job_submit.lua",
        "etc/systemd/system/pliant-monitor.service",
    ]
    assert found.left == [
        f"JobSubmitPlugins is not set in {root}/etc/slurm/slurm.conf itself: where it is set, write "
        "JobSubmitPlugins=defaults,lua"
    ]
    texts = {wish.path.name: wish.text for wish in found.wishes}
    assert (
        "ExecStart=/opt/pliant/bin/pliantd --config /etc/pliant/pliant.toml\n"
        in (texts["pliantd.service"])
    )
    assert (
        "ExecStopPost=-/opt/pliant/bin/pliantd --config /etc/pliant/pliant.toml --unmark\n"
        in (texts["pliantd.service"])
    )
    assert texts["plugstack.conf"].endswith("include /etc/slurm/plugstack.conf.d/pliant.conf\n")
    monitor = texts["pliant-monitor.service"]
    spool = "/var/lib/pliant-monitor"
    for line in (
        f"ExecStart=/opt/pliant/bin/pliant monitor --report --every 60 --spool {spool}",
        f"StateDirectory={Path(spool).name}",
        "StateDirectoryMode=0700",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        "ConditionPathExists=/etc/pliant/pliant.toml",
    ):
        assert f"{line}\n" in monitor


@pytest.mark.parametrize("program", ["/home/sw/bin/pliantd", "/opt/pliant/bin/pliantd"])
def test_a_monitor_that_lies_in_a_home_may_read_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr("sys.executable", "/usr/bin/python3")
    found = wants(find_site(root, "", "", program), tmp_path)
    (text,) = (wish.text for wish in found.wishes if wish.path.name == "pliant-monitor.service")
    (line,) = (line for line in text.splitlines() if line.startswith("ProtectHome="))
    assert line == ("ProtectHome=read-only" if "home" in program else "ProtectHome=yes")


def written(root: Path, tmp_path: Path, name: str, user: str) -> Path:
    """Write a unit as it is installed where pliantd is of a user."""
    (tmp_path / "pliant").symlink_to("/bin/true")
    found = wants(find_site(root, "", user, str(tmp_path / "pliant")), tmp_path)
    unit = tmp_path / name
    unit.write_text(next(wish.text for wish in found.wishes if wish.path.name == unit.name))
    return unit


def analyzed(*words: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze, which needs no systemd that runs."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    return subprocess.run(
        ("systemd-analyze", *words), capture_output=True, text=True, check=False, timeout=HANG_S
    )


@pytest.mark.parametrize("name", ["pliantd.service", "pliant-monitor.service"])
def test_systemd_understands_the_unit(root: Path, tmp_path: Path, name: str) -> None:
    unit = written(root, tmp_path, name, "root")
    done = analyzed("verify", "--man=no", str(unit))
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []


@pytest.mark.parametrize(
    ("name", "user", "most"),
    [
        ("pliantd.service", "slurm", 2.5),
        ("pliantd.service", "root", 2.5),
        ("pliant-monitor.service", "slurm", 3.0),
    ],
)
def test_what_systemd_calls_the_units_exposure_is_low(
    root: Path, tmp_path: Path, name: str, user: str, most: float
) -> None:
    unit = written(root, tmp_path, name, user)
    words = ("--offline=true", "--no-pager", f"--threshold={most * 10:.0f}")
    done = analyzed("security", *words, str(unit))
    assert f"exposure level for {name}" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout


def test_a_pliantd_that_its_user_cannot_reach_is_told(root: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    site = replace(find_site(root, "", "", str(closed / "pliantd")), root=Path("/"))
    found = wanted(site, ("daemon",), None, 0, lambda _name, _text: "")
    assert any("is closed to slurm, so pliantd would not start" in words for words in found.left)
    assert wanted(replace(site, user="root"), ("daemon",), None, 0, lambda *_: "").left == []


def test_a_configuration_that_is_there_is_never_touched(root: Path, tmp_path: Path) -> None:
    (root / "etc" / "pliant").mkdir()
    (root / "etc" / "pliant" / "pliant.toml").write_text("# mine\n")
    found = wants(find_site(root, "", "", ""), tmp_path)
    assert "pliant.toml" not in [wish.path.name for wish in found.wishes]


def test_without_slurms_lua_plugin_nothing_of_lua_is_touched(root: Path, tmp_path: Path) -> None:
    (root / "usr" / "lib64" / "slurm" / "job_submit_lua.so").unlink()
    found = wants(find_site(root, "", "", ""), tmp_path)
    assert not [wish for wish in found.wishes if "lua" in wish.path.name]
    plugins = f"{root}/usr/lib64/slurm"
    assert found.left[0].startswith(f"{plugins} has no job_submit_lua.so: slurmctld would")


def test_a_script_that_would_not_compile_is_left_with_the_lines_to_add(
    root: Path, tmp_path: Path
) -> None:
    (root / "etc" / "slurm" / "job_submit.lua").write_text("if true then return 1\n")
    found = wants(find_site(root, "", "", ""), tmp_path, compiles="'end' expected", dormant="run")
    assert not [wish for wish in found.wishes if wish.path.name == "slurm.conf"]
    assert found.left[0].startswith(
        f"{root}/etc/slurm/job_submit.lua is left as it is ('end' expected); add by hand,"
    )
    assert 'dofile("/etc/slurm/pliant.lua")' in found.left[0]


@pytest.fixture
def sleeper(root: Path) -> Path:
    """A job_submit.lua that lies there while slurm.conf names no lua."""
    (root / "etc" / "slurm" / "slurm.conf").write_text("SlurmUser=slurm\n")
    script = root / "etc" / "slurm" / "job_submit.lua"
    script.write_text(SITE_LUA)
    return script


def named(found: Wanted) -> dict[str, str]:
    return {wish.path.name: wish.text for wish in found.wishes}


def test_a_script_that_is_not_in_force_is_put_in_force_by_nobody_unasked(
    root: Path, sleeper: Path, tmp_path: Path
) -> None:
    found = wants(find_site(root, "", "", ""), tmp_path)
    assert not {"slurm.conf", "job_submit.lua", "pliant.lua"} & named(found).keys()
    assert "plugstack.conf" in named(found)
    (words,) = found.left
    assert words.startswith(f"{sleeper} is there and not in force: JobSubmitPlugins names no lua.")
    assert "`--dormant-lua run`" in words and "`--dormant-lua aside`" in words


def test_a_script_that_is_not_in_force_is_put_in_force_where_that_was_said(
    root: Path, sleeper: Path, tmp_path: Path, record: Record
) -> None:
    found = wants(find_site(root, "", "", ""), tmp_path, dormant="run")
    assert named(found)["job_submit.lua"].startswith(f"{SITE_LUA}-- pliant: begin\n")
    assert named(found)["slurm.conf"].endswith("JobSubmitPlugins=lua\n")
    (words,) = found.notes
    assert words.startswith(f"{sleeper} was not in force so far: ")
    do(found.wishes, record)
    again = wants(find_site(root, "", "", ""), tmp_path)
    assert (planned(again.wishes, record), again.notes, again.left) == ([], [], [])


def test_a_script_that_is_not_in_force_gives_way_and_comes_back(
    root: Path, sleeper: Path, tmp_path: Path, record: Record
) -> None:
    before = tree(root)
    found = wants(find_site(root, "", "", ""), tmp_path, dormant="aside")
    assert SITE_LUA not in named(found)["job_submit.lua"]
    assert found.notes[0].startswith(f"{sleeper}, which was not in force so far, gives way to ")
    do(found.wishes, record)
    again = wants(find_site(root, "", "", ""), tmp_path)
    assert (planned(again.wishes, record), again.notes, again.left) == ([], [], [])
    put_back(undone(record, lambda _path: True), record)
    assert tree(root) == before


def test_a_script_that_gave_way_is_kept_where_its_place_was_taken_again(
    root: Path, sleeper: Path, tmp_path: Path, record: Record
) -> None:
    do(wants(find_site(root, "", "", ""), tmp_path, dormant="aside").wishes, record)
    sleeper.write_text(f"{sleeper.read_text()}-- mine\n")
    changes = undone(record, lambda path: path == sleeper)
    put_back(changes, record)
    kept = record.backup(sleeper)
    assert [change.note for change in changes] == [
        f"changed since it was installed: left as it is; {kept} has what was there before"
    ]
    assert sleeper.read_text().endswith("-- mine\n")
    assert kept.read_text() == SITE_LUA


@pytest.mark.parametrize("conf", ["JobSubmitPlugins=lua\n", "JobSubmitPlugins=defaults,lua\n"])
def test_a_script_that_is_in_force_is_no_question(
    root: Path, sleeper: Path, tmp_path: Path, conf: str
) -> None:
    (root / "etc" / "slurm" / "slurm.conf").write_text(conf)
    found = wants(find_site(root, "", "", ""), tmp_path)
    assert (found.left, found.notes) == ([], [])
    assert named(found)["job_submit.lua"].startswith(SITE_LUA)


def run_install(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["install", "slurm", *words])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_the_monitor_is_installed_where_it_is_named_and_removed_once_it_is_off(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    units = root / "etc/systemd/system"
    words = ("--root", str(root), "--part", "monitor")
    assert run_install("--apply", *words) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"written: {units}/pliant-monitor.service",
        "",
        "Then, for it to take effect:",
        f"  copy {root}/etc/pliant/pliant.toml of the controller to this node: it reports by it",
        "  systemctl daemon-reload && systemctl enable --now pliant-monitor",
        "  pliant doctor",
    ]
    enabled = units / "multi-user.target.wants" / "pliant-monitor.service"
    enabled.parent.mkdir()
    enabled.symlink_to("../pliant-monitor.service")
    assert run_install("--remove", *words) == 2
    error = "pliant-monitor is enabled: first `systemctl disable --now pliant-monitor`"
    assert capsys.readouterr().err == f"pliant: {error}\n"
    enabled.unlink()
    capsys.readouterr()
    spool = root / "var/lib/pliant-monitor"
    spool.mkdir(parents=True)
    assert run_install("--remove", *words) == 0
    assert not (units / "pliant-monitor.service").exists()
    left = f"left: {spool} (reports that pliantd has not taken); to delete: rm -r {spool}"
    assert capsys.readouterr().out.splitlines()[-1] == left


def test_an_installation_below_a_root_names_its_files_where_they_are(
    root: Path, sleeper: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sleeper.unlink()
    plugin = tmp_path / "pliant.so"
    plugin.write_bytes(b"\x7fELF slurm_spank_init")
    words = ("--root", str(root), "--plugin", str(plugin), "--part", "daemon", "--part", "spank")
    assert run_install("--apply", *words) == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("written: ")] == [
        f"written: {root}/{path}"
        for path in (
            "etc/pliant/pliant.toml",
            "etc/systemd/system/pliantd.service",
            "etc/tmpfiles.d/pliant.conf",
            "usr/lib/pliant/pliant.so",
            "etc/slurm/plugstack.conf.d/pliant.conf",
            "etc/slurm/plugstack.conf",
        )
    ]
    (root / "var" / "lib" / "pliant").mkdir(parents=True)
    assert run_install("--remove", "--yes", *words) == 0
    history = f"{root}/var/lib/pliant"
    assert capsys.readouterr().out.endswith(
        f"\nleft: {history} (pliantd's socket and history); to delete: rm -r {history}\n"
    )
    assert run_install("--remove", "--yes", *words) == 0
    assert capsys.readouterr().out.startswith("nothing is installed")


def test_a_continued_line_of_slurm_conf_is_left_with_what_to_write(
    root: Path, tmp_path: Path
) -> None:
    conf = root / "etc" / "slurm" / "slurm.conf"
    conf.write_text(f"PlugStackConfig=\\\n/etc/plugstack.conf\n{CONTINUED}")
    site = find_site(root, "", "", "")
    assert (site.plugstack, site.job_submit) == (
        Path("/etc/plugstack.conf"),
        "throttle,all_partitions",
    )
    found = wants(site, tmp_path)
    assert "slurm.conf" not in named(found)
    assert found.left == [
        f"{conf} is left as it is: a line is continued by a backslash, or JobSubmitPlugins does not "
        "stand alone on its line; there, write JobSubmitPlugins=throttle,all_partitions,lua"
    ]


@pytest.mark.parametrize("where", ["etc/slurm/slurm.conf", "etc/slurm", "etc/systemd"])
@pytest.mark.parametrize("what", ["--print", "--apply"])
def test_a_link_out_of_the_root_is_not_followed(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, what: str
) -> None:
    outside = tmp_path / "outside"
    (root / "etc" / "systemd").mkdir()
    (root / where).rename(outside)
    (root / where).symlink_to(outside)
    before = tree(tmp_path)
    words = ("--root", str(root), "--part", "daemon", "--part", "lua")
    assert run_install(what, *words) == 2
    said, error = capsys.readouterr()
    assert (said, error.count("\n")) == ("", 1)
    assert error.startswith(f"pliant: {root}/{where}")
    assert f": it leads out of {root}, to {outside}" in error
    assert tree(tmp_path) == before


def test_a_link_within_the_root_is_followed(root: Path) -> None:
    conf = root / "etc" / "slurm" / "slurm.conf"
    conf.rename(root / "etc" / "real.conf")
    conf.symlink_to("../real.conf")
    assert find_site(root, "", "", "").user == "slurm"


def test_a_link_that_came_later_is_not_followed_back(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--root", str(root), "--part", "daemon")
    assert run_install("--apply", *words) == 0
    (root / "etc" / "systemd").rename(tmp_path / "outside")
    (root / "etc" / "systemd").symlink_to(tmp_path / "outside")
    before = tree(tmp_path)
    capsys.readouterr()
    assert run_install("--remove", *words) == 2
    assert "it leads out of " in capsys.readouterr().err
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--print", "--apply"), "--print and --apply"),
        (("--apply", "--print"), "--print and --apply"),
        (("--remove", "--apply"), "--apply and --remove"),
        (("--remove", "--print", "--apply"), "--print and --apply and --remove"),
    ],
)
def test_only_one_thing_is_done(
    root: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    before = tree(root)
    assert run_install("--root", str(root), *words) == 2
    assert capsys.readouterr() == ("", f"pliant: {said} exclude each other\n")
    assert tree(root) == before


def test_slurm_conf_is_copied_from_where_it_is(root: Path) -> None:
    site = find_site(root, "", "", "")
    copied = f"copy {root}/etc/slurm/slurm.conf to every host that has one, then: scontrol"
    for steps in (after_apply, after_remove):
        assert any(step.startswith(copied) for step in steps(site, ["/etc/slurm/slurm.conf"]))
    toml = f"copy {root}/etc/pliant/pliant.toml to every login node"
    assert any(step.startswith(toml) for step in after_apply(site, ["/etc/pliant/pliant.toml"]))


@pytest.mark.parametrize(
    ("gres", "shards"),
    [
        (["gpu:a100:4(S:0-1),shard:16,nogpu:no_consume:1"], 4),
        (["gpu:4,shard:8", "gpu:2,shard:4", "(null)"], 2),
        (["gpu:4,shard:8", "gpu:2,shard:8"], 0),
        (["gpu:a100:2,gpu:h100:2,shard:16"], 4),
        ([], 0),
    ],
)
def test_the_shards_of_one_gpu_are_read_from_the_nodes(gres: list[str], shards: int) -> None:
    nodes = "".join(
        f"NodeName=n{number} CPUAlloc=0 CPUTot=16 ActiveFeatures=(null) Gres={text} RealMemory=1000 AllocMem=0 "
        "State=IDLE\n"
        for number, text in enumerate(gres)
    )
    assert shards_per_gpu(nodes) == shards


EMPTY = JobRow(*("" for _ in fields(JobRow)))


def job(number: str, state: str = "PENDING", **other: str) -> JobRow:
    return replace(EMPTY, job_id=number, state=state, user="ann", **other)


def test_jobs_with_a_token_are_listed_with_what_becomes_of_their_scripts() -> None:
    token = put_token("site=words", Spec(parse("gpus=1-4")))
    request = "moldable=gpus=1-4"
    rows = [
        job("6", "RUNNING", admin_comment=token),
        job("7", admin_comment=token, comment="x\npliant:gpus=1"),
        job("8", admin_comment=token, comment="pliant:gpus=1-4 mine"),
        job("9", admin_comment="pliant=v1:forged:00000000"),
        job("10", comment="pliant:gpus=1-4"),  # no filter: as it was written
    ]
    assert flagged(rows) == [
        Flagged("7", "ann", "pending", request, "option"),
        Flagged("8", "ann", "pending", request, "comment"),
        Flagged("6", "ann", "running", request, "option"),
    ]


SQUEUE = """
import os
texts = {"JobID": "7", "State": "PENDING", "UserName": "ann", "admin_comment": %r, "Comment": %r}
words = [word.partition(":") for word in os.environ["SQUEUE_FORMAT2"].split(",")]
print("".join(texts.get(name, "") + mark for name, _, mark in words))
"""


def program(directory: Path, name: str, body: str) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(0o755)


@pytest.fixture
def asked(root: Path) -> Site:
    """A site whose Slurm was asked."""
    return replace(find_site(root, "", "", ""), version="22.05.8")


@pytest.mark.parametrize(("comment", "goes_on"), [("", False), ("pliant:gpus=1-4", True)])
def test_a_removal_asks_only_where_a_script_would_be_refused(
    asked: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comment: str, goes_on: bool
) -> None:
    program(tmp_path, "squeue", SQUEUE % (put_token("", Spec(parse("gpus=1-4"))), comment))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert warn_of_jobs(asked, yes=False) is goes_on
    assert warn_of_jobs(asked, yes=True)


def test_a_removal_lists_what_it_would_break(
    asked: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program(tmp_path, "squeue", SQUEUE % (put_token("", Spec(parse("gpus=1-4"))), ""))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    warn_of_jobs(asked, yes=False)
    said, error = capsys.readouterr()
    assert said.splitlines()[1].split() == ["7", "ann", "pending", "moldable=gpus=1-4", "option"]
    assert "Jobs that use Pliant's options: 1. Those that wait will run" in said
    assert error == "nothing was changed: say --yes to remove it all the same\n"


def test_a_removal_says_where_squeue_does_not_answer(
    asked: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not warn_of_jobs(asked, yes=False)
    assert capsys.readouterr().out.startswith("squeue does not answer: which jobs")
    assert warn_of_jobs(asked, yes=True)
    away = replace(asked, version="")
    assert warn_of_jobs(away, yes=False)  # an image, which has no jobs
    assert not warn_of_jobs(replace(away, root=Path("/")), yes=False)  # slurmctld does not run
    assert "which jobs use Pliant's options is not known" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--conf", "slurm.conf"), "--conf: 'slurm.conf': an absolute path is expected"),
        (("--libdir", "lib"), "--libdir: 'lib': an absolute path is expected"),
        (("--record", "kept"), "--record: 'kept': an absolute path is expected"),
        (("--user", "no such"), "--user: 'no such': the name of a user is expected"),
        (("--root", ""), "--root: '': a directory is expected"),
        (("--root", "/", "--user", "nosuch"), "--user: 'nosuch': no such user here"),
        (("--plugin", "/etc/hostname"), "--plugin: '/etc/hostname': a pliant.so is expected"),
        (("--plugin", "/no/such"), "--plugin: '/no/such': No such file or directory"),
    ],
)
def test_a_path_that_cannot_serve_is_one_line_and_exit_2(
    words: tuple[str, ...], error: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["install", "slurm", "--print", "--root", str(root), *words])
    assert left.value.code == 2
    assert capsys.readouterr().err == f"pliant: {error}\n"


@pytest.mark.parametrize("what", ["--print", "--apply", "--remove"])
@pytest.mark.parametrize(
    "place",
    [
        "etc/slurm/slurm.conf",
        "etc/slurm/more.conf",
        "etc/slurm/plugstack.conf",
        "etc/slurm/job_submit.lua",
        "etc/pliant/installed/installed.json",
        "etc/pliant/pliant.toml",
        "etc/systemd/system/pliantd.service",
        "usr/lib/pliant/pliant.so",
    ],
)
def test_a_directory_in_a_files_place_is_one_line_and_nothing_is_touched(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, what: str
) -> None:
    plugin = tmp_path / "pliant.so"
    plugin.write_bytes(b"\x7fELF slurm_spank_init")
    (root / "etc" / "slurm" / "slurm.conf").write_text("JobSubmitPlugins=lua\ninclude more.conf\n")
    (root / place).unlink(missing_ok=True)
    (root / place).mkdir(parents=True)
    before = tree(root)
    code = run_install(what, "--root", str(root), "--plugin", str(plugin))
    said, error = capsys.readouterr()
    assert tree(root) == before
    if code == 0:  # what was never installed needs none of these files
        assert (what, said, error) == ("--remove", "nothing is installed\n", "")
    else:
        assert (code, error) == (2, f"pliant: {root}/{place}: Is a directory\n")


# Sites that lie otherwise than Debian's

REDHAT = """
Configuration data as of 2026-11-01T10:00:00
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu
AuthInfo                = socket=/run/site/munge.socket,ttl=60
AuthType                = auth/munge
ClusterName             = hill
JobSubmitPlugins        = all_partitions
PluginDir               = {top}/opt/site/plugins:{top}/opt/slurm/lib64/slurm
PlugStackConfig         = {conf}/plugstack.conf
SLURM_CONF              = {conf}/slurm.conf
SLURM_VERSION           = 23.11.10
SlurmctldHost[0]        = ctl1(10.0.0.1)
SlurmctldParameters     = enable_configless
SlurmUser               = slurm(450)

Slurmctld(primary) at ctl1 is UP
"""


@pytest.fixture
def redhat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Site]:
    """A Slurm below /opt, as a site on RHEL built it; its slurm.conf is where we say."""

    def site(conf: str) -> Site:
        text = REDHAT.format(top=tmp_path, conf=tmp_path / conf)
        body = f"import sys\nprint({text!r} if sys.argv[1] == 'show' else 'all is well')\n"
        program(tmp_path / "opt" / "slurm" / "bin", "scontrol", body)
        return find_site(Path("/"), "", "", "/opt/pliant/bin/pliantd")

    plugins = tmp_path / "opt" / "slurm" / "lib64" / "slurm"
    plugins.mkdir(parents=True)
    (plugins / "job_submit_lua.so").write_bytes(b"liblua-5.4.so")
    (tmp_path / "opt" / "site" / "plugins").mkdir(parents=True)
    (tmp_path / "opt" / "slurm" / "etc").mkdir()
    (tmp_path / "opt" / "slurm" / "etc" / "slurm.conf").write_text(
        "ClusterName=hill\ninclude lua.conf\n"
    )
    monkeypatch.setenv("PATH", str(tmp_path / "opt" / "slurm" / "bin"), prepend=":")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    return site


def test_a_slurm_below_opt_is_found_with_its_commands_and_plugins(
    redhat: Callable[[str], Site], tmp_path: Path
) -> None:
    opt = tmp_path / "opt" / "slurm"
    assert redhat("opt/slurm/etc") == Site(
        root=Path("/"),
        slurm_conf=opt / "etc" / "slurm.conf",
        plugstack=opt / "etc" / "plugstack.conf",
        plugin_dir=opt / "lib64" / "slurm",  # the one of both that has job_submit_lua.so
        user="slurm",
        job_submit="all_partitions",
        version="23.11.10",
        pliantd=Path("/opt/pliant/bin/pliantd"),
        bin_dir=str(opt / "bin"),
        munge_socket="/run/site/munge.socket",
        elsewhere=("ctl1",),
    )


def test_on_a_host_that_is_no_controller_the_parts_are_to_be_named(
    redhat: Callable[[str], Site],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    redhat("opt/slurm/etc")
    assert run_install("--print") == 2
    assert capsys.readouterr() == (
        "",
        "pliant: this host is none of SlurmctldHost (ctl1): say --part spank on a login or compute "
        "node, or where slurmctld runs here under another name, each part\n",
    )
    assert run_install("--print", "--part", "lua") != 2
    monkeypatch.setattr("socket.gethostname", lambda: "ctl1.hill.example")
    assert redhat("opt/slurm/etc").elsewhere == ()


def test_pliantd_is_told_where_such_a_slurm_lies(
    redhat: Callable[[str], Site], tmp_path: Path
) -> None:
    site = replace(redhat("opt/slurm/etc"), root=tmp_path / "image")
    text = wants(site, tmp_path).wishes[0].text
    config = parse_config(tomllib.loads(text))
    assert config.daemon.munge_socket == "/run/site/munge.socket"
    assert config.daemon.user == site.user
    assert (config.slurm.conf, config.slurm.bin_dir) == (str(site.slurm_conf), site.bin_dir)


@pytest.mark.parametrize("conf", ["nowhere", "var/spool/slurmd/conf-cache"])
def test_where_slurmctld_has_the_configuration_only_the_plugin_and_its_drop_in_are_written(
    redhat: Callable[[str], Site], tmp_path: Path, conf: str
) -> None:
    cache = tmp_path / "var/spool/slurmd/conf-cache"
    cache.mkdir(parents=True)
    (cache / "slurm.conf").write_text("ClusterName=hill\n")
    (cache / "plugstack.conf").write_text("")
    site = redhat(conf)
    found = wanted(site, ("lua", "spank"), tmp_path / "pliant.so", 4, lambda *_: "")
    assert (site.configless, found.wishes) == (True, [])
    (tmp_path / "pliant.so").write_bytes(b"\x7fELF")
    found = wanted(site, ("lua", "spank"), tmp_path / "pliant.so", 4, lambda *_: "")
    home = Path("/etc/slurm") if "cache" in conf else tmp_path / conf
    drop_in = home / "plugstack.conf.d" / "pliant.conf"
    assert [wish.path for wish in found.wishes] == [site.spank_plugin, drop_in]
    assert found.notes[0].startswith(
        f"plugstack.conf comes from slurmctld here: on the controller, `include {drop_in}` must"
    )
    assert found.left == [
        f"{home}/slurm.conf is not on this host, which has its configuration from slurmctld: the "
        "part lua belongs on the controller alone; --part spank is what is needed here"
    ]


def test_included_files_count_in_their_places(root: Path) -> None:
    etc = root / "etc" / "slurm"
    (etc / "slurm.conf").write_text(
        "ClusterName=hill\nJobSubmitPlugins=defaults\nInclude a-%c.conf\nSlurmUser=slurm\n"
    )
    (etc / "a-hill.conf").write_text("SlurmUser=root\nInclude /etc/slurm/deep/b.conf\n")
    (etc / "deep").mkdir()
    (etc / "deep" / "b.conf").write_text("JobSubmitPlugins=lua\nInclude deep/b.conf\n")  # itself
    site = find_site(root, "", "", "")
    assert (site.user, site.job_submit) == ("slurm", "lua")


# Where slurmctld does not run


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An scontrol whose slurmctld is down, and a slurm.conf; a call but ``ping`` is noted."""
    (tmp_path / "slurm.conf").write_text("SlurmUser=slurm\nPluginDir=/opt/slurm\n")
    program = tmp_path / "scontrol"
    program.write_text(
        '#!/bin/sh\n[ "$1" = ping ] || touch "$(dirname "$0")/asked"\n'
        'echo "Slurmctld(primary) at ctl is DOWN"\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    return tmp_path


def test_where_slurmctld_does_not_run_slurm_conf_is_read_at_once_and_it_is_said(
    scontrol: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = find_site(Path("/"), "", "", "")
    conf = scontrol / "slurm.conf"
    assert (site.slurm_conf, site.user, site.plugin_dir) == (conf, "slurm", Path("/opt/slurm"))
    assert capsys.readouterr().err == (
        f"slurmctld does not run, or does not answer: what follows is by {conf}, not by what is in"
        " force\n"
    )
    assert not (scontrol / "asked").exists()


def test_where_slurmctld_does_not_run_and_no_slurm_conf_is_there_one_is_to_be_named(
    scontrol: Path,
) -> None:
    (scontrol / "slurm.conf").unlink()
    with pytest.raises(Unavailable, match=r"name slurm\.conf by --conf where slurm"):
        find_site(Path("/"), "", "", "")


@pytest.mark.parametrize(
    ("plugin", "names"),
    [
        (b"\0liblua5.3.so.0\0liblua5.3.so\0", ["liblua5.3.so.0", "liblua5.3.so"]),  # Debian
        (b"\0liblua-5.4.so\0liblua.so\0", ["liblua-5.4.so", "liblua.so"]),  # RHEL
        (b"\0liblua.so.5.4\0liblua.so.5.4.6\0", ["liblua.so.5.4.6", "liblua.so.5.4"]),
        (b"\0luaL_newstate\0", []),
    ],
)
def test_slurmctlds_own_lua_is_found_under_the_names_that_it_has(
    plugin: bytes, names: list[str]
) -> None:
    assert libraries(plugin) == names


BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("chunk", "is_new", "read"),
    [
        (b"return 1\n", True, b"return 1\n"),
        (b"#!/usr/bin/lua\nreturn 1\n", True, b"\nreturn 1\n"),
        (b"#!/usr/bin/lua\nreturn 1\n", False, b"\nreturn 1\n"),
        (BOM + b"#x\nreturn 1\n", True, b"\nreturn 1\n"),
        (BOM + b"return 1\n", False, BOM + b"return 1\n"),  # Lua 5.1 refuses it, also in slurmctld
    ],
)
def test_a_script_is_checked_as_slurmctld_reads_its_file(
    chunk: bytes, is_new: bool, read: bytes
) -> None:
    assert as_file(chunk, is_new) == read
