"""The command ``pliant``; `pliant run` forks below a guardian before all else is imported."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit."""
    if sys.argv[1:2] == ["run"]:
        from pliant.node.guarded import guard  # noqa: PLC0415  # not for other commands

        guard(os.environ)
    from pliant.cli import main as command_line  # noqa: PLC0415  # after the fork

    command_line()
