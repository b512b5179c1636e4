"""The edits of a site's own files, and the way back. Pure: text in, text out.

Each edit is marked by a comment, so that a person sees whose it is and :func:`unedited` finds it
again in a file that was changed since. Doing an edit twice is doing it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch

ADDED = "# pliant: added"
WAS = "# pliant: was: "
LUA_BEGIN = "-- pliant: begin"
LUA_END = "-- pliant: end"

_JOB_SUBMIT = re.compile(r"^\s*JobSubmitPlugins\s*=\s*(\(null\)|[\w,/.-]*)\s*(#.*)?$", re.I)
_NAMES_IT = re.compile(r"^[^#]*\bJobSubmitPlugins\s*=", re.IGNORECASE)
_KEY = r"[A-Za-z][A-Za-z0-9_]*"
_PAIR = re.compile(rf"({_KEY})\s*=\s*(.*?)\s*(?=\s{_KEY}\s*=|$)")
_INCLUDE = re.compile(r"^\s*include\s+(\S.*?)\s*$", re.IGNORECASE)
_EMPTY = ("", "(null)", "none")


def continued(line: str) -> bool:
    """Say whether a line of slurm.conf goes on in the next: a comment does not."""
    text = line.partition("#")[0].rstrip()
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield slurm.conf's keys and values in order, several to a line, continued lines joined."""
    before = ""
    for line in text.splitlines():
        bare = before + line.partition("#")[0].rstrip()
        if continued(line):
            before = bare[:-1]
            continue
        before = ""
        yield from ((key, value.strip('"')) for key, value in _PAIR.findall(bare))


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


def with_lua_block(text: str, block: str) -> str:
    """Return job_submit.lua with ``block`` at its end, before a last ``return`` of its own.

    A block of an earlier release is replaced. Lua allows nothing after a chunk's ``return``.
    """
    bare = _without_lua_block(text)
    head, tail = _before_last_return(bare)
    return f"{_ended(head)}{LUA_BEGIN}\n{_ended(block)}{LUA_END}\n{tail}"


def has_lua_block(text: str) -> bool:
    """Say whether our block stands in a job_submit.lua."""
    return _without_lua_block(text) != text


def calls_pliant(text: str) -> bool:
    """Say whether a job_submit.lua calls Pliant by its owner's hand, outside our block."""
    return any(
        re.search(r"\bpliant\b", line.partition("--")[0])
        for line in _without_lua_block(text).splitlines()
    )


def unedited(text: str) -> str:
    """Take our edits out of a file that was changed since."""
    lines = _without_lua_block(text).splitlines(keepends=True)
    kept: list[str] = []
    skip = False
    for line in lines:
        if skip:
            skip = continued(line)
        elif line.rstrip("\n") == ADDED:
            skip = True
        elif line.startswith(WAS):
            kept.append(line.removeprefix(WAS))
            skip = True
        else:
            kept.append(line)
    return "".join(kept)


def _without_lua_block(text: str) -> str:
    lines = text.splitlines(keepends=True)
    marks = [line.rstrip("\n") for line in lines]
    if LUA_BEGIN not in marks or LUA_END not in marks[marks.index(LUA_BEGIN) :]:
        return text
    begin = marks.index(LUA_BEGIN)
    end = marks.index(LUA_END, begin)
    return "".join(lines[:begin] + lines[end + 1 :])


def _before_last_return(text: str) -> tuple[str, str]:
    """Split a chunk before its last statement where that is a ``return`` at the line's start."""
    lines = text.splitlines(keepends=True)
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number].strip()
        if line and not line.startswith("--"):
            is_return = re.match(r"return\b", lines[number])
            return ("".join(lines[:number]), "".join(lines[number:])) if is_return else (text, "")
    return text, ""


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
