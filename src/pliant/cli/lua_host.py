"""Ask the very Lua that slurmctld uses: does this chunk compile, does this module load?

slurmctld's job_submit_lua.so opens a liblua by name; so does this, in a process of its own,
because a library that does not fit may crash whoever opens it.

::

    python -m pliant.cli.lua_host LIBRARY check NAME    <chunk    compile only
    python -m pliant.cli.lua_host LIBRARY run NAME      <chunk    run it, print what it returns
"""

from __future__ import annotations

import codecs
import ctypes
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pliant.batch.slurm.commands import Answer
from pliant.cli.commands import run
from pliant.errors import Unavailable

_LIBRARY = re.compile(rb"liblua[-.0-9]*\.so[.0-9]*")
LUA_SAYS_NO = 3
_MULTIPLE_RESULTS = -1

Runner = Callable[..., Answer]


def libraries(plugin: bytes) -> list[str]:
    """Return the names of liblua that a job_submit_lua.so asks for, the most exact ones first."""
    names = {name.decode() for name in _LIBRARY.findall(plugin)}
    return sorted(names, key=lambda name: (-sum(char.isdigit() for char in name), -len(name), name))


def library_of(plugin: Path) -> str:
    """Return the liblua that slurmctld's plugin would open here.

    Raises Unavailable where the plugin or every such library is missing.
    """
    try:
        names = libraries(plugin.read_bytes())
    except OSError as wrong:
        raise Unavailable(f"{plugin}: {wrong.strerror}") from wrong
    for name in names:
        if _opens(name):
            return name
    raise Unavailable(f"none of {', '.join(names) or 'liblua'} is installed, which {plugin} needs")


def compiles(library: str, name: str, chunk: str, runner: Runner = run) -> str:
    """Return "" where a chunk compiles, else Lua's own message.

    Raises Unavailable where Lua itself cannot be asked.
    """
    return _ask(library, "check", name, chunk, runner)[1]


def runs(library: str, name: str, chunk: str, runner: Runner = run) -> tuple[str, str]:
    """Run a chunk with Lua's standard libraries; return what it returned, as text, and the error.

    Raises Unavailable.
    """
    return _ask(library, "run", name, chunk, runner)


def as_file(chunk: bytes, is_new: bool) -> bytes:
    """Return a chunk as luaL_loadfile, which slurmctld uses, reads it: its line numbers stay.

    A first line that begins with # is passed over; before it, since Lua 5.2 (``is_new``), so is a
    UTF-8 byte order mark.
    """
    text = chunk.removeprefix(codecs.BOM_UTF8) if is_new else chunk
    return text[text.index(b"\n") :] if text.startswith(b"#") and b"\n" in text else text


def _ask(library: str, what: str, name: str, chunk: str, runner: Runner) -> tuple[str, str]:
    argv = [sys.executable, "-m", __name__, library, what, name]
    done = runner(argv, text=chunk)
    if done.status not in (0, LUA_SAYS_NO):
        raise Unavailable(f"{library}: {done.words}")
    text = done.out.rstrip("\n")
    return (text, "") if done.status == 0 else ("", text or "an error without a message")


def _opens(name: str) -> bool:
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).luaL_newstate"
    return run([sys.executable, "-c", code, name]).status == 0


def main(arguments: Sequence[str]) -> int:
    """Do what the child is asked: exit 0 and the result, or 3 and Lua's message."""
    library, what, name = arguments
    lua = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)  # luasocket looks for Lua's own symbols
    lua.luaL_newstate.restype = ctypes.c_void_p
    lua.lua_tolstring.restype = ctypes.c_char_p
    state = ctypes.c_void_p(lua.luaL_newstate())
    lua.luaL_openlibs(state)
    is_new = hasattr(lua, "luaL_loadbufferx")  # 5.2 and later
    chunk = as_file(sys.stdin.buffer.read(), is_new)
    if is_new:
        code = lua.luaL_loadbufferx(state, chunk, ctypes.c_size_t(len(chunk)), name.encode(), None)
    else:
        code = lua.luaL_loadbuffer(state, chunk, ctypes.c_size_t(len(chunk)), name.encode())
    if code == 0 and what == "run":
        if hasattr(lua, "lua_pcallk"):
            code = lua.lua_pcallk(state, 0, _MULTIPLE_RESULTS, 0, ctypes.c_ssize_t(0), None)
        else:
            code = lua.lua_pcall(state, 0, _MULTIPLE_RESULTS, 0)
    has_text = code != 0 or (what == "run" and lua.lua_gettop(state) > 0)
    raw = lua.lua_tolstring(state, -1, None) if has_text else b""
    sys.stdout.buffer.write(raw or b"")
    return 0 if code == 0 else LUA_SAYS_NO


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
