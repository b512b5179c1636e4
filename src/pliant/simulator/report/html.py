"""A report as one file of HTML: nothing is loaded, nothing runs, and all text is escaped."""

from __future__ import annotations

from base64 import b64encode

from pliant import __version__, resources
from pliant.simulator.report.page import Page


def html(page: Page, note: str = "") -> str:
    """Return the file; ``note``: what is to be said at its end."""
    environment = resources.pages()
    environment.filters["base64"] = lambda raw: b64encode(raw).decode()
    environment.filters["plain"] = _plain
    template = environment.get_template("report.html.j2")
    return template.render(page=page, note=note, version=__version__)


def _plain(text: str) -> str:
    """Text without letters that are not to be seen: some turn round what stands beside them."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
