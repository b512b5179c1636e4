"""What a check finds: how it is, in words, and the cure."""

from __future__ import annotations

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
    """One thing that was looked at."""

    name: str
    state: State
    says: str
    cure: str = ""


def ok(name: str, says: str) -> Finding:
    """Return that all is well."""
    return Finding(name, State.OK, says)


def advice(name: str, says: str, cure: str) -> Finding:
    """Return what could be better."""
    return Finding(name, State.ADVICE, says, cure)


def fault(name: str, says: str, cure: str) -> Finding:
    """Return what is broken."""
    return Finding(name, State.FAULT, says, cure)


def skipped(name: str, says: str) -> Finding:
    """Return what cannot be seen from here."""
    return Finding(name, State.SKIPPED, says)
