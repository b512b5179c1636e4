"""Keeps off standard output what a C library prints there, whatever it is asked."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def muted() -> Iterator[None]:
    """Let nothing that writes by C's standard output be seen meanwhile."""
    libc = ctypes.CDLL(None)
    libc.fflush(None)
    kept = os.dup(1)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        libc.fflush(None)  # what C still holds back would come when the process ends
        os.dup2(kept, 1)
        os.close(kept)
