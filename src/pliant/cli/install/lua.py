"""What the part ``lua`` wants: Pliant's module, a job_submit.lua that calls it, and slurm.conf."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pliant import resources
from pliant.cli.install.files import Wish
from pliant.cli.install.lua_text import calls_pliant, has_lua_block, with_lua_block
from pliant.cli.install.parting import accepting
from pliant.cli.install.record import read
from pliant.cli.install.site import LUA_PLUGIN, Site
from pliant.cli.install.texts import (
    job_submit_plugins,
    split_plugins,
    takes_lua_plugin,
    with_lua_plugin,
)
from pliant.cli.install.view import view
from pliant.cli.install.wanted import Wanted
from pliant.cli.templates import render

DORMANT = ("run", "aside")
"""What may be done with a job_submit.lua that is there and not in force."""

Compiles = Callable[[str, str], str]
"""Whether a Lua chunk (name, text) compiles: "" or what is wrong."""


def want_lua(site: Site, compiles: Compiles, dormant: str, found: Wanted) -> None:
    """Add the files of the part ``lua``. ``dormant``: one of DORMANT, or "" where nobody said."""
    if site.configless:
        found.left.append(
            f"{site.slurm_conf} is not on this host, which has its configuration from slurmctld: "
            "the part lua belongs on the controller alone; --part spank is what is needed here"
        )
        return
    plugins = site.at(site.plugin_dir)
    if not site.at(site.plugin_dir / LUA_PLUGIN).exists():
        found.left.append(
            f"{plugins} has no job_submit_lua.so: slurmctld would not start with "
            "JobSubmitPlugins=lua; install Slurm's Lua plugin (it needs lua's headers when built)"
        )
        return
    module = read(resources.find("plugins", "slurm", "pliant.lua"))
    if module is None:
        found.left.append("plugins/slurm/pliant.lua is missing: install Pliant again")
        return
    script = site.at(site.conf_dir / "job_submit.lua")
    shipped = read(resources.find("plugins", "slurm", "job_submit.lua")) or ""
    now = read(script)
    now = None if now == accepting() else now  # a removal left it, which is over now
    sleeps = now is not None and now != shipped and _sleeps(site, now)
    if sleeps and not dormant:
        found.left.append(_asks(script))
        return
    if sleeps:
        found.notes.append(_wakes(script) if dormant == "run" else _gives_way(script))
    over = sleeps and dormant == "aside"
    now = None if over else now
    block = render("install", "job_submit.lua", conf_dir=site.conf_dir, socket=site.socket)
    edited = shipped if now in (None, shipped) else _called(now or "", block)
    bad_module = compiles("pliant.lua", module)
    if not bad_module:  # also where its caller is added by hand
        found.wishes.append(Wish(site.at(site.conf_dir / "pliant.lua"), module, ours=True))
    wrong = compiles(str(script), edited) or bad_module
    if wrong:
        found.left.append(
            f"{script} is left as it is ({wrong}); add by hand, where it is loaded last:\n{block}"
        )
        return
    found.wishes.append(Wish(script, edited, ours=now in (None, shipped), over=over))
    _plugin_line(site, found)


def _sleeps(site: Site, script: str) -> bool:
    """Whether a site's own job_submit.lua is not in force and would be from now on."""
    if has_lua_block(script) or calls_pliant(script):  # somebody meant it to be in force
        return False
    return "lua" not in _named(site)


def _named(site: Site) -> tuple[str, ...]:
    """The plugins that JobSubmitPlugins names, in slurmctld or in slurm.conf's files."""
    plugins = view(site.root, site.slurm_conf).plugins
    return (*split_plugins(site.job_submit), *plugins)


def _asks(script: Path) -> str:
    return (
        f"{script} is there and not in force: JobSubmitPlugins names no lua. With lua there, "
        "slurmctld would run it for every submission, so it and slurm.conf stay as they are. Read "
        "it, then say `--dormant-lua run` to put it in force, with Pliant's lines at its end, or "
        "`--dormant-lua aside` to put Pliant's own in its place: --remove gives it back"
    )


def _wakes(script: Path) -> str:
    return (
        f"{script} was not in force so far: with lua in JobSubmitPlugins, slurmctld runs it for "
        "every submission, its own rules first"
    )


def _gives_way(script: Path) -> str:
    return (
        f"{script}, which was not in force so far, gives way to Pliant's own: it is kept, and "
        "--remove gives it back"
    )


def _called(script: str, block: str) -> str:
    """Return a site's own job_submit.lua with our block, or as it is where it calls us already."""
    return script if calls_pliant(script) else with_lua_block(script, block)


def _plugin_line(site: Site, found: Wanted) -> None:
    """Name lua in slurm.conf last: from then on slurmctld must find a job_submit.lua."""
    if "lua" in _named(site):
        return
    conf = site.at(site.slurm_conf)
    text = read(conf) or ""
    plain = takes_lua_plugin(text)
    own, now = job_submit_plugins(text), view(site.root, site.slurm_conf)
    in_force = split_plugins(site.job_submit)
    edited = with_lua_plugin(text) if plain else text
    whole = view(site.root, site.slurm_conf, {conf: edited})
    write = f"write JobSubmitPlugins={','.join([*(now.plugins or in_force), 'lua'])}{_first(site)}"
    if now.missing:
        found.left.append(
            f"{conf} is left as it is: it includes {now.missing[0]}, which is not there, so what "
            f"JobSubmitPlugins is cannot be known; mend that, then {write}"
        )
    elif not own == now.plugins == in_force or (plain and whole.plugins != (*own, "lua")):
        found.left.append(f"JobSubmitPlugins is not set in {conf} itself: where it is set, {write}")
    elif not plain:
        found.left.append(
            f"{conf} is left as it is: a line is continued by a backslash, or JobSubmitPlugins "
            f"does not stand alone on its line; there, {write}"
        )
    else:
        found.wishes.append(Wish(conf, edited, ours=False))


def _first(site: Site) -> str:
    """What must be done before lua is named by hand, where other hosts are controllers too."""
    others = ", ".join(site.other_controllers)
    return f", when job_submit.lua lies on {others} too" if others else ""
