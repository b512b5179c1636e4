"""A pliant.toml that says what it should not: the lines that put it right. Pure.

The least is changed: a word that was meant is written right, and what cannot be guessed becomes a
comment, so that its default holds. A partition's mode never becomes its default by that, which
may be ``enforce``: it is ``observe``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from pliant.cli.doctor.findings import command
from pliant.daemon.config import keys_of, parse
from pliant.errors import BadConfig
from pliant.model import Mode

MOST = 8
"""With more lines that are wrong the file is not what it was meant to be."""
_AT = re.compile(r"at line ([0-9]+),")
_WRONG = re.compile(r"pliant\.toml: (?:\[(?P<section>[^\]]+)\] )?(?P<key>[^:]+): ")
_CHOICES = re.compile(r": one of ([^:]+) is expected$")
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
_PAIR = re.compile(r"\s*[\"']?(?P<key>[A-Za-z0-9_.-]+)[\"']?\s*=\s*(?P<value>.*?)\s*")
_BARE = re.compile(r"[\"']?(?P<word>[^\"'#=]*[^\"'#=\s])[\"']?\s*(?P<rest>#.*)?")

Lines = Mapping[int, str]
"""New texts by the numbers of lines, from 1."""


def mended(text: str) -> Lines:
    """Return the lines that put a pliant.toml right; none where it is, or only its owner can."""
    lines, changed = text.split("\n"), dict[int, str]()
    for _ in range(MOST):
        wrong = _wrong(lines)
        if wrong is None:
            return changed
        number = _line_of(lines, wrong)
        new = _put_right(lines, number, wrong) if number else None
        if number is None or new is None or changed.get(number) == new:
            return {}
        changed[number] = lines[number - 1] = new
    return {}


def renamed(text: str, name: str, known: Iterable[str]) -> Lines:
    """Return how a partition of [partitions] is written that Slurm does not know as ``name``.

    It gets the name that was meant, or becomes a comment where that has a mode, or none is alike.
    """
    lines = text.split("\n")
    number = _find(lines, "partitions", name)
    if number is None:
        return {}
    said = set(tomllib.loads(text).get("partitions", {}))
    meant = get_close_matches(name, set(known) - said, n=1)
    line = lines[number - 1]
    new = line.replace(name, meant[0], 1) if meant else f"# {line}"
    return {number: new} if _wrong([*lines[: number - 1], new, *lines[number:]]) is None else {}


def edit(path: Path, lines: Lines) -> tuple[str, ...]:
    """Return the command that writes these lines, none where sed would read them as something else.

    A link stays one: the file that it names is written.
    """
    if not lines or any("\\" in line or not line.isprintable() for line in lines.values()):
        return ()
    words = [word for number, line in sorted(lines.items()) for word in ("-e", f"{number}c {line}")]
    return (command("sed", "-i", *words, path.resolve()),)


def _wrong(lines: list[str]) -> str | None:
    """Return what is wrong in words, None where nothing is."""
    try:
        parse(tomllib.loads("\n".join(lines)))
    except (BadConfig, ValueError, RecursionError) as error:
        return str(error)
    return None


def _line_of(lines: list[str], wrong: str) -> int | None:
    at, named = _AT.search(wrong), _WRONG.match(wrong)
    if named:
        return _find(lines, named["section"] or "", named["key"])
    return int(at[1]) if at and int(at[1]) <= len(lines) else None


def _find(lines: list[str], section: str, key: str) -> int | None:
    """Return the line of a key, or of the header of that name where no section is said."""
    here = ""
    for number, line in enumerate(lines, 1):
        if header := _HEADER.fullmatch(line):
            here = header[1]
            if not section and here == key:
                return number
        elif here == section and (pair := _PAIR.fullmatch(line)) and pair["key"] == key:
            return number
    return None


def _put_right(lines: list[str], number: int, wrong: str) -> str | None:
    """Return what a line should be; None where only its owner knows."""
    line, section = lines[number - 1], _section_of(lines, number)
    if header := _HEADER.fullmatch(line):
        meant = get_close_matches(header[1], keys_of(""), n=1)
        return f"[{meant[0]}]" if meant else None
    pair = _PAIR.fullmatch(line)
    if pair is None or not pair["value"]:
        return None if section == "partitions" else f"# {line}"
    if not _WRONG.match(wrong):  # it is no TOML
        return _quoted(pair, section, line)
    if section == "partitions" or pair["key"] in keys_of(section):
        return _valued(pair["key"], pair["value"], section, wrong) or f"# {line}"
    keys = set(keys_of(section)) - _said(lines, section)
    meant = get_close_matches(pair["key"], keys, n=1)
    return line.replace(pair["key"], meant[0], 1) if meant else f"# {line}"


def _quoted(pair: re.Match[str], section: str, line: str) -> str | None:
    """Return a line whose value is a word with its quotes."""
    bare = _BARE.fullmatch(pair["value"])
    new = f'{pair["key"]} = "{bare["word"]}"' if bare else line
    if new != line and not _AT.search(_wrong([new]) or ""):
        return f"{new}  {bare['rest']}" if bare and bare["rest"] else new
    return None if section == "partitions" else f"# {line}"


def _valued(key: str, value: str, section: str, wrong: str) -> str:
    """Return a line with the value that was meant, of those that the complaint names; or ""."""
    choices = _CHOICES.search(wrong)
    known = choices[1].split(", ") if choices else []
    meant = get_close_matches(value.partition("#")[0].strip("\"' ").lower(), known, n=1)
    if not meant and section == "partitions":
        meant = [Mode.OBSERVE]
    return f'{key} = "{meant[0]}"' if meant else ""


def _section_of(lines: list[str], number: int) -> str:
    headers = (_HEADER.fullmatch(line) for line in lines[:number])
    return ([header[1] for header in headers if header] or [""])[-1]


def _said(lines: list[str], section: str) -> set[str]:
    """Return the keys that stand in a section."""
    pairs = ((number, _PAIR.fullmatch(line)) for number, line in enumerate(lines, 1))
    return {pair["key"] for number, pair in pairs if pair and _section_of(lines, number) == section}
