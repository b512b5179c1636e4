"""Which process has a GPU's device file open, as proc(5) shows."""

from __future__ import annotations

from pathlib import Path

_DEVICE = "nvidia"


def holds(process: Path, minor: int | None) -> bool:
    """Return whether a process, a folder of /proc, has /dev/nvidiaN open; any N if minor is None.

    Names are compared and not paths, which may be others in another mount namespace. Raises
    PermissionError where the process's open files are not ours to see.
    """
    try:
        return any(_is_device(link, minor) for link in (process / "fd").iterdir())
    except PermissionError:
        raise
    except OSError:  # there is no such process, or it ends just now
        return False


def _is_device(link: Path, minor: int | None) -> bool:
    try:
        name = link.readlink().name
    except OSError:  # closed meanwhile
        return False
    if minor is None:
        return name.startswith(_DEVICE) and name.removeprefix(_DEVICE).isdecimal()
    return name == f"{_DEVICE}{minor}"
