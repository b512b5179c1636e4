"""What PBS adds to a job that does not say it, by the defaults of its queue and the server.

OpenPBS 23.06 starts jobs by the chunk that comes of it (``schedselect``), which a queuejob hook
does not see yet. A chunk has what it does not say of ``default_chunk``. A job without select has
that of ``resources_default``, whatever else it says, or else its one chunk has the rest of them,
and as much as ``resources_max`` lets a job have of what is still not said. The queue's words come
before the server's.
"""

from __future__ import annotations

from dataclasses import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Defaults:
    """``job``: resources_default, else _max; ``chunk``: default_chunk; names in small letters."""

    job: Pairs = ()
    chunk: Pairs = ()

    @property
    def place(self) -> str:
        """The place of a job that says none; "" where PBS's own."""
        return dict(self.job).get("place", "")


NO_DEFAULTS = Defaults()
