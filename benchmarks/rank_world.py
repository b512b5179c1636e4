"""A fake of a program with ranks: threads with clocks of their own, which only collectives join.

No second passes: each rank counts its own, and a collective ends at the latest arrival. So a run is
the same whenever its seed is. As with NCCL and gloo, a signal that comes while a rank waits in a
collective is handled once that has returned, and collectives are matched by their order alone: a
rank that is in another one than the rest, or has ended, hangs all of them for ever.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

STEP_S, JITTER = 0.2, 0.2


class Hang(BaseException):
    """All ranks wait for each other; no Exception, for no program catches it in reality."""


@dataclass
class World:
    """The ranks of one program, and the collective that each waits in."""

    ranks: int
    hung: str = ""  # in which collectives, by rank
    _inside: dict[int, tuple[str, bool, float]] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)
    done: int = 0  # collectives
    _answer: tuple[bool, float] = (False, 0.0)
    _turn: threading.Condition = field(default_factory=threading.Condition)

    def collective(self, rank: int, name: str, word: bool, at_s: float) -> tuple[bool, float]:
        """Join a collective; return whether any rank said True, and when it was over."""
        with self._turn:
            self._inside[rank] = (name, word, at_s)
            number = self.done
            self._look()
            self._turn.wait_for(lambda: self.hung != "" or self.done > number)
            if self.hung:
                raise Hang(self.hung)
            return self._answer

    def end(self, rank: int) -> None:
        """Note that a rank has ended."""
        with self._turn:
            self._ended.add(rank)
            self._look()

    def _look(self) -> None:
        """Let the collective end once all ranks are in it; nothing else can happen then."""
        if len(self._inside) + len(self._ended) < self.ranks or not self._inside:
            return
        names = {name for name, _, _ in self._inside.values()}
        if self._ended or len(names) > 1:
            self.hung = f"{sorted(names)}, ended: {sorted(self._ended)}"
        else:
            said = self._inside.values()
            self._answer = any(word for _, word, _ in said), max(at_s for _, _, at_s in said)
            self._inside = {}
            self.done += 1
        self._turn.notify_all()


class Rank:
    """One rank: its clock, and a signal that comes at an instant."""

    def __init__(
        self, world: World, number: int, seed: int, signal_s: float = float("inf")
    ) -> None:
        """``signal_s``: when it is sent the signal."""
        self.world, self.number, self.now_s = world, number, 0.0
        self._signal_s, self.handler = signal_s, _ignored
        self._draw = random.Random(f"{seed}/{number}")  # a draw, no secret

    def compute(self) -> None:
        """Work for about one step; the handler of a signal runs at once."""
        end_s = self.now_s + STEP_S * self._draw.uniform(1 - JITTER, 1 + JITTER)
        self._handle(end_s)
        self.now_s = max(self.now_s, end_s)

    def any_rank(self, name: str, word: bool = False) -> bool:
        """Wait in a collective; the handler of a signal runs after it."""
        said, self.now_s = self.world.collective(self.number, name, word, self.now_s)
        self._handle(self.now_s)
        return said

    def _handle(self, until_s: float) -> None:
        if self._signal_s <= until_s:
            self.now_s = max(self.now_s, self._signal_s)
            self._signal_s = float("inf")
            self.handler()


def _ignored() -> None:
    """Do nothing on a signal."""


def run(program: Callable[[Rank], None], seed: int, signals_s: Sequence[float]) -> str:
    """Run a program in as many ranks as there are instants, until all have saved and ended.

    Return how it hung, "" it did not.
    """
    world = World(len(signals_s))
    codes: list[object] = []

    def life(rank: Rank) -> None:
        try:
            program(rank)
        except SystemExit as end:
            codes.append(end.code)
        except Hang:
            return
        world.end(rank.number)

    ranks = [Rank(world, number, seed, at_s) for number, at_s in enumerate(signals_s)]
    threads = [threading.Thread(target=life, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert world.hung or codes == [85] * len(ranks), codes
    return world.hung
