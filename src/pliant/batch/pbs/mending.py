"""The JSON of PBS's clients where it is none: mended object by object, by the lines they print.

They print (generate_json in src/lib/Libcmds/pbs_json.c, prt_attr in src/cmds/qstat.c, 23.06) each
job, queue and node at eight blanks, what is said of it further in, and each in a line of its own:
a value that is text has its newlines as ``\\n``. But what strtod takes for a number they print as
it is (``1.``, ``+1``, ``.5``, ``inf``), and not each quote and backslash is escaped rightly. All of
that a user can write, so what one job says must not reach another: the answer is parted first,
then each part is read alone. A newline is printed as it is in the name of a variable alone, whose
quotes PBS has escaped, so that no such line begins like that of a job.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pliant.errors import BadAnswer

log = logging.getLogger("pliant.pbs")

_HEAD = re.compile(r'^ {8}"([^"\\\n]+)":\{$', re.MULTILINE)
"""What begins a job, a queue or a node."""
_SAID = re.compile(
    r'^( {12,}")([^"\\]*(?:\\.[^"\\]*)*)":(?:"(.*)"|\s*([\w.+()-]+)\s*)(,?)$', re.MULTILINE
)
"""A name, and text or what strtod may take for a number, perhaps amid blanks and newlines."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_WRONG = re.compile(r'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|[\\"]')
"""A right escape, or else a backslash or a quote that is none."""


def mended(text: str, key: str) -> dict[str, Any]:
    """Return the objects by name under ``key`` but for those that nothing can be made of.

    Raises BadAnswer where they cannot be told apart.
    """
    inner = text.rstrip().removesuffix("\n    }\n}")
    start = inner.find(f'\n    "{key}":{{\n')
    heads = [*_HEAD.finditer(inner, max(0, start))]
    if start < 0 or not heads or inner == text.rstrip():
        raise BadAnswer("PBS's JSON is not understood: it is neither JSON nor in lines as PBS's is")
    (name, many), *_ = Counter(head[1] for head in heads).most_common(1)
    if many > 1:
        raise BadAnswer(f"PBS's JSON is not understood: {name!r} is in it {many} times")
    ends = [*(head.start() for head in heads[1:]), len(inner)]
    blocks = (inner[head.end() : at] for head, at in zip(heads, ends, strict=True))
    return dict(_read((head[1], block) for head, block in zip(heads, blocks, strict=True)))


def _read(blocks: Iterator[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    for name, block in blocks:
        whole = "{" + block.rstrip().removesuffix(",")
        for words in (whole, _SAID.sub(_in_json, whole)):
            try:
                yield name, json.loads(words, strict=False)
            except (ValueError, RecursionError):
                continue
            break
        else:
            _tell(name)


@lru_cache(4096)
def _tell(name: str) -> None:
    """Log that one is left out: once, as it may be in every answer."""
    log.warning("%s: PBS's JSON of it cannot be read: it is left out", name)


def _in_json(said: re.Match[str]) -> str:
    start, name, string, bare, comma = said.groups()
    if string is not None:
        value = f'"{_escaped(string)}"'
    else:
        value = bare if _NUMBER.fullmatch(bare) else json.dumps(bare)
    return f'{start}{_escaped(name)}":{value}{comma}'


def _escaped(text: str) -> str:
    return _WRONG.sub(lambda found: found[1] or f"\\{found[0]}", text)
