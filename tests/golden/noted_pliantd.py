"""``noted_pliantd.py DIR [OPTION...]``: pliantd that writes each snapshot it decides on below DIR."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from pliant.batch.snapshot_file import write_snapshot
from pliant.cycle.decide import DEFAULT_LIMIT, cycle
from pliant.daemon import cycling
from pliant.daemon.main import main
from pliant.model import Snapshot
from pliant.plan import Plan, Policy

_place, _number = Path(sys.argv.pop(1)), count()


def noting(snapshot: Snapshot, policy: Policy, limit: int = DEFAULT_LIMIT) -> Plan:
    """Write the snapshot down, and decide."""
    path = _place / f"{next(_number):05}.json"
    path.write_bytes(write_snapshot(snapshot))
    return cycle(snapshot, policy, limit)


if __name__ == "__main__":
    setattr(cycling, "cycle", noting)  # noqa: B010  # it is no name that the module exports
    main()
