"""What a wrapper tells the others of its step, and sees of them, without ever waiting for it.

The directory that they share stands on a file system of all nodes, which may hang. So all that is
written to it is written, in order, by a thread beside the wrapper's main one, and looked at there;
what comes of it is done in the main one. While the file system hangs one look is under way at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pliant.node.aside import Aside
from pliant.node.ranks import NONE, Ranks
from pliant.node.saying import say
from pliant.node.words import Wish

SOON_S = 2.0
"""How long the end of a program waits for what the first task tells."""
LEAVE_S = 5.0
"""How long our own end waits for all that is to be written: a job's end waits for it too."""

Told = tuple[Wish | None, str, int]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look has seen; ``told``: to a task that is not the first, the rest to the first."""

    told: Told | None = None
    lost: int | None = None
    wish: str = ""  # for which it was looked at how they end
    ended: bool = False
    failed: tuple[int, int] | None = None


class Others:
    """The other tasks, as one wrapper's main thread deals with them."""

    def __init__(
        self, ranks: Ranks, leads: bool, soon: Callable[[Callable[[], None]], None]
    ) -> None:
        """``soon`` has something done by the main thread."""
        self._ranks, self._leads, self._soon = ranks, leads, soon
        self._aside = Aside()
        self._looks = self._tells = 0
        self._is_looking = False

    def join(self, then: Callable[[str], None]) -> None:
        """Begin; ``then`` learns why that failed, "" where it has not."""
        does = self._ranks.prepare if self._leads else self._ranks.join
        self._write(does, then)

    def tell(
        self, wish: Wish | None, decided: str, signal: int, then: Callable[[str], None]
    ) -> None:
        """Tell it, of the first task; what was to be told before, and is not yet, is over then."""
        self._tells += 1
        number = self._tells

        def newest() -> None:
            if number == self._tells:
                self._write_here(lambda: self._ranks.tell(wish, decided, signal), then)

        self._aside.do(newest)

    def ended(self, code: int, wish: str = NONE) -> None:
        """Say that our program has ended so."""
        self._write(lambda: self._ranks.ended(code, wish), complain)

    def resumed(self) -> None:
        """Say that our program runs again; a mark that stays names a wish that is over."""
        self._write(self._ranks.resumed, lambda _trouble: None)

    def look(self, wish: str, then: Callable[[Seen], None]) -> None:
        """Look, once the last look is over; ``wish``: for which all have to end now, if for one."""
        if not self._is_looking:
            self._is_looking = True
            self._looks += 1
            number = self._looks
            self._aside.do(lambda: self._came(number, self._look(wish), then))

    def told_now(self) -> Seen:
        """Look now what is told, for a short time; what was seen before and comes later is old."""
        self._looks += 1
        return Seen(told=self._aside.within(SOON_S, self._ranks.told))

    def leave(self) -> bool:
        """Say that we are done; return whether that could be said in time."""
        self._write(self._ranks.leave, lambda _trouble: None)
        return self._aside.wait(LEAVE_S)

    # In the thread

    def _look(self, wish: str) -> Seen:
        ranks = self._ranks
        if not self._leads:
            return Seen(told=ranks.told())
        lost = ranks.lost()
        if not wish:
            return Seen(lost=lost)
        return Seen(None, lost, wish, ranks.all_ended(wish), ranks.failed(wish))

    def _came(self, number: int, seen: Seen, then: Callable[[Seen], None]) -> None:
        def take() -> None:
            self._is_looking = False
            if number == self._looks:
                then(seen)

        self._soon(take)

    def _write(self, does: Callable[[], None], then: Callable[[str], None]) -> None:
        self._aside.do(lambda: self._write_here(does, then))

    def _write_here(self, does: Callable[[], None], then: Callable[[str], None]) -> None:
        try:
            does()
            trouble = ""
        except OSError as error:  # a full disk, a directory that is gone
            trouble = error.strerror or str(error)
        self._soon(lambda: then(trouble))


def complain(trouble: str) -> None:
    """Say it where something could not be written."""
    if trouble:
        say(f"the other tasks could not be told: {trouble}")
