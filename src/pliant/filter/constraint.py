"""What a constraint of Slurm's asks of nodes; one rule for submissions and for waiting jobs."""

from __future__ import annotations

import re
from functools import lru_cache

_FEATURE = r"[\w.+-]+"
_ALL = re.compile(rf"{_FEATURE}(?:&{_FEATURE})*", re.ASCII)
_ANY = re.compile(rf"\[?({_FEATURE}(?:\|{_FEATURE})*)\]?", re.ASCII)


@lru_cache(maxsize=4096)
def features_all(text: str) -> frozenset[str] | None:
    """Return the features that every node must have; None where the expression says more."""
    if text in ("(null)", ""):
        return frozenset()
    return frozenset(text.split("&")) if _ALL.fullmatch(text) else None


@lru_cache(maxsize=4096)
def features_any(text: str) -> frozenset[str] | None:
    """Return the features of which every node must have one; None where it is no such list."""
    match = _ANY.fullmatch(text)
    return frozenset(match[1].split("|")) if match else None
