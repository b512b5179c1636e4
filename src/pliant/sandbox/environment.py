"""The environments of a sandbox's commands and of its daemons."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from pliant.sandbox.layout import Layout


def own(layout: Layout) -> dict[str, str]:
    """Return the variables that make Slurm's commands, and Pliant's, speak to the sandbox."""
    return {
        "SLURM_CONF": str(layout.slurm_conf),
        "PLIANT_CONFIG": str(layout.pliant_toml),
        "PLIANT_SANDBOX": layout.name,
    }


def for_commands(layout: Layout, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return our environment with the sandbox's files instead of another cluster's."""
    # SLURM_* would tell of the other cluster's job that we may run in.
    mine = {key: value for key, value in environ.items() if not key.startswith("SLURM_")}
    return {**mine, **own(layout), "PATH": _with_pliant(mine.get("PATH", os.defpath))}


def _with_pliant(path: str) -> str:
    """Return PATH so that `pliant` is found on it; last, so that nothing else changes."""
    if shutil.which("pliant", path=path):
        return path
    return f"{path}:{Path(sys.executable).parent}"


def for_daemons(layout: Layout) -> dict[str, str]:
    """Return the environment that every part is started with."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(layout.run),
        "SLURM_CONF": str(layout.slurm_conf),
        "PLIANT_SOCKET": str(layout.pliant_socket),  # read by the submit filter
    }
