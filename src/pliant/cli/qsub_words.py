"""qsub's own language: its command line and a script's ``#PBS`` lines, and our words in them.

Pure. As qsub of OpenPBS 23.06 reads them: options end at the first word that is none; a directive's
words may be quoted with ' or ", outside of which a backslash escapes, and nothing in it is a
comment; a directive that ends in a backslash goes on in the next line; directives end at the first
line that is neither empty nor a comment. Of two equal options the last one counts, but of two
resources in a script's ``-l`` the first.

Our words are flags, ``--moldable=gpus=1-4``, or resources, ``-l moldable=gpus=1-4``; flags win.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pliant.cli.directives import FLAGS, OPTIONAL_VALUE
from pliant.errors import BadSpec
from pliant.filter.pbs.names import RESOURCES

ALONE = frozenset("fhIVXz")
"""qsub's options that take no value."""
NATIVE = "native"
"""Our flag that is no option of a job: several requests of which one runs."""
BLANK = " \t\n\v\f\r"
PREFIX = "#PBS"
_OPTIONS = {name: option for option, name in RESOURCES.items()}


class Option(NamedTuple):
    """One of qsub's options: its letter, or a long one as it was written."""

    name: str
    value: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """It as words of a command line."""
        if len(self.name) > 1:
            return (self.name,)
        return (f"-{self.name}",) if self.value is None else (f"-{self.name}", self.value)


class Item(NamedTuple):
    """One resource of ``-l``, and how it was written."""

    name: str
    value: str
    written: str


@dataclass(frozen=True, slots=True)
class Found:
    """What some options say: ours, by option; qsub's without them; and the resources of -l."""

    ours: Mapping[str, str] = field(default_factory=dict)
    options: tuple[Option, ...] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    native: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether anything is said to Pliant."""
        return bool(self.ours) or self.native

    def has(self, name: str) -> bool:
        """Whether an option stands there."""
        return any(option.name == name for option in self.options)

    def value(self, name: str) -> str | None:
        """Return the value of an option that counts."""
        found = [option.value for option in self.options if option.name == name]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A qsub command line: its options, and what follows: a script, ``-- program …``, nothing."""

    options: Found
    rest: tuple[str, ...] = ()
    all: tuple[Option, ...] = ()  # options with our words among them

    @property
    def script(self) -> str:
        """The script's name; "" where none is named."""
        return self.rest[0] if self.rest and self.rest[0] not in ("-", "--") else ""

    @property
    def has_script(self) -> bool:
        """Whether a script is named or comes from stdin."""
        only_says = any(option.name.startswith("--") for option in self.options.options)
        program = self.rest[:1] == ("--",) or self.options.has("I")
        return bool(self.script) or not (program or only_says)


def read_command_line(words: Sequence[str]) -> CommandLine:
    """Split qsub's command line.

    Raises BadSpec where one of our flags lacks its value.
    """
    read = list(_options(words))
    options = tuple(option for option, _ in read)
    used = sum(taken for _, taken in read)
    return CommandLine(_found(options), tuple(words[used:]), options)


def read_script(script: bytes, prefix: str = PREFIX) -> tuple[Found, bytes]:
    """Return what a script's directives say, and the script without our words.

    Raises BadSpec.
    """
    options: list[Option] = []
    lines = script.decode("utf-8", "surrogateescape").split("\n")
    at = 0
    while at < len(lines) and not _is_code(lines[at]):
        last, line = at, lines[at]
        if prefix and line.lstrip(BLANK).startswith(prefix):
            while line.rstrip(BLANK).endswith("\\") and last + 1 < len(lines):
                last += 1
                line = line.rstrip(BLANK)[:-1] + lines[last]
            here = read_command_line(_words(line.lstrip(BLANK)[len(prefix) :]))
            options += here.all
            if here.options.is_ours:
                lines[at : last + 1] = [_written(here, prefix, line), *["#"] * (last - at)]
        at = last + 1
    cleaned = "\n".join(lines).encode("utf-8", "surrogateescape")
    return _found(options, first_wins=True), cleaned


def items_of(value: str) -> list[Item]:
    """Split ``-l``'s value at commas and blanks that no quotes protect.

    No items at all where it is not right: that is for qsub to say.
    """
    items: list[Item] = []
    at = 0
    while at < len(value):
        found = _ITEM.match(value, at)
        if found is None or (found[3] and found.end() == len(value)):
            return []
        said = re.sub(r"\"([^\"]*)\"|'([^']*)'", r"\1\2", found[2] or "")
        items.append(Item(found[1].lower(), said, value[at : found.end()].strip(BLANK + ",")))
        at = found.end()
    return items


_ITEM = re.compile(
    r"""\s*([^\s=,"'&]+)\s*(?:=\s*((?:"[^"&]*"|'[^'&]*'|[^\s,"'&])*))?\s*(,?)\s*""", re.ASCII
)


def _found(options: Iterable[Option], *, first_wins: bool = False) -> Found:
    """Part our words from qsub's; of two equal resources the last counts, or the first."""
    flags: dict[str, str] = {}
    rest: list[Option] = []
    items: list[Item] = []
    native = False
    for option in options:
        name = option.name[2:]
        if name == NATIVE:
            native = True
        elif name in FLAGS:
            flags[FLAGS[name]] = option.value or ""
        elif option.name == "l" and (here := items_of(option.value or "")):
            items += here
            kept = [item.written for item in here if item.name not in _OPTIONS]
            whole = len(kept) == len(here)
            rest += [option] if whole else [Option("l", ",".join(kept))] if kept else []
        else:
            rest.append(option)
    resources = {item.name: item.value for item in (reversed(items) if first_wins else items)}
    said = {_OPTIONS[n]: _said(n, value) for n, value in resources.items() if n in _OPTIONS}
    return Found({**said, **flags}, tuple(rest), resources, native)


def _said(resource: str, value: str) -> str:
    """Return what a resource says: ``malleable=yes`` is malleable without a value."""
    return "" if (resource, value) == ("malleable", "yes") else value


def _options(words: Sequence[str]) -> Iterator[tuple[Option, int]]:
    """Yield options up to the first word that is none, and how many words each ends."""
    at = 0
    while at < len(words) and len(words[at]) > 1 and words[at][0] == "-" and words[at] != "--":
        after = words[at + 1] if at + 1 < len(words) else None
        read = _long if words[at].startswith("--") else _letters
        for option, taken in read(words[at], after):
            yield option, taken
            at += taken


def _long(word: str, after: str | None) -> Iterator[tuple[Option, int]]:
    name, equals, value = word[2:].partition("=")
    if name not in FLAGS:
        yield Option(word), 1
    elif equals or name in OPTIONAL_VALUE:
        yield Option(f"--{name}", value), 1
    elif after is None:
        raise BadSpec(f"{name}: a value is expected: --{name}=...")
    else:
        yield Option(f"--{name}", after), 2


def _letters(word: str, after: str | None) -> Iterator[tuple[Option, int]]:
    for place, letter in enumerate(word[1:], start=2):
        is_last = place == len(word)
        if letter not in ALONE:
            value = after if is_last else word[place:]
            yield Option(letter, value), 2 if is_last and after is not None else 1
            return
        yield Option(letter), 1 if is_last else 0


def _is_code(line: str) -> bool:
    """Whether directives have ended here."""
    bare = line.lstrip(BLANK)
    return bool(bare) and not bare.startswith("#") and not line.startswith(":")


def _words(line: str) -> list[str]:
    """Split one directive as qsub does; quotes that do not end take the rest."""
    return [_PART.sub(_plain, word[0]) for word in _WORD.finditer(line)]


_WORD = re.compile(r"""(?:"[^"]*"?|'[^']*'?|\\.?|[^\s"'\\])+""", re.ASCII | re.DOTALL)
_PART = re.compile(r""""([^"]*)"?|'([^']*)'?|\\(.?)""", re.DOTALL)


def _plain(part: re.Match[str]) -> str:
    return "".join(text for text in part.groups() if text)


def _written(directive: CommandLine, prefix: str, line: str) -> str:
    """Write a directive's words again, without ours."""
    words = [word for option in directive.options.options for word in option.words]
    quoted = [re.sub(r"([\s\"'\\])", r"\\\1", w) or '""' for w in (*words, *directive.rest)]
    end = "\r" if line.endswith("\r") else ""
    return (" ".join([prefix, *quoted]) if quoted else "#") + end
