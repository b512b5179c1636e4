"""The SPANK plugin: the one that a package brought for this Slurm, else one that is built now."""

from __future__ import annotations

from pathlib import Path

from pliant import resources
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.nodes import shards_per_gpu as nodes_shards
from pliant.cli.commands import run
from pliant.errors import Unavailable

BUILD_S = 120.0


def brought(version: str) -> Path | None:
    """Return the pliant.so that came with Pliant, as in its Debian package, for a Slurm release.

    ``version`` as Slurm says it, ``24.11.5``; "" where it was not asked: the only one is taken
    then. None where none came.
    """
    release = ".".join(version.split(".")[:2]) or "*"
    found = sorted(resources.folder("spank").glob(f"built/{release}/pliant.so"))
    return found[0] if len(found) == 1 else None


def build(directory: Path) -> Path:
    """Build pliant.so in ``directory``.

    Raises Unavailable in one line, with what is missing.
    """
    source = resources.folder("spank")
    try:
        done = run(["make", "-s", "-C", str(source), f"BUILD={directory}"], BUILD_S)
    except Unavailable as wrong:
        raise Unavailable(f"{wrong}: make and gcc build the SPANK plugin") from wrong
    if done.status != 0:
        words = [line for line in done.err.splitlines() if not line.startswith("make")]
        raise Unavailable(f"the SPANK plugin is not built: {(words or [done.words])[0]}")
    return directory / "pliant.so"


def shards_per_gpu(nodes: str) -> int:
    """Return into how many shards each GPU is divided, by ``scontrol -o -d show node``.

    0: there are none, or not alike on all nodes.
    """
    found = {nodes_shards(row) for row in parse_nodes(nodes)} - {0}
    return found.pop() if len(found) == 1 else 0
