"""A job_submit.lua as text: where our block goes, and whether its owner calls Pliant.

Comments and strings are told from code, because either may hold anything. Pure.
"""

from __future__ import annotations

import re

LUA_BEGIN = "-- pliant: begin"
LUA_END = "-- pliant: end"

_COMMENT = r"--\[(?P<a>=*)\[.*?(?:\](?P=a)\]|\Z)|--[^\n]*"
_STRING = r"\[(?P<b>=*)\[.*?(?:\](?P=b)\]|\Z)" + r'|"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'"
_TOKEN = re.compile(rf"(?P<comment>{_COMMENT})|(?P<string>{_STRING})", re.DOTALL)
_LOADS = re.compile(r"\brequire\b\W{0,8}\bpliant\b(?![.-])|\bpliant\.lua\b")
_LOADS_ANY = re.compile(r"\b(?:require|dofile|loadfile|load|loadstring)\b")
_LAST_RETURN = re.compile(r"return\b(?!.*\bend\b)", re.DOTALL)


def with_lua_block(text: str, block: str) -> str:
    """Return job_submit.lua with ``block`` at its end, before a last ``return`` of its own.

    A block of an earlier release is replaced. Lua allows nothing after a chunk's ``return``.
    """
    bare = without_lua_block(text)
    head, tail = _before_last_return(bare)
    return f"{_ended(head)}{LUA_BEGIN}\n{_ended(block)}{LUA_END}\n{tail}"


def has_lua_block(text: str) -> bool:
    """Say whether our block stands in a job_submit.lua."""
    return without_lua_block(text) != text


def calls_pliant(text: str) -> bool:
    """Say whether a job_submit.lua loads Pliant by its owner's hand, outside our block."""
    code = _TOKEN.sub(_without_comment, without_lua_block(text))
    return _LOADS.search(code) is not None


def has_functions(text: str) -> bool:
    """Say whether a job_submit.lua has both functions that slurmctld asks for, as far as one sees.

    One that loads other files may have them from there.
    """
    code = _TOKEN.sub(_blank, text)
    both = all(re.search(rf"\bslurm_job_{verb}\b", code) for verb in ("submit", "modify"))
    return both or _LOADS_ANY.search(code) is not None


def without_lua_block(text: str) -> str:
    """Return a job_submit.lua without our block."""
    lines = text.splitlines(keepends=True)
    marks = [line.rstrip("\n") for line in lines]
    if LUA_BEGIN not in marks or LUA_END not in marks[marks.index(LUA_BEGIN) :]:
        return text
    begin = marks.index(LUA_BEGIN)
    end = marks.index(LUA_END, begin)
    return "".join(lines[:begin] + lines[end + 1 :])


def _before_last_return(text: str) -> tuple[str, str]:
    """Split a chunk before its last statement where that is a ``return`` at a line's start."""
    code = _TOKEN.sub(_blank, text)
    start = code.rfind("\n", 0, len(code.rstrip())) + 1
    if not _LAST_RETURN.match(code, start):
        return text, ""
    return text[:start], text[start:]


def _without_comment(match: re.Match[str]) -> str:
    return " " if match["comment"] is not None else match[0]


def _blank(match: re.Match[str]) -> str:
    """Return blanks for a comment, and for a string something that is no blank, as long as it.

    The ends of their lines go too: a line of code is what begins outside of both.
    """
    return (" " if match["comment"] is not None else "_") * len(match[0])


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
