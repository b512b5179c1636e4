"""The command ``pliantd``."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from pliant import __version__
from pliant.batch.pbs import Commands as PbsCommands
from pliant.batch.pbs import Names, Pbs
from pliant.batch.slurm import Commands, Native, Slurm, Worker
from pliant.daemon import journal
from pliant.daemon.config import DEFAULT_CONF, Config, config_path, fences_file, load
from pliant.daemon.publishing import Publisher
from pliant.daemon.rights import Site
from pliant.daemon.server import Daemon, Surroundings
from pliant.errors import PliantError, StandsBy

SWITCH_S = 0.0005
"""How soon a thread that decides makes way for the door: by default after ten times as long."""
TAKE_BACK_S = 20.0
"""For how long both options try where slurmctld is away: systemd waits 90 s by default."""
AGAIN_S = 2.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the daemon and exit: 0 after SIGTERM, 2 where it cannot start."""
    options = _options(arguments)
    try:
        config = load(options.config)
        if options.check:
            print(f"{options.config} is right")
            return
        _log(config.daemon.log_level)
        _tune()
        batch = _pbs(config) if config.daemon.batch == "pbs" else _slurm(config)
        if options.unmark:
            _take_back(batch.unmark, "--unmark", "starts beside nobody")
            return
        if options.release:
            _take_back(batch.release, "--release", "has nothing of a hand-over any more")
            return
        asyncio.run(Daemon(options.config, config, _surroundings(batch, config)).run())
    except PliantError as error:
        sys.stderr.write(f"pliantd: {error}\n")
        sys.exit(2)


class _Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(
        prog="pliantd",
        allow_abbrev=False,
        description="Watch a Slurm or PBS cluster and change waiting jobs as their owners allow.",
        epilog="SIGHUP reads the configuration again, Slurm's too; SIGTERM ends.",
    )
    parser.add_argument(
        "--config",
        type=Path,
        default=config_path(),
        metavar="FILE",
        help="pliant.toml ($PLIANT_CONFIG, else /etc/pliant/pliant.toml)",
    )
    parser.add_argument("--check", action="store_true", help="check the configuration and end")
    parser.add_argument(
        "--unmark",
        action="store_true",
        help="let no job that waits share a node by Pliant's mark any more, and end",
    )
    parser.add_argument(
        "--release",
        action="store_true",
        help="before pliantd goes for good: let no job keep a place in the queue, nodes or a mark "
        "that Pliant gave it, give back what it lent, and end",
    )
    parser.add_argument("--version", action="version", version=f"pliantd {__version__}")
    return parser.parse_args(arguments)


def _log(level: str) -> None:
    """Log in lines to the journal, or to stderr; systemd adds the time."""
    logging.basicConfig(handlers=[journal.handler()])
    logging.getLogger("pliant").setLevel(level.upper())


def _tune() -> None:
    """Keep the filter quick while a cycle runs beside it: it has 50 ms."""
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()
    gc.set_threshold(50_000, 20, 1000)  # a snapshot is large, and holds no cycles to find


def _surroundings(batch: Slurm | Pbs, config: Config) -> Surroundings:
    common = (batch, lambda: _site(batch), batch.forget_site, batch, batch.unmark)
    if isinstance(batch, Pbs):
        publisher = Publisher(Path(config.pbs.state), _names(config))
        cluster = f"pbs:{config.pbs.server}"
        return Surroundings(*common, publisher, batch.trouble, batch.ended, cluster)
    conf = config.slurm.conf or os.environ.get("SLURM_CONF") or DEFAULT_CONF
    cluster = os.path.realpath(conf)
    return Surroundings(*common, trouble=batch.trouble, ended=batch.ended, cluster=cluster)


def _pbs(config: Config) -> Pbs:
    pbs = config.pbs
    commands = PbsCommands(pbs.bin_dir, pbs.timeout_s, server=pbs.server)
    return Pbs(commands, names=_names(config), fences=fences_file(config))


def _names(config: Config) -> Names:
    pbs = config.pbs
    return Names(pbs.type_resource, pbs.share_resource, pbs.gpu_mem_resource)


def _slurm(config: Config) -> Slurm:
    slurm = config.slurm
    commands = Commands(slurm.bin_dir, slurm.timeout_s, conf=slurm.conf)
    native = None
    if slurm.access != "commands":
        worker = Worker(commands.environment({}), slurm.timeout_s)
        native = Native(worker, reads=slurm.access == "native")
    return Slurm(commands, here=socket.gethostname(), native=native)


def _take_back(call: Callable[[], Mapping[str, str]], option: str, done: str) -> None:
    """Do what a pliantd that was killed, or is to go for good, cannot do any more.

    Raises PliantError where it could not be done in time.
    """
    end_s = time.monotonic() + TAKE_BACK_S
    while trouble := _taken_back(call, done):
        if time.monotonic() > end_s:
            tried = f"tried for {TAKE_BACK_S:.0f} s"
            raise PliantError(f"{option}: {tried}: jobs may wait with Pliant's marks: {trouble}")
        time.sleep(AGAIN_S)


def _taken_back(call: Callable[[], Mapping[str, str]], done: str) -> str:
    """Take back what is there; return why something may be left, "" where nothing is."""
    try:
        found = call()
    except StandsBy:
        return ""  # it is the other host's
    except PliantError as error:
        return str(error)
    for job in (job for job, words in found.items() if not words):
        print(f"job {job} {done}")
    return next((f"job {job}: {words}" for job, words in found.items() if words), "")


def _site(batch: Slurm | Pbs) -> Site:
    """Ask nobody: the look that follows needs the same reading."""
    if isinstance(batch, Pbs):
        return Site()
    site = batch.site()
    pace_s = float(site.backfill_interval_s)
    return Site(site.slurm_uid or 0, site.private_data, pace_s, site.cluster)


if __name__ == "__main__":
    main()
