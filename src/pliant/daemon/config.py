"""pliant.toml: what the administrator decides.

::

    [daemon]
    socket = "/run/pliant/pliantd.sock"      # door 1: the submit filter
    state_dir = "/var/lib/pliant"            # lock and history
    listen = "0.0.0.0:6830"                  # door 2: "host:port"; "" = off
    munge_socket = ""                        # "": munge's own default
    user = ""                                # whose answers clients believe; "": whoever's
    policy = "moldable-equipartition"
    cycle_s = 5.0                            # at least one look per so many seconds
    updates_per_cycle = 50
    log_level = "info"                       # error, warning, info, debug
    retention_days = 30                      # as [store] keep_days, by its name of before 0.2
    admins = []                              # users with an administrator's rights, beside root
    batch = "slurm"                          # "pbs"

    [policy]                                 # options of the policy
    pays = true                              # change running jobs only where that pays

    [slurm]
    conf = ""                                # slurm.conf; "": Slurm's own default
    bin_dir = ""                             # where scontrol lies; "": on PATH
    timeout_s = 10.0                         # for one command
    access = "commands"                      # "mixed", "native": jobs by pyslurm, where it fits

    [pbs]                                    # where batch is "pbs"
    server = ""                              # its name; "": as pbs.conf says
    bin_dir = "/opt/pbs/bin"                 # where qstat lies; "": on PATH
    timeout_s = 20.0                         # for one command
    type_resource = ""                       # the resource of nodes that names their GPUs' type
    share_resource = ""                      # the float resource of vnodes whose GPU is in shares
    gpu_mem_resource = ""                    # the resource of such vnodes: their GPU's memory
    gpu_vnode = ""                           # how the vnode of one GPU is called: "{host}-gpu{gpu}"
    state = "/run/pliant/pbs_state.json"     # what the hooks are told
    wait_s = 60                              # how long a job waits at most that went back
    back = "time"                            # of 0.1.0; has no effect
    away_s = 120                             # of 0.1.0; has no effect

    [partitions]                             # of PBS: queues
    default = "observe"                      # off, observe, enforce
    gpu = "enforce"

    [store]
    keep_days = 30                           # of the history; not said: [daemon] retention_days

    [trial]                                  # see trials.py
    max_jobs = 4

    [gpu_memory]                             # see gpu_memory.py
    a100 = "40G"
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from pliant import policies
from pliant.daemon.gpu_memory import read_gpu_memory
from pliant.daemon.trials import read_caps
from pliant.decoding import Decoder
from pliant.errors import BadConfig, BadInput
from pliant.grammar import quoted
from pliant.model import Mode, TrialCaps

DEFAULT_PATH = Path("/etc/pliant/pliant.toml")
PATH_VARIABLE = "PLIANT_CONFIG"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,254}", re.ASCII)
_T = TypeVar("_T", bound=Struct)
_Seconds = Annotated[float, Meta(ge=0.2, le=3600)]


class DaemonConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Of [daemon]; see the module."""

    socket: str = "/run/pliant/pliantd.sock"
    state_dir: str = "/var/lib/pliant"
    listen: str = ""
    munge_socket: str = ""
    user: str = ""
    policy: str = "moldable-equipartition"
    cycle_s: _Seconds = 5.0
    updates_per_cycle: Annotated[int, Meta(ge=1, le=10_000)] = 50
    log_level: Literal["error", "warning", "info", "debug"] = "info"
    retention_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    admins: tuple[str, ...] = ()
    batch: Literal["slurm", "pbs"] = "slurm"


class SlurmConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Of [slurm]; see the module."""

    conf: str = ""
    bin_dir: str = ""
    timeout_s: Annotated[float, Meta(ge=1, le=600)] = 10.0
    access: Literal["commands", "mixed", "native"] = "commands"


class PbsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Of [pbs]; see the module."""

    server: str = ""
    bin_dir: str = "/opt/pbs/bin"
    timeout_s: Annotated[float, Meta(ge=1, le=600)] = 20.0
    type_resource: str = ""
    share_resource: str = ""
    gpu_mem_resource: str = ""
    gpu_vnode: str = ""
    state: str = "/run/pliant/pbs_state.json"
    wait_s: Annotated[int, Meta(ge=1, le=600)] = 60
    back: Literal["time"] = "time"
    away_s: Annotated[int, Meta(ge=30, le=86_400)] = 120


class StoreConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Of [store]; see the module."""

    keep_days: Annotated[int, Meta(ge=1, le=3650)] | None = None


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """All of pliant.toml. ``partitions`` has a mode by partition, and one called ``default``.

    ``policy``: options of the policy; those that it has and nothing is said of are as they are for
    a real cluster. ``trial``: what a user's trial jobs may be. ``gpu_memory``: MiB by type.
    """

    daemon: DaemonConfig = DaemonConfig()
    slurm: SlurmConfig = SlurmConfig()
    partitions: dict[str, Mode] = msgspec.field(default_factory=dict)
    policy: dict[str, bool | int | float | str] = msgspec.field(default_factory=dict)
    trial: TrialCaps = msgspec.field(default_factory=lambda: read_caps("", {}))
    pbs: PbsConfig = PbsConfig()
    gpu_memory: dict[str, int] = msgspec.field(default_factory=dict)
    store: StoreConfig = StoreConfig()

    @property
    def keep_s(self) -> float:
        """How long the history is kept."""
        days = self.store.keep_days or self.daemon.retention_days
        return days * 24 * 3600.0

    def mode(self, partition: str) -> Mode:
        """What Pliant may do in ``partition``."""
        return self.partitions.get(partition, self.partitions.get("default", Mode.OBSERVE))


_SECTIONS: dict[str, type[Struct]] = {
    "daemon": DaemonConfig,
    "slurm": SlurmConfig,
    "pbs": PbsConfig,
    "store": StoreConfig,
}
_DECODERS = {title: Decoder(kind) for title, kind in _SECTIONS.items()}
_TITLES = ("daemon", "policy", "slurm", "pbs", "partitions", "store", "trial", "gpu_memory")

_RIGHT = {
    "daemon.socket": "an absolute path of at most 100 bytes",
    "daemon.state_dir": "an absolute path",
    "daemon.listen": '"host:port", or "" for no second door',
    "daemon.munge_socket": 'the absolute path of munged\'s socket, or ""',
    "daemon.user": "the name of pliantd's user",
    "daemon.policy": f"one of {', '.join(policies.live_names())}",
    "daemon.cycle_s": "a number of seconds from 0.2 to 3600",
    "daemon.updates_per_cycle": "a whole number from 1 to 10000",
    "daemon.log_level": "one of error, warning, info, debug",
    "daemon.retention_days": "a whole number of days from 1 to 3650",
    "daemon.admins": 'a list of user names, like ["alice"],',
    "daemon.batch": "one of slurm, pbs",
    "store.keep_days": "a whole number of days from 1 to 3650",
    "pbs.server": 'the name of a host, or ""',
    "pbs.bin_dir": 'the absolute path of a directory, or ""',
    "pbs.timeout_s": "a number of seconds from 1 to 600",
    "pbs.type_resource": 'the name of a resource, or ""',
    "pbs.share_resource": 'the name of a resource, or ""',
    "pbs.gpu_mem_resource": 'the name of a resource, or ""',
    "pbs.gpu_vnode": 'a name with {host} before {gpu}, like "{host}-gpu{gpu}", or ""',
    "pbs.state": "an absolute path",
    "pbs.wait_s": "a whole number of seconds from 1 to 600",
    "pbs.back": '"hold" is no longer there, and the line is to be taken out: "time"',
    "pbs.away_s": "a whole number of seconds from 30 to 86400",
    "slurm.conf": 'the absolute path of slurm.conf, or ""',
    "slurm.bin_dir": 'the absolute path of a directory, or ""',
    "slurm.timeout_s": "a number of seconds from 1 to 600",
    "slurm.access": "one of commands, mixed, native",
}
_MODES = f"one of {', '.join(Mode)}"

DEFAULT_CONF = "/etc/slurm/slurm.conf"


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where pliant.toml is: $PLIANT_CONFIG, or /etc/pliant/pliant.toml."""
    return Path(environ.get(PATH_VARIABLE) or DEFAULT_PATH)


def load(path: Path) -> Config:
    """Read pliant.toml.

    Raises BadConfig in one line: the file, the key, the value, what would be right.
    """
    try:
        raw = tomllib.loads(path.read_bytes().decode())
    except (OSError, ValueError, RecursionError) as error:  # the last: brackets in brackets
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadConfig(f"{path}: {reason}: a readable TOML file is expected") from None
    return parse(raw, str(path))


def parse(raw: Mapping[str, Any], name: str = "pliant.toml") -> Config:
    """Check what a TOML file said; ``name`` stands in messages.

    Raises BadConfig.
    """
    sections: dict[str, Struct] = {}
    for title, value in raw.items():
        if title not in _TITLES:
            *most, last = (f"[{one}]" for one in _TITLES)
            right = f"{', '.join(most)} or {last} is expected"
            raise _bad(name, title, value, right)
        if not isinstance(value, dict):
            raise _bad(name, title, value, f"a section [{title}] is expected")
        if title in _SECTIONS:
            sections[title] = _section(name, title, value)
    config = Config(
        daemon=_as(DaemonConfig, sections.get("daemon")),
        slurm=_as(SlurmConfig, sections.get("slurm")),
        pbs=_as(PbsConfig, sections.get("pbs")),
        store=_as(StoreConfig, sections.get("store")),
        policy=raw.get("policy", {}),
        partitions=_partitions(name, raw.get("partitions", {})),
        trial=read_caps(name, raw.get("trial", {})),
        gpu_memory=read_gpu_memory(name, raw.get("gpu_memory", {})),
    )
    _check(name, config)
    return config


def keys_of(section: str) -> tuple[str, ...]:
    """Return the keys of a section whose keys are fixed, else none; of "", the sections."""
    if not section:
        return _TITLES
    return _SECTIONS[section].__struct_fields__ if section in _SECTIONS else ()


def _as(kind: type[_T], section: Struct | None) -> _T:
    return section if isinstance(section, kind) else kind()


def _section(name: str, title: str, values: Mapping[str, Any]) -> Struct:
    """Convert key by key, so that an error names the key and the value."""
    kind = _SECTIONS[title]
    for key, value in values.items():
        if key not in kind.__struct_fields__:
            right = f"one of {', '.join(kind.__struct_fields__)} is expected"
            raise _bad(name, f"[{title}] {key}", value, right)
        try:
            _DECODERS[title].plain({key: value})
        except msgspec.ValidationError:
            raise _bad(name, f"[{title}] {key}", value, _expected(title, key)) from None
    return _DECODERS[title].plain(values)


def _partitions(name: str, values: Mapping[str, Any]) -> dict[str, Mode]:
    for key, value in values.items():
        if value not in tuple(Mode):
            raise _bad(name, f"[partitions] {key}", value, f"{_MODES} is expected")
    return {key: Mode(value) for key, value in values.items()}


def _check(name: str, config: Config) -> None:
    """What types alone do not say."""
    daemon, slurm, pbs = config.daemon, config.slurm, config.pbs
    sun_path = 100  # of 108 bytes, with room for a temporary name
    checks = (
        ("daemon", "socket", daemon.socket, _absolute(daemon.socket, sun_path)),
        ("daemon", "state_dir", daemon.state_dir, _absolute(daemon.state_dir)),
        ("daemon", "listen", daemon.listen, daemon.listen == "" or _is_address(daemon.listen)),
        ("daemon", "munge_socket", daemon.munge_socket, _absolute_or_none(daemon.munge_socket)),
        ("daemon", "policy", daemon.policy, daemon.policy in policies.live_names()),
        ("pbs", "server", pbs.server, pbs.server == "" or bool(_NAME.fullmatch(pbs.server))),
        ("pbs", "bin_dir", pbs.bin_dir, _absolute_or_none(pbs.bin_dir)),
        ("pbs", "type_resource", pbs.type_resource, _is_resource(pbs.type_resource)),
        ("pbs", "share_resource", pbs.share_resource, _is_resource(pbs.share_resource)),
        ("pbs", "gpu_mem_resource", pbs.gpu_mem_resource, _is_resource(pbs.gpu_mem_resource)),
        ("pbs", "gpu_vnode", pbs.gpu_vnode, pbs.gpu_vnode == "" or is_pattern(pbs.gpu_vnode)),
        ("pbs", "state", pbs.state, _absolute(pbs.state)),
        ("slurm", "conf", slurm.conf, _absolute_or_none(slurm.conf)),
        ("slurm", "bin_dir", slurm.bin_dir, _absolute_or_none(slurm.bin_dir)),
    )
    for title, key, value, is_right in checks:
        if not is_right:
            raise _bad(name, f"[{title}] {key}", value, _expected(title, key))
    try:
        policies.live(daemon.policy, config.policy)
    except BadInput as error:
        raise BadConfig(f"{name}: [policy]: {error}") from None


def _absolute(path: str, most: int = 4000) -> bool:
    return path.startswith("/") and "\0" not in path and len(os.fsencode(path)) <= most


def _absolute_or_none(path: str) -> bool:
    return path == "" or _absolute(path)


def _is_resource(name: str) -> bool:
    return name == "" or bool(_NAME.fullmatch(name) and "." not in name and "-" not in name)


def is_pattern(text: str) -> bool:
    """Whether a text tells the host and the number of a GPU's vnode: {host}-gpu{gpu}, say."""
    return bool(re.fullmatch(r"\{host\}[A-Za-z0-9._\[-]*[A-Za-z._\[-]\{gpu\}[\]]?", text))


def _is_address(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(host and colon) and port.isascii() and port.isdecimal() and 0 < int(port) < 65536


def address(listen: str) -> tuple[str, int]:
    """Split "host:port"; an IPv6 host stands in brackets."""
    host, _, port = listen.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def fences_file(config: Config) -> Path:
    """Return the file by which PBS's hooks are told what is kept for some seconds."""
    return Path(config.pbs.state).with_name("pbs_fences.json")


def taken_file(config: Config) -> Path:
    """Return the file in which PBS's hooks note when a job was last submitted or started."""
    return Path(config.pbs.state).with_name("pbs_taken")


def _expected(title: str, key: str) -> str:
    return f"{_RIGHT[f'{title}.{key}']} is expected"


def _bad(name: str, key: str, value: object, right: str) -> BadConfig:
    return BadConfig(f"{name}: {key}: {quoted(str(value))}: {right}")
