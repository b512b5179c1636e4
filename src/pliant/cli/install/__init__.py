"""``pliant install slurm``: what an installation changes, shown, done, and taken back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from pliant.cli.commands import run
from pliant.cli.install import plugin as spank
from pliant.cli.install.arguments import (
    directory,
    must_be_absolute,
    must_be_one,
    must_be_plugin,
    must_be_user,
)
from pliant.cli.install.files import Change, apply, diff, planned, put_back, stale, undone
from pliant.cli.install.jobs import give_back, warn_of_jobs
from pliant.cli.install.lua import DORMANT
from pliant.cli.install.parting import parted
from pliant.cli.install.pbs import pbs
from pliant.cli.install.record import RECORD, RECORD_VARIABLE, Record
from pliant.cli.install.site import LUA_PLUGIN, Site, default_conf, find_site, without_slurm
from pliant.cli.install.steps import after_apply, after_remove, remains
from pliant.cli.install.wanted import Wanted
from pliant.cli.install.wishes import CONTROLLER, PARTS, wanted
from pliant.cli.lua_host import compiles, library_of
from pliant.errors import BadInput, PliantError, Unavailable

UNITS = {"daemon": "pliantd", "monitor": "pliant-monitor"}


@click.group(short_help="Install into a batch system, or take out again.")
def install() -> None:
    """Install Pliant into a batch system, or take it out again."""


install.add_command(pbs)


@install.command(short_help="Install into Slurm, or take out again.")
@click.option("--print", "shows", is_flag=True, help="Show the changes; default.")
@click.option("--apply", "applies", is_flag=True, help="Make the changes.")
@click.option("--remove", "removes", is_flag=True, help="Give every file back as it was.")
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(PARTS),
    help="Only this part; may stand several times.  [default: all but monitor]",
)
@click.option("--conf", default="", help="slurm.conf.  [default: the one that scontrol names]")
@click.option("--user", default="", help="The user of pliantd.  [default: SlurmUser]")
@click.option("--pliantd", default="", help="The program pliantd.  [default: beside this one]")
@click.option(
    "--plugin",
    default="",
    help="A pliant.so built for this Slurm.  [default: the Debian package's, else build it now]",
)
@click.option(
    "--libdir",
    default="/usr/lib/pliant",
    show_default=True,
    envvar="PLIANT_LIBDIR",
    help="Where pliant.so is put; also PLIANT_LIBDIR says it.",
)
@click.option(
    "--record",
    default=RECORD,
    show_default=True,
    envvar=RECORD_VARIABLE,
    help="Where the files' first states are kept; also PLIANT_RECORD says it.",
)
@click.option(
    "--dormant-lua",
    "dormant",
    type=click.Choice(DORMANT),
    help="A job_submit.lua that is there and not in force: run it, or put Pliant's in its place.",
)
@click.option("--root", default="/", help="Work on a tree below this directory, like an image.")
@click.option("--yes", is_flag=True, help="Do not ask before --remove.")
def slurm(  # noqa: PLR0917  # click passes them by name
    shows: bool,
    applies: bool,
    removes: bool,
    parts: tuple[str, ...],
    conf: str,
    user: str,
    pliantd: str,
    plugin: str,
    libdir: str,
    record: str,
    dormant: str | None,
    root: str,
    yes: bool,
) -> None:
    """Install Pliant into Slurm: show the changes (--print), make them, or take them back.

    \b
    daemon   pliant.toml, a systemd unit, tmpfiles.d
    lua      pliant.lua and a block in job_submit.lua beside slurm.conf, JobSubmitPlugins=lua
    spank    pliant.so and a drop-in of plugstack.conf
    monitor  a systemd unit of `pliant monitor`, for compute nodes; only where it is named

    On the controller the first three are wanted; login and compute nodes need spank alone. Nothing
    is restarted. Every file's first state is kept; --remove gives it back.
    """
    must_be_one({"--print": shows, "--apply": applies, "--remove": removes})
    named = {"conf": conf, "pliantd": pliantd, "libdir": libdir, "record": record}
    for option, path in named.items():
        must_be_absolute(option, path)
    must_be_plugin(plugin)
    must_be_user(user, root)
    try:
        site = find_site(directory(root), conf, user, pliantd)
    except Unavailable as wrong:
        if conf or not removes or default_conf(directory(root)).exists():
            raise
        click.echo(f"{wrong}: files go back as it was noted when they were changed", err=True)
        site = without_slurm(directory(root))
    site = replace(site, spank_plugin=Path(libdir) / "pliant.so")
    kept = Record(site.at(Path(record)), site.root)
    if removes:
        _remove(site, kept, parts or PARTS, yes)
        return
    parts = parts or _parts_here(site)
    with tempfile.TemporaryDirectory(prefix="pliant-") as scratch:
        found = _wanted(site, parts, plugin, Path(scratch), dormant or "")
    changes = planned(found.wishes, kept)
    if applies:
        _must_write(changes)
        script = stale(changes)
        apply(found.wishes, changes, kept)
        _tell(changes, "written")
        if script:
            os.utime(script)
            click.echo(f"touched: {script}: slurmctld reads it and pliant.lua at the next job")
    else:
        _show(changes, "" if found.left else ": all is installed")
        if stale(changes):
            click.echo(f"{stale(changes)}: gets a new time, so that slurmctld reads pliant.lua")
    for words in found.notes:
        click.echo(f"\nnote: {words}")
    for words in found.left:
        click.echo(f"\nleft to do: {words}")
    if applies or changes:
        _steps(after_apply(site, [str(change.path) for change in changes]))
    if found.left:
        raise click.exceptions.Exit(1)


def _parts_here(site: Site) -> tuple[str, ...]:
    """Return the parts of a controller: beside a second pliantd elsewhere, both would act."""
    if site.elsewhere:
        raise BadInput(
            f"this host is none of SlurmctldHost ({', '.join(site.elsewhere)}): say --part spank "
            "on a login or compute node, or where slurmctld runs here under another name, each part"
        )
    return CONTROLLER


def _wanted(site: Site, parts: Sequence[str], plugin: str, scratch: Path, dormant: str) -> Wanted:
    """Find what is needed first: the plugin, the number of shards, a Lua to check with."""
    trouble, built, shards = "", None, 0
    if "spank" in parts:
        try:
            built = (
                Path(plugin)
                if plugin
                else spank.brought(site.version) or spank.build(scratch, site.version, site.bin_dir)
            )
            shards = _shards(site)
        except Unavailable as wrong:
            trouble = str(wrong)
    found = wanted(site, tuple(parts), built, shards, _compiler(site), dormant)
    if trouble:
        found.left.append(f"{trouble}; --plugin names one built elsewhere")
    return found


def _compiler(site: Site) -> Callable[[str, str], str]:
    """Return a check by slurmctld's own Lua; where there is none, its absence is what is wrong."""

    def check(name: str, text: str) -> str:
        try:
            library = library_of(site.at(site.plugin_dir / LUA_PLUGIN))
            return compiles(library, f"@{name}", text)
        except Unavailable as wrong:
            return f"it could not be checked: {wrong}"

    return check


def _shards(site: Site) -> int:
    if not site.version:  # Slurm was not asked
        return 0
    try:
        return spank.shards_per_gpu(run(["scontrol", "-o", "-d", "show", "node"]).out)
    except PliantError:  # the plugin then counts shards by what it sees in the job
        return 0


def _remove(site: Site, record: Record, parts: Sequence[str], yes: bool) -> None:
    changes = undone(record, lambda path: _part(path) in parts)
    if not changes:
        click.echo("nothing is installed")
        return
    changes, left = parted(site, record, changes)
    wants = site.at(Path("/etc/systemd/system/multi-user.target.wants"))
    for part, unit in UNITS.items():
        if part in parts and (wants / f"{unit}.service").is_symlink():
            raise Unavailable(f"{unit} is enabled: first `systemctl disable --now {unit}`")
    if "spank" in parts and not warn_of_jobs(site, yes):
        raise click.exceptions.Exit(1)
    _must_write(changes)
    if left:  # before anything is done
        click.echo(f"left to do: {left}\n")
    if "daemon" in parts:
        give_back(site)
    put_back(changes, record)
    _tell(changes, "put back")
    _steps(after_remove(site, [str(change.path) for change in changes]))
    for line in remains(site, parts):
        click.echo(f"\n{line}")
    if left:
        raise click.exceptions.Exit(1)


def _part(path: Path) -> str:
    """Return the part that a file belongs to."""
    text = str(path)
    if any(word in text for word in ("pliant.toml", "pliantd.service", "tmpfiles.d")):
        return "daemon"
    if "pliant-monitor.service" in text:
        return "monitor"
    return "spank" if "plugstack" in text or text.endswith(".so") else "lua"


def _must_write(changes: Sequence[Change]) -> None:
    """Refuse before the first change what would be refused in the middle."""
    for change in changes:
        parent = next(p for p in change.path.parents if p.exists())
        if change.before != change.after and not os.access(parent, os.W_OK):
            raise Unavailable(f"{parent} cannot be written: become root; nothing was changed")


def _show(changes: Sequence[Change], rest: str) -> None:
    if not changes:
        click.echo(f"nothing is to be changed{rest}")
    for change in changes:
        if change.note:
            click.echo(f"{change.path}: {change.note}")
        click.echo(diff(change), nl=False)


def _tell(changes: Sequence[Change], verb: str) -> None:
    if not changes:
        click.echo("nothing is to be changed")
    for change in changes:
        removed = change.after is None and change.before is not None
        click.echo(f"{'removed' if removed else verb}: {change.path}" if not change.note
                   else f"{change.path}: {change.note}")  # fmt: skip


def _steps(steps: Sequence[str]) -> None:
    if steps:
        click.echo("\nThen, for it to take effect:")
    for step in steps:
        click.echo(f"  {step}")
