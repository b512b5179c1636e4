"""Many jobs in little memory: what differs between them in arrays, each made where it is read.

A workload of half a million jobs is then some tens of bytes a job instead of a kilobyte. What equal
jobs have in common (shapes, specification, footprint, speed) is one object for all of them, so that
what follows from it is worked out once (see :mod:`pliant.placement.profiles`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, TypeVar, overload

from pliant.simulator.workload import Arrival

T = TypeVar("T", bound=Hashable)
_ANY = "surrogatepass"  # a name in a trace may hold anything


class Rows(Sequence[Arrival]):
    """Arrivals that are made by ``build`` from their place in the order, whenever they are read."""

    def __init__(self, count: int, build: Callable[[int], Arrival]) -> None:
        self._places, self._build = range(count), build

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Arrival: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Arrival]: ...

    def __getitem__(self, place: int | slice) -> Arrival | Sequence[Arrival]:
        chosen = self._places[place]
        return self._build(chosen) if isinstance(chosen, int) else [*map(self._build, chosen)]

    def __iter__(self) -> Iterator[Arrival]:
        return map(self._build, self._places)


class Words:
    """Short texts, one after the other in one buffer."""

    def __init__(self) -> None:
        self._text, self._ends = bytearray(), array("Q", (0,))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        return self._text[self._ends[place] : self._ends[place + 1]].decode("utf-8", _ANY)

    def __iter__(self) -> Iterator[str]:
        return (self._text[begin:end].decode("utf-8", _ANY) for begin, end in pairwise(self._ends))

    def append(self, word: str) -> None:
        """Add a text at the end."""
        self._text += word.encode("utf-8", _ANY)
        self._ends.append(len(self._text))


class Kinds(Generic[T]):
    """What is repeated, kept once; each row has a number for it."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._number: dict[T, int] = {}
        self._rows = array("I")

    def __getitem__(self, row: int) -> T:
        return self.values[self._rows[row]]

    def append(self, value: T) -> None:
        """Add a row."""
        number = self._number.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        self._rows.append(number)

    def places(self) -> Iterator[tuple[T, Sequence[int]]]:
        """Yield each value with its rows, in the order in which the values came."""
        found = [array("I") for _ in self.values]
        for row, number in enumerate(self._rows):
            found[number].append(row)
        return zip(self.values, found, strict=True)
