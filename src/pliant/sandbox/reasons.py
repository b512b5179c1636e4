"""Why a part ended, or a program of another's: the lines of its log that say it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pliant.sandbox.layout import Layout

_SERIOUS = re.compile(r"\b(fatal|error)\b", re.IGNORECASE)
# Debian's Slurm always fails to load PMIx, and does not mind. What MariaDB says when it gives up
# stands behind what made it do so.
_NOISE = re.compile(
    r"\bMPI:|mpi/pmix|\bpmix|\[ERROR\] (Aborting|Unknown/unsupported storage engine|Plugin ')"
    r"|Plugin initialization aborted",
    re.IGNORECASE,
)


def said(lines: Sequence[str]) -> str:
    """Return the last two serious lines of a log, else its last one; "" where it has none."""
    written = [line.strip() for line in lines if line.strip()]
    serious = [line for line in written if _SERIOUS.search(line)]
    telling = [line for line in serious if not _NOISE.search(line)]
    return "; ".join(telling[-2:] or written[-1:])[:400]


def why(layout: Layout, part: str, what: str) -> str:
    """Return one line: the part, what happened, and the serious lines that it wrote last."""
    for path in (layout.output(part), layout.log(part)):
        try:
            words = said(path.read_text(errors="replace").splitlines()[-200:])
        except OSError:
            continue
        if words:
            return f"{part} {what}: {words}"
    return f"{part} {what}, and wrote nothing"
