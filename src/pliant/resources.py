"""Where the files that are not Python lie: templates, plugins, the SPANK source, wrappers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pliant.errors import Unavailable

if TYPE_CHECKING:
    import jinja2

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


def pages() -> jinja2.Environment:
    """Return what renders the templates of reports: all that is put into a page is escaped."""
    import jinja2  # noqa: PLC0415  # slow to import, and pages alone need it

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(find("templates", "report")),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
