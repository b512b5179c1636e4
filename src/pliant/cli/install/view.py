"""slurm.conf with all that it includes, as slurmctld reads it at its next start."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pliant.cli.install.record import below, read
from pliant.cli.install.texts import settings, split_plugins

MOST_INCLUDES = 8
"""How deep slurm.conf may include."""
_INCLUDE = re.compile(r"^\s*include\s+(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class View:
    """The lines in Slurm's order. ``missing``: included files that are not there."""

    text: str
    missing: tuple[Path, ...] = ()

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that the last JobSubmitPlugins names, wherever it stands."""
        return split_plugins(_last(self.text, "JobSubmitPlugins"))


def view(root: Path, conf: Path, edited: Mapping[Path, str | None] | None = None) -> View:
    """Read a slurm.conf and what it includes. ``edited``: files as they will be; None: deleted.

    An included path is relative to the directory of slurm.conf, and ``%c`` in it is the cluster's
    name (slurm.conf(5), INCLUDE MODIFIERS). Raises Unavailable.
    """
    lines: list[str] = []
    missing: list[Path] = []
    edits = {os.path.realpath(path): text for path, text in (edited or {}).items()}

    def take(path: Path, depth: int) -> None:
        here = below(root, path)
        real = os.path.realpath(here)
        text = edits[real] if real in edits else read(here)
        if text is None:
            missing.append(here)
            return
        for line in text.splitlines():
            match = _INCLUDE.match(line)
            if match is None or depth == MOST_INCLUDES:
                lines.append(line)
                continue
            cluster = _last("\n".join(lines), "ClusterName") if "%c" in match[1] else ""
            take(conf.parent / match[1].replace("%c", cluster), depth + 1)

    take(conf, 0)
    return View("\n".join(lines), tuple(missing))


def _last(text: str, name: str) -> str:
    found = [value for key, value in settings(text) if key.lower() == name.lower()]
    return found[-1] if found else ""
