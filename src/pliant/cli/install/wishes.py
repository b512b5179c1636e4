"""What each part of an installation wants to be true of a site's files."""

from __future__ import annotations

import grp
import pwd
import stat
import sys
from pathlib import Path

from pliant.cli.install.files import Wish
from pliant.cli.install.lua import Compiles, want_lua
from pliant.cli.install.record import read
from pliant.cli.install.site import Site
from pliant.cli.install.texts import with_include
from pliant.cli.install.wanted import Wanted
from pliant.cli.templates import render

CONTROLLER = ("daemon", "lua", "spank")
"""The parts of a controller, where none is named."""
PARTS = (*CONTROLLER, "monitor")
HOMES = ("/home", "/root", "/run/user")


def wanted(  # noqa: PLR0917  # all that an installation depends on
    site: Site,
    parts: tuple[str, ...],
    plugin: Path | None,
    shards: int,
    compiles: Compiles,
    dormant: str = "",
) -> Wanted:
    """Return what is to be written. ``plugin``: the pliant.so that was built for this Slurm.

    ``dormant``: what is to be done with a job_submit.lua that is not in force, one of DORMANT.
    """
    found = Wanted()
    if "daemon" in parts:
        _daemon(site, found)
    if "spank" in parts:
        _spank(site, plugin, shards, found)
    if "lua" in parts:
        want_lua(site, compiles, dormant, found)
    if "monitor" in parts:
        unit = site.at(Path("/etc/systemd/system/pliant-monitor.service"))
        pliant = site.pliantd.with_name("pliant")
        text = render("install", unit.name, pliant=pliant, in_home=_in_home(pliant))
        found.wishes.append(Wish(unit, text, ours=True))
    return found


def _daemon(site: Site, found: Wanted) -> None:
    values = {
        "user": site.user,
        "group": _group(site.user),
        "pliantd": site.pliantd,
        "socket": site.socket,
        "slurm_conf": "" if site.configless else site.slurm_conf,
        "bin_dir": site.bin_dir,
        "munge_socket": site.munge_socket,
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


def _in_home(program: Path) -> bool:
    """Whether a program or our Python lies where ProtectHome=yes hides it (systemd.exec(5))."""
    paths = (program.resolve(), Path(sys.executable).resolve())
    return any(path.is_relative_to(home) for path in paths for home in HOMES)


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
    if site.configless:
        found.notes.append(
            f"plugstack.conf comes from slurmctld here: on the controller, `include {drop_in}` must"
            " stand in it, which --apply writes there"
        )
        return
    edited = with_include(now, str(drop_in), str(directory))
    found.wishes.append(Wish(site.at(site.plugstack), edited, ours=False))


def _group(user: str) -> str:
    try:
        return grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
    except KeyError:
        return user
