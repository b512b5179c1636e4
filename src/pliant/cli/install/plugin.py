"""The SPANK plugin: built for the Slurm whose headers are here, and where it says its release."""

from __future__ import annotations

import re
from pathlib import Path

from pliant import resources
from pliant.cli.commands import run
from pliant.errors import Unavailable

BUILD_S = 120.0
_GRES = re.compile(r"\bGres=(\S+)")


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
    """Return into how many shards each GPU is divided, by ``scontrol show node``; 0: not alike."""
    ratios = {_ratio(match[1]) for match in _GRES.finditer(nodes)} - {0}
    return ratios.pop() if len(ratios) == 1 else 0


def _ratio(gres: str) -> int:
    counts = {"gpu": 0, "shard": 0}
    for word in re.sub(r"\([^)]*\)", "", gres).split(","):
        name, _, rest = word.partition(":")
        number = rest.rpartition(":")[2]
        if name in counts and number.isdigit():
            counts[name] += int(number)
    gpus, shards = counts["gpu"], counts["shard"]
    return shards // gpus if gpus and shards % gpus == 0 else 0
