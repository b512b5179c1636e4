"""The numbers of nodes that Slurm itself may choose from, where an owner named none to Pliant.

``--gpus=N`` without ``-N`` starts on any nodes that have N GPUs free together. A job of one shape
on one node would wait where its owner's own form starts, so its request gets these nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from pliant.filter.fields import Fixed
from pliant.filter.inventory import Inventory
from pliant.filter.written import Written
from pliant.grammar.options import MAX_PAIRS
from pliant.model import Kind, Request


def with_nodes(
    submission: Mapping[str, str], inventory: Inventory, request: Request, written: Written
) -> Request:
    """Return the request with the nodes that Slurm may choose from, where there are several.

    Raises Fixed where tasks would not follow the GPUs over the nodes, and where nothing is to be
    gained: Slurm's own choice is wider, it also gives 3 + 1 GPUs.
    """
    total = written.uneven
    if request.nodes or total < 2 or written.own is None or Kind.CPU in request.kinds:
        return request
    least, most = max(1, written.nodes), _most(submission, inventory, request, written)
    if max(least, most) < 2:
        return request
    rigid = request.gpus == (Fraction(total),) and not request.gpu_types
    if rigid or (submission.get("array_inx") and waits_as_written(request, written)):
        raise Fixed(f"it asks for {total} GPUs already, which Slurm itself spreads over nodes")
    if most <= least or not written.spread.total:
        return request
    tasks = written.spread.tasks
    if tasks not in (0, total):
        raise Fixed(
            f"Slurm may spread its {tasks} tasks and {total} GPUs over nodes as it likes:"
            f" nodes={written.own.nodes} beside gpus= would let the shape change"
        )
    return replace(request, nodes=tuple(range(least, most + 1)))


def waits_as_written(request: Request, written: Written) -> bool:
    """Whether no smaller shape makes up for the nodes that only the owner's own form can have.

    It also starts on 3 + 1 GPUs, which no shape of as many GPUs or more does.
    """
    return written.uneven > 1 and bool(request.gpus) and request.gpus[0] >= written.uneven


def _most(
    submission: Mapping[str, str], inventory: Inventory, request: Request, written: Written
) -> int:
    """The most nodes: the owner's, the partitions', the GPUs', and as many as may be said."""
    spread = written.spread
    largest = max((spread.total, *(int(total) for total in request.gpus)))
    bounds = [
        max(
            (
                min(partition.max_nodes or len(partition.nodes), len(partition.nodes))
                for partition in inventory.partitions(submission.get("partition", ""))
            ),
            default=1,
        ),
        # Tasks that do not follow the GPUs bound the nodes; so do a total's own GPUs then.
        largest if spread.tasks in (0, spread.total) else min(spread.tasks, spread.total),
        max(1, written.nodes) - 1
        + MAX_PAIRS // (max(1, len(request.gpus)) * max(1, len(request.gpu_types))),
    ]  # fmt: skip
    return min([*bounds, spread.most] if spread.most else bounds)
