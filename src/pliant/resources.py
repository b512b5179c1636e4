"""Where the files that are not Python lie: templates, plugins, the SPANK source, wrappers."""

from __future__ import annotations

from pathlib import Path

from pliant.errors import Unavailable

FOLDERS = ("templates", "plugins", "spank", "wrappers", "docker")

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Return one of the top-level folders, from the wheel's data or from a checkout.

    Raises Unavailable where the installation is incomplete.
    """
    if name not in FOLDERS:
        raise ValueError(f"{name!r} is none of {', '.join(FOLDERS)}")
    candidates = (_PACKAGE / "_data" / name, _PACKAGE.parents[1] / name)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise Unavailable(f"Pliant's folder {name} is missing ({candidates[0]}): install Pliant again")


def find(name: str, *parts: str) -> Path:
    """Return the path of a file in one of the folders; it need not exist."""
    return folder(name).joinpath(*parts)
