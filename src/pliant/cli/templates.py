"""Rendered templates; an unknown name in one is an error."""

from __future__ import annotations

import jinja2

from pliant import resources


def render(folder: str, name: str, **values: object) -> str:
    """Return a rendered template of ``templates/FOLDER/``."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.find("templates", folder)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  # configuration and manuals, not HTML
    )
    return environment.get_template(f"{name}.j2").render(**values)
