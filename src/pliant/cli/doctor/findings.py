"""What a check finds: how it is, in words, and the cure: words, commands, or both.

A command is printed as it can be typed, and needs no more of a shell than quotes. What no command
can do, as an edit of a site's own text, stands in words.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How bad it is."""

    OK = "ok"
    ADVICE = "advice"  # Pliant works, and would work better
    FAULT = "fault"  # something of Pliant does not work
    SKIPPED = "skipped"  # not to be seen from here


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``commands``: what is run one after the other, of the cure."""

    name: str
    state: State
    says: str
    cure: str = ""
    commands: tuple[str, ...] = ()


def ok(name: str, says: str) -> Finding:
    """Return that all is well."""
    return Finding(name, State.OK, says)


def advice(name: str, says: str, cure: str, commands: Iterable[str] = ()) -> Finding:
    """Return what could be better."""
    return Finding(name, State.ADVICE, says, cure, tuple(commands))


def fault(name: str, says: str, cure: str, commands: Iterable[str] = ()) -> Finding:
    """Return what is broken."""
    return Finding(name, State.FAULT, says, cure, tuple(commands))


def skipped(name: str, says: str) -> Finding:
    """Return what cannot be seen from here."""
    return Finding(name, State.SKIPPED, says)


def command(*argv: object) -> str:
    """Return a command as it is typed."""
    return shlex.join(str(word) for word in argv)
