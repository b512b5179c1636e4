"""FMS where run times are known: each pair of jobs in the way by which both are done first.

See :mod:`pliant.policies.fms` for the rule, and :mod:`pliant.policies.outlook` for what is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pliant.model import Kind
from pliant.placement import Option
from pliant.policies.candidates import PARTS, Dimensions, at_part, whole
from pliant.policies.plans import Booking, Entry, Plans


class Way(NamedTuple):
    """Both jobs of a pair, in the order in which they are booked."""

    first: Booking
    second: Booking
    words: str

    @property
    def rank(self) -> tuple[float, float, int]:
        """The last completion, then the sum of both, then the nodes."""
        done = (self.first.done_s, self.second.done_s)
        nodes = {*self.first.opening.places, *self.second.opening.places}
        return (max(done), sum(done), len(nodes))


class Pairing:
    """One decision over a queue in the paper's order."""

    def __init__(self, plans: Plans, molded: Dimensions, *, light: bool, later: bool) -> None:
        self._plans, self._molded, self._light, self._later = plans, molded, light, later

    def run(self, pairs: list[tuple[Entry, ...]]) -> None:
        """Place pair after pair, until nothing that waits could start now."""
        rest = [entry for pair in pairs for entry in pair]
        for pair in pairs:
            if not self._plans.some_fit(rest):
                return
            del rest[: len(pair)]
            self._place(pair)

    def _place(self, pair: tuple[Entry, ...]) -> None:
        if len(pair) == 2:
            way = min(self._ways(pair[0], pair[1]), key=lambda way: way.rank, default=None)
            if way is not None:
                one, two = way.first.job.id, way.second.job.id
                self._plans.carry_out(way.first, way.words.format(other=two))
                self._plans.carry_out(way.second, way.words.format(other=one))
                return
        for entry in pair:
            self._place_alone(entry)

    def _place_alone(self, entry: Entry) -> None:
        job, profile = entry
        options = [o for part in self._parts((entry,)) for o in self._molded.at(profile, part)]
        booking = self._plans.best(job, profile, options)
        booking = booking or self._plans.best(job, profile, profile.options)
        if booking is not None:
            self._plans.carry_out(booking, "it is done soonest so")

    def _parts(self, pair: tuple[Entry, ...]) -> tuple[int, ...]:
        """N alone where it is free and the load is low, else N/2 and N/4 too."""
        if not self._molded.nodes:
            return PARTS[:1]
        free = all(
            self._plans.fits_now(job, profile, self._molded.at(profile, 1)) for job, profile in pair
        )
        return PARTS[:1] if free and self._light else PARTS

    def _ways(self, one: Entry, two: Entry) -> Iterator[Way]:
        for part in self._parts((one, two)):
            yield from self._whole(one, two, part)
            if self._molded.kinds:
                yield from self._shared(one, two, part)

    def _whole(self, one: Entry, two: Entry, part: int) -> Iterator[Way]:
        """Each on CPU+GPU: one after the other, or side by side where there is room for both."""
        first = self._plans.best(*one, whole(at_part(one[1], part)))
        if first is None:
            return
        others = whole(at_part(two[1], part))
        with self._plans.outlook.supposing():
            self._plans.book(first)
            after = self._plans.best(*two, others, first.done_s)
            beside = self._plans.best(*two, others)
        if after is not None:
            yield Way(first, after, "one after the other with job {other} both are done soonest")
        if beside is not None and (self._later or self._is_now(first, beside)):
            yield Way(first, beside, "side by side with job {other} both are done soonest")

    def _is_now(self, *bookings: Booking) -> bool:
        return all(booking.opening.at_s <= self._plans.now_s for booking in bookings)

    def _shared(self, one: Entry, two: Entry, part: int) -> Iterator[Way]:
        """One on the cores, and one on the GPUs."""
        for kinds in ((Kind.CPU, Kind.GPU), (Kind.GPU, Kind.CPU)):
            first = self._plans.best(*one, _of(one, part, kinds[0]))
            if first is None:
                continue
            with self._plans.outlook.supposing():
                self._plans.book(first)
                second = self._plans.best(*two, _of(two, part, kinds[1]))
            if second is not None:
                words = "beside job {other}, one on cores and one on GPUs, both are done soonest"
                yield Way(first, second, words)


def _of(entry: Entry, part: int, kind: Kind) -> list[Option]:
    return [option for option in at_part(entry[1], part) if option[0].kind is kind]
