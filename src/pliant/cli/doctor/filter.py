"""The submit filter: named in slurm.conf, loaded by slurmctld's own Lua, able to ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pliant import resources
from pliant.batch.slurm.standby import is_controller, runs_not
from pliant.cli.doctor.cures import LUA, RECONFIGURE, install, written_anew
from pliant.cli.doctor.findings import Finding, advice, command, fault, ok, skipped
from pliant.cli.doctor.script import check_script
from pliant.cli.doctor.script_errors import check_script_errors
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.install.lua_text import calls_pliant, has_lua_block
from pliant.cli.install.record import read
from pliant.cli.lua_host import library_of, runs
from pliant.errors import Unavailable

FAKE_SLURM = (
    "slurm = setmetatable({SUCCESS = 0, ERROR = -1}, "
    "{__index = function() return function() end end})\n"
)
"""What slurmctld gives to a script, as far as loading one needs it."""


def check_filter(patient: SlurmPatient) -> Iterator[Finding]:
    """Look at JobSubmitPlugins, job_submit.lua, pliant.lua and luasocket."""
    if patient.site is None:
        return
    if not patient.submits_by_lua:
        yield _unnamed(patient, ",".join(patient.site.submit_plugins) or "not set")
    else:
        yield ok("JobSubmitPlugins", "names lua")
    if not patient.is_controller:
        yield skipped("submit filter", "its files are looked at on the controller")
        return
    try:
        library = _library(patient)
    except Unavailable as wrong:
        yield fault("slurmctld's Lua", str(wrong), "install Slurm's Lua plugin and its liblua")
        return
    yield from check_script(patient, library)
    yield from check_script_errors(patient)
    yield from _module(patient, library)
    yield from _in_force(patient)
    yield from _socket(library)
    yield from _others(patient)


def _unnamed(patient: SlurmPatient, named: str) -> Finding:
    """Name lua in slurm.conf: from then on slurmctld runs the job_submit.lua that is there."""
    says = f"{named}: lua is not among them"
    where = "" if patient.is_controller else "on the controller"
    try:
        text = read(patient.conf_dir / "job_submit.lua") if patient.is_controller else None
    except Unavailable:  # root may see it
        text = None
    if text is None or has_lua_block(text) or calls_pliant(text):
        return fault("JobSubmitPlugins", says, where, [LUA, RECONFIGURE])
    return fault(
        "JobSubmitPlugins",
        says,
        "the job_submit.lua that is there will be in force from then on: read it before",
        [install("lua", "--dormant-lua", "run"), RECONFIGURE],
    )


def _library(patient: SlurmPatient) -> str:
    directories = patient.site.plugin_dirs if patient.site else ()
    for directory in directories:
        plugin = Path(directory) / "job_submit_lua.so"
        if plugin.exists():
            return library_of(plugin)
    raise Unavailable(f"job_submit_lua.so is in none of {', '.join(directories) or 'PluginDir'}")


def _module(patient: SlurmPatient, library: str) -> Iterator[Finding]:
    path = patient.conf_dir / "pliant.lua"
    try:
        text = read(path)
    except Unavailable as wrong:
        yield skipped("pliant.lua", str(wrong))
        return
    if text is None:
        yield fault("pliant.lua", f"{path} is not there", "", [LUA])
        return
    result, wrong_lua = runs(library, f"@{path}", f"{FAKE_SLURM}{_as_chunk(text)}")
    if wrong_lua or result != "table":
        says = f"{path} does not load: {wrong_lua or result}"
        yield fault("pliant.lua", says, "", written_anew(path, "lua"))
    elif text != read(resources.find("plugins", "slurm", "pliant.lua")):
        says = f"{path} is of another release than this pliant"
        yield advice("pliant.lua", says, "", written_anew(path, "lua"))
    else:
        yield ok("pliant.lua", "loads")


def _in_force(patient: SlurmPatient) -> Iterator[Finding]:
    """Whether slurmctld has read pliant.lua since it was written: only with job_submit.lua."""
    script, module = (patient.conf_dir / name for name in ("job_submit.lua", "pliant.lua"))
    try:
        written, read_again = module.stat().st_mtime, script.stat().st_mtime
    except OSError:  # said above
        return
    if written > max(read_again, patient.started):
        yield advice(
            "pliant.lua in force",
            f"{module} is newer than {script}, so slurmctld may still run the one before",
            "it is read again at the next submission",
            [command("touch", script)],
        )


def _others(patient: SlurmPatient) -> Iterator[Finding]:
    """The other controllers: a slurmctld that is told of lua and has no script does not start."""
    here = patient.hostname
    names = patient.site.controllers if patient.site else ()
    others = [name for name in names if not is_controller([name], here)]
    if not others or not patient.submits_by_lua:
        return
    at = ", ".join(others)
    ping = patient.run(["scontrol", "ping"]).out
    down = [name for name in others if runs_not(ping, name)]
    if down:
        yield advice(
            "other controllers",
            f"slurmctld does not run on {', '.join(down)}; without a job_submit.lua it cannot",
            f"there: {LUA}, then start slurmctld, then pliant doctor",
        )
    else:
        yield skipped(
            "other controllers",
            f"whether {at} has job_submit.lua and pliant.lua, without which slurmctld would not "
            "start there, pliant doctor says there",
        )


def _as_chunk(text: str) -> str:
    return f"local module = (function(...)\n{text}\nend)('pliant')\nreturn type(module)\n"


def _socket(library: str) -> Iterator[Finding]:
    version, _ = runs(library, "version", "return _VERSION")
    result, _ = runs(library, "socket", "return type(require('socket.unix'))")
    if result in ("table", "function"):
        yield ok("luasocket", f"loads in slurmctld's {version}")
    else:
        yield fault(
            "luasocket",
            f"slurmctld's {version} has none: pliantd is told of no submission, no job gets what"
            " is free right now",
            f"install it for {version}: lua-socket (Debian), lua-socket-compat (RHEL), luarocks",
        )
