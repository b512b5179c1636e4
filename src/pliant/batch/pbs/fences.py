"""The fences that stand, kept in the file that the runjob hook reads (see filter/pbs/fences.py).

A fence is *opened* once whom it is for may start: it keeps the others out for some seconds more,
and is not put up again. What cannot be written down is not so: all stays as the hooks have it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pliant.batch.pbs.shown import show
from pliant.errors import BadInput, Unavailable
from pliant.filter.pbs.fences import Fence, fences_text, read_fences
from pliant.handover import GIVE_UP_S, START_S

log = logging.getLogger("pliant.fences")


@dataclass(frozen=True, slots=True)
class Kept:
    """One fence, also one that has ended: as long as its hand-over may ask after it."""

    fence: Fence
    opened: bool = False


class Fences:
    """The fences by job; safe to use from several threads."""

    def __init__(self, path: Path | None, clock: Callable[[], float]) -> None:
        """``path`` None: nobody is told of them. ``clock`` counts seconds since the epoch."""
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._kept: dict[str, Kept] = {one.job: Kept(one) for one in _read(path)}
        self._stood = set(self._kept)  # when this was asked last, or since
        self._asked = path is None
        self._is_told = False  # that nothing can be written

    def of(self, job: str) -> Kept | None:
        """Return a job's fence; None where it had none lately."""
        with self._lock:
            return self._kept.get(job)

    def standing(self) -> dict[str, float]:
        """Return when each fence ends that stands now and is not open, by job."""
        now_s = self._clock()
        with self._lock:
            some = [one.fence for one in self._kept.values() if not one.opened]
        return {fence.job: fence.until_s for fence in some if fence.stands(now_s)}

    def fell(self) -> bool:
        """Whether one has ended since this was last asked: whom it kept out may start.

        At first one may have: a pliantd may have been killed before it woke those.
        """
        with self._lock:
            now_s = self._clock()
            stand = {job for job, one in self._kept.items() if one.fence.stands(now_s)}
            fell = not (self._asked and self._stood <= stand)
            self._stood, self._asked = stand, True
            return fell

    def not_woken(self) -> None:
        """Note that those who may start could not be woken: it is to be tried again."""
        with self._lock:
            self._asked = False

    def put(self, fence: Fence) -> None:
        """Put up a fence, in place of an earlier one of its job. Raises Unavailable."""
        self._set(Kept(fence))

    def check(self) -> None:
        """Raise Unavailable where nobody could be told of a fence now."""
        with self._lock:
            if self._path is not None:
                self._write(self._path, self._kept, or_empty=True)

    def let_in(self, job: str, *whom: str) -> None:
        """Let these in, and nobody else, for as long as it stands. Raises Unavailable."""
        known = self.of(job)
        if known is not None and known.fence.lets != whom:
            self._set(replace(known, fence=replace(known.fence, lets=whom)))

    def open(self, job: str) -> None:
        """Let whom it is for be first, for some seconds. Raises Unavailable."""
        known = self.of(job)
        if known is not None:
            until_s = self._clock() + START_S
            self._set(Kept(replace(known.fence, until_s=until_s), opened=True))

    def end(self, job: str) -> None:
        """Keep nobody out any more. Raises Unavailable."""
        known = self.of(job)
        if known is not None:
            self._set(Kept(replace(known.fence, until_s=self._clock()), opened=True))

    def _set(self, kept: Kept) -> None:
        now_s = self._clock()
        with self._lock:
            others = (one for one in self._kept.values() if one.fence.until_s > now_s - GIVE_UP_S)
            after = {one.fence.job: one for one in others} | {kept.fence.job: kept}
            if self._path is not None:
                self._write(self._path, after)
            self._kept = after
            self._stood.add(kept.fence.job)

    def _write(self, path: Path, kept: Mapping[str, Kept], *, or_empty: bool = False) -> None:
        """Write down those that stand; where none does there is no file. Raises Unavailable.

        ``or_empty``: one is written all the same, and removed.
        """
        now_s = self._clock()
        some = [one.fence for one in kept.values() if one.fence.stands(now_s)]
        try:
            if some or or_empty:
                show(path, fences_text(some))
                self._is_told = False
            if not some:
                path.unlink(missing_ok=True)
        except OSError as error:
            words = f"{path}: {error.strerror}: nobody can be kept out of what a job gives up"
            if not self._is_told:
                log.warning("%s", words)
            self._is_told = True
            raise Unavailable(words) from None


def _read(path: Path | None) -> tuple[Fence, ...]:
    """Return the fences of a pliantd that is no more; none where nothing can be read."""
    try:
        return read_fences(path.read_text()) if path is not None else ()
    except (OSError, ValueError, BadInput):
        return ()
