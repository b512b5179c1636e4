"""How the wrappers of one step's tasks agree: files in the job's own checkpoint directory.

The first task alone speaks with pliantd. It writes what is wanted and what all do into ``told``,
in place, because NFS looks at an open file's contents anew but may not see a renamed one for half
a minute. Each task writes into ``ended-RANK`` for which wish its program has ended ("-": for none),
and with which exit code, and into ``left-RANK`` that its wrapper is done; its guardian makes
``lost-RANK`` where the wrapper is lost. A task that begins anew in this step takes its own away.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

from pliant.node.words import CHECKPOINTED, Wish

PREFIX = ".pliant-"
"""How our directories begin among a program's checkpoints."""
TOLD = "told"
NONE = "-"
FINE = (0, CHECKPOINTED)
"""What a program ends with that has finished, or saved."""
_MOST = 4096


class Ranks:
    """One task's view of the others."""

    def __init__(self, directory: Path, step: str, rank: int, ranks: int) -> None:
        """``directory`` is shared by all nodes of the job; ``step``: no two steps are called so."""
        self.path = directory / f"{PREFIX}{step}"
        self._rank, self._ranks = rank, ranks

    def join(self) -> None:
        """Make the directory, for this user alone, and take away what we said before.

        Raises OSError.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._is_ours(self.path.lstat()):
            raise PermissionError(0, f"{self.path} is not this user's alone")
        for word in ("ended", "left", "lost"):
            self._mark(word, self._rank).unlink(missing_ok=True)

    def prepare(self) -> None:
        """Make the directory, and tell that nothing is wanted; of the first task.

        Raises OSError.
        """
        self.join()
        self.tell(None)

    def _mark(self, word: str, rank: int) -> Path:
        return self.path / f"{word}-{rank}"

    def tell(self, wish: Wish | None, decided: str = "", signal: int = 0) -> None:
        """Write what is wanted, and what is ``decided`` once all have saved: again, end CODE.

        ``signal``: by which programs are told of a wish.
        """
        said: dict[str, object] = {"decided": decided, "signal": signal}
        if wish is not None:
            said |= {"wish": wish.id, "why": wish.why, "shape": wish.shape}
            said |= {"left_s": wish.left_s}
        handle = os.open(self.path / TOLD, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w") as file:
            file.truncate()
            file.write(json.dumps(said) + "\n")

    def told(self) -> tuple[Wish | None, str, int] | None:
        """Return what the first task has told; None where that is not there or half written."""
        try:
            handle = os.open(self.path / TOLD, os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(handle) as file:
                if not self._is_ours(os.fstat(handle)):
                    return None
                said = json.loads(file.read(_MOST))
            left_s = float(said.get("left_s", 0.0))
            wish = (
                Wish(said["wish"], said["why"], said["shape"], left_s) if "wish" in said else None
            )
            return wish, said["decided"], int(said["signal"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    @staticmethod
    def _is_ours(what: os.stat_result) -> bool:
        return what.st_uid == os.geteuid() and not stat.S_IMODE(what.st_mode) & 0o022

    def ended(self, code: int, wish: str = NONE) -> None:
        """Say that our program has ended so, as it was asked to by a wish, or for none."""
        self._mark("ended", self._rank).write_text(f"{wish} {code}")

    def resumed(self) -> None:
        """Say that our program runs again."""
        self._mark("ended", self._rank).unlink(missing_ok=True)

    def all_ended(self, wish: str) -> bool:
        """Whether the programs of all tasks have, for this wish or for good."""
        return all(self._end(n)[0] in (wish, NONE) or self._left(n) for n in range(self._ranks))

    def failed(self, wish: str) -> tuple[int, int] | None:
        """Return the first task whose program failed at this wish, and its exit code."""
        ends = ((rank, *self._end(rank)) for rank in range(self._ranks))
        return next(((n, code) for n, of, code in ends if of == wish and code not in FINE), None)

    def _end(self, rank: int) -> tuple[str, int]:
        try:
            wish, _, code = self._mark("ended", rank).read_text().partition(" ")
            return wish, int(code)
        except (OSError, ValueError):  # not there, or half written
            return "", 0

    def _left(self, rank: int) -> bool:
        return self._mark("left", rank).exists()

    @property
    def mark(self) -> Path:
        """The file that says that our wrapper is lost: the guardian makes it."""
        return self._mark("lost", self._rank)

    def lost(self) -> int | None:
        """Return a task whose wrapper is lost: its program will not hear of a wish."""
        try:
            there = {path.name for path in self.path.iterdir()}  # each second: one look for all
        except OSError:
            return None
        return next((n for n in range(self._ranks) if f"lost-{n}" in there), None)

    def leave(self) -> None:
        """Say that we are done; who is last removes everything."""
        self._mark("left", self._rank).touch()
        if all(self._left(rank) for rank in range(self._ranks)):
            shutil.rmtree(self.path, ignore_errors=True)
