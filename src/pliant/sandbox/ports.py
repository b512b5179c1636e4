"""Free TCP ports for a sandbox."""

from __future__ import annotations

import socket
from collections.abc import Collection

from pliant.errors import Unavailable

# Below Linux's ephemeral ports, so that no outgoing connection takes one meanwhile.
FIRST, LAST = 17000, 32000


def choose(count: int, taken: Collection[int], first: int = FIRST, last: int = LAST) -> list[int]:
    """Return `count` ports that nobody listens on and no other sandbox has taken."""
    chosen: list[int] = []
    for port in range(first, last + 1):
        if len(chosen) == count:
            return chosen
        if port not in taken and _is_free(port):
            chosen.append(port)
    if len(chosen) == count:
        return chosen
    raise Unavailable(f"no {count} free TCP ports between {first} and {last}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            # All addresses: slurmctld binds to them all.
            probe.bind(("", port))
        except OSError:
            return False
    return True
