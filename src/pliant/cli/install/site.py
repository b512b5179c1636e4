"""What `pliant install slurm` must know about a site, from Slurm itself or from slurm.conf."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from pliant.batch.slurm.standby import is_controller, is_down
from pliant.cli.commands import option, run, show_config
from pliant.cli.install.record import below, read
from pliant.cli.install.texts import settings
from pliant.cli.install.view import view
from pliant.daemon.config import DaemonConfig, load
from pliant.errors import BadConfig, Unavailable

DEFAULT_CONF = "/etc/slurm/slurm.conf"
PLIANT_TOML = "/etc/pliant/pliant.toml"
PING_S = 5.0
"""How long slurmctld has to answer a ping."""
DEFAULT_PLUGIN_DIRS = (
    "/usr/lib/x86_64-linux-gnu/slurm-wlm",
    "/usr/lib/aarch64-linux-gnu/slurm-wlm",
    "/usr/lib64/slurm",
    "/usr/lib/slurm",
    "/usr/local/lib/slurm",
)
LUA_PLUGIN = "job_submit_lua.so"
DAEMON_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""systemd's own for services (systemd.exec(5))."""


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
    configless: bool = False  # slurm.conf is slurmctld's, and not to be edited on this host
    bin_dir: str = ""  # of Slurm's commands, where a daemon's PATH has it not
    munge_socket: str = ""  # "": munge's own default
    other_controllers: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()  # the controllers, where Slurm says that this host is none
    spank_plugin: Path = Path("/usr/lib/pliant/pliant.so")
    socket: Path = Path(DaemonConfig().socket)  # where the submit filter asks

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
    is_copy = _is_copy(slurm_conf)
    home = Path(DEFAULT_CONF).parent if is_copy else slurm_conf.parent
    stack = "" if is_copy else values.get("PlugStackConfig", "")
    return Site(
        root=root,
        slurm_conf=home / slurm_conf.name,
        plugstack=home / (stack or "plugstack.conf"),
        plugin_dir=_plugin_dir(root, values.get("PluginDir", "")),
        user=user or values.get("SlurmUser", "root").partition("(")[0],
        job_submit=values.get("JobSubmitPlugins", ""),
        version=values.get("SLURM_VERSION", ""),
        pliantd=Path(pliantd or _pliantd()),
        configless=is_copy or not below(root, slurm_conf).exists(),
        bin_dir=_bin_dir() if root == Path("/") else "",
        munge_socket=_munge_socket(values.get("AuthInfo", "")),
        other_controllers=_other_controllers(root, values),
        elsewhere=_elsewhere(values) if asks else (),
        socket=_door(below(root, Path(PLIANT_TOML))),
    )


def default_conf(root: Path) -> Path:
    """Return where slurm.conf lies if nobody names it; SLURM_CONF is of the running system."""
    named = os.environ.get("SLURM_CONF") if root == Path("/") else ""
    return below(root, Path(named or DEFAULT_CONF))


def without_slurm(root: Path) -> Site:
    """Return what is known of a site whose Slurm cannot be asked and whose slurm.conf is gone."""
    conf = Path(DEFAULT_CONF)
    return Site(
        root=root,
        slurm_conf=conf,
        plugstack=conf.with_name("plugstack.conf"),
        plugin_dir=Path(DEFAULT_PLUGIN_DIRS[0]),
        user="root",
        job_submit="",
        version="",
        pliantd=Path(_pliantd()),
    )


def slurm_conf_values(text: str) -> dict[str, str]:
    """Read slurm.conf's ``Key=Value`` lines, by the keys of ``scontrol show config``."""
    names = {
        name.lower(): name
        for name in (
            *("AuthInfo", "ClusterName", "JobSubmitPlugins", "PluginDir", "PlugStackConfig"),
            "SlurmUser",
        )
    }
    return {names[key.lower()]: value for key, value in settings(text) if key.lower() in names}


def _asked() -> Mapping[str, str]:
    """Ask Slurm; where nobody answers, read slurm.conf where Slurm looks for it, and say so."""
    conf = default_conf(Path("/"))
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
    if read(below(root, conf)) is None:
        raise Unavailable(f"{below(root, conf)}: no such file; --conf names slurm.conf")
    text = view(root, conf).text
    hosts = [value for key, value in settings(text) if key.lower() == "slurmctldhost"]
    numbered = {f"SlurmctldHost[{number}]": host for number, host in enumerate(hosts)}
    return {**slurm_conf_values(text), **numbered, "SLURM_CONF": str(conf)}


def _other_controllers(root: Path, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts besides this one that slurmctld may run on; of an image, all of them."""
    hosts = _hosts(values)
    here = socket.gethostname() if root == Path("/") else ""
    return tuple(host for host in hosts if not is_controller([host], here)) if hosts[1:] else ()


def _elsewhere(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts that slurmctld may run on where this one is none of them, else nothing."""
    hosts = _hosts(values)
    return () if is_controller(hosts, socket.gethostname()) else hosts


def _hosts(values: Mapping[str, str]) -> tuple[str, ...]:
    keys = sorted(key for key in values if key.startswith("SlurmctldHost["))
    return tuple(values[key].partition("(")[0] for key in keys)


def _is_copy(conf: Path) -> bool:
    """Whether a slurm.conf is what slurmd or sackd fetched from slurmctld: edits do not last."""
    return conf.is_relative_to("/run") or "conf-cache" in conf.parts


def _plugin_dir(root: Path, said: str) -> Path:
    """Return the directory of PluginDir, or of the usual ones, that has Slurm's Lua plugin."""
    named = [Path(part) for part in said.split(":") if part.startswith("/")]
    usual = [Path(name) for name in DEFAULT_PLUGIN_DIRS]
    there = [path for path in named or usual if (root / path.relative_to("/")).is_dir()]
    with_lua = [path for path in there if (root / path.relative_to("/") / LUA_PLUGIN).exists()]
    return [*with_lua, *there, *named, *usual][0]


def _bin_dir() -> str:
    """Return where Slurm's commands are, "" where pliantd finds them by itself."""
    found = shutil.which("scontrol")
    there = Path(found).parent if found else Path("/usr/bin")
    return "" if str(there) in DAEMON_PATH or not there.is_absolute() else str(there)


def _munge_socket(auth_info: str) -> str:
    """Return munged's socket, where Slurm's AuthInfo names one."""
    words = (word.partition("=") for word in auth_info.split(","))
    found = next((value for key, _, value in words if key.strip() == "socket"), "")
    return found if found.startswith("/") else ""


def _door(toml: Path) -> Path:
    """Return the submit filter's socket, which an administrator may have put elsewhere."""
    try:
        return Path(load(toml).daemon.socket)
    except BadConfig:  # not there yet, or broken: pliantd says so
        return Path(DaemonConfig().socket)


def _pliantd() -> str:
    beside = Path(sys.executable).with_name("pliantd")
    return str(beside) if beside.exists() else shutil.which("pliantd") or "/usr/bin/pliantd"
