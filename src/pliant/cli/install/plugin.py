"""The SPANK plugin: the one that a package brought for this Slurm, else one that is built now."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pliant import resources
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.nodes import shards_per_gpu as nodes_shards
from pliant.cli.commands import run
from pliant.errors import Unavailable

BUILD_S = 120.0
INCLUDES = ("/usr/include", "/usr/local/include", "/opt/slurm/include")
"""Where Slurm's headers may lie, beside those of its commands."""
_NUMBER = re.compile(r"^#define SLURM_VERSION_NUMBER 0x([0-9a-fA-F]{2})([0-9a-fA-F]{2})", re.M)


def brought(version: str) -> Path | None:
    """Return the pliant.so that came with Pliant, as in its Debian package, for a Slurm release.

    ``version`` as Slurm says it, ``24.11.5``; "" where it was not asked: the only one is taken
    then. None where none came.
    """
    release = ".".join(version.split(".")[:2]) or "*"
    found = sorted(resources.folder("spank").glob(f"built/{release}/pliant.so"))
    return found[0] if len(found) == 1 else None


def build(directory: Path, version: str = "", bin_dir: str = "") -> Path:
    """Build pliant.so in ``directory``, for a Slurm of this version whose commands are there.

    Slurm refuses a plugin of another release, with errors at every submission. Raises Unavailable
    in one line, with what is missing.
    """
    source = resources.folder("spank")
    include = _include(version, bin_dir)
    named = [f"SLURM_INCLUDE={include}"] if include else []  # else make says what is missing
    try:
        done = run(["make", "-s", "-C", str(source), f"BUILD={directory}", *named], BUILD_S)
    except Unavailable as wrong:
        raise Unavailable(f"{wrong}: make and gcc build the SPANK plugin") from wrong
    if done.status != 0:
        words = [line for line in done.err.splitlines() if not line.startswith("make")]
        raise Unavailable(f"the SPANK plugin is not built: {(words or [done.words])[0]}")
    return directory / "pliant.so"


def _include(version: str, bin_dir: str) -> Path | None:
    """Return the folder with the headers of this version, None where there are none at all.

    Raises Unavailable where there are those of other releases alone.
    """
    wanted = ".".join(version.split(".")[:2])
    there = {folder: _release(folder) for folder in _folders(bin_dir)}
    for folder, release in there.items():
        if not (wanted and release) or release == wanted:
            return folder
    for folder, release in there.items():
        raise Unavailable(
            f"the SPANK plugin is not built: slurmctld is of {version}, and the headers in "
            f"{folder}/slurm are of {release}: install those of {wanted}, or set SLURM_INCLUDE"
        )
    return None


def _folders(bin_dir: str) -> Iterator[Path]:
    named = os.environ.get("SLURM_INCLUDE")
    beside = [str(Path(bin_dir).parent / "include")] if bin_dir else []
    for name in [named] if named else [*beside, *INCLUDES]:
        if (Path(name) / "slurm" / "spank.h").exists():
            yield Path(name)


def _release(folder: Path) -> str:
    """Return the release of the headers in a folder, like 24.11; "" where they do not say."""
    try:
        text = (folder / "slurm" / "slurm_version.h").read_text()
    except (OSError, ValueError):
        return ""
    found = _NUMBER.search(text)
    return f"{int(found[1], 16)}.{int(found[2], 16):02}" if found else ""


def shards_per_gpu(nodes: str) -> int:
    """Return into how many shards each GPU is divided, by ``scontrol -o -d show node``.

    0: there are none, or not alike on all nodes.
    """
    found = {nodes_shards(row) for row in parse_nodes(nodes)} - {0}
    return found.pop() if len(found) == 1 else 0
