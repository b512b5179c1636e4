"""The record of a sandbox: what was asked for, its ports, and who brings it up."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pliant.decoding import Decoder
from pliant.errors import PliantError, Unavailable
from pliant.sandbox import ports, processes
from pliant.sandbox.config import Ports, write
from pliant.sandbox.layout import Layout
from pliant.sandbox.locks import hold, locked
from pliant.sandbox.options import Options


@dataclass(frozen=True)
class Record:
    """What lies in sandbox.json."""

    options: Options
    ports: Ports


_RECORD = Decoder(Record)


def read_record(layout: Layout) -> Record:
    """Return the record; raise Unavailable where there is no such sandbox."""
    try:
        return _RECORD.json(layout.record.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise Unavailable(
            f"no sandbox {layout.name!r}; bring one up: pliant sandbox up --name {layout.name}"
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise Unavailable(
            f"{layout.record}: {error}; pliant sandbox down --name {layout.name}"
        ) from error


def claim(layout: Layout, options: Options) -> int:
    """Take the name and the ports for a new sandbox; return what holds it while it is made.

    What a crash has left under that name is removed; raises Unavailable where it lives.
    """
    with locked(layout.base):
        if layout.top.exists():
            _check_dead(layout)
            shutil.rmtree(layout.top)
        layout.top.mkdir(mode=0o755)
        chosen = ports.choose(3 + options.nodes, _taken(layout.base), secrets.randbelow(20_000))
        record = Record(options, Ports(chosen[0], chosen[1], chosen[2], tuple(chosen[3:])))
        write(layout.record, msgspec.json.encode(record).decode())
        handle = hold(layout.top)
    if handle is None:
        raise Unavailable(f"sandbox {layout.name}: another process has just locked {layout.top}")
    return handle


def _check_dead(layout: Layout) -> None:
    handle = hold(layout.top)
    if handle is None:
        raise Unavailable(f"sandbox {layout.name} is being brought up by another process")
    os.close(handle)
    if living := processes.find(layout):
        raise Unavailable(
            f"sandbox {layout.name} is running ({len(living)} processes); "
            f"pliant sandbox down --name {layout.name}"
        )


def remove(layout: Layout) -> None:
    """End all processes of a sandbox and remove its directory; raise Unavailable if some stay."""
    with locked(layout.base):
        _kill(layout)
        shutil.rmtree(layout.top, ignore_errors=True)
        # One that `up` was just starting; without the directory no other can follow.
        _kill(layout)


def _kill(layout: Layout) -> None:
    if left := processes.kill_all(layout):
        pids = ", ".join(str(process.pid) for process in left)
        raise Unavailable(f"sandbox {layout.name}: these processes do not end: {pids}")


def all_names(base: Path) -> list[str]:
    """Return the names of all sandboxes there, running or not."""
    return sorted(path.parent.name for path in base.glob("*/sandbox.json"))


def _taken(base: Path) -> set[int]:
    taken: set[int] = set()
    for name in all_names(base):
        with suppress(PliantError):
            p = read_record(Layout(base, name)).ports
            taken |= {p.ctld, p.dbd, p.pliant, *p.nodes}
    return taken
