"""The private directory on this node by which the wrapper and the program speak.

::

    checkpoint-requested    there while a checkpoint is wanted; JSON: wish, why, shape, until_s
    heartbeat               "STEP TIME", from pliant.heartbeat
    saved                   from pliant.checkpointed: what follows is the end, whatever its code
    requeued                beside it, from a program that believes that it has requeued its job

It stands where a node is cleaned (systemd-tmpfiles takes what lay untouched for 10 days), or a job
cleans up itself. So it is touched now and then, and made again, by its own name, where it is gone.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import stat
import tempfile
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from pliant.node.words import Wish
from pliant.wire.runs import MOST

NOBODY = 65534
"""Whose a file is on NFS that tells nobody's owner, also our own."""

REQUESTED, HEARTBEAT = "checkpoint-requested", "heartbeat"
SAVED, REQUEUED = "saved", "requeued"
WINDOW_S = 120.0
TOUCH_S = 3600.0
"""How often it is touched: no cleaner takes what is so young."""
LEAST_S = 5.0
"""A rate is told over at least so long and at most WINDOW_S."""


class Private:
    """The private directory of one wrapper."""

    def __init__(self, job: str) -> None:
        """Make it, for this user alone.

        Raises OSError.
        """
        self.path = Path(tempfile.mkdtemp(prefix=_prefix(job)))
        self._owner = self.path.lstat().st_uid  # as it is shown here: see NOBODY
        self._touched_s: float | None = None
        self.request = self.path / REQUESTED
        self.saved, self.requeued = self.path / SAVED, self.path / REQUEUED
        self._beaten = ""

    def ask(self, wish: Wish) -> None:
        """Let the program see that a checkpoint is wanted.

        Raises OSError.
        """
        self._stand()
        said = {"wish": wish.id, "why": wish.why, "shape": wish.shape}
        text = json.dumps({**said, "until_s": time.time() + wish.left_s})
        new = self.path / "new"
        new.write_text(text + "\n")
        new.replace(self.request)

    def keep(self, now_s: float) -> bool:
        """Make it again where it is gone, and return whether it was; touch it now and then.

        Raises OSError where it cannot be made, or somebody else has one in its place.
        """
        if self._stand():
            return True
        if self._touched_s is None or now_s - self._touched_s >= TOUCH_S:
            self._touched_s = now_s
            with suppress(OSError):  # what is not touched may be taken, and is made again
                for one in (self.path, *self.path.iterdir()):
                    os.utime(one, follow_symlinks=False)
        return False

    def _stand(self) -> bool:
        if self._stands():
            return False
        self.path.mkdir(mode=0o700)
        self._owner = self.path.lstat().st_uid
        return True

    def _stands(self) -> bool:
        """Whether it is there, and nobody else's in its place."""
        try:
            what = self.path.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(what.st_mode) and what.st_uid == self._owner

    def withdraw(self) -> None:
        """Let it see that none is wanted."""
        self.request.unlink(missing_ok=True)

    def take_saved(self) -> bool:
        """Whether the program said that it has saved, since this was last asked."""
        return self._stands() and _take(self.saved)

    def take_requeued(self) -> bool:
        """Whether it believes that it has requeued its job, since this was last asked."""
        return self._stands() and _take(self.requeued)

    def beat(self) -> tuple[int, float] | None:
        """Return a new heartbeat, the step and when it was told; None where there is none."""
        if not self._stands():
            return None
        try:
            text = (self.path / HEARTBEAT).read_text()
            number, at = text.split()
            step, at_s = int(number), float(at)
        except (OSError, ValueError):
            return None
        if text == self._beaten or not math.isfinite(at_s) or not 0 <= step <= MOST:
            return None
        self._beaten = text
        return step, at_s

    def remove(self) -> None:
        """Remove all of it."""
        if self._stands():
            shutil.rmtree(self.path, ignore_errors=True)


def is_wrapped(asked: str, job: str) -> bool:
    """Whether another wrapper of this job on this node looks at the file ``asked``.

    A job submitted from within a job inherits the variable. Its directory is another job's then, or
    gone and made anew by somebody else.
    """
    directory = Path(asked).parent
    return asked != "" and directory.name.startswith(_prefix(job)) and _is_ours(directory)


def _prefix(job: str) -> str:
    return f"pliant-{job or 'run'}-"


def for_checkpoints(directory: Path, otherwise: Path | None) -> Path:
    """Make the directory, for this user alone, and return it.

    Return ``otherwise`` where it cannot be made, or another user has it. Where everybody may write,
    another user may make it before the job runs, and lay into it what its program would take for
    its own checkpoint.

    Raises OSError.
    """
    try:
        with suppress(FileExistsError):  # no directory, so not ours
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        if otherwise is None:
            raise
        return for_checkpoints(otherwise, None)
    if otherwise is None or _is_ours(directory):
        return directory
    return for_checkpoints(otherwise, None)


def _is_ours(directory: Path) -> bool:
    """Whether it is this user's directory, and no other user's link to one."""
    try:
        what = directory.lstat()
    except OSError:
        return False
    is_mine = what.st_uid in (os.geteuid(), NOBODY)
    return is_mine and (stat.S_ISDIR(what.st_mode) or directory.is_dir())


def _take(mark: Path) -> bool:
    try:
        mark.unlink()
    except OSError:
        return False
    return True


class Pace:
    """Steps a second over the last two minutes."""

    def __init__(self) -> None:
        """Begin without a step."""
        self.step: int | None = None
        self._beats: deque[tuple[float, int]] = deque()

    def add(self, step: int, at_s: float) -> None:
        """Add a heartbeat; one that goes back begins anew."""
        if self._beats and (step < self._beats[-1][1] or at_s <= self._beats[-1][0]):
            self._beats.clear()
        self.step = step
        self._beats.append((at_s, step))
        while at_s - self._beats[0][0] > WINDOW_S:
            self._beats.popleft()

    @property
    def rate(self) -> float | None:
        """Steps a second, None where they are not known yet."""
        if not self._beats:
            return None
        (from_s, first), (to_s, last) = self._beats[0], self._beats[-1]
        return (last - first) / (to_s - from_s) if to_s - from_s >= LEAST_S else None
