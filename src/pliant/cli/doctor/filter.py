"""The submit filter: named in slurm.conf, loaded by slurmctld's own Lua, able to ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pliant import resources
from pliant.cli.doctor.findings import Finding, advice, fault, ok, skipped
from pliant.cli.doctor.patient import Patient
from pliant.cli.install.record import read
from pliant.cli.install.texts import calls_pliant, has_lua_block
from pliant.cli.lua_host import compiles, library_of, runs
from pliant.errors import Unavailable

INSTALL = "pliant install slurm --part lua --apply, then scontrol reconfigure"
FAKE_SLURM = (
    "slurm = setmetatable({SUCCESS = 0, ERROR = -1}, "
    "{__index = function() return function() end end})\n"
)
"""What slurmctld gives to a script, as far as loading one needs it."""


def check_filter(patient: Patient) -> Iterator[Finding]:
    """Look at JobSubmitPlugins, job_submit.lua, pliant.lua and luasocket."""
    if patient.site is None:
        return
    if "lua" not in [word.removeprefix("job_submit/") for word in patient.site.submit_plugins]:
        named = ",".join(patient.site.submit_plugins) or "not set"
        yield fault("JobSubmitPlugins", f"{named}: lua is not among them", INSTALL)
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
    yield from _script(patient, library)
    yield from _module(patient, library)
    yield from _socket(library)


def _library(patient: Patient) -> str:
    directories = patient.site.plugin_dirs if patient.site else ()
    for directory in directories:
        plugin = Path(directory) / "job_submit_lua.so"
        if plugin.exists():
            return library_of(plugin)
    raise Unavailable(f"job_submit_lua.so is in none of {', '.join(directories) or 'PluginDir'}")


def _script(patient: Patient, library: str) -> Iterator[Finding]:
    path = patient.conf_dir / "job_submit.lua"
    try:
        text = read(path)
    except Unavailable as wrong:
        yield skipped("job_submit.lua", str(wrong))
        return
    if text is None:
        yield fault("job_submit.lua", f"{path} is not there", INSTALL)
        return
    wrong_lua = compiles(library, f"@{path}", text)
    if wrong_lua:
        yield fault(
            "job_submit.lua",
            f"it does not compile: {wrong_lua}",
            "mend it before slurmctld restarts: it would not start",
        )
    elif has_lua_block(text) or calls_pliant(text):
        yield ok("job_submit.lua", f"{path} calls Pliant")
    else:
        yield fault("job_submit.lua", f"{path} does not call Pliant", INSTALL)


def _module(patient: Patient, library: str) -> Iterator[Finding]:
    path = patient.conf_dir / "pliant.lua"
    try:
        text = read(path)
    except Unavailable as wrong:
        yield skipped("pliant.lua", str(wrong))
        return
    if text is None:
        yield fault("pliant.lua", f"{path} is not there", INSTALL)
        return
    result, wrong_lua = runs(library, f"@{path}", f"{FAKE_SLURM}{_as_chunk(text)}")
    if wrong_lua or result != "table":
        yield fault("pliant.lua", f"{path} does not load: {wrong_lua or result}", INSTALL)
    elif text != read(resources.find("plugins", "slurm", "pliant.lua")):
        yield advice("pliant.lua", f"{path} is of another release than this pliant", INSTALL)
    else:
        yield ok("pliant.lua", "loads")


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
            f"slurmctld's {version} has none: jobs are only marked at submission, not prepared",
            f"install it for {version}: lua-socket (Debian), lua-socket-compat (RHEL), luarocks",
        )
