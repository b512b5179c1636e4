"""Files as they are and as they shall be: what is to be changed, and how it goes back.

A file that somebody changed since is never overwritten: at removal only our marked lines are
taken out of it, or it is left and said.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pliant.cli.install.lua_text import calls_pliant, has_lua_block
from pliant.cli.install.record import Entry, Record, read, temporary, write
from pliant.cli.install.texts import unedited

LONG = 60
"""New files with more lines are named, not shown."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What one file shall hold. ``ours``: the whole file is Pliant's, else it is a site's own.

    ``over``: it takes the place of a site's own, as that site said.
    """

    path: Path
    text: str
    ours: bool
    mode: int = 0o644
    over: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after; None where there is no file.

    ``waits``: it is not given back yet, so what was there first stays recorded.
    """

    path: Path
    before: str | None
    after: str | None
    note: str = ""
    waits: bool = False


def diff(change: Change) -> str:
    """Return a unified diff, empty where nothing changes."""
    before, after = change.before or "", change.after or ""
    if "\0" in before + after:
        return f"+++ {change.path}: a program of {len(after)} bytes\n"
    if change.before is None and after.count("\n") > LONG:
        return (
            f"+++ {change.path}: a new file of {after.count(chr(10))} lines, all of it Pliant's\n"
        )
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        str(change.path) if change.before is not None else "/dev/null",
        str(change.path) if change.after is not None else "/dev/null",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ no newline\n" for line in lines)


def planned(wishes: Sequence[Wish], record: Record) -> list[Change]:
    """Return what is to be changed; a file of ours that somebody changed is left as it is."""
    changes = []
    for wish in wishes:
        now = read(wish.path)
        if now == wish.text:
            continue
        entry = record.find(wish.path)
        known = entry.wrote(now or "") if entry else wish.over
        if entry and wish.over and now == record.first_state(entry):  # cut off before it was done
            known = True
        if wish.ours and now is not None and not known:
            changes.append(Change(wish.path, now, now, "changed by someone else: left as it is"))
        else:
            changes.append(Change(wish.path, now, wish.text))
    return changes


def apply(wishes: Sequence[Wish], changes: Sequence[Change], record: Record) -> None:
    """Write what :func:`planned` said, in order, each file's first state recorded before."""
    by_path = {wish.path: wish for wish in wishes}
    for change in changes:
        if change.before != change.after and change.after is not None:
            wish = by_path[change.path]
            record.note(wish.path, change.before, wish.text, wish.ours)
            write(change.path, change.after, wish.mode)


def stale(changes: Sequence[Change]) -> Path | None:
    """Return the job_submit.lua that stays as it is while the pliant.lua that it loads changes.

    slurmctld reads it again, and with it pliant.lua, when its time changes: at the next submission.
    """
    written = {change.path for change in changes if change.before != change.after}
    module = next((path for path in written if path.name == "pliant.lua"), None)
    script = module.with_name("job_submit.lua") if module else None
    text = read(script) if script and script not in written else None
    return script if has_lua_block(text or "") or calls_pliant(text or "") else None


def undone(record: Record, chosen: Callable[[Path], bool]) -> list[Change]:
    """Return how every file goes back to its first state, the last one first."""
    return [
        _undone(record, entry) for entry in reversed(record.entries) if chosen(Path(entry.path))
    ]


def _undone(record: Record, entry: Entry) -> Change:
    path = record.path_of(entry)
    first, now = record.first_state(entry), read(path)
    if now is None:
        note = "deleted since it was installed: given back as it was before"
        return Change(path, None, first, note if first is not None else "")
    if now == first:
        return Change(path, now, now)
    lost = entry.before and first is None  # what was there before us is never deleted
    if entry.wrote(now) and not lost:
        return Change(path, now, first)
    why = "its first state is lost" if lost else "changed since it was installed"
    if entry.ours:
        has = entry.before and not lost
        kept = f"; {record.backup(path)} has what was there before" if has else ""
        return Change(path, now, now, f"{why}: left as it is{kept}")
    return Change(path, now, unedited(now), f"{why}: only Pliant's lines are taken out")


def put_back(changes: Sequence[Change], record: Record) -> None:
    """Carry out what :func:`undone` said; directories that we made and that are empty go too."""
    for change in changes:
        entry = record.find(change.path)
        left = change.before == change.after
        if change.waits and change.after is not None and not left:
            record.note(change.path, change.before, change.after, ours=True)
        if entry and not left:
            if change.after is None:  # a link stays: what it names was not there before us
                Path(os.path.realpath(change.path)).unlink(missing_ok=True)
            else:
                write(change.path, change.after, entry.mode, entry.owner)
        temporary(change.path).unlink(missing_ok=True)  # of a write that was cut off
        if not change.waits:
            record.forget(change.path, keep=entry is not None and left and change.note != "")
