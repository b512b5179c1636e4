"""The SPANK plugin's line in plugstack.conf, changed for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pliant.sandbox import Sandbox


@contextmanager
def plugstack(sandbox: Sandbox, arguments: str | None) -> Iterator[None]:
    """Load the plugin with other arguments for a while; None: no plugin."""
    path = sandbox.layout.plugstack
    before = path.read_text()
    line = "" if arguments is None else f"optional {sandbox.layout.plugin} {arguments}\n"
    _replace(path, line)
    try:
        yield
    finally:
        _replace(path, before)


def _replace(path: Path, text: str) -> None:
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)
