"""Commands whose words are another program's, which takes this process's place in the end."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import click

from pliant.errors import Unavailable

Reader = Callable[[str], bytes | None]
"""Returns a script's text by its name ("": stdin), or None where the other shall say what is
wrong."""

REPLACED = "{script}"
"""Stands for the script's name where a copy is handed over in its place."""


class PassedOn(click.Command):
    """A command whose words are another program's: nothing is interpreted but a lone --help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep every word as it is."""
        if args in (["--help"], ["-h"]):
            click.echo(ctx.get_help())
            ctx.exit()
        ctx.args = args
        return []


def read_script_file(name: str) -> bytes | None:
    """Read a script by its path; "": stdin."""
    try:
        if name:
            return Path(name).read_bytes()
        return None if sys.stdin.isatty() else sys.stdin.buffer.read()
    except OSError:
        return None


def become(program: str, argv: Sequence[str], script: bytes | None, system: str) -> NoReturn:
    """Let a program of the batch system take this process's place, with REPLACED as a file.

    A script that is no word of ``argv`` goes to stdin. ``PLIANT_`` and the program's name in
    capitals says where it lies, else PATH. Raises Unavailable where there is none.
    """
    path = os.environ.get(f"PLIANT_{program.upper()}") or shutil.which(program)
    if path is None:
        raise Unavailable(f"{program} is not on the PATH: is {system} installed on this host?")
    words = list(argv)
    if script is not None:
        memory = os.memfd_create("script", 0)  # nothing is left behind, whatever happens
        with open(memory, "wb", closefd=False) as file:
            file.write(script)
        os.lseek(memory, 0, os.SEEK_SET)
        os.dup2(memory, 0 if REPLACED not in words else memory)
        words = [f"/proc/self/fd/{memory}" if word == REPLACED else word for word in words]
    try:
        os.execv(path, [program, *words])  # noqa: S606  # no shell is meant
    except OSError as wrong:
        raise Unavailable(f"{path}: {wrong.strerror}") from wrong
