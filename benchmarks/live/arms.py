"""The arms of an experiment: where one fails the others are measured, and it is told."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")


def attempt(name: str, run: Callable[[], T], failed: dict[str, str]) -> T | None:
    """Run an arm; None where it fails, and ``failed`` has why, in one line."""
    try:
        return run()
    except Exception as error:  # whatever it is, the other arms are worth measuring
        print(f"{name}:", file=sys.stderr)
        traceback.print_exc()
        failed[name] = " ".join(_words(error).split())
        return None


def _words(error: Exception) -> str:
    said = str(error)
    if isinstance(error, subprocess.CalledProcessError):
        said = f"{said} {error.stderr or error.stdout or ''}"
    return f"{type(error).__name__}: {said}"


def told(failed: Mapping[str, str]) -> str:
    """Return what is to be said in the document of those that failed; "" where none did."""
    return " ".join(f"**Not measured**: {name} ({words})." for name, words in failed.items())
