"""Pliant in a sandbox: the daemon's configuration, the submit filter, the SPANK plugin."""

from __future__ import annotations

import os
import pwd
import shutil

from pliant import resources
from pliant.sandbox import config, spank
from pliant.sandbox.layout import Layout
from pliant.sandbox.record import Record

FILTER = ("job_submit.lua", "pliant.lua")


def has_filter() -> bool:
    """Return whether this installation has the submit filter."""
    return all(resources.find("plugins", "slurm", name).exists() for name in FILTER)


def prepare(layout: Layout, record: Record) -> None:
    """Write pliant.toml, job_submit.lua and plugstack.conf, as an administrator would."""
    layout.pliant_state.mkdir(mode=0o700)
    values = {
        "layout": layout,
        "options": record.options,
        "pliant_port": record.ports.pliant,
        "user": pwd.getpwuid(os.geteuid()).pw_name,
    }
    config.write(layout.pliant_toml, config.render("pliant.toml.j2", **values))
    if has_filter():
        for name in FILTER:  # copies beside slurm.conf, so that a trial may change them
            shutil.copy(resources.find("plugins", "slurm", name), layout.etc)
    if spank.exists():
        plugin = spank.build_spank()
        shutil.copy(plugin, layout.plugin)
        config.write(layout.plugstack, config.render("plugstack.conf.j2", **values))
