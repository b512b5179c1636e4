"""sbatch's own language: its command line and a script's ``#SBATCH`` lines, and our words in them.

Pure. Follows sbatch(1): options end at the first word that is none (the script); a directive's
words may be quoted with ' or ", a backslash escapes, a word that starts with # ends the line;
directives end at the first line that is neither empty nor a comment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pliant.errors import BadSpec
from pliant.grammar import OPTIONS

FLAGS = {option: option for option in OPTIONS} | {"class": "job-class"}
"""Our flags and the options that they mean. The plugin's flag is --class: beside a --job-class,
sbatch would not know --job=NAME any more."""
OPTIONAL_VALUE = frozenset({"malleable", "colocate"})
"""Those of our flags that may stand without a value."""

SHORT_ALONE = frozenset("hHkOQsuvVW")
"""sbatch's short options that never take the next word."""
# fmt: off
LONG_ALONE = (
    "contiguous", "exclusive", "get-user-env", "help", "hold", "ignore-pbs", "nice", "no-kill",
    "no-requeue", "overcommit", "oversubscribe", "parsable", "propagate", "quiet", "reboot",
    "requeue", "share", "spread-job", "test-only", "usage", "use-min-nodes", "verbose", "version",
    "wait",
)
# fmt: on
"""sbatch's long options that never take the next word."""
COMMENT_NAMES = ("comment", "commen", "comme", "comm", "com")  # as getopt allows
NO_SCRIPT = ("wrap", "help", "h", "usage", "version", "V")

MAGIC = b"#SBATCH"


@dataclass(frozen=True, slots=True)
class Found:
    """What some options say: ours, the rest as written, and the two that matter to us."""

    ours: dict[str, str] = field(default_factory=dict)
    rest: tuple[str, ...] = ()
    comment: str | None = None
    named: bool = False  # --job-name or -J stands there
    no_script: bool = False  # --wrap, --help, --usage or --version stands there


@dataclass(frozen=True, slots=True)
class CommandLine:
    """An sbatch command line: its options, then the script ("" for stdin) and its arguments."""

    options: Found
    script: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def has_script(self) -> bool:
        """Whether a script is named or comes from stdin."""
        return self.script != ":" and not self.options.no_script


class Word(NamedTuple):
    """One word of a directive, unquoted, and where it stands in the line."""

    text: str
    start: int
    end: int


def read_command_line(words: Sequence[str]) -> CommandLine:
    """Split sbatch's command line.

    Raises BadSpec where one of our options lacks its value.
    """
    found, used = _read_options(words)
    left = words[used:]
    if left and left[0] == "--":
        left = left[1:]
    return CommandLine(found, left[0] if left else "", tuple(left[1:]))


def read_script(script: bytes) -> tuple[Found, bytes]:
    """Return what a script's directives say, and the script with our words behind a ``#``.

    Raises BadSpec.
    """
    ours: dict[str, str] = {}
    comment: str | None = None
    named = False
    lines = script.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.strip() and not line.startswith(b"#"):
            break
        if line.startswith(MAGIC):
            words = _words(line.decode("latin-1"))
            found, _ = _read_options([word.text for word in words])
            ours |= found.ours
            comment = comment if found.comment is None else found.comment
            named |= found.named
            if found.ours:
                lines[number] = _without_ours(line, words)
    return Found(ours, (), comment, named), b"".join(lines)


def _read_options(words: Sequence[str]) -> tuple[Found, int]:
    """Read options up to the first word that is none; return how many words they took."""
    ours: dict[str, str] = {}
    rest: list[str] = []
    comment: str | None = None
    named = no_script = False
    position = 0
    while position < len(words) and _is_option(words[position]):
        word = words[position]
        after = words[position + 1] if position + 1 < len(words) else None
        name, value, taken = _option(word, after)
        if name in FLAGS:
            ours[FLAGS[name]] = value
        elif name in COMMENT_NAMES:
            comment = value
        else:
            rest += words[position : position + taken]
        named |= name in ("job-name", "J")
        no_script |= name in NO_SCRIPT
        position += taken
    return Found(ours, tuple(rest), comment, named, no_script), position


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and word != "--"


def _option(word: str, after: str | None) -> tuple[str, str, int]:
    """Return an option's name, its value and how many words it takes."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        if name in FLAGS and not equals and name not in OPTIONAL_VALUE and after is None:
            raise BadSpec(f"{name}: a value is expected: --{name}=...")
        if equals or name in OPTIONAL_VALUE or _stands_alone(name) or after is None:
            return name, value, 1
        return name, after, 2
    for position, letter in enumerate(word[1:], start=2):
        if letter not in SHORT_ALONE:  # it takes a value: the rest of the word, or the next one
            has_next = position == len(word) and after is not None
            return letter, word[position:] or after or "", 2 if has_next else 1
    return word[-1], "", 1


def _stands_alone(name: str) -> bool:
    """Whether sbatch's option ``name``, perhaps shortened as getopt allows, takes no next word."""
    return bool(name) and any(option.startswith(name) for option in LONG_ALONE)


def _words(line: str) -> list[Word]:
    """Split one directive as sbatch does."""
    words: list[Word] = []
    position = len(MAGIC)
    while True:
        while position < len(line) and line[position].isspace():
            position += 1
        if position == len(line) or line[position] == "#":
            return words
        word = _word(line, position)
        words.append(word)
        position = word.end


def _word(line: str, start: int) -> Word:
    text, quote, position = "", "", start
    while position < len(line) and (quote or not line[position].isspace()):
        char = line[position]
        position += 1
        if char == "\\" and position < len(line):
            text += line[position]
            position += 1
        elif quote and char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        else:
            text += char
    return Word(text, start, position)


def _without_ours(line: bytes, words: list[Word]) -> bytes:
    """Move our options of one directive behind a ``#``, where sbatch does not read."""
    kept: list[bytes] = []
    moved: list[bytes] = []
    position = 0
    texts = [word.text for word in words]
    while position < len(texts):
        after = texts[position + 1] if position + 1 < len(texts) else None
        name, _, taken = _option(texts[position], after)
        span = line[words[position].start : words[position + taken - 1].end]
        (moved if name in FLAGS else kept).append(span)
        position += taken
    end = b"\r\n" if line.endswith(b"\r\n") else b"\n" if line.endswith(b"\n") else b""
    return b" ".join([MAGIC, *kept, b"#", *moved]) + end
