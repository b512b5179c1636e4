"""What an installation wants of a site: files to write, notes to read, and what is left to do."""

from __future__ import annotations

from dataclasses import dataclass, field

from pliant.cli.install.files import Wish


@dataclass(slots=True)
class Wanted:
    """The files of the chosen parts, in the order in which they are written.

    ``notes``: what a person should know before. ``left``: what a person must do instead, where
    Pliant does not dare to.
    """

    wishes: list[Wish] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
