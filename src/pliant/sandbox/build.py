"""Make the files of a sandbox; tell when a part answers."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from pliant.sandbox import accounting, accounts, config, inside
from pliant.sandbox.layout import Layout
from pliant.sandbox.record import Record

Run = Callable[..., subprocess.CompletedProcess[str]]


def prepare(layout: Layout, record: Record) -> None:
    """Make the directories, the key, the fake GPUs and the configuration."""
    who = accounts.current()
    own = None if os.geteuid() else who.slurm
    _directories(layout, own)
    _munge_key(layout)
    _devices(layout, record.options.gpus)
    if record.options.accounting:
        accounting.prepare(layout, record, who)
    pliant = record.options.mode != "none"
    lua = pliant and inside.has_filter()
    config.write_slurm(
        layout, record.options, record.ports, who, lua=lua, cgroups=config.cgroups_mounted()
    )
    if pliant:
        inside.prepare(layout, record)


def _directories(layout: Layout, owner: str | None) -> None:
    for path in (layout.etc, layout.devices, layout.spool, layout.plugin.parent):
        path.mkdir(mode=0o755)
    for path in (layout.run, layout.logs, layout.ctld_state):
        path.mkdir(mode=0o755)
        if owner:
            shutil.chown(path, owner)
    layout.munge_key.parent.mkdir(mode=0o711)


def _munge_key(layout: Layout) -> None:
    handle = os.open(layout.munge_key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as key:
        key.write(secrets.token_bytes(1024))


def _devices(layout: Layout, count: int) -> None:
    """Make the fake GPUs.

    Slurm wants character devices, else CUDA_VISIBLE_DEVICES stays unset in jobs; it follows links,
    so that neither root nor the right to make devices is needed.
    """
    for index in range(count):
        (layout.devices / f"gpu{index}").symlink_to("/dev/null")


def ready_check(part: str, layout: Layout, run: Run) -> Callable[[], bool]:
    """Return a question: does the part answer?"""
    sockets = {
        "munged": layout.munge_socket,
        "mariadbd": layout.database_socket,
    }
    if part in sockets:
        return lambda: _listens(sockets[part])
    if part == "slurmdbd":
        return lambda: _succeeds(run, ["sacctmgr", "-n", "show", "cluster"], "")
    if part == "slurmctld":
        return lambda: _succeeds(run, ["scontrol", "ping"], "is UP")
    return lambda: True


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _succeeds(run: Run, argv: list[str], word: str) -> bool:
    try:
        done = run(argv, timeout=10)
        return done.returncode == 0 and word in done.stdout
    except subprocess.TimeoutExpired:
        return False
