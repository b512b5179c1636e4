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
_BLOCKS = re.compile(r"\b(?:function|if|for|while|repeat|do|end|until|return)\b")
_SETS_SUBMIT = re.compile(r"\bfunction\s+slurm_job_submit\b|\bslurm_job_submit\s*=(?!=)")


def with_lua_block(text: str, block: str) -> str:
    """Return job_submit.lua with ``block`` at its end, before a ``return`` of its own.

    A block of an earlier release is replaced. Lua allows nothing after a chunk's ``return``, and
    runs nothing after one in ``do ... end``.
    """
    bare = without_lua_block(text)
    head, tail = _before_return(bare)
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


def is_unreached(text: str) -> bool:
    """Say whether a chunk surely returns before what calls Pliant: our block, else its owner's."""
    end = _surely_returns(text)
    if end is None:
        return False
    if has_lua_block(text):
        return _block(text)[0] > end
    return calls_pliant(text) and not calls_pliant(text[:end])


def is_overridden(text: str) -> bool:
    """Say whether slurm_job_submit, which our block wraps, is set anew behind that.

    One that keeps the function before, as ours does, calls it; none behind a ``return`` is reached.
    """
    if not has_lua_block(text):
        return False
    behind = _TOKEN.sub(_blank, text)[_block(text)[1] : _surely_returns(text)]
    rest, sets = _SETS_SUBMIT.subn(" ", behind)
    return sets > 0 and "slurm_job_submit" not in rest


def _block(text: str) -> tuple[int, int]:
    """Return where our block begins and ends, which must be there, as offsets."""
    begin = re.search(rf"^{LUA_BEGIN}$", text, re.MULTILINE)
    end = re.compile(rf"^{LUA_END}$", re.MULTILINE).search(text, begin.end() if begin else 0)
    return (begin.start(), end.end()) if begin and end else (0, 0)


def _surely_returns(text: str) -> int | None:
    """Return the offset of the first statement of a chunk that always returns, None without one.

    It is a ``return`` in no block but ``do``; the offset is that of the outermost such block.
    """
    open_blocks: list[tuple[str, int]] = []
    for word in _BLOCKS.finditer(_TOKEN.sub(_blank, text)):
        name = word[0]
        if name == "return":
            if all(kind == "do" for kind, _ in open_blocks):
                return open_blocks[0][1] if open_blocks else word.start()
        elif name in ("end", "until"):
            if open_blocks:
                open_blocks.pop()
        elif name == "do" and open_blocks and open_blocks[-1][0] in ("for", "while"):
            open_blocks[-1] = ("loop", open_blocks[-1][1])  # its own, not a block more
        else:
            open_blocks.append((name, word.start()))
    return None


def _before_return(text: str) -> tuple[str, str]:
    """Split a chunk before the first statement at a line's start that always returns."""
    start = _surely_returns(text)
    if start is None:
        return text, ""
    line = text.rfind("\n", 0, start) + 1
    if _TOKEN.sub(_blank, text)[line:start].strip():
        return text, ""
    return text[:line], text[line:]


def _without_comment(match: re.Match[str]) -> str:
    return " " if match["comment"] is not None else match[0]


def _blank(match: re.Match[str]) -> str:
    """Return blanks for a comment, and for a string something that is no blank, as long as it.

    The ends of their lines go too: a line of code is what begins outside of both.
    """
    return (" " if match["comment"] is not None else "_") * len(match[0])


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
