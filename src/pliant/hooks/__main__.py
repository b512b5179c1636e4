"""Write all hooks into a directory: ``python -m pliant.hooks DIRECTORY``."""

from __future__ import annotations

import sys
from pathlib import Path

from pliant.hooks.bundle import HOOKS, hook_text


def main(arguments: list[str]) -> int:
    """Write ``pliant_EVENT.py`` for each event."""
    if len(arguments) != 1:
        print("usage: python -m pliant.hooks DIRECTORY", file=sys.stderr)
        return 2
    directory = Path(arguments[0])
    directory.mkdir(parents=True, exist_ok=True)
    for name in HOOKS:
        directory.joinpath(f"pliant_{name}.py").write_text(hook_text(name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
