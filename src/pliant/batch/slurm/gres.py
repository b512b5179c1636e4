"""Slurm's GRES texts: what a node has, what is used of it, what a job asks.

::

    a node    gpu:v100:4,shard:v100:16,nogpu:1      gpu:a100:2(S:0-1)
    used      gpu:v100:1(IDX:3),shard:v100:3(IDX:0-2)      22.05: "3" counts GPUs, not shards
              gpu:v100:1(IDX:3),shard:v100:9(4/4,3/4,2/4,0/4)          from 23.11
              ... shard:v100:0(-/4,0/4)              from 26.05, "-": the whole GPU is in use
    a job     gres:gpu:v100:2   gres/gpu:2   gres:shard:3,gres:nogpu:1   ,gres:gpu:2
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pliant.batch.slurm.values import NOTHING, indexes, split_outside, whole
from pliant.errors import BadAnswer
from pliant.grammar import quoted

GPU = "gpu"
SHARD = "shard"
NO_GPU = "nogpu"
"""A dummy that a site puts on every node: what a CPU job carries where a list may not be empty."""

_ITEM = re.compile(r"([A-Za-z][\w.+-]*)((?:[:=/][^(]*)?)(?:\((.*)\))?", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,15}[KMGTP]?", re.ASCII)
_LENT = re.compile(r"(-|[0-9]{1,9})/([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Gres:
    """One GRES. ``indexes``: the GPUs used; ``lent``: for each GPU (shards used, shards).

    A GPU that is used as a whole has lent no shard.
    """

    name: str
    type: str = ""
    count: int = 1
    indexes: tuple[int, ...] = ()
    lent: tuple[tuple[int, int], ...] = ()


def _bad(text: str) -> BadAnswer:
    return BadAnswer(f"Slurm's GRES {quoted(text)} is not known to this version of Pliant")


def _lent(text: str) -> tuple[tuple[int, int], ...]:
    pairs = []
    for item in text.split(","):
        match = _LENT.fullmatch(item)
        if not match:
            raise _bad(text)
        pairs.append((0 if match[1] == "-" else int(match[1]), int(match[2])))
    return tuple(pairs)


def _one(text: str) -> Gres:
    named = text.removeprefix("gres:").removeprefix("gres/").replace(":(null)", "")  # no type
    match = _ITEM.fullmatch(named)
    if not match:
        raise _bad(text)
    words = [word for word in re.split("[:=]", match[2]) if word and word != "no_consume"]
    counted = words and _COUNT.fullmatch(words[-1])  # a type may begin with a digit: 3g.20gb
    count = whole(words.pop()) if counted else 1
    if len(words) > 1:
        raise _bad(text)
    kind = words[0] if words else ""
    inside = match[3] or ""
    if inside.startswith("IDX:"):
        return Gres(match[1], kind, count, indexes(inside.removeprefix("IDX:")))
    lent = _lent(inside) if "/" in inside and inside not in NOTHING else ()
    return Gres(match[1], kind, count, lent=lent)


@lru_cache(maxsize=8192)
def gres_list(text: str) -> tuple[Gres, ...]:
    """Read a list of GRES; other TRES such as ``cpu=3`` are left out.

    Raises BadAnswer.
    """
    if text in NOTHING:
        return ()
    items = (item for item in split_outside(text) if item)
    return tuple(_one(item) for item in items if not item.startswith(("cpu", "mem", "license")))


@lru_cache(maxsize=8192)
def tres(text: str) -> Mapping[str, str]:
    """Read ``cpu=16,mem=32000M,node=1,billing=16`` as words."""
    pairs = (item.partition("=") for item in text.split(",") if "=" in item)
    return {key: value for key, _, value in pairs}
