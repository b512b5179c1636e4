"""The edits of a site's own files, and the way back. Pure: text in, text out.

Each edit is marked by a comment, so that a person sees whose it is and :func:`unedited` finds it
again in a file that was changed since. Doing an edit twice is doing it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

from pliant.cli.install.lua_text import without_lua_block

ADDED = "# pliant: added"
WAS = "# pliant: was: "

_JOB_SUBMIT = re.compile(r"^\s*JobSubmitPlugins\s*=\s*(\(null\)|[\w,/.-]*)\s*(#.*)?$", re.I)
_NAMES_IT = re.compile(r"^[^#]*\bJobSubmitPlugins\s*=", re.IGNORECASE)
_KEY = r"[A-Za-z][A-Za-z0-9_]*"
_PAIR = re.compile(rf"({_KEY})\s*=\s*(.*?)\s*(?=\s{_KEY}\s*=|$)")
_INCLUDE = re.compile(r"^\s*include\s+(\S.*?)\s*$", re.IGNORECASE)
_OUR_INCLUDE = re.compile(r"^include \S*/plugstack\.conf\.d/pliant\.conf\s*$")
_DESCRIBES = ("partitionname", "nodename", "nodeset", "downnodes", "frontendname")
_EMPTY = ("", "(null)", "none")


def continued(line: str) -> bool:
    """Say whether a line of slurm.conf goes on in the next: a comment does not."""
    text = line.partition("#")[0].rstrip()
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield slurm.conf's keys and values in order, several to a line, continued lines joined."""
    for line in _joined(text):
        yield from _pairs(line)


def own_settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield those of the cluster itself: none of a line that describes nodes or partitions."""
    for line in _joined(text):
        pairs = list(_pairs(line))
        if pairs and pairs[0][0].lower() not in _DESCRIBES:
            yield from pairs


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    return ((key, value.strip('"')) for key, value in _PAIR.findall(line))


def _joined(text: str) -> Iterator[str]:
    """Yield the lines without comments, continued ones as one."""
    before = ""
    for line in text.splitlines():
        bare = before + line.partition("#")[0].rstrip()
        if continued(line):
            before = bare[:-1]
            continue
        before = ""
        yield bare


def job_submit_plugins(text: str) -> tuple[str, ...]:
    """Return the plugins that slurm.conf's last JobSubmitPlugins names."""
    values = [value for key, value in settings(text) if key.lower() == "jobsubmitplugins"]
    return split_plugins(values[-1]) if values else ()


def takes_lua_plugin(text: str) -> bool:
    """Say whether :func:`with_lua_plugin` may edit this slurm.conf.

    JobSubmitPlugins must stand alone on its line, no line of it continued, nor the last one.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines):
        inside = number > 0 and continued(lines[number - 1])
        if _NAMES_IT.match(line) and (inside or not _JOB_SUBMIT.match(line)):
            return False
    return not (lines and continued(lines[-1]))


def split_plugins(value: str) -> tuple[str, ...]:
    """Split JobSubmitPlugins' value, without the prefix ``job_submit/``."""
    if value.strip().lower() in _EMPTY:
        return ()
    names = (name.strip().removeprefix("job_submit/") for name in value.split(","))
    return tuple(name for name in names if name)


def with_lua_plugin(text: str) -> str:
    """Return slurm.conf with lua among JobSubmitPlugins; the others keep their order."""
    plugins = job_submit_plugins(text)
    if "lua" in plugins:
        return text
    line = f"JobSubmitPlugins={','.join([*plugins, 'lua'])}"
    lines = text.splitlines(keepends=True)
    for number in range(len(lines) - 1, -1, -1):
        if _JOB_SUBMIT.match(lines[number].rstrip("\n")):
            lines[number] = f"{WAS}{_ended(lines[number])}{line}\n"
            return "".join(lines)
    return f"{_ended(text)}{ADDED}\n{line}\n"


def included(text: str, path: str, directory: str) -> bool:
    """Say whether a plugstack.conf in ``directory`` includes ``path``."""
    patterns = [match[1] for line in text.splitlines() if (match := _INCLUDE.match(line))]
    return any(
        fnmatch(path, pattern if pattern.startswith("/") else f"{directory}/{pattern}")
        for pattern in patterns
    )


def with_include(text: str, path: str, directory: str) -> str:
    """Return plugstack.conf with ``path`` included."""
    if included(text, path, directory):
        return text
    return f"{_ended(text)}{ADDED}\ninclude {path}\n"


def unedited(text: str) -> str:
    """Take our edits out of a file that was changed since: our marks, and the lines we wrote.

    A line behind a mark that says something else than what we wrote is its owner's.
    """
    lines = without_lua_block(text).splitlines(keepends=True)
    kept: list[str] = []
    number = 0
    while number < len(lines):
        mark = lines[number]
        number += 1
        is_added, is_was = mark.rstrip("\r\n") == ADDED, mark.startswith(WAS)
        if not (is_added or is_was):
            kept.append(mark)
            continue
        length = _length(lines[number:])
        next_line = "".join(lines[number : number + length])
        if not _is_ours(next_line, mark.removeprefix(WAS) if is_was else ""):
            kept += [mark] if is_was else []  # it has a line of the owner's: for a person
            continue
        kept += [mark.removeprefix(WAS)] if is_was else []
        number += length
    return "".join(kept)


def _length(lines: Sequence[str]) -> int:
    """Return of how many lines the first one is, with those that continue it."""
    ends = (number for number, line in enumerate(lines, 1) if not continued(line))
    return next(ends, len(lines))


def _is_ours(line: str, was: str) -> bool:
    """Whether a line, which may be continued, says what we write in the place of ``was``."""
    if _OUR_INCLUDE.match(line):
        return True
    plugins = job_submit_plugins(line)
    return len(list(settings(line))) == 1 and plugins == (*job_submit_plugins(was), "lua")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
