"""A document of parts that are measured one by one: what is measured anew replaces itself alone.

Each part stands beneath a line of its own that names it, and says when it was measured and on what.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.section import Section

SHOWN = Path("-")
"""Standard output."""
_PART = re.compile(r"^<!-- part: ([\w-]+) -->\n(.*?)(?=^<!-- part: |\Z)", re.M | re.S)


def write(
    out: Path,
    head: str,
    order: Sequence[str],
    chosen: Iterable[str],
    measure: Callable[[str], Iterable[Section]],
    *,
    remark: str = "",
) -> None:
    """Measure the chosen parts, and write the document with all that it has, in this order.

    ``remark``: what stands with each part that is measured now.
    """
    found = dict(_PART.findall(out.read_text())) if out.is_file() else {}
    for part in chosen:
        found[part] = _measured(part, measure, remark)
    text = document(head, order, found)
    if out == SHOWN:
        print(text)
    else:
        out.write_text(text)


def document(head: str, order: Sequence[str], found: Mapping[str, str]) -> str:
    """Return the document of the parts that were found."""
    texts = [f"<!-- part: {part} -->\n{found[part].strip()}\n" for part in order if part in found]
    return "\n".join((head + "\n", *texts))


def _measured(part: str, measure: Callable[[str], Iterable[Section]], remark: str) -> str:
    print(f"measuring: {part}", file=sys.stderr, flush=True)
    lines, began_s = list(machine.lines()), time.monotonic()
    if remark:
        lines.append(f"- {remark}")
    for section in measure(part):
        lines += ["", *section.markdown()]
    print(f"  took {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    return "\n".join(lines)
