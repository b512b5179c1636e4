"""Where a policy that is told run times places jobs, now or later, and starts those of now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pliant.model import Job, Snapshot
from pliant.placement import Option, Profile
from pliant.policies.candidates import run_s
from pliant.policies.desk import Desk
from pliant.policies.outlook import Opening, Outlook

Entry = tuple[Job, Profile]


class Booking(NamedTuple):
    """A job as an option in an opening, and when it is done then."""

    job: Job
    profile: Profile
    option: Option
    opening: Opening
    run_s: float

    @property
    def done_s(self) -> float:
        """When it is expected to be over."""
        return self.opening.at_s + self.run_s


class Plans:
    """Jobs placed one after the other over what is expected to be free."""

    def __init__(self, snapshot: Snapshot, cpu_speed: float) -> None:
        self.desk = Desk(snapshot)
        self.outlook = Outlook(self.desk.free, cpu_speed)
        self.now_s = snapshot.now_s
        self._cpu_speed = cpu_speed

    def profile(self, job: Job) -> Profile:
        """Return what a job has in common with others."""
        return self.desk.free.profile(job)

    def fits_now(self, job: Job, profile: Profile, options: Iterable[Option]) -> bool:
        """Whether one of some options could start now."""
        free = self.desk.free
        bound = free.bound(job)
        return any(free.places(profile, option, bound) is not None for option in options)

    def some_fit(self, queue: Iterable[Entry]) -> bool:
        """Whether any of these jobs could start now as anything: else planning has no use."""
        seen = set[Profile]()
        for job, profile in queue:
            if profile not in seen and self.fits_now(job, profile, profile.options):
                return True
            seen.add(profile)
        return False

    def run_s(self, job: Job, option: Option) -> float:
        """Return how long a job runs as an option."""
        return run_s(job, option[0], self._cpu_speed)

    def booked(
        self, job: Job, profile: Profile, option: Option, from_s: float | None = None
    ) -> Booking | None:
        """Return a job's earliest booking as an option; None: it has no opening, ever."""
        time_s = self.run_s(job, option)
        opening = self.outlook.earliest(profile, option, time_s, from_s)
        return None if opening is None else Booking(job, profile, option, opening, time_s)

    def best(
        self,
        job: Job,
        profile: Profile,
        options: Iterable[Option],
        from_s: float | None = None,
    ) -> Booking | None:
        """Return the booking by which a job is done first; of equal ones on the fewest nodes."""
        found = [self.booked(job, profile, option, from_s) for option in options]
        bookings = [booking for booking in found if booking is not None]
        return min(
            bookings,
            key=lambda b: (b.done_s, b.option[0].nodes, b.option[0].amount, b.option[0]),
            default=None,
        )

    def book(self, booking: Booking) -> None:
        """Write a booking down."""
        self.outlook.book(booking.option, booking.opening, booking.run_s)

    def carry_out(self, booking: Booking, reason: str) -> None:
        """Book, and let the job start where its opening is now; an array as far as it fits."""
        self.book(booking)
        job, profile, option, opening, _ = booking
        if opening.at_s > self.now_s:
            return
        free = self.desk.free
        bound = free.bound(job)
        places = opening.places
        if not free.admits(profile, option, places, bound):
            # Which single GPUs are shared is known of now alone: there may be other room.
            found = free.places(profile, option, bound)
            if found is None:
                return
            places = found
        given = [free.take_places(job, option, places)]
        while len(given) < job.tasks_waiting:
            more = free.places(profile, option, bound)
            if more is None:
                break
            given.append(free.take_places(job, option, more))
            self.outlook.book(option, Opening(self.now_s, more), booking.run_s)
        self.desk.start(job, given, reason)
