"""What Slurm's accounting remembers of jobs: ``sacct --parsable2 --duplicates`` (sacct(1))."""

from __future__ import annotations

import re

from pliant.batch.slurm.commands import Runs
from pliant.errors import BadInput, Unavailable
from pliant.grammar import quoted

_AGO = re.compile(r"([0-9]{1,5})(minutes|hours|days|weeks)?")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2})?)?")
TIMEOUT_S = 600.0
"""How long a month of a large site may take: slurmdbd reads it from its database."""


def instant(option: str, text: str) -> str:
    """Return a time as sacct takes it: ``30days`` ago, or ``2026-10-01[T08:00]``, in UTC.

    Raises BadInput.
    """
    ago = _AGO.fullmatch(text)
    if ago and int(ago[1]):
        return f"now-{ago[1]}{ago[2] or 'days'}"
    if text == "now" or _INSTANT.fullmatch(text):
        return text
    raise BadInput(f"{option}: {quoted(text)}: 30days, 12hours or 2026-10-01 is expected")


def history(commands: Runs, columns: str, since: str, until: str = "now") -> str:
    """Return what sacct prints of all users' jobs, each of their runs, between two instants.

    Raises Unavailable where it does not answer, or there is no accounting.
    """
    argv = ("sacct", "--allusers", "--parsable2", "--duplicates")
    times = (f"--starttime={since}", f"--endtime={until}")
    answer = commands.run((*argv, *times, f"--format={columns}"))
    if answer.status:
        raise Unavailable(f"sacct: {answer.words}; --trace FILE takes what sacct printed elsewhere")
    return answer.out
