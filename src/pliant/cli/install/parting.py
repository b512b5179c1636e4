"""What a removal leaves of the part ``lua``, so that slurmctld starts the next time too.

While JobSubmitPlugins names lua, slurmctld must find a job_submit.lua, and that one all that it
loads: else it ends at its next start, reconfiguration or failover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pliant.cli.install.files import Change
from pliant.cli.install.lua_text import calls_pliant, has_functions
from pliant.cli.install.record import Record, read
from pliant.cli.install.site import Site
from pliant.cli.install.texts import split_plugins
from pliant.cli.install.view import view
from pliant.cli.templates import render

SCRIPT, MODULE = "job_submit.lua", "pliant.lua"


def accepting() -> str:
    """Return the job_submit.lua that takes every job as it is."""
    return render("install", "accepting.lua")


def parted(site: Site, record: Record, changes: Sequence[Change]) -> tuple[list[Change], str]:
    """Return a removal's changes such that slurmctld starts, and what is left to do, or "".

    Raises Unavailable.
    """
    found = {change.path.name: change for change in changes if change.path.name in (SCRIPT, MODULE)}
    lua = found.get(SCRIPT) or found.get(MODULE)
    why = _still_names(site, lua.path.parent, changes) if lua else ""
    if not lua or not why:
        return list(changes), ""
    script = found.get(SCRIPT)
    text = read(lua.path.with_name(SCRIPT))
    if script is not None:
        found[SCRIPT] = script = _script(script, record)
        text = script.after
    if MODULE in found and calls_pliant(text or ""):
        note = f"left: {lua.path.with_name(SCRIPT)} calls it"
        found[MODULE] = replace(found[MODULE], after=found[MODULE].before, note=note, waits=True)
    kept = [found.get(change.path.name, change) for change in changes]
    waiting = [change.path.name for change in kept if change.waits]
    if waiting == [MODULE]:
        why = f"{lua.path.with_name(SCRIPT)} loads pliant.lua, and is in force: take that out of it"
    return kept, f"{why}, then pliant install slurm --remove once more" if waiting else ""


def _script(change: Change, record: Record) -> Change:
    """Return what becomes of job_submit.lua: a site's own comes back only if it was in force."""
    entry = record.find(change.path)
    slept = entry is not None and entry.ours and entry.before and change.before != change.after
    if change.after is not None and not slept:
        if has_functions(change.after):
            return change
        note = "left: without Pliant's lines it lacks a function that slurmctld asks for"
        return replace(change, after=change.before, note=note, waits=True)
    note = "takes every job as it is, and stays as long as JobSubmitPlugins names lua"
    return Change(change.path, change.before, accepting(), note, waits=True)


def _still_names(site: Site, directory: Path, changes: Sequence[Change]) -> str:
    """Return what is to be done before job_submit.lua may go, "" where it may.

    slurm.conf is looked at as it will be, with all that it includes. Where lua is in force and
    comes from elsewhere, or slurm.conf lost it and slurmctld was not told, it stays as well.
    """
    beside = site.at(site.slurm_conf)
    if beside.parent != directory:  # installed with another --conf
        beside = directory / "slurm.conf"
    conf = Path("/") / beside.relative_to(site.root)
    before = view(site.root, conf).plugins
    after = view(site.root, conf, {change.path: change.after for change in changes}).plugins
    if "lua" in after:
        return (
            f"JobSubmitPlugins still names lua in {beside}, or in what it includes, by another "
            "hand than Pliant's: take lua out there, on every host that has the file, then "
            "scontrol reconfigure"
        )
    if "lua" in split_plugins(site.job_submit) and "lua" not in before:
        return f"lua is still in force, and {beside} does not name it: scontrol reconfigure"
    return ""
