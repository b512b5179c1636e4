"""Whether slurmctld runs on this host: of several pliantd, one acts.

A site with backup controllers runs pliantd beside each of them (slurm.conf(5), SlurmctldHost). What
``scontrol ping`` names first as UP is the controller that acts (scontrol(1)).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PING = re.compile(r"^Slurmctld\([a-z0-9]+\) at (\S+) is (UP|DOWN)", re.MULTILINE | re.ASCII)


def acting(ping: str) -> str:
    """Return the host whose slurmctld acts, by the answer of ``scontrol ping``; "" for none."""
    found: Sequence[tuple[str, str]] = _PING.findall(ping)
    return next((host for host, state in found if state == "UP"), "")


def is_down(ping: str) -> bool:
    """Whether the answer of ``scontrol ping`` names controllers, and none of them is UP."""
    return _PING.search(ping) is not None and not acting(ping)


def runs_not(ping: str, host: str) -> bool:
    """Whether the answer of ``scontrol ping`` says of a controller that it is DOWN."""
    found: Sequence[tuple[str, str]] = _PING.findall(ping)
    return any(_short(name) == _short(host) and state == "DOWN" for name, state in found)


def is_controller(controllers: Sequence[str], here: str) -> bool:
    """Whether the host ``here`` is one of these controllers, by its short name."""
    return _short(here) in {_short(name) for name in controllers}


def stands_by(controllers: Sequence[str], ping: str, here: str) -> str:
    """Return which other host acts, "" where this one does or nothing speaks against it.

    ``controllers``: their names; a host that is none of them is no backup.
    """
    other = acting(ping)
    if not is_controller(controllers, here) or not other or _short(other) == _short(here):
        return ""
    return other


def _short(host: str) -> str:
    return host.partition(".")[0].lower()
