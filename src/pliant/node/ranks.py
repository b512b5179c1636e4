"""How the wrappers of one step's tasks agree: files in the job's own checkpoint directory.

The first task alone speaks with pliantd. It writes what is wanted and what all do into ``told``,
in place, because NFS looks at an open file's contents anew but may not see a renamed one for half
a minute. Each task writes into ``ended-RANK`` for which wish its program has ended ("-": for good).
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

from pliant.node.words import Wish

TOLD = "told"
GOOD = "-"
_MOST = 4096


class Ranks:
    """One task's view of the others."""

    def __init__(self, directory: Path, job: str, restarts: int, rank: int, ranks: int) -> None:
        """``directory`` is shared by all nodes of the job."""
        self.path = directory / f".pliant-{job}-{restarts}"
        self._rank, self._ranks = rank, ranks

    def prepare(self) -> None:
        """Make the directory, for this user alone; of the first task.

        Raises OSError.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._is_ours(self.path.lstat()):
            raise PermissionError(0, f"{self.path} is not this user's alone")
        self.tell(None)

    def tell(self, wish: Wish | None, decided: str = "") -> None:
        """Write what is wanted, and what is ``decided`` once all have saved: again, end."""
        said: dict[str, object] = {"decided": decided}
        if wish is not None:
            said |= {"wish": wish.id, "why": wish.why, "shape": wish.shape}
            said |= {"left_s": wish.left_s}
        handle = os.open(self.path / TOLD, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w") as file:
            file.truncate()
            file.write(json.dumps(said) + "\n")

    def told(self) -> tuple[Wish | None, str] | None:
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
            return wish, said["decided"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    @staticmethod
    def _is_ours(what: os.stat_result) -> bool:
        return what.st_uid == os.geteuid() and not stat.S_IMODE(what.st_mode) & 0o022

    def ended(self, wish: str = GOOD) -> None:
        """Say that our program has ended for a wish, or for good."""
        (self.path / f"ended-{self._rank}").write_text(wish)

    def all_ended(self, wish: str = GOOD) -> bool:
        """Whether the programs of all tasks have."""
        return all(self._has_ended(rank, wish) for rank in range(self._ranks))

    def _has_ended(self, rank: int, wish: str) -> bool:
        try:
            return (self.path / f"ended-{rank}").read_text() in (wish, GOOD)
        except OSError:
            return False

    def leave(self) -> None:
        """Say that we are done; who is last removes everything."""
        self.ended()
        if self.all_ended():
            shutil.rmtree(self.path, ignore_errors=True)
