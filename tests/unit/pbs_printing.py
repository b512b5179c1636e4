"""What qstat prints of a value or a variable that a user gave, line by line as 23.06 does it.

After add_json_node and strdup_escape (src/lib/Libcmds/pbs_json.c): wrong escapes included.
"""

from __future__ import annotations

import re

_STRTOD = re.compile(
    r"\s*([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan(?:\(\w*\))?))\s*",
    re.IGNORECASE | re.ASCII,
)
_SHORT = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printed(name: str, value: str) -> str:
    """Return ``"name":value`` as it is printed; ``name`` as PBS keeps it."""
    found = _STRTOD.fullmatch(value)
    number = found and (value[0] != "0" or float(found[1].partition("(")[0]) < 1)
    return f'"{name}":{value}' if number and value.strip() else f'"{name}":"{_escaped(value)}"'


def kept(name: str) -> str:
    """Return how PBS keeps a variable's name: qsub escapes what it means something by."""
    return re.sub(r'(["\'\\,])', r"\\\1", name)


def _escaped(value: str) -> str:
    out, at = "", 0
    while at < len(value):
        letter, after = value[at], value[at + 1 : at + 2]
        if letter == '"' and at and value[at - 1] != "\\":
            out += "\\"
        if letter == "\\" and after in ("'", ","):
            out, at = out + after, at + 1
        elif letter == "\\":
            out, at = out + letter + after, at + 1
        else:
            out += _SHORT.get(letter, letter)
        at += 1
    return out
