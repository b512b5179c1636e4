"""How each part of a sandbox is started: its command, its user, its environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from pliant.errors import BadInput
from pliant.sandbox.accounts import Accounts
from pliant.sandbox.layout import Layout
from pliant.sandbox.options import Options
from pliant.sandbox.programs import program

_SLURMD = re.compile(r"slurmd-(n[1-9][0-9]*)")


@dataclass(frozen=True)
class Command:
    """What is run, as whom (None: as ourselves), with which additional environment."""

    argv: Sequence[str]
    user: str | None = None
    env: dict[str, str] = field(default_factory=dict)


def names(options: Options) -> list[str]:
    """Return the parts in the order in which they are started."""
    accounting = ["mariadbd", "slurmdbd"] if options.accounting else []
    nodes = [f"slurmd-n{i + 1}" for i in range(options.nodes)]
    daemon = ["pliantd"] if options.mode != "none" and daemon_exists() else []
    return ["munged", *accounting, "slurmctld", *nodes, *daemon]


def daemon_exists() -> bool:
    """Return whether this installation has the daemon."""
    return find_spec("pliant.daemon.main") is not None


def command(part: str, layout: Layout, options: Options, accounts: Accounts) -> Command:
    """Return how a part is started; raise BadInput for one that the sandbox has not."""
    if part not in names(options):
        raise BadInput(f"{part!r}: this sandbox has {', '.join(names(options))}")
    if node := _SLURMD.fullmatch(part):
        conf = str(layout.slurm_conf)
        return Command([program("slurmd"), "-D", "-N", node[1], "-f", conf])
    root = os.geteuid() == 0
    user, database = (accounts.slurm, accounts.database) if root else (None, None)
    env = {"MYSQL_UNIX_PORT": str(layout.database_socket)}
    return {
        "munged": lambda: Command(_munged(layout)),
        "mariadbd": lambda: Command(_mariadbd(layout), user=database),
        "slurmdbd": lambda: Command([program("slurmdbd"), "-D"], user=user, env=env),
        "slurmctld": lambda: Command(
            [program("slurmctld"), "-D", "-f", str(layout.slurm_conf)], user=user
        ),
        "pliantd": lambda: Command(
            _pliantd(layout), env={"NOTIFY_SOCKET": str(layout.notify_socket)}
        ),
    }[part]()


def _munged(layout: Layout) -> list[str]:
    return [
        program("munged"),
        "--foreground",
        "--force",  # a user's home may be group-writable; the key itself is 0600
        f"--socket={layout.munge_socket}",
        f"--key-file={layout.munge_key}",
        f"--seed-file={layout.munge_key.with_name('seed')}",
        f"--pid-file={layout.munge_key.with_name('pid')}",
    ]


def _mariadbd(layout: Layout) -> list[str]:
    return [
        program("mariadbd"),
        "--no-defaults",
        f"--datadir={layout.database}",
        f"--tmpdir={layout.database_tmp}",
        f"--socket={layout.database_socket}",
        f"--pid-file={layout.database_socket.with_name('pid')}",
        f"--init-file={layout.database_init}",
        "--skip-networking",
        # Small and careless: nobody misses this data after the sandbox.
        "--innodb-log-file-size=16M",
        "--innodb-buffer-pool-size=64M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-lock-wait-timeout=900",
        "--skip-innodb-doublewrite",
        "--performance-schema=OFF",
    ]


def _pliantd(layout: Layout) -> list[str]:
    script = Path(sys.executable).with_name("pliantd")
    run = [str(script)] if script.exists() else [sys.executable, "-m", "pliant.daemon.main"]
    return [*run, "--config", str(layout.pliant_toml)]
