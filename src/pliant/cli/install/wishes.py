"""What each part of an installation wants to be true of a site's files."""

from __future__ import annotations

import grp
import pwd
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pliant import resources
from pliant.cli.install.files import Wish
from pliant.cli.install.record import read
from pliant.cli.install.site import Site
from pliant.cli.install.texts import (
    calls_pliant,
    job_submit_plugins,
    split_plugins,
    with_include,
    with_lua_block,
    with_lua_plugin,
)
from pliant.cli.templates import render

PARTS = ("daemon", "lua", "spank")

Compiles = Callable[[str, str], str]
"""Whether a Lua chunk (name, text) compiles: "" or what is wrong."""


@dataclass(slots=True)
class Wanted:
    """The files of the chosen parts, in the order in which they are written.

    ``left``: what a person must do instead, where Pliant does not dare to.
    """

    wishes: list[Wish] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def wanted(
    site: Site, parts: tuple[str, ...], plugin: Path | None, shards: int, compiles: Compiles
) -> Wanted:
    """Return what is to be written. ``plugin``: the pliant.so that was built for this Slurm."""
    found = Wanted()
    if "daemon" in parts:
        _daemon(site, found)
    if "spank" in parts:
        _spank(site, plugin, shards, found)
    if "lua" in parts:
        _lua(site, compiles, found)
    return found


def _daemon(site: Site, found: Wanted) -> None:
    values = {
        "user": site.user,
        "group": _group(site.user),
        "pliantd": site.pliantd,
        "socket": site.socket,
        "slurm_conf": site.slurm_conf,
    }
    toml = site.at(Path("/etc/pliant/pliant.toml"))
    if read(toml) is None:  # an administrator's own is never touched
        found.wishes.append(Wish(toml, render("install", "pliant.toml", **values), ours=True))
    hidden = _hidden_from(site)
    if hidden:
        found.left.append(
            f"{hidden} is closed to {site.user}, so pliantd would not start: install Pliant where "
            "every user may read, like /opt/pliant"
        )
    unit = site.at(Path("/etc/systemd/system/pliantd.service"))
    found.wishes.append(Wish(unit, render("install", "pliantd.service", **values), ours=True))
    tmpfiles = site.at(Path("/etc/tmpfiles.d/pliant.conf"))
    found.wishes.append(Wish(tmpfiles, render("install", "tmpfiles.conf", **values), ours=True))


def _hidden_from(site: Site) -> str:
    """Return a directory above pliantd or its Python that other users may not enter, or ""."""
    if site.root != Path("/") or site.user == "root":
        return ""
    programs = (site.pliantd.resolve(), Path(sys.executable).resolve())
    for program in programs:
        for parent in program.parents:
            if parent.exists() and not parent.stat().st_mode & stat.S_IXOTH:
                return str(parent)
    return ""


def _spank(site: Site, plugin: Path | None, shards: int, found: Wanted) -> None:
    built = read(plugin) if plugin else None
    if built is None:  # whoever looked for it said why
        return
    target = site.at(site.spank_plugin)
    found.wishes.append(Wish(target, built, ours=True, mode=0o755))
    directory = site.plugstack.parent
    drop_in = directory / "plugstack.conf.d" / "pliant.conf"
    text = (
        render("install", "plugstack.conf", plugin=site.spank_plugin, shards=shards).rstrip() + "\n"
    )
    found.wishes.append(Wish(site.at(drop_in), text, ours=True))
    now = read(site.at(site.plugstack)) or ""
    edited = with_include(now, str(drop_in), str(directory))
    found.wishes.append(Wish(site.at(site.plugstack), edited, ours=False))


def _lua(site: Site, compiles: Compiles, found: Wanted) -> None:
    if not site.at(site.plugin_dir / "job_submit_lua.so").exists():
        found.left.append(
            f"{site.plugin_dir} has no job_submit_lua.so: slurmctld would not start with "
            "JobSubmitPlugins=lua; install Slurm's Lua plugin (it needs lua's headers when built)"
        )
        return
    module = read(resources.find("plugins", "slurm", "pliant.lua"))
    if module is None:
        found.left.append("plugins/slurm/pliant.lua is missing: install Pliant again")
        return
    script = site.conf_dir / "job_submit.lua"
    shipped = read(resources.find("plugins", "slurm", "job_submit.lua")) or ""
    now = read(site.at(script))
    block = render("install", "job_submit.lua", conf_dir=site.conf_dir, socket=site.socket)
    edited = shipped if now in (None, shipped) else _called(now or "", block)
    wrong = compiles(str(script), edited) or compiles("pliant.lua", module)
    if wrong:
        found.left.append(
            f"{script} is left as it is ({wrong}); add by hand, where it is loaded last:\n{block}"
        )
        return
    found.wishes.append(Wish(site.at(site.conf_dir / "pliant.lua"), module, ours=True))
    found.wishes.append(Wish(site.at(script), edited, ours=now in (None, shipped)))
    _plugin_line(site, found)


def _called(script: str, block: str) -> str:
    """Return a site's own job_submit.lua with our block, or as it is where it calls us already."""
    return script if calls_pliant(script) else with_lua_block(script, block)


def _plugin_line(site: Site, found: Wanted) -> None:
    """Name lua in slurm.conf last: from then on slurmctld must find a job_submit.lua."""
    text = read(site.at(site.slurm_conf)) or ""
    if "lua" in (*split_plugins(site.job_submit), *job_submit_plugins(text)):
        return
    if split_plugins(site.job_submit) != job_submit_plugins(text):
        plugins = ",".join([*split_plugins(site.job_submit), "lua"])
        found.left.append(
            f"JobSubmitPlugins is not set in {site.slurm_conf} itself: where it is set, write "
            f"JobSubmitPlugins={plugins}"
        )
        return
    found.wishes.append(Wish(site.at(site.slurm_conf), with_lua_plugin(text), ours=False))


def _group(user: str) -> str:
    try:
        return grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
    except KeyError:
        return user
