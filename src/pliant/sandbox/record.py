"""The record of a sandbox: what was asked for, its ports, and who brings it up."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pliant.errors import Unavailable
from pliant.sandbox import ports, processes
from pliant.sandbox.config import Ports, write
from pliant.sandbox.layout import Layout
from pliant.sandbox.options import Options


@dataclass(frozen=True)
class Record:
    """What lies in sandbox.json."""

    options: Options
    ports: Ports


def read_record(layout: Layout) -> Record:
    """Return the record; raise Unavailable where there is no such sandbox."""
    try:
        return msgspec.json.decode(layout.record.read_bytes(), type=Record)
    except (FileNotFoundError, NotADirectoryError):
        raise Unavailable(
            f"no sandbox {layout.name!r}; bring one up: pliant sandbox up --name {layout.name}"
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise Unavailable(
            f"{layout.record}: {error}; pliant sandbox down --name {layout.name}"
        ) from error


def claim(layout: Layout, options: Options) -> None:
    """Take the name and the ports for a new sandbox.

    What a crash has left under that name is removed; raises Unavailable where it lives.
    """
    with _lock(layout.base):
        if layout.top.exists():
            living = processes.find(layout)
            if living:
                raise Unavailable(
                    f"sandbox {layout.name} is running ({len(living)} processes); "
                    f"pliant sandbox down --name {layout.name}"
                )
            shutil.rmtree(layout.top)
        layout.top.mkdir(mode=0o755)
        chosen = ports.choose(3 + options.nodes, _taken(layout.base))
        record = Record(options, Ports(chosen[0], chosen[1], chosen[2], tuple(chosen[3:])))
        write(layout.record, msgspec.json.encode(record).decode())


def release(layout: Layout) -> None:
    """Remove the directory of the sandboxes if this was the last."""
    with suppress(OSError), _lock(layout.base):
        layout.base.rmdir()


def all_names(base: Path) -> list[str]:
    """Return the names of all sandboxes there, running or not."""
    return sorted(path.parent.name for path in base.glob("*/sandbox.json"))


def _taken(base: Path) -> set[int]:
    taken: set[int] = set()
    for name in all_names(base):
        with suppress(Unavailable):
            p = read_record(Layout(base, name)).ports
            taken |= {p.ctld, p.dbd, p.pliant, *p.nodes}
    return taken


@contextmanager
def _lock(base: Path) -> Iterator[None]:
    """Hold the directory itself: a lock file would be one more thing to leave behind."""
    while True:
        base.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            handle = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not _is_same(handle, base):
                continue  # removed by the last `down` while we waited
            yield
            return
        finally:
            os.close(handle)


def _is_same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
