"""Lets the program `import pliant`, whatever Python it has: by wrappers/python, on PYTHONPATH."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pliant import resources
from pliant.errors import Unavailable

VARIABLE = "PYTHONPATH"


def with_pliant(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what is to be set so that every Python finds pliant, after all else on its path."""
    try:
        ours = str(resources.find("wrappers", "python"))
    except Unavailable:  # an incomplete installation: the program may still need none
        return {}
    path = environ.get(VARIABLE, "")
    if ours in path.split(os.pathsep):
        return {}
    return {VARIABLE: f"{path}{os.pathsep}{ours}" if path else ours}
