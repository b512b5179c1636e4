"""After `pliant install slurm` slurmctld starts again, and what a site wrote is still there."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pliant.cli import main
from pliant.cli.install import files
from pliant.cli.install.files import Wish, apply, planned, put_back, undone
from pliant.cli.install.lua_text import calls_pliant, with_lua_block
from pliant.cli.install.parting import accepting
from pliant.cli.install.record import Record
from pliant.cli.install.site import find_site
from pliant.cli.install.steps import after_apply, after_remove
from pliant.cli.install.texts import ADDED, unedited, with_include, with_lua_plugin
from pliant.cli.install.view import view
from pliant.cli.install.wishes import PARTS

SITE_LUA = """function slurm_job_submit(a, b, c)
   return slurm.SUCCESS
end
function slurm_job_modify(a, b, c, d)
   return slurm.SUCCESS
end
"""


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The etc/slurm of a tree with Slurm in it; every Lua chunk compiles."""
    root = tmp_path / "root"
    etc = root / "etc" / "slurm"
    etc.mkdir(parents=True)
    (root / "usr" / "lib64" / "slurm").mkdir(parents=True)
    (root / "usr" / "lib64" / "slurm" / "job_submit_lua.so").write_bytes(b"liblua5.3.so")
    (etc / "slurm.conf").write_text("ClusterName=hill\nSlurmUser=root\n")
    monkeypatch.setattr("pliant.cli.install._compiler", lambda _site: lambda _name, _text: "")
    return etc


Install = Callable[..., tuple[int, str]]


@pytest.fixture
def install(etc: Path, capsys: pytest.CaptureFixture[str]) -> Install:
    """Run `pliant install slurm` on that tree, the part lua alone unless others are named."""

    def run(*words: str) -> tuple[int, str]:
        part = () if any(word.startswith("--part") for word in words) else ("--part", "lua")
        with pytest.raises(SystemExit) as left:
            main(["install", "slurm", "--root", str(etc.parents[1]), *part, *words])
        assert isinstance(left.value.code, int)
        said = capsys.readouterr()
        return left.value.code, said.out + said.err

    return run


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else "a directory"
        for path in sorted(root.rglob("*"))
    }


def test_what_is_written_is_there_for_everybody_whatever_the_umask(
    etc: Path, install: Install, tmp_path: Path
) -> None:
    plugin = tmp_path / "pliant.so"
    plugin.write_bytes(b"\x7fELF slurm_spank_init")
    before = set(etc.parents[1].rglob("*"))
    old = os.umask(0o077)
    try:
        install("--apply", "--plugin", str(plugin), *(f"--part={part}" for part in PARTS))
    finally:
        os.umask(old)
    made = set(etc.parents[1].rglob("*")) - before
    kept = etc.parent / "pliant" / "installed"
    closed = {path for path in made if path.stat().st_mode & 0o005 not in (0o004, 0o005)}
    assert closed == {kept / "installed.json", kept / "%etc%slurm%slurm.conf"}
    assert {oct(path.stat().st_mode) for path in made if path.is_dir()} == {"0o40755"}


def test_the_filter_asks_where_pliant_toml_says(etc: Path, install: Install) -> None:
    install("--apply", "--part=daemon", "--part=lua")
    toml = etc.parent / "pliant" / "pliant.toml"
    toml.write_text(toml.read_text().replace("/run/pliant/pliantd.sock", "/srv/pliant.sock"))
    (etc / "job_submit.lua").write_text(SITE_LUA)
    install("--apply", "--part=lua")
    assert '{ socket = "/srv/pliant.sock" }' in (etc / "job_submit.lua").read_text()


def test_a_removal_needs_no_slurm(etc: Path, install: Install) -> None:
    root = etc.parents[1]
    install("--apply", "--part=daemon", "--part=lua")
    (etc / "slurm.conf").unlink()  # Slurm went first; its own file comes back, as it was
    code, said = install("--remove", "--part=daemon", "--part=lua")
    assert (code, said.splitlines()[-1]) == (
        0,
        f"{etc}/slurm.conf: no such file; --conf names slurm.conf: files go back as it was noted "
        "when they were changed",
    )
    assert not (root / "etc" / "pliant").exists()
    assert {path.name for path in etc.iterdir()} == {"slurm.conf"}


# What a removal leaves


def named_by_hand(etc: Path) -> Path:
    """Name lua where a person was told to: in an included file."""
    (etc / "slurm.conf").write_text("ClusterName=hill\nSlurmUser=root\nInclude site.conf\n")
    (etc / "site.conf").write_text("JobSubmitPlugins=require_timelimit\n")
    return etc / "site.conf"


def test_a_removal_leaves_a_script_that_takes_all_while_lua_is_named(
    etc: Path, install: Install
) -> None:
    site = named_by_hand(etc)
    before = tree(etc.parents[1])
    assert install("--apply")[0] == 1  # left to do: slurm.conf
    site.write_text("JobSubmitPlugins=require_timelimit,lua\n")
    for _ in range(2):  # it stays so however often it is tried
        code, said = install("--remove")
        assert code == 1
        assert (etc / "job_submit.lua").read_text() == accepting()
        assert not (etc / "pliant.lua").exists()
        assert said.startswith(
            f"left to do: JobSubmitPlugins still names lua in {etc}/slurm.conf, or in what it "
            "includes, by another hand than Pliant's: take lua out there"
        )
        assert said.index("left to do") < said.index(f"{etc}/job_submit.lua: takes every job")
    site.write_text("JobSubmitPlugins=require_timelimit\n")
    assert install("--remove")[0] == 0
    assert tree(etc.parents[1]) == before


def test_a_removal_that_leaves_a_script_takes_all_else(
    etc: Path, install: Install, tmp_path: Path
) -> None:
    site = named_by_hand(etc)
    plugin = tmp_path / "pliant.so"
    plugin.write_bytes(b"\x7fELF slurm_spank_init")
    before = tree(etc.parents[1])
    parts = ("--part", "daemon", "--part", "lua", "--part", "spank")
    install("--apply", "--plugin", str(plugin), *parts)
    site.write_text("JobSubmitPlugins=lua\n")
    assert install("--remove", "--yes", *parts)[0] == 1
    assert tree(etc.parents[1]).keys() - before.keys() == {
        "etc/pliant",
        "etc/pliant/installed",
        "etc/pliant/installed/installed.json",
        "etc/slurm/job_submit.lua",
    }
    site.write_text("JobSubmitPlugins=require_timelimit\n")
    (etc.parent / "pliant" / "installed" / ".installed.json.pliant-new").touch()  # was cut off
    assert install("--remove", "--yes", *parts)[0] == 0
    assert tree(etc.parents[1]) == before


def test_what_a_removal_left_is_replaced_by_the_next_installation(
    etc: Path, install: Install
) -> None:
    site = named_by_hand(etc)
    install("--apply")
    shipped = (etc / "job_submit.lua").read_text()
    site.write_text("JobSubmitPlugins=lua\n")
    install("--remove")
    assert install("--apply")[0] == 0
    assert (etc / "job_submit.lua").read_text() == shipped
    site.write_text("JobSubmitPlugins=require_timelimit\n")
    assert install("--remove")[0] == 0
    assert not (etc / "job_submit.lua").exists()


@pytest.mark.parametrize(
    "line",
    [
        "JobSubmitPlugins=lua\n",  # of a template, without our mark
        "JobSubmitPlugins=a , lua\n",
        "JobSubmitPlugins=lua SlurmctldPort=6817\n",
        "JobSubmitPlugins=a,\\\nlua\n",
        f"{ADDED}\nPartitionName=gpu Nodes=ALL\nJobSubmitPlugins=lua\n",
    ],
)
def test_a_removal_keeps_a_script_however_lua_is_named(
    etc: Path, install: Install, line: str
) -> None:
    install("--apply")
    conf = etc / "slurm.conf"
    conf.write_text(f"ClusterName=hill\nSlurmUser=root\n{line}")
    assert install("--remove")[0] == 1
    assert (
        conf.read_text()
        == f"ClusterName=hill\nSlurmUser=root\n{line.removeprefix(ADDED)}".replace("\n\n", "\n")
    )
    assert (etc / "job_submit.lua").read_text() == accepting()


def test_a_removal_of_what_lua_no_longer_needs_leaves_nothing(etc: Path, install: Install) -> None:
    before = tree(etc.parents[1])
    assert install("--apply")[0] == 0
    assert "lua" in view(etc.parents[1], Path("/etc/slurm/slurm.conf")).plugins
    assert install("--remove")[0] == 0
    assert tree(etc.parents[1]) == before


def test_a_script_that_did_not_run_before_is_not_woken_by_a_removal(
    etc: Path, install: Install
) -> None:
    site = named_by_hand(etc)
    (etc / "job_submit.lua").write_text(SITE_LUA)
    install("--apply", "--dormant-lua", "aside")
    site.write_text("JobSubmitPlugins=lua\n")
    assert install("--remove")[0] == 1
    assert (etc / "job_submit.lua").read_text() == accepting()
    site.write_text("")
    assert install("--remove")[0] == 0
    assert (etc / "job_submit.lua").read_text() == SITE_LUA


def test_a_module_that_the_sites_own_script_loads_stays_while_lua_is_named(
    etc: Path, install: Install
) -> None:
    (etc / "slurm.conf").write_text("SlurmUser=root\nJobSubmitPlugins=lua\n")
    mine = f'local pliant = require("pliant")\n{SITE_LUA}'
    (etc / "job_submit.lua").write_text(mine)
    assert install("--apply")[0] == 0
    code, said = install("--remove")
    assert (code, (etc / "pliant.lua").exists()) == (1, True)
    assert said.startswith(
        f"left to do: {etc}/job_submit.lua loads pliant.lua, and is in force: take that out of it, "
    )
    assert f"{etc}/pliant.lua: left: {etc}/job_submit.lua calls it\n" in said
    assert (etc / "job_submit.lua").read_text() == mine
    (etc / "job_submit.lua").write_text(SITE_LUA)
    assert install("--remove")[0] == 0
    assert not (etc / "pliant.lua").exists()


def test_a_sites_own_script_comes_back_while_lua_is_named(etc: Path, install: Install) -> None:
    (etc / "slurm.conf").write_text("SlurmUser=root\nJobSubmitPlugins=lua\n")
    (etc / "job_submit.lua").write_text(SITE_LUA)
    before = tree(etc.parents[1])
    assert install("--apply")[0] == 0
    assert install("--remove")[0] == 0
    assert tree(etc.parents[1]) == before


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("function slurm_job_submit() return 0 end\n", True),
        ("-- slurm_job_submit slurm_job_modify\n", True),
        ('dofile("/etc/slurm/rules.lua")\n', False),
        (SITE_LUA, False),
    ],
)
def test_what_a_script_lacks_by_itself_stays_in_it_while_lua_is_named(
    etc: Path, install: Install, text: str, stays: bool
) -> None:
    site = named_by_hand(etc)
    (etc / "job_submit.lua").write_text(text)
    install("--apply", "--dormant-lua", "run")
    site.write_text("JobSubmitPlugins=lua\n")
    assert install("--remove")[0] == stays
    assert ((etc / "job_submit.lua").read_text() != text) is stays
    site.write_text("")
    assert install("--remove")[0] == 0
    assert (etc / "job_submit.lua").read_text() == text


# What others wrote


@pytest.mark.parametrize("first", ["A=1\n", "A=1\nJobSubmitPlugins=throttle\n"])
def test_a_line_that_took_the_place_of_ours_is_its_owners(first: str) -> None:
    ours = with_lua_plugin(first).splitlines(keepends=True)[-1]
    edited = with_lua_plugin(first).replace(ours, "PartitionName=gpu Nodes=ALL\n")
    assert "PartitionName=gpu Nodes=ALL\n" in unedited(edited)
    assert unedited(with_lua_plugin(first)) == first
    more = with_lua_plugin(first).replace(ours, f"{ours.rstrip()},defaults\n")
    assert unedited(more).endswith(f"{ours.rstrip()},defaults\n")


def test_another_include_behind_our_mark_is_its_owners() -> None:
    edited = with_include("", "/etc/slurm/plugstack.conf.d/pliant.conf", "/etc/slurm")
    assert unedited(edited) == ""
    assert unedited(f"{ADDED}\ninclude /etc/slurm/mine.conf\n") == "include /etc/slurm/mine.conf\n"


def test_an_upgrade_keeps_what_a_site_changed_in_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "job_submit.lua"
    path.write_text(SITE_LUA)
    record = Record(tmp_path / "record")
    for block in ("one()", "two()"):
        wishes = [Wish(path, with_lua_block(path.read_text(), block), ours=False)]
        apply(wishes, planned(wishes, record), record)
        path.write_text(f"-- a new rule\n{path.read_text()}")
    put_back(undone(record, lambda _path: True), record)
    assert path.read_text() == f"-- a new rule\n-- a new rule\n{SITE_LUA}"


# What was cut off


@pytest.mark.parametrize("ours", [True, False])
def test_an_upgrade_that_was_cut_off_is_finished_by_the_next_and_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    path = tmp_path / "file"
    before = tree(tmp_path)
    record = Record(tmp_path / "record")

    def do(text: str) -> None:
        wishes = [Wish(path, text, ours=ours)]
        apply(wishes, planned(wishes, record), record)

    class Killed(Exception):
        pass

    def killed(*_arguments: object) -> None:
        raise Killed

    do("one\n")
    for text in ("two\n", "three\n"):  # two releases in a row
        with monkeypatch.context() as context:
            context.setattr(files, "write", killed)
            with pytest.raises(Killed):
                do(text)
    assert [change.note for change in undone(Record(record.directory), lambda _path: True)] == [""]
    do("three\n")
    assert path.read_text() == "three\n"
    put_back(undone(record, lambda _path: True), record)
    assert tree(tmp_path) == before


def test_a_link_to_nothing_is_given_back_as_it_was(tmp_path: Path) -> None:
    link = tmp_path / "etc" / "plugstack.conf"
    link.parent.mkdir()
    link.symlink_to("../shared/plugstack.conf")
    record = Record(tmp_path / "record")
    wishes = [Wish(link, "include x\n", ours=False)]
    apply(wishes, planned(wishes, record), record)
    assert (tmp_path / "shared" / "plugstack.conf").read_text() == "include x\n"
    put_back(undone(record, lambda _path: True), record)
    assert link.readlink() == Path("../shared/plugstack.conf")
    assert not (tmp_path / "shared").exists()


# slurm.conf with what it includes


def test_a_plugin_that_a_nested_include_names_is_not_overridden(
    etc: Path, install: Install
) -> None:
    conf = "ClusterName=hill\nSlurmUser=root\nInclude a-%c.conf\n"
    (etc / "slurm.conf").write_text(conf)
    (etc / "a-hill.conf").write_text("Include deep/%c.conf\n")
    (etc / "deep").mkdir()
    (etc / "deep" / "hill.conf").write_text("JobSubmitPlugins=require_timelimit\n")
    code, said = install("--apply")
    assert (code, (etc / "slurm.conf").read_text()) == (1, conf)
    assert "where it is set, write JobSubmitPlugins=require_timelimit,lua\n" in said


def test_a_line_that_a_later_include_replaces_is_not_edited(etc: Path, install: Install) -> None:
    conf = "SlurmUser=root\nJobSubmitPlugins=throttle\nInclude later.conf\n"
    (etc / "slurm.conf").write_text(conf)
    (etc / "later.conf").write_text("JobSubmitPlugins=throttle\n")
    assert install("--apply")[0] == 1
    assert (etc / "slurm.conf").read_text() == conf


def test_an_include_that_is_not_there_is_said(etc: Path, install: Install) -> None:
    conf = "SlurmUser=root\nInclude gone.conf\n"
    (etc / "slurm.conf").write_text(conf)
    code, said = install("--apply")
    assert (code, (etc / "slurm.conf").read_text()) == (1, conf)
    assert f"{etc}/slurm.conf is left as it is: it includes {etc}/gone.conf, which is not" in said


# Several controllers


def test_the_other_controllers_are_named_before_slurmctld_is_told(etc: Path) -> None:
    (etc / "slurm.conf").write_text("SlurmctldHost=ctl1(10.0.0.1)\nSlurmctldHost=ctl2\n")
    root = etc.parents[1]
    site = find_site(root, "", "", "")
    assert site.other_controllers == ("ctl1", "ctl2")  # an image: any of them
    site = replace(site, other_controllers=("ctl2",))
    paths = [f"{etc}/pliant.lua", f"{etc}/job_submit.lua", f"{etc}/slurm.conf"]
    first, second, _ = after_apply(site, paths)
    assert first == (
        "on ctl2, where slurmctld may run too: pliant install slurm --part daemon --part lua "
        f"--apply, or copy {etc}/job_submit.lua and {etc}/pliant.lua there; without job_submit.lua "
        "slurmctld would not start there"
    )
    assert second.endswith("then: scontrol reconfigure")
    on_all = "pliant install slurm --remove on every login and compute node that has it"
    assert after_remove(site, ["/usr/lib/pliant/pliant.so"]) == [on_all]
    assert after_remove(site, paths)[1] == "only then, on ctl2 too: pliant install slurm --remove"
    assert len(after_apply(replace(site, other_controllers=()), paths)) == 2


def test_who_names_lua_by_hand_is_told_of_the_other_controllers(
    etc: Path, install: Install
) -> None:
    (etc / "slurm.conf").write_text(
        "SlurmctldHost=ctl1\nSlurmctldHost=ctl2\nJobSubmitPlugins=a SlurmUser=root\n"
    )
    said = install("--apply")[1]
    assert "JobSubmitPlugins=a,lua, when job_submit.lua lies on ctl1, ctl2 too\n" in said


# An upgrade of pliant.lua


def test_an_upgrade_of_the_module_lets_slurmctld_read_it(etc: Path, install: Install) -> None:
    install("--apply")
    script, module = etc / "job_submit.lua", etc / "pliant.lua"
    os.utime(script, (1, 1))
    assert install("--apply")[0] == 0
    assert script.stat().st_mtime == 1
    module.unlink()
    assert f"{script}: gets a new time, so that slurmctld reads pliant.lua\n" in install()[1]
    assert script.stat().st_mtime == 1
    assert f"touched: {script}: slurmctld reads it and pliant.lua" in install("--apply")[1]
    assert script.stat().st_mtime >= module.stat().st_mtime


def test_a_script_that_does_not_call_pliant_keeps_its_time(etc: Path, install: Install) -> None:
    script = etc / "job_submit.lua"
    script.write_text(SITE_LUA)
    assert "gets a new time" not in install("--apply")[1]
    (etc / "slurm.conf").write_text("JobSubmitPlugins=lua\nSlurmUser=root\n")
    assert install("--apply")[0] == 0
    script.write_text(SITE_LUA)
    os.utime(script, (1, 1))
    (etc / "pliant.lua").unlink()
    assert "touched" not in install("--apply")[1]
    assert script.read_text() != SITE_LUA


# job_submit.lua


@pytest.mark.parametrize(
    "tail",
    [
        "--[[ old:\nreturn slurm.ERROR\n--]]\n",
        "--[==[\nreturn 1 ]]\n]==]\n",
        'x = [[\nreturn "]]\n',
    ],
)
def test_a_return_in_a_comment_or_a_string_ends_nothing(tail: str) -> None:
    text = f"{SITE_LUA}{tail}"
    assert with_lua_block(text, "x()") == f"{text}-- pliant: begin\nx()\n-- pliant: end\n"


def test_a_return_before_a_comment_of_several_lines_is_the_last() -> None:
    ended = f"{SITE_LUA}return slurm.SUCCESS\n--[[ the\nend ]]\n"
    assert with_lua_block(ended, "x()").endswith(
        "-- pliant: end\nreturn slurm.SUCCESS\n--[[ the\nend ]]\n"
    )


def test_a_functions_own_return_is_not_the_last_of_the_file() -> None:
    text = "function slurm_job_modify()\nreturn slurm.SUCCESS end\n"
    assert with_lua_block(text, "x()").startswith(f"{text}-- pliant: begin\n")


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('if job_desc.account == "pliant" then return 1 end\n', False),
        ("local pliant = 1\n", False),
        ('--[[ require("pliant") ]]\n', False),
        ('local x = "--"; require "pliant".setup({})\n', True),
        ('pcall(require, "pliant")\n', True),
        ("dofile('/etc/slurm/pliant.lua')\n", True),
        ('require("pliant-accounts")\n', False),
    ],
)
def test_only_what_loads_pliant_calls_it(text: str, calls: bool) -> None:
    assert calls_pliant(text) is calls
