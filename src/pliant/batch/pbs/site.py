"""What PBS's jobs are read with: vnodes, queues, the server, its schedulers, what they allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pliant.batch.pbs.job_rows import JobRow
from pliant.batch.pbs.schedulers import Schedulers
from pliant.batch.pbs.server_rows import QueueRow, ServerRow
from pliant.batch.pbs.vnodes import NO_NAMES, Names, Vnodes
from pliant.filter.pbs.defaults import Defaults
from pliant.filter.pbs.limits import limits_of
from pliant.filter.pbs.schedulers import shaped_in
from pliant.model import Demand, Job, Limits, Reservation, Shape


@dataclass(frozen=True, slots=True)
class Site:
    """What jobs are read with: vnodes, queues by name, and what the site's resources are called.

    The queues of reservations are none of them. ``stranded``: why no job would go back to the queue
    after its checkpoint, "" where one would.
    """

    vnodes: Vnodes = field(default_factory=Vnodes)
    queues: Mapping[str, QueueRow] = field(default_factory=dict)
    server: ServerRow = field(default_factory=ServerRow)
    names: Names = NO_NAMES
    reservations: tuple[Reservation, ...] = ()
    stranded: str = ""
    schedulers: Schedulers = field(default_factory=Schedulers)

    def demand(self, job: Job, shape: Shape) -> Demand:
        """Return what a shape of a job takes on each node, with its cores as a number."""
        demand = job.demand(shape)
        return replace(demand, cpus=self.vnodes.cores(job.partitions[0], demand))

    def allows(self, queue: str, shape: Shape, demand: Demand) -> bool:
        """Whether a queue and the server let one job have so much."""
        row = self.queues.get(queue)
        return row is not None and not self.limits(row).why_not(shape.nodes, demand)

    def limits(self, queue: QueueRow) -> Limits:
        """Return what one job may have in a queue."""
        return limits_of({**self.server.most, **queue.most}, queue.least)

    def sets(self, queue: QueueRow) -> str:
        """Return by which resources a queue's nodes make several placement sets; "": they make one.

        PBS starts no job over nodes of two sets while one of them could ever hold it, and none at
        all with do_not_span_psets.
        """
        keys = queue.group_keys or self.server.group_keys
        if not self.server.groups or not keys or self.vnodes.in_one_set(queue.name, keys):
            return ""
        return f"node_group_key is {','.join(keys)}"

    def order(self, queue: QueueRow) -> str:
        """Return what orders a queue's jobs by a resource that a shape changes; "": nothing."""
        named = shaped_in(self.server.formula, self.names.share)
        ours = f"job_sort_formula names {named}" if named else ""
        return ours or self.schedulers.order(queue.partition)

    def keeps_shapes(self, queue: QueueRow) -> str:
        """Return why no job of a queue is given another shape, in words; "" where they are."""
        order = self.order(queue)
        return f"{order}: another shape would change who is next" if order else ""

    def why_none_starts(self, queue: QueueRow | None) -> str:
        """Return why a job of a queue that goes back to it would not start again; "": it would."""
        return self.schedulers.why_none_starts(queue.partition) if queue else ""

    def leaves_running(self, queue: QueueRow | None) -> str:
        """Return why no running job of a queue is asked for anything; "": they are."""
        return self.schedulers.leaves_running(queue.name, queue.partition) if queue else ""

    def may_be_kept_out(self, queue: QueueRow) -> bool:
        """Whether a fence is for a queue's jobs: not for those that PBS would end others for."""
        is_express = queue.priority >= self.schedulers.express(queue.partition)
        return not is_express and not queue.is_of_reservation

    def place(self, row: JobRow) -> str:
        """Return the place of a job's queue that says none; "" where it names none."""
        queue = self.queues.get(row.queue)
        return (queue.place if queue else "") or self.server.place

    def defaults(self, row: JobRow) -> Defaults:
        """Return what a job's chunk has that does not say it, or will have once it is changed."""
        queue = self.queues.get(row.queue)
        of_queue = queue.chunk if queue else {}
        return Defaults(chunk=tuple({**self.server.chunk, **of_queue, **row.added}.items()))
