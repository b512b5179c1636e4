"""pbs.conf: where a host's PBS has its server, and its files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

PATH_VARIABLE = "PBS_CONF_FILE"
DEFAULT_PATH = "/etc/pbs.conf"


def conf_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where it is: $PBS_CONF_FILE, or /etc/pbs.conf."""
    return Path(environ.get(PATH_VARIABLE) or DEFAULT_PATH)


def read_conf(path: Path) -> dict[str, str]:
    """Return what it says; nothing where it cannot be read."""
    try:
        lines = path.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("#")[0].partition("=") for line in lines)
    return {name.strip(): value.strip().strip("\"'") for name, equals, value in pairs if equals}


def server_hosts(said: Mapping[str, str]) -> Sequence[str]:
    """Return the hosts of the server, the primary first."""
    pair = [said[name] for name in ("PBS_PRIMARY", "PBS_SECONDARY") if said.get(name)]
    single = [said[name] for name in ("PBS_SERVER_HOST_NAME", "PBS_SERVER") if said.get(name)]
    return pair or single[:1]
