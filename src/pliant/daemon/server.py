"""Puts pliantd together: the lock, the store, the doors, the loop; signals and systemd."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

from pliant.batch import Batch, Ended
from pliant.daemon import libmunge, sockets
from pliant.daemon.config import Config, DaemonConfig, load
from pliant.daemon.cycling import Cycling
from pliant.daemon.doors import Doors
from pliant.daemon.elastic import Elastic
from pliant.daemon.filter_door import FilterDoor
from pliant.daemon.handing import Hands
from pliant.daemon.libmunge import Proof
from pliant.daemon.lines import LineServer
from pliant.daemon.loop import Loop
from pliant.daemon.monitors import Monitors
from pliant.daemon.munge import Munge
from pliant.daemon.munge_door import MungeDoor, Watches
from pliant.daemon.notify import Notifier
from pliant.daemon.origins import Origins
from pliant.daemon.patience import Patience
from pliant.daemon.publishing import Publisher
from pliant.daemon.reloading import only_at_start
from pliant.daemon.rights import Asker, Site, asker
from pliant.daemon.run_verbs import RunVerbs
from pliant.daemon.seen import Seen
from pliant.daemon.sharing import Sharing, sharing_trouble
from pliant.daemon.stepping import Stepping
from pliant.daemon.trials import preemption_trouble
from pliant.daemon.vain import Vain
from pliant.daemon.verbs import Verbs
from pliant.daemon.watching import Watching
from pliant.errors import PliantError
from pliant.model import Snapshot
from pliant.policies import live
from pliant.store import Store

log = logging.getLogger("pliant.daemon")

HANDING_END_S = 5.0
"""How long the end waits for a step of a hand-over that is being made."""
STUCK_S = 900.0
"""A cycle that runs for longer is stuck: the watchdog is not fed any more."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What pliantd stands on: the batch system, and what its site says; tests bring their own.

    ``site`` is asked before each look; it reads the batch system's configuration anew every minute.
    ``forget``: lets the next look read it anew. ``hands``: changes running jobs; None: none.
    ``unmark``: takes from all jobs that wait the marks that let them share. ``publisher``: tells
    the hooks of PBS what each cycle saw; None: there are none. ``trouble``: what is wrong with the
    batch system's part, "" for nothing. ``ended``: asks it for the flagged jobs that have ended;
    None: it cannot tell. ``cluster``: what it is called by on this host, where it has one pliantd;
    "": any number. ``clock`` counts seconds since the epoch, ``monotonic`` from anywhere, evenly.
    ``doors``: opens what is asked at; ``prove``: tells whose a credential is.
    """

    batch: Batch
    site: Callable[[], Site]
    forget: Callable[[], None] = lambda: None
    hands: Hands | None = None
    unmark: Callable[[], object] = lambda: None
    publisher: Publisher | None = None
    trouble: Callable[[], str] = lambda: ""
    ended: Callable[[], Sequence[Ended]] | None = None
    cluster: str = ""
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    doors: Callable[[DaemonConfig, FilterDoor, LineServer], Doors] = Doors
    prove: Callable[[bytes, str], Proof] = libmunge.decode


class Daemon:
    """One pliantd."""

    def __init__(self, path: Path, config: Config, surroundings: Surroundings) -> None:
        """Run with ``config``, which SIGHUP reads from ``path`` again."""
        self._path, self._config, self._surroundings = path, config, surroundings
        self._clock, self._monotonic = surroundings.clock, surroundings.monotonic
        self._site = Site(slurm_uid=os.geteuid())
        self._notifier = Notifier()
        self._reload_trouble = ""
        self._helpers: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT.

        Raises Unavailable where it cannot start.
        """
        config = self._config
        state_dir = Path(config.daemon.state_dir)
        handle = sockets.lock(state_dir)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, handle)
            if self._surroundings.cluster:
                stack.enter_context(sockets.only_one_of(self._surroundings.cluster))
            await self._run(Store(state_dir))

    async def _run(self, store: Store) -> None:
        try:
            for job in store.unfinished():
                log.info("job %s: a change was in flight when pliantd ended; looking anew", job)
            self._build(store)
            async with self._doors.opened():
                await self._serve()
            self._cycling.remembering.flush()
        finally:
            store.close()

    def _build(self, store: Store) -> None:
        config = self._config
        self._watching = Watching()
        monitors = Monitors(
            self._snapshot, self._clock, Origins(self._monotonic), stands_by=self._stands_by
        )
        patience = Patience()
        sharing = Sharing(monitors, ask=self._watching.tell, memory=store, vain=Vain(patience))
        self._cycling = Cycling(
            self._surroundings.batch,
            store,
            config,
            live(config.daemon.policy, config.policy),
            patience=patience,
            clock=self._clock,
            monotonic=self._monotonic,
            elastic=self._elastic(store, sharing),
            sharing=sharing,
            seen_gpu_mib=monitors.gpu_mib,
            publish=self._publish,
            ended=self._surroundings.ended,
        )
        self._loop = Loop(self._cycling, self._monotonic, self._know_site)
        wake = _from_any_thread(self._loop.wake)
        self._filter = FilterDoor(self._cycling, wake, self._may_submit, self._monotonic)
        verbs = Verbs(
            self._cycling,
            wake=wake,
            clock=self._clock,
            troubles=self._troubles,
            stands_by=self._stands_by,
            submissions=self._answered,
            started_s=self._clock(),
            monitors=monitors,
            refused_credentials=self._refused_credentials,
            cluster=lambda: self._site.cluster,
        )
        munge = Munge(config.daemon.munge_socket, self._surroundings.prove)
        self._door_two = MungeDoor(munge, verbs, self._who, self._watches(), monitors)
        self._second = LineServer(
            "the second door", self._door_two.begin, self._door_two.limits, self._monotonic
        )
        self._doors = self._surroundings.doors(config.daemon, self._filter, self._second)

    def _publish(self, seen: Seen) -> None:
        if self._surroundings.publisher is not None:
            cycling = self._cycling
            paused = cycling.store.paused
            self._surroundings.publisher.publish(seen, cycling.config, paused=paused)

    def _elastic(self, store: Store, sharing: Sharing) -> Elastic | None:
        hands = self._surroundings.hands
        if hands is None:
            return None
        wake = _from_any_thread(self._wake)
        return Elastic(
            *(hands, store, self._clock, self._monotonic),
            changed=self._watching.tell,
            wake=wake,
            beats=sharing.beats,
        )

    def _wake(self) -> None:
        self._loop.wake()

    def _watches(self) -> Watches | None:
        elastic = self._cycling.elastic
        if elastic is None:
            return None
        verbs = RunVerbs(self._cycling, elastic.runs, elastic.overs, self._clock)
        return Watches(verbs, self._watching)

    def _snapshot(self) -> Snapshot | None:
        seen = self._cycling.seen
        return seen.snapshot if seen is not None else None

    def _acts(self) -> bool:
        """Whether this host's pliantd is the one that acts, and knows what there is."""
        return self._cycling.seen is not None and not self._loop.stands_by

    def _may_submit(self) -> frozenset[int]:
        return self._site.admin_uids | {os.geteuid()}

    def _who(self, uid: int) -> Asker:
        return asker(uid, self._site, self._config.daemon.admins)

    def _answered(self) -> int:
        return self._filter.answered

    def _refused_credentials(self) -> dict[str, int]:
        return dict(self._door_two.refused)

    def _stands_by(self) -> str:
        return self._loop.stands_by

    def _troubles(self) -> tuple[str, ...]:
        seen = self._cycling.seen
        itself = seen.snapshot.abilities.preempts if seen is not None else ""
        elastic = self._cycling.elastic
        found = (
            preemption_trouble(self._cycling.policy, itself),
            sharing_trouble(self._cycling.policy, seen.snapshot.partitions) if seen else "",
            elastic.overs.placeless() if elastic is not None else "",
            self._loop.trouble,
            self._surroundings.trouble(),
            self._cycling.store.trouble,
            self._reload_trouble,
            self._doors.trouble,
            self._second.trouble,
        )
        return tuple(dict.fromkeys(trouble for trouble in found if trouble))

    # Serve

    async def _serve(self) -> None:
        running = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            running.add_signal_handler(number, self._loop.stop)
        running.add_signal_handler(signal.SIGHUP, self._helped_by, self._hang_up)
        self._helped_by(self._feed)
        self._notifier.ready(f"deciding by {self._config.daemon.policy}")
        log.info("pliantd runs: %s, %s", self._config.daemon.policy, self._config.daemon.socket)
        try:
            async with self._handing_over():
                await self._loop.run()
            await self._unmark()
        finally:
            self._notifier.stopping()
            if self._surroundings.publisher is not None:
                self._surroundings.publisher.end()
            for helper in self._helpers:
                helper.cancel()
            log.info("pliantd ends")

    async def _unmark(self) -> None:
        """Leave no job marked that waits, also by an earlier pliantd: nobody would look who meets.

        A site that never marks is not asked.
        """
        seen = self._snapshot()
        left = seen is not None and any(job.mark for job in seen.waiting)
        if (left or self._cycling.counts.marks) and self._acts():
            with contextlib.suppress(PliantError):  # its unit tries once more
                await asyncio.to_thread(self._surroundings.unmark)

    @contextlib.asynccontextmanager
    async def _handing_over(self) -> AsyncIterator[None]:
        """Beside the cycles; a step that is under way at the end is gone on with at the start."""
        elastic = self._cycling.elastic
        if elastic is None:
            yield
            return
        stepping = Stepping(elastic.overs, self._monotonic, self._acts)
        runs = asyncio.create_task(stepping.run())
        try:
            yield
        finally:
            stepping.stop()
            await asyncio.wait((runs,), timeout=HANDING_END_S)

    def _helped_by(self, call: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run something beside the loop, and keep it alive meanwhile."""
        helper = asyncio.create_task(call())
        self._helpers.add(helper)
        helper.add_done_callback(self._helpers.discard)

    def _reload(self) -> None:
        """Read pliant.toml again, and Slurm's own; a broken one is said, and the old one stays."""
        self._notifier.reloading()
        self._surroundings.forget()
        try:
            config = load(self._path)
            policy = live(config.daemon.policy, config.policy)
        except PliantError as error:
            log.error("%s: the old configuration stays", error)
            self._reload_trouble = f"{error}: the old configuration stays"
        else:
            for name in only_at_start(self._config, config):
                log.warning("%s changes when pliantd is restarted", name)
            self._reload_trouble = ""
            self._config = self._cycling.config = config
            self._cycling.policy = policy
            logging.getLogger("pliant").setLevel(config.daemon.log_level.upper())
            log.info("pliant.toml was read again")
        self._loop.wake()
        self._notifier.ready(f"deciding by {self._config.daemon.policy}")

    async def _hang_up(self) -> None:
        """At SIGHUP: who may see what counts at once, not only from the next look on."""
        self._reload()
        with contextlib.suppress(PliantError):  # which the next look says
            await asyncio.to_thread(self._know_site)

    def _know_site(self) -> None:
        """Learn who may do and see what, and hand the filter's door over to slurmctld's user.

        Raises PliantError.
        """
        site = self._surroundings.site()
        self._site = site
        self._cycling.patience.backfill_s = site.backfill_s
        sockets.hand_over(Path(self._config.daemon.socket), site.slurm_uid)

    async def _feed(self) -> None:
        """Feed systemd's watchdog while the loop is alive and no cycle is stuck."""
        every_s = self._notifier.watchdog_s / 2
        while every_s:
            since_s = self._loop.busy_since_s
            if since_s is None or self._monotonic() - since_s < STUCK_S:
                self._notifier.alive()
            await asyncio.sleep(every_s)


def _from_any_thread(call: Callable[[], None]) -> Callable[[], None]:
    running = asyncio.get_running_loop()

    def from_any() -> None:
        running.call_soon_threadsafe(call)

    return from_any
