"""``scontrol -o``'s one line per record, ``Key=value Key=value``, read so that no text can lie.

Administrators' texts (Reason, Comment, Extra) hold blanks and ``Key=value`` too. Slurm prints
them behind its own fields, so the first of equal keys counts; a record that is named twice, or
whose line does not begin as records do, is not trusted (see the readers of each kind).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping


def records(text: str, first: str, keys: tuple[str, ...]) -> Iterator[Mapping[str, str]]:
    """Yield the wanted fields of each line that begins with ``first=``; the first of a key counts.

    Values with blanks are cut at the first one.
    """
    wanted = re.compile(f"(?:^| )({'|'.join((first, *keys))})=(\\S*)")
    for line in text.split("\n"):
        if line.startswith(f"{first}="):
            fields: dict[str, str] = {}
            for key, value in wanted.findall(line):
                fields.setdefault(key, value)
            yield fields
