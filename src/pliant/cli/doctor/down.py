"""Why slurmctld may be down: told of lua, it does not start without a script that it can load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pliant.batch.slurm.standby import is_controller
from pliant.cli.doctor.findings import Finding
from pliant.cli.doctor.script import check_script
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.install.record import read
from pliant.cli.lua_host import library_of
from pliant.errors import Unavailable

USUAL = ("usr/lib/*/slurm*", "usr/lib64/slurm", "usr/lib/slurm", "usr/local/lib/slurm")
"""Where Slurm's plugins are where slurm.conf does not say it."""
_LUA = re.compile(r"^\s*JobSubmitPlugins\s*=\s*\S*\blua\b", re.MULTILINE | re.IGNORECASE)
_HOST = re.compile(r"^\s*SlurmctldHost\s*=\s*([^(\s]+)", re.MULTILINE | re.IGNORECASE)
_PLUGINS = re.compile(r"^\s*PluginDir\s*=\s*(\S+)", re.MULTILINE | re.IGNORECASE)


def check_down(patient: SlurmPatient) -> Iterator[Finding]:
    """Look at job_submit.lua where slurmctld does not answer and this is its host."""
    if patient.site is None and starts_here(patient):
        text = _conf(patient)
        library = _library(text) if _LUA.search(text) else ""
        if library:
            yield from check_script(patient, library)


def starts_here(patient: SlurmPatient) -> bool:
    """Whether slurm.conf says that slurmctld runs on this host."""
    return is_controller(_HOST.findall(_conf(patient)), patient.hostname)


def _conf(patient: SlurmPatient) -> str:
    try:
        return read(patient.conf_path) or ""
    except Unavailable:  # root may see it
        return ""


def _library(conf: str) -> str:
    """Return slurmctld's Lua; "" where it is not found."""
    named = [Path(name) for names in _PLUGINS.findall(conf) for name in names.split(":")]
    usual = (path for pattern in USUAL for path in Path("/").glob(pattern))
    plugins = (folder / "job_submit_lua.so" for folder in (*named, *usual))
    plugin = next((path for path in plugins if path.exists()), None)
    try:
        return library_of(plugin) if plugin else ""
    except Unavailable:
        return ""
