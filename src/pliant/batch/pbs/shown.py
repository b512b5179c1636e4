"""Files that are for PBS's hooks to read: all may read them, we alone write them."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def show(path: Path, text: str) -> None:
    """Write under another name, and rename.

    Raises OSError.
    """
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    other = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w") as file:
            file.write(text)
        other.chmod(0o644)  # whatever the umask
        other.rename(path)
    except BaseException:
        other.unlink(missing_ok=True)
        raise
