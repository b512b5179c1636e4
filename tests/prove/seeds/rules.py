"""What may never be, whatever goes wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pliant.batch.slurm.standing import ROUNDED_S
from pliant.handover import FRESH_S, GUEST, HANDED, OURS, PINNED, RETURNS, SOON_S, Outcome
from prove.fake_slurm import HELD, KILLS_S, REQUEUE_S, Record, called
from prove.seeds.disk import Disk
from prove.seeds.owners import Owners
from prove.seeds.programs import Run
from prove.seeds.site import Site
from prove.world import is_given_away

LOOKS = 5
"""Within so many looks nothing is left of a hand-over that is over."""
AGAIN_S = 20.0
"""A job that gave up its place for no more than that has it again within so long, undisturbed."""
IDLE_S = 15.0
"""So long does a program that has saved wait at most for what comes of it, undisturbed."""
LOOK_S = 8.0
"""So old is at most what pliantd goes by where nothing goes wrong: it looks every 5 s."""
TAKEN_S = 20.0
"""A place that was taken so shortly ago may be lost and taken again in the same hand-over."""
BACK_S = 70.0
"""After a pause as long as this each wrapper speaks to a pliantd that was started again."""
ASKED_S = 40.0
"""So long before its program saved was a job decided on at most, by what was so then."""
ON_ITS_WAY_S = 0.1
"""So long lies between pliantd's last look at a job before a command and what that does."""
HALF_S = 1.0
"""So long is what an owner asks taken for what Slurm has made in part (docs/promises.md)."""
NOT_AGAIN = (Outcome.NOT_SAVED, Outcome.RUN_OVER, Outcome.NOT_LAUNCHED)
"""What came of a hand-over of which no start is to follow."""
OF_JOBS = frozenset(
    ("pin", "pin-guest", "requeue", "reshape", "put back", "release", "note", "mold")
)
OF_WORDS = {"Gres": "gpus", "StartTime": "begin_s", "TimeLimit": "limit_min", "Priority": "held"}
"""Which of what an owner may have said a word of scontrol's overwrites."""
LENT = ("pliant-priority=", "pliant-nice=", "pliant-memory=")
"""What is noted beside a token as long as it is lent."""


@dataclass(slots=True)
class Place:
    """The place of one job: GPUs that it gave up, and that pliantd made it ask for since.

    ``most``: the most that it gave up in one hand-over, in which it may have lost its place again;
    ``on``, ``each``: where those are that it gave up, and how many on each of its nodes; ``fits``:
    what it asks for is there.

    ``saved_s``: when its program saved that has not run since; ``requeued_s``: when pliantd
    requeued it that has not started since; ``had_s``: when it last had a place of its own;
    ``was_lost``: it had one, and lost it so soon that the same hand-over may take it again.
    ``let``: the least that it asked as it was pinned as a guest, last at ``let_s``. ``told_s``: when
    pliantd told it first when to begin, as it waits now. ``crowded``: somebody has started there
    since pliantd's last look, maybe on what its guest needs, too.
    """

    gave_up: int = 0
    most: int = 0
    on: tuple[str, ...] = ()
    each: int = 0
    asked: int = 0
    fits: bool = True
    saved_s: float = 0.0
    requeued_s: float = 0.0
    had_s: float = 0.0
    was_lost: bool = False
    is_guest: bool = False
    let: int = 0
    let_s: float = 0.0
    told_s: float = 0.0
    makes_room: bool = False
    crowded: bool = False


class Rules:
    """Watches a site; ``wrong``: what was seen that may never be."""

    def __init__(self, site: Site, owners: Owners, disk: Disk) -> None:
        self._site, self._owners, self._disk = site, owners, disk
        self.wrong: list[str] = []
        self.hand_overs = 0
        self.requeued: set[tuple[int, int]] = set()
        """The runs that pliantd has ended, by job and by the number that Slurm knew."""
        self.undisturbed: set[tuple[int, int]] = set()
        """The runs that saved and began again while nothing went wrong, and no owner spoke."""
        self._places: dict[int, Place] = defaultdict(Place)
        self._begun_s: dict[str, float] = {}  # when somebody has started on each node
        self._final: dict[int, str] = {}  # how each job has ended
        self._left: dict[str, int] = {}  # for how many looks something of ours was left
        self._disturbed_s = 0.0
        site.watches.append(self._changed)
        site.told.append(self._told)
        site.moments.append(self._moment)

    def is_wrong(self, what: str) -> None:
        self._site.trace.note(f"WRONG: {what}")
        self.wrong.append(what)

    def disturbed(self) -> None:
        """Something has gone wrong, or an owner has spoken: count anew."""
        self._left.clear()
        self._disturbed_s = self._site.time.now_s

    def _is_calm(self, since_s: float) -> bool:
        return self._disturbed_s < since_s and not self._site.lasting

    # --- of what pliantd does --------------------------------------------------------------

    def _told(self, step: str, argv: Sequence[str], complaint: str) -> None:
        if complaint or step not in OF_JOBS:
            return
        number = self._site.cluster.number_of(argv[2].removeprefix("jobid="))
        job, place = self._site.cluster.state.jobs[number], self._places[number]
        if "pliant=" not in job.comment:
            self.is_wrong(f"job {number} says nothing to Pliant: {' '.join(argv)}")
        self._stands(job, argv, step)
        if step == "requeue":
            self._requeued(job, self._site.runs.get(number))
        elif step == "reshape":
            place.asked = job.gpus * job.nodes
            there = job.gpus <= place.each and job.nodes <= len(place.on)
            place.fits = place.asked <= place.gave_up and there
        elif step == "pin-guest":
            self._lets(job, place)
            for other in self._places.values():
                other.makes_room |= other.requeued_s > 0

    def _lets(self, job: Record, place: Place) -> None:
        """Note a guest: one that is pinned anew is so for the same room, and asks for no more."""
        asks, now_s = job.gpus * job.nodes, self._site.time.now_s
        is_anew = place.is_guest and now_s - place.let_s < TAKEN_S
        place.let, place.let_s = min(asks, place.let) if is_anew else asks, now_s
        place.is_guest = True

    def _requeued(self, job: Record, run: Run | None) -> None:
        place = self._places[job.number]
        place.had_s = place.requeued_s = self._site.time.now_s
        if run is not None:
            called = job.run - (job.state != "RUNNING")  # else the requeue did not reach Slurm
            self.requeued.add((job.number, called))
            is_forgotten = run.run > called
            is_gone = run.is_left and run.is_over  # its slurmstepd too: it runs for Slurm alone
            if run.was_managed and not (run.has_saved or is_forgotten or is_gone):
                self.is_wrong(f"job {job.number}: its run is ended, which has not saved")

    def _could_be_slurms(self, job: Record, begin_s: float) -> bool:
        """Whether its owner's time to begin is one that Slurm, or a pliantd, gives who is requeued.

        Such a one stands once the same pliantd has seen its own, and where a slurmctld that
        forgets that forgets its shape, too (docs/promises.md).
        """
        place, began_s = self._places[job.number], self._site.began_s
        if place.told_s <= job.submit_s:
            place.told_s = began_s
        since_s = max(place.told_s + HALF_S, self._site.started_s)
        knows = self._owners.spoke_s.get(job.number, 0.0) > since_s and place.asked != place.gave_up
        later_s = begin_s - job.submit_s
        by_slurm = later_s in (SOON_S, FRESH_S) or abs(later_s - REQUEUE_S) <= ROUNDED_S
        return by_slurm and not knows

    def _stands(self, job: Record, argv: Sequence[str], step: str) -> None:
        """Whether what its owner said last is so yet."""
        said = self._owners.said.get(job.number, {})
        ago_s = self._site.began_s - self._owners.spoke_s.get(job.number, 0.0)
        if ago_s < ON_ITS_WAY_S:  # the command was on its way; Slurm has none that looks first
            words = ("Priority",) if step == "release" else (w.partition("=")[0] for w in argv[3:])
            for word in words:
                said.pop(OF_WORDS.get(word, ""), None)
        if step in ("reshape", "put back") and self._could_be_slurms(job, said.get("begin_s", 0.0)):
            said.pop("begin_s")
        if step == "mold" and job.priority in OURS and ago_s < HALF_S:  # it is put back
            said.pop("gpus", None)  # it may be what was to be: as if half of it had been put back
        past_s = self._site.clock() + ROUNDED_S  # by a clock that is ahead, too
        is_so = {
            "gpus": job.gpus == said.get("gpus"),
            "begin_s": job.begin_s >= said.get("begin_s", 0.0) or said["begin_s"] <= past_s,
            "limit_min": job.limit_min <= said.get("limit_min", 0.0),
            "held": job.priority == 0,
        }
        for name in said:
            if not is_so[name] and (job.waits or job.state == "RUNNING"):
                self.is_wrong(f"its owner said {name}={said[name]:g}: {job}: {' '.join(argv)}")

    # --- of what becomes of jobs -----------------------------------------------------------

    def _changed(self, before: Record | None, job: Record) -> None:
        if before is not None and is_given_away(before, job):
            self.is_wrong(f"its program runs on what may be another's now: {job}")
        if job.taken != (before.taken if before is not None else {}):
            self._takes_gpus(job)
        if before is not None and before.state == job.state:
            return
        number, run = job.number, self._site.runs.get(job.number)
        self._final.pop(number, None)
        if job.is_over:
            self._final[number] = job.state
        if job.state == "COMPLETING" and run is not None:
            self._gives_up(job, run)
        elif job.state == "RUNNING":
            self._starts(job, self._places[number])
        elif job.state == "FAILED":
            self._fails(job, run)

    def _takes_gpus(self, job: Record) -> None:
        """Whether all that a job has now is its own: Slurm counts GPUs, and gives none twice."""
        for node in job.taken:
            if self._site.cluster.state.free(node) < 0:
                self.is_wrong(f"two jobs have one GPU of {node}: {job}")

    def _gives_up(self, job: Record, run: Run) -> None:
        place = self._places[job.number]
        now_s = self._site.time.now_s
        place.was_lost = place.had_s > now_s - TAKEN_S
        before = place.gave_up if place.was_lost else 0
        place.gave_up, place.each, place.fits = job.gpus * job.nodes, job.gpus, True
        place.on, place.most = job.on, max(before, place.gave_up)
        place.crowded = any(self._begun_s[node] > now_s - LOOK_S for node in job.on)
        if run.seems_saved:
            place.had_s = place.saved_s = now_s
        elif run.run >= job.run:  # slurmctld has forgotten it: the hand-over before goes on
            place.had_s = now_s

    def _starts(self, job: Record, place: Place) -> None:
        number, now_s = job.number, self._site.time.now_s
        for other, kept in self._places.items():
            if other != number and kept.requeued_s and not set(kept.on).isdisjoint(job.on):
                self._takes(job, other, kept)
        if job.priority in OURS:
            self._starts_first(job, place)
        self.hand_overs += place.saved_s > 0
        self._begun_s.update(dict.fromkeys(job.on, now_s))
        # what is more another that comes back may have
        if place.saved_s and place.fits and not (place.crowded and job.priority == PINNED):
            run = (number, job.run - 1)
            self._site.time.after(IDLE_S, self._is_undisturbed, run, place.saved_s)
        if place.requeued_s:
            self._starts_again(job, place)
        self._owners.said.get(number, {}).pop("begin_s", None)
        had_s = now_s if place.requeued_s or place.saved_s else place.had_s
        self._places[number] = Place(gave_up=place.gave_up, asked=place.asked, had_s=had_s)

    def _is_undisturbed(self, run: tuple[int, int], saved_s: float) -> None:
        if self._is_calm(saved_s - ASKED_S):
            self.undisturbed.add(run)

    def _takes(self, job: Record, other: int, kept: Place) -> None:
        """Whether another job, which pliantd has requeued, has its place yet once this one starts."""
        state = self._site.cluster.state
        waits = state.jobs.get(other)
        if waits is None or not (waits.waits and waits.priority):
            return  # it is held
        room = sum(state.free(node) >= waits.gpus for node in kept.on)
        is_its_own = kept.fits and not kept.makes_room and self._is_calm(kept.requeued_s - AGAIN_S)
        is_under_way = self._site.outcome(other) is None
        if not (is_its_own and is_under_way and room < waits.nodes):
            return
        if job.priority in HANDED and waits.priority <= job.priority:  # the two have no order
            kept.fits = False
        else:
            self.is_wrong(f"job {job.number} starts where job {other} is to have its place again")

    def _standing(self) -> list[str]:
        return self._site.cluster.state.standing(self._site.time.now_s)

    def _starts_first(self, job: Record, place: Place) -> None:
        """Before all others, by a pin of ours."""
        recent = place.was_lost or self._site.worked_s(place.had_s) < TAKEN_S
        again = self._disk.was_full  # of a hand-over whose end could not be stored
        if not (place.saved_s or place.requeued_s or place.is_guest or recent or again):
            self.is_wrong(f"job {job.number} starts with a pin, and has no place to return to")
        waits = f"pliant_{job.number}" in self._standing()  # for pliantd's next look
        most = place.let if place.is_guest else max(place.most, place.asked)
        more = job.gpus * job.nodes > most and not waits
        said_s = self._owners.spoke_s.get(job.number, 0.0)
        # its first look takes long, and one before which it stood still was of before
        looks_s = HALF_S if self._site.was_away(said_s) else ON_ITS_WAY_S
        if more and self._site.worked_s(said_s) > looks_s:
            self.is_wrong(f"job {job.number} starts with a pin as more than it had: {job}")

    def _starts_again(self, job: Record, place: Place) -> None:
        """A job that was requeued by pliantd, for whom nobody else was to be first."""
        waited_s = self._site.time.now_s - place.requeued_s
        left = self._site.outcome(job.number) == Outcome.NOT_LAUNCHED  # its starts have failed
        may_start = place.fits and not place.makes_room and not left
        if may_start and waited_s > AGAIN_S and self._is_calm(place.requeued_s - AGAIN_S):
            self.is_wrong(f"job {job.number} had its place taken: it waited for {waited_s:.0f} s")

    def _fails(self, job: Record, run: Run | None) -> None:
        """By itself, or killed at its start: then it is to be requeued by who hands it over.

        A victim that waits is not looked after for longer than a kill of before may meet its start.
        """
        outcome = self._site.outcome(job.number)
        left = not self._places[job.number].saved_s or outcome in NOT_AGAIN
        left |= outcome is not None and job.start_s >= job.submit_s + KILLS_S
        if run is None and (left or self._disk.was_full):  # then what is to follow is not stored
            self._site.excused.add(job.number)  # as Slurm alone would have it

    def _moment(self, moment: str, number: int) -> None:
        if moment == "saved":
            now_s = self._site.time.now_s
            self._site.time.after(IDLE_S, self._goes_on, number, self._site.runs[number], now_s)

    def _goes_on(self, number: int, run: Run, saved_s: float) -> None:
        """Whether something has come of what a program has saved."""
        idles = self._site.runs.get(number) is run and not run.program.runs and not run.is_over
        if idles and run.saved_s == saved_s and self._is_calm(saved_s - BACK_S):
            self.is_wrong(f"job {number} has saved, and idles since {IDLE_S:.0f} s")

    # --- of what is left -------------------------------------------------------------------

    def looked(self) -> None:
        """After each look of a pliantd that is not disturbed: nothing of ours outlasts its use."""
        self._left = {what: self._left.get(what, 0) + 1 for what in self._leftovers()}
        for what, looks in self._left.items():
            if looks == LOOKS + 1:
                self.is_wrong(f"after {LOOKS} looks: {what}")

    def _leftovers(self) -> Iterator[str]:
        guests = self._site.guests()
        for job in self._site.cluster.state.jobs.values():
            if job.state == "RUNNING":
                yield from self._left_to_a_run(job)
            left = [*self._left_to_one_that_waits(job, guests)] if job.waits else []
            if left and self._site.outcome(job.number) is not None:
                yield from left
        for name in self._standing():
            yield from self._left_standing(name)

    def _left_to_a_run(self, job: Record) -> Iterator[str]:
        run = self._site.runs.get(job.number)
        if run is None or run.has_saved:
            return
        if job.priority in OURS:
            yield f"job {job.number} runs with a pin (run {job.run})"
        elif any(words in job.comment for words in LENT) and job.priority:
            yield f"job {job.number} runs with what it lent (run {job.run}): {job.comment}"
        if run.run != job.run and self._is_to_go_back(job, run):
            yield f"job {job.number} has begun run {run.run}; Slurm knows run {job.run} alone"

    def _left_to_one_that_waits(self, job: Record, guests: Collection[str]) -> Iterator[str]:
        """What nobody may have but in a hand-over: who gave up a place keeps a victim's pin."""
        who = f"job {job.number} waits (run {job.run})"
        if job.priority == RETURNS:
            yield f"{who} with the pin of one that returns, and nothing is under way"
        elif job.priority == GUEST and called(job) not in guests:
            yield f"{who} with the pin of a guest, and nobody makes room for it"
        elif job.priority == PINNED:
            yield from self._left_pinned(job, who)
        by_slurm_s = job.submit_s + REQUEUE_S + ROUNDED_S
        later = job.begin_s > max(by_slurm_s, self._site.time.now_s)
        if later and not self._owners.lets_begin(job):
            yield f"{who} to begin {job.begin_s - job.submit_s:.0f} s later, which nobody has said"

    def _left_pinned(self, job: Record, who: str) -> Iterator[str]:
        """Whether one waits as a victim that gave up no place, or asks for another one."""
        place, asks = self._places[job.number], job.gpus * job.nodes
        if not (place.saved_s or place.requeued_s or place.was_lost):
            yield f"{who} with a victim's pin, and has given up no place"
        elif self._site.outcome(job.number) == Outcome.CHANGED:
            yield f"{who} with a victim's pin, and was changed by others"
        elif asks > max(place.most, place.asked):
            yield f"{who} with a victim's pin, and asks for {asks} GPUs, more than it had"

    def _left_standing(self, name: str) -> Iterator[str]:
        number = int(name.removeprefix("pliant_").partition("_")[0])
        known, run = self._site.cluster.state.jobs.get(number), self._site.runs.get(number)
        runs = known is not None and known.state == "RUNNING" and run and not run.has_saved
        begins_s = self._owners.said.get(number, {}).get("begin_s", 0.0)
        if known is None or known.is_over or runs:
            yield f"{name} stands, and its job {'runs' if runs else 'is over'}"
        elif known.waits and begins_s > self._site.time.now_s:
            yield f"{name} stands, and its job's owner lets it begin later"
        elif known.waits and self._site.outcome(number) is not None:
            yield f"{name} stands, and nothing is under way: {known}"

    def _is_to_go_back(self, job: Record, run: Run) -> bool:
        """Whether a run of which slurmctld has forgotten all is one that pliantd let begin."""
        speaks = run.wrapper is not None and self._is_calm(self._site.time.now_s - BACK_S)
        return speaks and (job.number, job.run) in self.requeued

    def settled(self) -> None:
        """Check how all jobs have ended, and that nothing of ours is left at the end."""
        for words in self._site.trace.internal:
            self.is_wrong(f"internal: {words}")
        for number, how in sorted(self._final.items()):
            self._ended(number, how)
        for name in self._standing():
            self.is_wrong(f"{name} is left at the end")
        for job in self._site.cluster.state.jobs.values():
            if not job.is_over:
                self.is_wrong(f"job {job.number} has not ended: {job}")

    def _ended(self, number: int, state: str) -> None:
        """Check how a job has ended."""
        work = self._site.work[number]
        cancelled = number in self._owners.cancelled
        shorter = "limit_min" in self._owners.said.get(number, {})
        if state == "COMPLETED" or (cancelled and state == "CANCELLED"):
            return
        if state == "FAILED" and (work.doomed or number in self._site.excused):
            return
        if state == "TIMEOUT" and (shorter or number in self._site.left):
            return
        self.is_wrong(f"job {number} has ended: {state}")


def is_held_by_slurm(job: Record) -> bool:
    """Whether a job waits for an administrator: its node refused its start."""
    return job.waits and job.priority == 0 and job.reason == HELD
