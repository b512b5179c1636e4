"""Files that a command writes: looked at before it runs, so that no result is lost."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from itertools import combinations
from pathlib import Path

from pliant.cli.install.record import PLANTED, is_planted, write
from pliant.errors import BadInput, Unavailable
from pliant.grammar import quoted

_NO_FILES: Mapping[str, str] = {}


def check_written(files: Mapping[str, str], read: Mapping[str, str] = _NO_FILES) -> None:
    """Look at what is written and what is ``read``: by option, "" where it was not given.

    Without its --out a command prints. Raises BadInput where a file could not be written, or is
    one that is written or read already; Unavailable where nothing could be printed.
    """
    if files.get("--out") == "" and sys.stdout is None:
        raise Unavailable("stdout is closed: --out FILE is expected")
    given = {option: name for option, name in files.items() if name}
    for option, name in given.items():
        _check_one(option, name)
    pairs = [*combinations(given.items(), 2)]
    pairs += [(one, other) for one in given.items() for other in read.items() if other[1]]
    for (option, name), (other, its) in pairs:
        if _same(Path(name), Path(its)):
            raise BadInput(
                f"{option}: {quoted(name)}: it is the file of {other}: another is expected"
            )


@contextmanager
def printed_to(out: str, mode: int = 0o644) -> Iterator[None]:
    """Write what is printed in between into a file, if one is named. Raises Unavailable.

    ``mode``: of a new file.
    """
    if not out:
        yield
        return
    with redirect_stdout(StringIO()) as text:
        yield
    write(Path(out), text.getvalue(), mode)


def _check_one(option: str, name: str) -> None:
    path = Path(name)
    try:
        target = path.resolve()
        if not target.parent.is_dir():
            raise BadInput(f"{option}: {quoted(name)}: its directory is not there")
        if target.is_dir():
            raise BadInput(f"{option}: {quoted(name)}: a file is expected, not a directory")
        if target.exists() and not target.is_file():
            raise BadInput(f"{option}: {quoted(name)}: a regular file is expected")
        if is_planted(path):
            raise BadInput(f"{option}: {quoted(name)}: {PLANTED}")
    except OSError as wrong:
        raise BadInput(f"{option}: {quoted(name)}: {wrong.strerror}") from wrong
    check_directory(option, name, target.parent)


def check_directory(option: str, name: str, directory: Path) -> None:
    """Raise BadInput where no file can be made in a directory; none is left there."""
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as wrong:
        words = f"{directory} cannot be written to ({wrong.strerror}): another is expected"
        raise BadInput(f"{option}: {quoted(name)}: {words}") from wrong


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)  # a hard link too
    return one.resolve() == other.resolve()
