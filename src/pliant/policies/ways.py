"""The ways in which FMS can place a pair of jobs, or one job alone, and which of them is best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pliant.model import Job, Kind
from pliant.placement import Option
from pliant.placement.pick import Places
from pliant.policies.candidates import Candidate
from pliant.policies.desk import Desk

NEVER_S = float("inf")
BESIDE = ((Kind.CPU, Kind.GPU), (Kind.GPU, Kind.CPU))


class Move(NamedTuple):
    """One job in one way. ``places`` None: it waits; ``option`` None too: for anything."""

    job: Job
    option: Option | None
    places: Places | None
    done_s: float


class Start(NamedTuple):
    """A move of a job that starts now."""

    job: Job
    option: Option
    places: Places
    done_s: float


class Way(NamedTuple):
    """One way to place a pair or a single job."""

    moves: tuple[Move | Start, ...]
    words: str


def rank(way: Way) -> tuple[float, float, int]:
    """Order ways: last completion, sum of completions, nodes."""
    done = [move.done_s for move in way.moves]
    nodes = {place for move in way.moves for place in move.places or ()}
    return (max(done), sum(done), len(nodes))


class Ways:
    """All ways over what is free now."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._free = desk, desk.free

    def best_alone(self, one: Candidate) -> Way:
        """Return the best way to place one job of which something fits now."""
        ways = [Way((move,), "it is done soonest so") for move in self._starts(one)]
        if self._desk.may_keep(one.job):
            ways.append(Way((self._wait(one),), "it is done sooner if it waits"))
        return min(ways, key=rank)

    def best(self, one: Candidate, two: Candidate) -> Way:
        """Return the best way to place two jobs of each of which something fits now."""
        return min(self._of_both(one, two), key=rank)

    def _of_both(self, one: Candidate, two: Candidate) -> Iterator[Way]:
        yield from self._side_by_side(one, two)
        if self._desk.may_keep(two.job):
            for first in self._starts(one):
                moves = (first, self._after(two, first))
                yield Way(moves, "one after the other both are done soonest")
        if self._desk.may_keep(one.job):
            waits = self._wait(one)
            for second in self._starts(two):
                yield Way((waits, second), "")

    def _starts(self, candidate: Candidate) -> Iterator[Start]:
        for option, run_s, places in candidate.now:
            yield Start(candidate.job, option, places, self._free.now_s + run_s)

    def _side_by_side(self, one: Candidate, two: Candidate) -> Iterator[Way]:
        """Both now: on the same nodes where one takes the cores and the other the GPUs."""
        alone = True
        for first in self._starts(one):
            with self._free.supposing():
                given = self._free.take_places(one.job, first.option, first.places)
                seconds = list(self._seconds(two, first))
                self._free.release(given)
            for second in seconds:
                yield Way((first, second), "beside job {other} both are done soonest")
                alone = False
        if alone:
            for first in self._starts(one):
                moves = (first, self._after(two, first))
                yield Way(moves, "job {other} cannot start beside it in any way")

    def _seconds(self, two: Candidate, first: Start) -> Iterator[Start]:
        """What the second job can do now that the first has taken what it needs."""
        bound = self._free.bound(two.job)
        for option, run_s in two.tried:
            places = self._beside(two, option, first)
            if places is None:
                places = self._free.places(two.profile, option, bound)
            if places is not None:
                yield Start(two.job, option, places, self._free.now_s + run_s)

    def _beside(self, two: Candidate, option: Option, first: Start) -> Places | None:
        """The nodes of ``first``, where one takes the cores and the other the GPUs of them."""
        shapes = (first.option[0], option[0])
        if (shapes[0].kind, shapes[1].kind) not in BESIDE:
            return None
        if shapes[0].nodes != shapes[1].nodes or len(two.profile.scopes) != 1:
            return None
        names = self._free.names(first.places)
        fits = self._free.fits_on(two.job, option[0], names)
        admitted = all(
            two.profile.scopes[0].admits(place, self._free.cell(place).kind)
            for place in first.places
        )
        return first.places if fits and admitted else None

    def _after(self, two: Candidate, first: Start) -> Move:
        """The second job when the first is done, in its place, or at its own next opening."""
        shape = first.option[0]
        best = self._wait(two)
        for option, run_s in two.tried:
            done_s = first.done_s + run_s
            if (
                done_s < best.done_s
                and option[0].nodes <= shape.nodes
                and option[0].amount <= shape.amount
            ):
                best = Move(two.job, option, None, done_s)
        return best

    def _wait(self, candidate: Candidate) -> Move:
        """The job at the opening after which it is done first, of those that are not now."""
        now = [fitting[0] for fitting in candidate.now]
        best = Move(candidate.job, None, None, NEVER_S)
        for option, run_s in candidate.tried:
            if option not in now:
                at_s = self._desk.opening_s(candidate.job, candidate.profile, option)
                done_s = at_s + run_s
                if done_s < best.done_s:
                    best = Move(candidate.job, option, None, done_s)
        return best
