"""What the history's rows say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing decided about a job: ``what`` is start, keep, mold, would, refused or failed."""

    at_s: float
    job: str
    what: str
    shape: str
    reason: str


@dataclass(frozen=True, slots=True)
class HandOverRow:
    """One hand-over; ``saved_s`` and ``done_s`` are 0 while that has not come.

    ``asked``: the job as it was when it was asked, as JSON; "" in rows of 0.1.0.
    """

    id: int
    at_s: float
    job: str
    user: str
    account: str
    run: int
    before: str
    after: str
    guest: str
    reason: str
    until_s: float
    saved_s: float = 0.0
    done_s: float = 0.0
    outcome: str = ""
    end_s: float = 0.0
    asked: str = ""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of a job whose program speaks; instants are 0 while they have not come.

    ``at_s``: when it first spoke; ``step`` and ``rate`` (steps/s): what it last said;
    ``saved_took_s``: from the wish to its checkpoint's end; ``code``: how it ended by itself.
    """

    job: str
    run: int
    user: str
    account: str
    shape: str
    nodes: str
    submit_s: float
    start_s: float
    at_s: float
    launched_s: float = 0.0
    step: int = 0
    rate: float = 0.0
    saved_took_s: float = 0.0
    code: int | None = None
    name: str = ""
