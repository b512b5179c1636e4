"""Seo's workload: ResNet-50 and InceptionV3 in turn, one every 100 s, 2,000 steps each, six GPUs.

The thesis does not print f. The one here was fitted to its table 2, of which it gives the totals of
the four static partitions within 0.4 s; it is not the only one that does. A step on n
GPUs takes t(n) = o + w/n + q(n - 1)/n seconds: o that no GPU shares, w that all do, q to exchange.
The 27.4 s to launch and the 23.0 s to save and stop are of the same fit, to all five totals, in
another reckoning than a replay's: F-scheduling's is 1,395.7 s with them here. The same jobs may
have measured speeds instead: :func:`seo` takes any two tables.

Source: Seo (paper 003), section 5.1 (table 1) and table 2.
"""

from __future__ import annotations

from fractions import Fraction

from pliant.model import Job, Malleable, Node, Partition, Pool, Request, Shape, Spec
from pliant.simulator.workload import Arrival, Workload
from pliant.simulator.workloads.curves import Measured, Table, table

GPUS = 6
STEPS = 2000
EVERY_S = 100.0
LAUNCH_S, SAVE_S = 27.4, 23.0
OWN = Shape(1, 1)
_EXCHANGE_S = 0.0212
_FITTED_S = {"ResNet-50": (0.1588, 0.3880), "InceptionV3": (0.1751, 0.4395)}


def fitted(model: str) -> Table:
    """Return f of one of the two models on one to six GPUs, as fitted."""
    alone_s, shared_s = _FITTED_S[model]
    step_s = {n: alone_s + shared_s / n + _EXCHANGE_S * (n - 1) / n for n in range(1, GPUS + 1)}
    return table(model, {Shape(1, n): 1 / time_s for n, time_s in step_s.items()})


def busy(model: str, gpus: int) -> float:
    """Return the part of a step in which a GPU computes or exchanges, by the fitted f.

    In ``o`` it is taken to wait: that part is as long however many GPUs there are.
    """
    alone_s, _ = _FITTED_S[model]
    return 1 - alone_s * fitted(model).rate(Shape(1, gpus))


def seo(
    tables: tuple[Table, Table] | None = None,
    *,
    launch_s: float = LAUNCH_S,
    save_s: float = SAVE_S,
) -> Workload:
    """Return the four jobs, on one node with six GPUs.

    ``tables``: f of the first and third job, and of the others, instead of the fitted ones; what
    was not measured of one to six GPUs on a node is interpolated. Raises BadInput where nothing was
    measured that tells of one GPU.
    """
    chosen = tables or (fitted("ResNet-50"), fitted("InceptionV3"))
    shapes = tuple(Shape(1, n) for n in range(1, GPUS + 1))
    arrivals = tuple(
        _arrival(place, chosen[place % 2], shapes, launch_s, save_s) for place in range(4)
    )
    names = " and ".join(one.name for one in chosen)
    return Workload(
        name=f"Seo's four jobs ({names})",
        nodes=(Node("gpus", 4 * GPUS, 4 * GPUS, 0, 0, (Pool("", GPUS, GPUS),)),),
        partitions=(Partition("all", ("gpus",), default=True),),
        arrivals=arrivals,
        choices=(
            "f as measured, between what was measured interpolated"
            if tables
            else "f is fitted to table 2, which others fit too: t(n) = o + w/n + q(n - 1)/n",
            f"{launch_s} s to launch at every start and {save_s} s to save and stop: fitted too",
        ),
    )


def _arrival(
    place: int, of: Table, shapes: tuple[Shape, ...], launch_s: float, save_s: float
) -> Arrival:
    speed = Measured(of, OWN)
    request = Request(
        gpus=tuple(Fraction(shape.gpus) for shape in shapes),
        malleable=Malleable(),
        throughput=tuple((shape, of.rate(shape)) for shape in shapes),
        steps=STEPS,
    )
    job = Job(
        id=str(place + 1),
        partitions=("all",),
        submit_s=place * EVERY_S,
        shape=OWN,
        shapes=shapes,
        spec=Spec(request, own=OWN),
        name=of.name,
        grace_s=save_s,
        restart_s=launch_s + save_s,
    )
    return Arrival(job, STEPS / of.rate(OWN), speed, launch_s=launch_s, save_s=save_s)
