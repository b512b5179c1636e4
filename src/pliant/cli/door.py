"""Ask pliantd at its second door, as the user who typed the command."""

from __future__ import annotations

import os
import pwd
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from pliant.cli.pbs_conf import conf_path, read_conf, server_hosts
from pliant.daemon.answers import from_json
from pliant.daemon.config import DEFAULT_CONF, Config, address, config_path, load, parse
from pliant.errors import BadConfig, PliantError, Unavailable
from pliant.grammar import quoted
from pliant.wire import STANDS_BY, Message, ask_over_tcp

T = TypeVar("T")

TIMEOUT_S = 10.0
"""For one host's answer."""
CONNECT_S = 2.0
"""For reaching one of several hosts: as long as Slurm's own clients wait (TCPTimeout)."""
HOST_VARIABLE = "PLIANT_HOST"
_HOST = re.compile(r"(?:^|\s)SlurmctldHost\s*=\s*([^\s,]+)", re.IGNORECASE)
_DOOR = ("listen", "munge_socket", "user")
ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104  # compared with, not listened at


class SaidNo(PliantError):
    """pliantd answered, and the answer is no: exit 1."""

    exit_code = 1


def ask(kind: type[T], verb: str, **fields: str) -> T:
    """Return pliantd's answer.

    Raises SaidNo in pliantd's words, Unavailable in one line, BadConfig.
    """
    return _understood(kind, _first_answer(_answers(Message(verb, fields))))


def ask_each(kind: type[T], verb: str, **fields: str) -> tuple[T, list[str]]:
    """Ask every pliantd; return the answer of the one that acts, and of whom there is none.

    Raises as :func:`ask`.
    """
    answers = list(_answers(Message(verb, fields)))
    found = _understood(kind, _first_answer(answers))
    missing = [str(answer) for answer in answers if isinstance(answer, Unavailable)]
    return found, missing


def _understood(kind: type[T], answer: Message) -> T:
    if not answer.is_ok:
        raise SaidNo(answer.message or "pliantd refused without a reason")
    try:
        return from_json(kind, answer.fields.get("json", ""))
    except msgspec.DecodeError as wrong:
        raise Unavailable(f"pliantd's answer is not understood: {wrong}") from wrong


def client_config(path: Path) -> Config:
    """Read pliant.toml as far as a client needs it.

    Raises Unavailable where there is none or the second door is off, BadConfig.
    """
    if _is_missing(path):
        raise Unavailable(
            f"{path} is not there: is Pliant installed on this host? "
            "(PLIANT_CONFIG names another file)"
        )
    config = _load(path)
    if not config.daemon.listen:
        raise Unavailable(
            f"{path}: [daemon] listen is empty: pliantd has no door for commands; "
            'an administrator sets listen = "0.0.0.0:6830"'
        )
    return config


def _is_missing(path: Path) -> bool:
    """Whether there is no such file; of one that cannot be looked at, reading it says why."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _load(path: Path) -> Config:
    """Read pliant.toml, or of a broken one what leads to the door: pliantd kept the old one.

    Raises BadConfig where that is broken too.
    """
    try:
        return load(path)
    except BadConfig as wrong:
        try:
            raw = tomllib.loads(path.read_text())
        except (OSError, ValueError, RecursionError):
            raise wrong from None
        daemon = raw.get("daemon")
        said = daemon if isinstance(daemon, dict) else {}
        kept = {k: v for k, v in said.items() if k in _DOOR}
        kept |= {"batch": "pbs"} if said.get("batch") == "pbs" else {}
        try:
            config = parse({"daemon": kept}, str(path))
        except BadConfig:
            raise wrong from None
        click.echo(f"pliant: {wrong}", err=True)
        return config


def reader(config: Config) -> int | None:
    """Return the uid of pliantd's user; None where it is not said.

    Raises Unavailable where this host does not know that user.
    """
    user = config.daemon.user
    try:
        return pwd.getpwnam(user).pw_uid if user else None
    except KeyError:
        raise Unavailable(f"pliant.toml: [daemon] user {quoted(user)} is not known here") from None


def hosts(config: Config, named: str, controllers: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Return where pliantd may run: where we are told, where it listens, or the controllers."""
    if named:
        return (named,)
    host, _ = address(config.daemon.listen)
    return (host,) if host not in ANY_HOST else controllers()


def controllers(config: Config) -> Sequence[str]:
    """Return the hosts of slurmctld or of PBS's server, the primary first: pliantd runs there.

    slurm.conf is read where there is one, for pliantd answers while slurmctld hangs; of PBS it is
    pbs.conf alone. Raises Unavailable.
    """
    if config.daemon.batch == "pbs":
        return _pbs_hosts(config)
    conf = config.slurm.conf or os.environ.get("SLURM_CONF", "") or DEFAULT_CONF
    names = _written(Path(conf)) or _asked(config)
    if not names:
        raise Unavailable("slurm.conf names no SlurmctldHost: set PLIANT_HOST to pliantd's host")
    return [_host(name) for name in names]


def _pbs_hosts(config: Config) -> Sequence[str]:
    named = config.pbs.server
    found = (named,) if named else server_hosts(read_conf(conf_path()))
    if not found:
        raise Unavailable(f"{conf_path()} names no PBS_SERVER: set PLIANT_HOST to pliantd's host")
    return found


def _written(conf: Path) -> list[str]:
    try:
        text = conf.read_text(errors="surrogateescape")
    except OSError:  # a host that gets its configuration from slurmctld
        return []
    return [name for line in text.splitlines() for name in _HOST.findall(line.partition("#")[0])]


def _asked(config: Config) -> list[str]:
    from pliant.cli.commands import bin_here, conf_here, show_config  # noqa: PLC0415  # run is small

    slurm = config.slurm
    bin_dir = bin_here(slurm.bin_dir, "scontrol")
    found = show_config(conf_here(slurm.conf), bin_dir, slurm.timeout_s).options
    return [found[key] for key in sorted(found) if key.startswith("SlurmctldHost[")]


def _host(name: str) -> str:
    """Return the address of ``ctl(10.0.0.1)``, or the name where none is given."""
    host, _, rest = name.partition("(")
    return rest.removesuffix(")") or host


def _first_answer(answers: Iterable[Message | Unavailable]) -> Message:
    """Ask one host after the other: a backup controller answers where the primary is gone.

    What one says that stands by is taken only where no other answers.
    """
    troubles: list[Unavailable] = []
    standing: list[Message] = []
    for answer in answers:
        if isinstance(answer, Unavailable):
            troubles.append(answer)
        elif STANDS_BY in answer.fields:
            standing.append(answer)
        else:
            return answer
    if standing:
        return standing[0]
    raise troubles[0]


def _answers(request: Message) -> Iterator[Message | Unavailable]:
    """Ask each host where pliantd may run; one that is gone takes no time from the next."""
    config = client_config(config_path())
    names = hosts(config, os.environ.get(HOST_VARIABLE, ""), lambda: controllers(config))
    _, port = address(config.daemon.listen)
    munge, uid = config.daemon.munge_socket, reader(config)
    limit_s = CONNECT_S if len(names) > 1 else TIMEOUT_S
    for host in names:
        try:
            yield ask_over_tcp(
                host,
                port,
                request,
                munge_socket=munge,
                reader=uid,
                timeout_s=TIMEOUT_S,
                connect_s=limit_s,
            )
        except Unavailable as trouble:
            yield trouble
