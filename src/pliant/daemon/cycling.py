"""One cycle: observe, decide, record, act. Runs in a worker thread; the doors read what it left.

What is acted on is decided with the jobs of partitions that are only observed taken as rigid, as
they are in truth; what would be done there is a second decision over the same snapshot.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from pliant.batch import HELD_FOR_SHAPE, Batch, Ended
from pliant.cycle import (
    capped,
    cycle,
    forbidden,
    grown,
    leftover,
    taken_back,
)
from pliant.daemon.acting import Acting
from pliant.daemon.config import Config
from pliant.daemon.elastic import Elastic
from pliant.daemon.gpu_memory import GpuMemory
from pliant.daemon.marking import Marking
from pliant.daemon.patience import Patience
from pliant.daemon.recording import Recording
from pliant.daemon.remembering import Remembering
from pliant.daemon.seen import Counts, Seen
from pliant.daemon.sharing import Sharing
from pliant.errors import Refused, StandsBy, TooLate
from pliant.filter import Inventory
from pliant.model import Job, Mode, Snapshot
from pliant.plan import Mold, Policy
from pliant.store import Store

log = logging.getLogger("pliant.cycle")

AGAIN_S = 15.0
"""How soon a change that was refused is tried again, the first time; then twice as long."""

FORBIDDEN_S = 24 * 3600.0
"""How long a shape is left out in which the batch system would never start the job, at first."""


class Cycling:
    """Runs cycles, one at a time; the doors read what the last one saw."""

    def __init__(
        self,
        batch: Batch,
        store: Store,
        config: Config,
        policy: Policy,
        *,
        patience: Patience,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        elastic: Elastic | None = None,
        sharing: Sharing | None = None,
        seen_gpu_mib: Callable[[], Mapping[str, int]] = dict,
        publish: Callable[[Seen], None] = lambda _seen: None,
        ended: Callable[[], Sequence[Ended]] | None = None,
    ) -> None:
        """``clock`` counts seconds since the epoch, ``monotonic`` from anywhere, evenly.

        ``elastic``: changes running jobs; None leaves all as they are. ``sharing``: knows how fast
        jobs are beside each other; None: nobody does. ``seen_gpu_mib``: see :class:`GpuMemory`.
        ``publish``: is shown each cycle's outcome. ``ended``: see :class:`Remembering`.
        """
        self.batch, self.store, self.patience = batch, store, patience
        self.elastic, self.sharing, self._publish = elastic, sharing, publish
        self._seen_gpu_mib = seen_gpu_mib
        self.config, self.policy = config, policy  # replaced as a whole when read again
        self.acting = Acting(batch, store, clock, monotonic)
        self.seen: Seen | None = None
        self.counts = Counts()
        self._looked = threading.Condition()
        self._clock, self._monotonic = clock, monotonic
        self._recording = Recording(store, clock, self.acts_on)
        self.remembering = Remembering(store, clock, monotonic, self.mode, ended)
        if elastic is not None:
            elastic.count = self.remembering.counting.resized
        self._marking = Marking(self.acting, self._recording.note, self.counts, monotonic)

    def stop(self) -> None:
        """Let the changes in flight finish and make no further ones."""
        self.acting.stop()

    def run(self) -> None:
        """Run one cycle.

        Raises PliantError where the batch system is away or not understood.
        """
        store, started_s = self.store, self._monotonic()
        store.heal(self._clock())
        self.acting.looking()
        if self.elastic is not None:
            self.elastic.looking()
        try:
            snapshot = self.batch.observe()
        except StandsBy:
            self._show(None)  # another host's pliantd knows better from now on
            if self.elastic is not None:
                self.elastic.stood_by()
            raise
        looked_s = self._monotonic()
        if self.elastic is not None:
            self.elastic.looked(capped(snapshot, self.config.trial), self.acts_on)
        snapshot = self._fitted(snapshot)
        seen = self._decide(snapshot, looked_s - started_s)
        if self.elastic is not None:
            self.elastic.decided(self._arriving(seen.snapshot), seen.plan)
        self._show(seen)
        self._publish(seen)
        self.counts.cycles += 1
        self._recording.record(seen)
        self._remember(seen)
        self._lose_patience(seen)
        self._leave_out(seen)
        self._act(seen, self._rescue(seen))

    def _remember(self, seen: Seen) -> None:
        try:
            self.remembering.looked(seen, self.acts_on)
        except Exception:  # all else goes on, and history has a hole
            log.exception("what was seen is not remembered: a mistake of Pliant's own")

    def _show(self, seen: Seen | None) -> None:
        with self._looked:
            self.seen = seen
            self._looked.notify_all()

    def wait_for_look(self, after: Seen | None, timeout_s: float) -> Seen | None:
        """Return what the first look after ``after`` saw; what is known now if none comes."""
        with self._looked:
            self._looked.wait_for(lambda: self.seen is not after, timeout_s)
            return self.seen

    def next_change_s(self) -> float:
        """Return in how many seconds another running job may be changed; inf: nobody knows."""
        if self.elastic is None or self.seen is None or not self.policy.resizes:
            return float("inf")
        return max(0.0, self.elastic.matures_s(self.seen.snapshot) - self._clock())

    def prune(self) -> None:
        """Drop the history that is too old."""
        self.store.prune(self._clock(), self.config.keep_s)

    # Decide

    def _fitted(self, snapshot: Snapshot) -> Snapshot:
        """Add what the batch system does not know: modes, caps, and shapes that did not start."""
        refused = self.store.refused(snapshot.now_s)
        snapshot = GpuMemory(self.config.gpu_memory, self._seen_gpu_mib).known(snapshot)
        if self.elastic is not None:
            snapshot = self.elastic.known(snapshot)
        snapshot = self._in_company(snapshot)
        fitted = replace(
            snapshot,
            partitions=tuple(
                replace(partition, mode=self.config.mode(partition.name))
                for partition in snapshot.partitions
            ),
            waiting=tuple(
                replace(job, refused=refused[job.id]) if job.id in refused else job
                for job in snapshot.waiting
            ),
        )
        return capped(fitted, self.config.trial)

    def _in_company(self, snapshot: Snapshot) -> Snapshot:
        """Add how fast jobs are beside each other; where that fails nothing is known of it."""
        if self.sharing is None:
            return snapshot
        try:
            return self.sharing.known(snapshot)
        except Exception:  # all else goes on, and nobody is marked
            log.exception("how fast jobs are beside each other: a mistake of Pliant's own")
            return snapshot

    def _decide(self, snapshot: Snapshot, observe_s: float) -> Seen:
        started_s = self._monotonic()
        limit, policy = self.config.daemon.updates_per_cycle, self.policy
        real = replace(
            snapshot,
            waiting=tuple(self._as_real(job) for job in snapshot.waiting),
            running=tuple(self._as_real(job) for job in snapshot.running),
        )
        same = real.waiting == snapshot.waiting and real.running == snapshot.running
        real = self._arriving(real)
        plan = cycle(real, policy, limit)
        shadow = plan if same else cycle(self._arriving(snapshot), policy, limit)
        free = leftover(real, plan)
        inventory = self._inventory(snapshot)
        now_s = self._monotonic()
        decide_s = now_s - started_s
        return Seen(snapshot, plan, shadow, free, inventory, policy, now_s, observe_s, decide_s)

    def _arriving(self, snapshot: Snapshot) -> Snapshot:
        return snapshot if self.elastic is None else self.elastic.arriving(snapshot)

    def _inventory(self, snapshot: Snapshot) -> Inventory:
        """Return the inventory, the same object as before where nothing of it has changed."""
        inventory = Inventory.of(snapshot)
        known = self.seen.inventory if self.seen is not None else None
        return known if known is not None and known == inventory else inventory

    def _as_real(self, job: Job) -> Job:
        """Return the job as rigid where it will not be changed."""
        rigid = job.shapes in ((), (job.shape,)) and not job.preemptible
        if rigid or self.acts_on(job):
            return job
        return replace(job, shapes=(job.shape,), preemptible=False)

    def acts_on(self, job: Job) -> bool:
        """Whether Pliant may change the job: every partition of it is enforced, none paused."""
        return not self.store.paused and self.mode(job) is Mode.ENFORCE

    def mode(self, job: Job) -> Mode:
        """The least of the modes of the job's partitions."""
        modes = {self.config.mode(partition) for partition in job.partitions}
        return next((m for m in (Mode.OFF, Mode.OBSERVE) if m in modes), Mode.ENFORCE)

    # Leave out

    def _lose_patience(self, seen: Seen) -> None:
        now_s = seen.snapshot.now_s
        for job in self.patience.lost(seen.snapshot, seen.plan, now_s):
            why = "the batch system did not start it so in time"
            for shape in grown(job) or (job.shape,):  # back to what its user wrote, at once
                self._recording.refuse(job, shape, self.patience.refuse_s, why)

    def _leave_out(self, seen: Seen) -> None:
        """Leave out shapes of ours for which the batch system would never start their jobs."""
        for job in seen.snapshot.waiting:
            for shape in forbidden(job):
                if shape not in job.refused:
                    words = f"the batch system does not start it so: {job.reason}"
                    self._recording.refuse(job, shape, FORBIDDEN_S, words)

    # Act

    def _rescue(self, seen: Seen) -> frozenset[str]:
        """Give back its own shape to each job that is held for one of ours, in any mode.

        Return for which that was tried: they are not as they were seen any more. Raises PliantError
        where the batch system is away.
        """
        tried = set[str]()
        under_way = self.elastic.overs.all() if self.elastic is not None else {}
        for job in seen.snapshot.waiting:
            own = job.spec.own if job.spec and job.spec.set else None
            if job.reason != HELD_FOR_SHAPE or own is None or own in job.refused:
                continue
            if job.id in under_way:  # which turns back by itself, to what it had
                continue
            tried.add(job.id)
            try:
                self.acting.rescue(job)
            except TooLate as error:
                log.debug("%s", error)
            except Refused as error:
                self._recording.refuse(job, own, AGAIN_S, str(error))
            else:
                words = "the batch system held it for the shape it had"
                if job.shape != own:
                    self._recording.refuse(job, job.shape, FORBIDDEN_S, words)
                self._recording.note(job, "rescue", own, words)
        return frozenset(tried)

    def _act(self, seen: Seen, rescued: frozenset[str]) -> None:
        """Make the plan's changes but of those ``rescued``, and note what came of each.

        Raises PliantError where the batch system is away.
        """
        molds = [m for m in seen.plan.actions if m.job.spec is not None and self.acts_on(m.job)]
        back = [*self._taken_back(seen)][: self.config.daemon.updates_per_cycle]
        for outcome in self.acting.act([m for m in (*molds, *back) if m.job.id not in rescued]):
            mold = outcome.mold
            if outcome.missed:
                log.debug("%s", outcome.words)
                continue
            self.remembering.changed(mold.job, refused=bool(outcome.words))
            if outcome.words:
                self.counts.failures += 1
                self._recording.refuse(
                    mold.job, mold.shape, AGAIN_S, outcome.words, longer=not outcome.later
                )
            else:
                self.counts.updates += 1
                self._recording.note(mold.job, "mold", mold.shape, mold.reason)
        under_way = self.elastic.overs.all() if self.elastic is not None else {}
        self._marking.mark(seen.snapshot, seen.plan, self.acts_on, under_way)
        if self.elastic is not None:
            self.store.decide([*self.elastic.begin(seen.plan, self.acts_on)])
            self.elastic.give_back(seen.snapshot)

    def _taken_back(self, seen: Seen) -> Iterator[Mold]:
        """What we changed where we were switched off since; a pause leaves all as it is."""
        if self.store.paused:
            return iter(())
        left = {job.id for job in seen.snapshot.waiting if not self.acts_on(job)}
        return taken_back(seen.snapshot, left)
