"""How fast a job runs as each of its shapes: f, in steps per second or relative.

What the owner gave is taken as it stands: f may fall with more GPUs, jump, or depend on how the
GPUs lie on nodes, and nothing here assumes otherwise. Between the totals given for the same kind,
GPU type and number of nodes (or, where there are none, for the same kind and type on any nodes)
f is interpolated linearly. Below the smallest it falls in proportion; above the largest it stays:
nothing is promised that nobody measured.

Where the owner gave nothing, f is what jobs of the same user and name were measured at by their
heartbeats. Those ran at few sizes, so that above the largest it is taken to grow in proportion,
until it is measured there too. Where nothing at all is known for a kind, whole GPUs are taken to
run linearly and CPU shapes at an assumed speed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

from pliant.model import Job, Kind, Request, Shape

DEFAULT_CPU_SPEED = 0.1
"""The speed of one node's cores, in GPUs, where nothing is known."""

NO_LIMIT_S = 365 * 24 * 3600.0
"""The run time of a job that says nothing: a year, as for limits in placement."""

Point = tuple[Fraction, float]
Rates = tuple[tuple[Shape, float], ...]
"""Steps per second by shape."""


def size(shape: Shape) -> Fraction:
    """Return what f is interpolated over: GPUs, or nodes for CPU shapes."""
    return Fraction(shape.nodes) if shape.kind is Kind.CPU else shape.amount


def given_speed(request: Request, shape: Shape) -> float | None:
    """Return f of ``shape`` in steps per second from what the owner gave; None: nothing fits.

    A value given without a GPU type holds for every type.
    """
    points = _fitting(request.throughput, shape)
    return _between(points, size(shape)) if points else None


def known_speed(job: Job, shape: Shape) -> float | None:
    """Return f of ``shape`` in steps per second: given, else measured; None: nothing fits."""
    request = job.spec.request if job.spec is not None else None
    if request is not None and request.throughput:
        return given_speed(request, shape)
    points = _fitting(job.measured, shape)
    if not points:
        return None
    (most, at_most), asked = points[-1], size(shape)
    return at_most * float(asked / most) if asked > most > 0 else _between(points, asked)


def _fitting(table: Rates, shape: Shape) -> list[Point]:
    """Return the points of a table that tell of a shape; where it stands there, its own alone."""
    exact = [(s, f) for s, f in table if s == shape]
    alike = [(s, f) for s, f in table if s.kind is shape.kind and _same_type(s, shape)]
    same_nodes = [(s, f) for s, f in alike if s.nodes == shape.nodes]
    return _points(exact or same_nodes or alike)


def _same_type(given: Shape, asked: Shape) -> bool:
    return given.gpu_type in ("", asked.gpu_type)


def _points(table: Sequence[tuple[Shape, float]]) -> list[Point]:
    """One point for each size: where several shapes have it, that on the fewest nodes."""
    points: dict[Fraction, float] = {}
    for shape, speed in sorted(table, key=lambda item: (size(item[0]), item[0])):
        points.setdefault(size(shape), speed)
    return list(points.items())


def _between(points: Sequence[Point], at: Fraction) -> float:
    place = bisect_left([x for x, _ in points], at)
    if place == len(points):
        return points[-1][1]
    high_x, high_f = points[place]
    if high_x == at:
        return high_f
    low_x, low_f = points[place - 1] if place else (Fraction(0), 0.0)
    return low_f + (high_f - low_f) * float((at - low_x) / (high_x - low_x))


def assumed_speed(shape: Shape, cpu_speed: float) -> float:
    """Return a speed in GPUs where nothing is given: linear, CPU cores at ``cpu_speed``."""
    match shape.kind:
        case Kind.CPU:
            return shape.nodes * cpu_speed
        case Kind.BOTH:
            return float(shape.amount) + shape.nodes * cpu_speed
        case Kind.GPU:
            return float(shape.amount)


def relative_speed(job: Job, shape: Shape, cpu_speed: float = DEFAULT_CPU_SPEED) -> float:
    """Return how many times faster ``job`` runs as ``shape`` than as its own shape.

    0.0 where the owner says that it makes no progress so.
    """
    own = job.spec.own if job.spec is not None and job.spec.own is not None else job.shape
    mine, other = known_speed(job, own), known_speed(job, shape)
    if mine is not None and other is not None and mine > 0:
        return other / mine
    base = assumed_speed(own, cpu_speed)
    return assumed_speed(shape, cpu_speed) / base if base > 0 else 1.0


def speed_to_one(job: Job, shape: Shape, cpu_speed: float = DEFAULT_CPU_SPEED) -> float:
    """Return how many times faster ``job`` runs as ``shape`` than on one GPU alone."""
    one = known_speed(job, Shape(1, 1, gpu_type=job.shape.gpu_type))
    other = known_speed(job, shape)
    if one is not None and other is not None and one > 0:
        return other / one
    return assumed_speed(shape, cpu_speed)


def run_time_s(job: Job, shape: Shape, cpu_speed: float = DEFAULT_CPU_SPEED) -> float:
    """Return how long ``job`` is expected to run as ``shape``; inf where it makes no progress.

    Its volume over its speed where that is known; steps over f where both are given; else the time
    limit is taken for the run time of the own shape, and the ratio of speeds for the rest.
    """
    if job.volume_s:
        to_one = speed_to_one(job, shape, cpu_speed)
        return job.volume_s / to_one if to_one > 0 else float("inf")
    request = job.spec.request if job.spec is not None else None
    if request is not None and request.steps:
        speed = known_speed(job, shape)
        if speed is not None:
            return request.steps / speed if speed > 0 else float("inf")
    relative = relative_speed(job, shape, cpu_speed)
    return (job.time_limit_s or NO_LIMIT_S) / relative if relative > 0 else float("inf")


def left_s(job: Job, shape: Shape, cpu_speed: float = DEFAULT_CPU_SPEED) -> float:
    """Return how long what is left of a job's work is expected to run as ``shape``; may be inf."""
    left = max(0.0, 1.0 - job.progress)
    return left * run_time_s(job, shape, cpu_speed) if left else 0.0


def volume_left_s(job: Job) -> float:
    """Return how long what is left of a job's work would run alone on one GPU.

    v_rem of Fujiwara et al. (paper 000), section IV-B.
    """
    if job.volume_s:
        return job.volume_s * max(0.0, 1.0 - job.progress)
    return left_s(job, Shape(1, 1, gpu_type=job.shape.gpu_type))


def volume_of_s(job: Job) -> float:
    """Return how long all of a job's work would run alone on one GPU, whatever is done of it.

    v of Fujiwara et al. (paper 000), section IV-B.
    """
    return job.volume_s or run_time_s(job, Shape(1, 1, gpu_type=job.shape.gpu_type))
