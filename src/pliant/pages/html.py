"""A page as one file of HTML: nothing is loaded, nothing runs, and all text is escaped."""

from __future__ import annotations

from dataclasses import dataclass

from pliant import __version__, resources
from pliant.pages.drawn import drawn
from pliant.pages.model import Page


@dataclass(frozen=True, slots=True)
class Made:
    """By which command a page was made, and when, in words."""

    command: str
    at: str


def html(page: Page, made: Made) -> str:
    """Return the file."""
    import jinja2  # noqa: PLC0415  # slow to import, and pages alone need it

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.find("templates", "report")),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = _printable
    environment.filters["drawn"] = drawn
    template = environment.get_template("page.html.j2")
    return template.render(page=page, made=made, version=__version__)


def _printable(text: str) -> str:
    """Text without letters that are not to be seen: some turn round what stands beside them."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
