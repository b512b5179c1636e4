"""What `pliant install slurm` must know about a site, from Slurm itself or from slurm.conf."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from pliant.batch.slurm.standby import is_down
from pliant.cli.commands import option, run, show_config
from pliant.cli.install.record import below, read
from pliant.cli.install.texts import settings
from pliant.errors import Unavailable

DEFAULT_CONF = "/etc/slurm/slurm.conf"
PING_S = 5.0
"""How long slurmctld has to answer a ping."""
DEFAULT_PLUGIN_DIRS = (
    "/usr/lib/x86_64-linux-gnu/slurm-wlm",
    "/usr/lib/aarch64-linux-gnu/slurm-wlm",
    "/usr/lib64/slurm",
    "/usr/lib/slurm",
    "/usr/local/lib/slurm",
)
_INCLUDE = re.compile(r"^\s*include\s+(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Site:
    """Where things lie. All paths are as the running system sees them, without ``root``."""

    root: Path
    slurm_conf: Path
    plugstack: Path
    plugin_dir: Path
    user: str
    job_submit: str  # JobSubmitPlugins as it is in force
    version: str  # "" where Slurm was not asked
    pliantd: Path
    spank_plugin: Path = Path("/usr/lib/pliant/pliant.so")
    socket: Path = Path("/run/pliant/pliantd.sock")

    @property
    def conf_dir(self) -> Path:
        """The directory of slurm.conf, where slurmctld looks for job_submit.lua."""
        return self.slurm_conf.parent

    def at(self, path: Path) -> Path:
        """Return where a path of the system lies under ``root``.

        Raises Unavailable where it leads out of it.
        """
        return below(self.root, path)


def find_site(root: Path, conf: str, user: str, pliantd: str) -> Site:
    """Ask Slurm, or where a root or a slurm.conf is named, read that slurm.conf.

    Raises Unavailable.
    """
    asks = root == Path("/") and not conf
    values = _asked() if asks else _read(root, Path(conf or DEFAULT_CONF))
    slurm_conf = Path(values.get("SLURM_CONF") or conf or DEFAULT_CONF)
    plugin_dir = values.get("PluginDir", "").split(":")[0]
    return Site(
        root=root,
        slurm_conf=slurm_conf,
        plugstack=Path(values.get("PlugStackConfig") or slurm_conf.with_name("plugstack.conf")),
        plugin_dir=Path(plugin_dir) if plugin_dir else _default_plugin_dir(root),
        user=user or values.get("SlurmUser", "root").partition("(")[0],
        job_submit=values.get("JobSubmitPlugins", ""),
        version=values.get("SLURM_VERSION", ""),
        pliantd=Path(pliantd or _pliantd()),
    )


def slurm_conf_values(text: str) -> dict[str, str]:
    """Read slurm.conf's ``Key=Value`` lines, by the keys of ``scontrol show config``."""
    names = {
        name.lower(): name
        for name in ("JobSubmitPlugins", "PluginDir", "PlugStackConfig", "SlurmUser")
    }
    return {names[key.lower()]: value for key, value in settings(text) if key.lower() in names}


def _asked() -> Mapping[str, str]:
    """Ask Slurm; where nobody answers, read slurm.conf where Slurm looks for it, and say so."""
    conf = Path(os.environ.get("SLURM_CONF") or DEFAULT_CONF)
    try:
        _check_runs()
        found = show_config()
    except Unavailable as wrong:
        if not conf.exists():
            raise Unavailable(
                f"{wrong}; name slurm.conf by --conf where slurmctld does not run"
            ) from wrong
        click.echo(f"{wrong}: what follows is by {conf}, not by what is in force", err=True)
        return _read(Path("/"), conf)
    return {name: option(found, name) for name in found.options}


def _check_runs() -> None:
    """Ask whether slurmctld runs by a ping, which is not tried again: all else is, for 10 s.

    Raises Unavailable.
    """
    ping = run(["scontrol", "ping"], PING_S).out
    if is_down(ping):
        raise Unavailable("slurmctld does not run, or does not answer")


def _read(root: Path, conf: Path) -> Mapping[str, str]:
    text = read(below(root, conf))
    if text is None:
        raise Unavailable(f"{below(root, conf)}: no such file; --conf names slurm.conf")
    values = slurm_conf_values(text)
    for match in (_INCLUDE.match(line) for line in text.splitlines()):
        if match:
            path = conf.parent / match[1]
            values |= slurm_conf_values(read(below(root, path)) or "")
    return {**values, "SLURM_CONF": str(conf)}


def _default_plugin_dir(root: Path) -> Path:
    for name in DEFAULT_PLUGIN_DIRS:
        if (root / name.lstrip("/")).is_dir():
            return Path(name)
    return Path(DEFAULT_PLUGIN_DIRS[0])


def _pliantd() -> str:
    beside = Path(sys.executable).with_name("pliantd")
    return str(beside) if beside.exists() else shutil.which("pliantd") or "/usr/bin/pliantd"
