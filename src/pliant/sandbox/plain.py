"""What the machine refuses, in one line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from pliant.errors import Unavailable


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what the machine refuses into one line: a full disk, a missing right, a silent part."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{error.filename or 'sandbox'}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        words = " ".join(map(str, error.cmd))
        raise Unavailable(f"{words}: no answer after {error.timeout:.0f} s") from error
