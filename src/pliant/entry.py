"""The command ``pliant``; `pliant run` forks below a guardian before all else is imported."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit."""
    _others_last()
    if sys.argv[1:2] == ["run"]:
        from pliant.node.guarded import guard  # noqa: PLC0415  # not for other commands

        guard(os.environ)
    from pliant.cli import main as command_line  # noqa: PLC0415  # after the fork

    command_line()


def alone() -> None:
    """Go on where a guardian has nothing left to guard; see :mod:`pliant.node.alone`."""
    _others_last()
    from pliant.node.alone import main as end  # noqa: PLC0415  # after the path is in order

    end()


def _others_last() -> None:
    """Look into the folders of PYTHONPATH after all others: they are the program's, not ours.

    A random.py or msgspec.py there would be imported here, and end the job before its program.
    """
    theirs = set(os.environ.get("PYTHONPATH", "").split(os.pathsep))
    ours = os.path.dirname(os.path.dirname(__file__))
    sys.path.sort(key=lambda path: path in theirs and path != ours)
