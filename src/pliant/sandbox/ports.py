"""Free TCP ports for a sandbox."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Collection

from pliant.errors import Unavailable

# Below Linux's ephemeral ports, so that no outgoing connection takes one meanwhile.
FIRST, LAST = 17000, 32000


def choose(count: int, taken: Collection[int], start: int) -> list[int]:
    """Return `count` ports that nobody listens on and no other sandbox has taken.

    The search begins at `start`: a random one keeps apart the sandboxes of different users, who
    do not see what the others have taken and not yet opened.
    """
    size = LAST - FIRST + 1
    candidates = (FIRST + (start + step) % size for step in range(size))
    free = (port for port in candidates if port not in taken and _is_free(port))
    chosen = list(itertools.islice(free, count))
    if len(chosen) < count:
        raise Unavailable(f"no {count} free TCP ports between {FIRST} and {LAST}")
    return chosen


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            # All addresses: slurmctld binds to them all.
            probe.bind(("", port))
        except OSError:
            return False
    return True
