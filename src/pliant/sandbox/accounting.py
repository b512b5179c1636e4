"""Accounting of a sandbox: a private MariaDB, slurmdbd's configuration, accounts and users."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence

from pliant.errors import Unavailable
from pliant.sandbox import config
from pliant.sandbox.accounts import Accounts
from pliant.sandbox.layout import Layout
from pliant.sandbox.processes import marked
from pliant.sandbox.programs import program
from pliant.sandbox.reasons import why
from pliant.sandbox.record import Record

ACCOUNT = "sandbox"

Run = Callable[..., subprocess.CompletedProcess[str]]


def prepare(layout: Layout, record: Record, who: Accounts) -> None:
    """Make an empty database that only slurmdbd's user may open, and slurmdbd.conf."""
    for path in (layout.database, layout.database_tmp, layout.database_socket.parent):
        path.mkdir(mode=0o755)
        if os.geteuid() == 0:
            shutil.chown(path, who.database)
    # No password: MariaDB asks the kernel who is at the other end of its socket. slurmdbd would
    # make the database itself and connect once more, which MariaDB's library 3.4.10 takes amiss.
    first = (
        "CREATE DATABASE IF NOT EXISTS slurm_acct_db;\n"
        f"CREATE USER IF NOT EXISTS `{who.slurm}`@localhost IDENTIFIED VIA unix_socket;\n"
        f"GRANT ALL ON slurm_acct_db.* TO `{who.slurm}`@localhost;\n"
    )
    config.write(layout.database_init, first)
    _install(layout, who)
    text = config.render(
        "slurmdbd.conf.j2", layout=layout, dbd_port=record.ports.dbd, slurm_user=who.slurm
    )
    path = layout.etc / "slurmdbd.conf"
    config.write(path, text, mode=0o600)
    if os.geteuid() == 0:
        shutil.chown(path, who.slurm)


def _install(layout: Layout, who: Accounts) -> None:
    argv = [
        program("mariadb-install-db"),
        "--no-defaults",
        f"--datadir={layout.database}",
        f"--tmpdir={layout.database_tmp}",
        "--skip-test-db",
        "--skip-name-resolve",
        "--force",  # where there is no /etc/hosts it would refuse, for a name it does not need
        "--innodb-log-file-size=16M",
        "--innodb-flush-log-at-trx-commit=0",
    ]
    if os.geteuid() == 0:
        argv.append(f"--user={who.database}")
    with layout.output("mariadb-install-db").open("wb") as output:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=layout.run,
            env=marked(layout, "mariadb-install-db", os.environ),
            timeout=120,
            check=False,
        )
    if done.returncode:
        raise Unavailable(why(layout, "mariadb-install-db", f"ended with {done.returncode}"))


def register(run: Run, cluster: str, users: Sequence[str]) -> None:
    """Make the cluster, one account and its users known; asked once slurmdbd answers."""
    for argv in (
        ["add", "cluster", cluster],
        ["add", "account", ACCOUNT, f"Cluster={cluster}"],
        ["add", "user", ",".join(users), f"Account={ACCOUNT}"],
    ):
        done = run([program("sacctmgr"), "-i", *argv], timeout=30)
        if done.returncode:
            said = " ".join((done.stdout + done.stderr).split())
            raise Unavailable(f"sacctmgr {' '.join(argv)}: {said[:400]}")
