"""What is asked of PBS: one command for all of a kind."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pliant.batch.clients import Answer, Runs
from pliant.batch.pbs.job_rows import JobRow, parse_jobs
from pliant.batch.pbs.node_rows import parse_nodes
from pliant.batch.pbs.reservations import ReservationRow, keeping, parse_reservations
from pliant.batch.pbs.schedulers import Schedulers, parse_schedulers
from pliant.batch.pbs.server_rows import QueueRow, ServerRow, parse_queues, parse_server
from pliant.batch.pbs.site import Site
from pliant.batch.pbs.unreal import without
from pliant.batch.pbs.vnodes import NO_NAMES, Names, Vnodes
from pliant.errors import BadAnswer, Unavailable
from pliant.filter.pbs.names import KEEPS_OUT, SENDS_BACK
from pliant.filter.pbs.schedulers import LIST, WAKE, kicks, listed

SITE_S = 60.0
"""How often queues and server are read again."""


KICK = ("qmgr", *WAKE)
"""A qalter starts no cycle of the default scheduler; this does, where nobody has stopped it."""


class Queries:
    """Asks PBS, and remembers what seldom changes."""

    def __init__(
        self, commands: Runs, clock: Callable[[], float] = time.time, names: Names = NO_NAMES
    ) -> None:
        """``clock`` counts seconds since the epoch; ``names``: those of the site's resources."""
        self._commands, self._clock, self._names = commands, clock, names
        self.stranded = ""
        """What :meth:`no_way_back` said last."""
        self._fixed: tuple[float, list[QueueRow], ServerRow, Schedulers] | None = None

    def forget_site(self) -> None:
        """Read queues and server again next time."""
        self._fixed = None

    def look(self) -> tuple[list[JobRow], Site]:
        """Return all jobs, and what they are read with.

        Raises Unavailable, BadAnswer.
        """
        with ThreadPoolExecutor(2) as pool:
            nodes = pool.submit(self._ask, "pbsnodes", "-a", "-v", "-F", "json")
            fixed = pool.submit(self._fixed_side)
            rows = self.jobs()
            queues, server, schedulers = fixed.result()
            of_nodes = parse_nodes(nodes.result())
        if not server.sees_others:
            raise BadAnswer("PBS shows nobody's jobs but one's own here: query_other_jobs is false")
        partitions = {row.name: row.partition for row in queues}
        vnodes = Vnodes(without(rows, of_nodes), self._names, partitions)
        reserved = self._reservations() if any(row.reserved for row in of_nodes) else []
        theirs = {row.queue for row in reserved}
        free = {row.name: row for row in queues if row.name not in theirs}
        kept = keeping(reserved, vnodes)
        site = Site(vnodes, free, server, self._names, kept, self.stranded, schedulers)
        return rows, site

    def _reservations(self) -> list[ReservationRow]:
        """Return the reservations; none where PBS does not say: it keeps to them by itself."""
        try:
            return parse_reservations(self._ask("pbs_rstat", "-f"))
        except Unavailable:
            return []

    def jobs(self) -> list[JobRow]:
        """Return all jobs, arrays and their subjobs.

        Of several that are named qstat would return the first alone. Raises as above.
        """
        return parse_jobs(self._ask("qstat", "-t", "-f", "-F", "json"))

    def no_way_back(self) -> str:
        """Ask now why no job would come back to its place after its checkpoint; "" where one would.

        Without our epilogue hook one that ends with 85 has ended, and without our runjob hook
        nobody is kept out of what it gives up. PBS shows its hooks to root alone, on the server's
        host.
        """
        found = (self._not_enabled(hook) for hook in (SENDS_BACK, KEEPS_OUT))
        why = next(filter(None, found), "")
        self.stranded = f"{why}: no running job is asked for a checkpoint" if why else ""
        return self.stranded

    def _not_enabled(self, hook: str) -> str:
        """Ask why PBS does not run a hook, in words; "" where it does."""
        try:
            answer = self._commands.run(("qmgr", "-c", f"list hook {hook}"))
        except Unavailable as away:
            answer = Answer("", str(away), 1)
        said = {line.partition("=")[::2] for line in answer.out.replace(" ", "").splitlines()}
        if not answer.status and ("enabled", "true") in said:
            return ""
        return f"PBS's hook {hook}: {answer.words if answer.status else 'it is not enabled'}"

    def server(self) -> ServerRow:
        """Return what the server says; raises as above."""
        return self._fixed_side()[1]

    def kick(self) -> bool:
        """Start a cycle of each scheduler that nobody has stopped; False where PBS refuses one.

        Raises as above.
        """
        queues, *_ = self._fixed_side()
        told = [KICK] if self._server_now().scheduling else []
        if any(row.partition for row in queues):
            listing = listed(self._commands.run(("qmgr", *LIST)).out)
            told += [("qmgr", *words) for words in kicks(listing)]
        answers = [self._commands.run(argv) for argv in told]
        return not any(answer.status for answer in answers)

    def why_none_starts(self, queue: str) -> str:
        """Ask now why no job is to go back to a queue, which may have been changed since the look.

        "" where a scheduler would start it again. Raises as above.
        """
        queues = parse_queues(self._ask("qstat", "-Q", "-f", "-F", "json"))
        row = next((one for one in queues if one.name == queue), None)
        if row is not None and not row.up:
            return f"queue {queue} is stopped or disabled"
        schedulers, partition = self._schedulers(), row.partition if row is not None else ""
        return schedulers.why_none_starts(partition) or schedulers.leaves_running(queue, partition)

    def _server_now(self) -> ServerRow:
        return parse_server(self._ask("qstat", "-B", "-f", "-F", "json"))

    def _schedulers(self) -> Schedulers:
        answer = self._commands.run(("qmgr", *LIST))
        if answer.status:
            return Schedulers(unknown=answer.words)
        return parse_schedulers(answer.out, self._names.share)

    def _fixed_side(self) -> tuple[list[QueueRow], ServerRow, Schedulers]:
        known, now_s = self._fixed, self._clock()
        if known is None or not 0 <= now_s - known[0] < SITE_S:
            queues = parse_queues(self._ask("qstat", "-Q", "-f", "-F", "json"))
            known = self._fixed = (now_s, queues, self._server_now(), self._schedulers())
            self.no_way_back()
        return known[1:]

    def _ask(self, *argv: str) -> str:
        answer = self._commands.run(argv)
        if answer.status:
            raise Unavailable(f"{' '.join(argv[:2])}: {answer.words}")
        return answer.out
