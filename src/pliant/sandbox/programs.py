"""The programs that a sandbox needs, and the Debian package that each comes from."""

from __future__ import annotations

import os
import shutil

from pliant.errors import Unavailable

PACKAGES = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "scontrol": "slurm-wlm",
    "sinfo": "slurm-wlm",
    "munged": "munge",
    "slurmdbd": "slurmdbd",
    "sacctmgr": "slurm-wlm",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "cc": "gcc libc6-dev libslurm-dev",
    "make": "make",
}
# Ordinary users often lack the directory of daemons.
_MORE = "/usr/local/sbin:/usr/sbin:/sbin"


def program(name: str) -> str:
    """Return the path of a program; raise Unavailable with the package to install."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_MORE}")
    if path is None:
        raise Unavailable(f"{name}: not found; apt-get install {PACKAGES.get(name, name)}")
    return path


def require(*names: str) -> None:
    """Raise Unavailable naming all missing programs and their packages in one line."""
    missing = [name for name in names if not _exists(name)]
    if missing:
        packages = dict.fromkeys(PACKAGES.get(name, name) for name in missing)
        raise Unavailable(f"{', '.join(missing)}: not found; apt-get install {' '.join(packages)}")


def _exists(name: str) -> bool:
    try:
        program(name)
    except Unavailable:
        return False
    return True
