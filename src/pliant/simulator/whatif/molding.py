"""What jobs that were rigid are taken to allow, and how fast they would run so.

Nobody measured it: both are assumptions, and stand beside every result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pliant.errors import BadInput
from pliant.grammar import parse_option, quoted
from pliant.model import Malleable, Request, Shape

RIGHT = "power:0.8, amdahl:0.95 or linear, say"
NOT_LIMITED = Malleable()


@dataclass(frozen=True, slots=True)
class Curve:
    """How fast a job runs on so many GPUs, against one.

    ``power``: gpus to the power of ``value``. ``amdahl``: ``value`` is the part of its work that
    runs in parallel (Amdahl 1967).
    """

    kind: Literal["power", "amdahl"] = "power"
    value: float = 0.8

    def __call__(self, gpus: float) -> float:
        """Return the speed."""
        if self.kind == "power":
            return float(gpus**self.value)
        return 1.0 / (1.0 - self.value + self.value / gpus)

    @property
    def words(self) -> str:
        """The curve for a person."""
        gain = f"twice the GPUs run {self(2):.2f} times as fast as one, 8 run {self(8):.1f} times"
        if self.kind == "power":
            return f"n GPUs run n^{self.value:g} times as fast as one: {gain}"
        return f"Amdahl's law, {100 * self.value:g} % of the work in parallel: {gain}"


def curve(text: str) -> Curve:
    """Read ``power:0.8``, ``amdahl:0.95`` or ``linear``. Raises BadInput."""
    if text == "linear":
        return Curve("power", 1.0)
    kind, _, number = text.partition(":")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if kind not in ("power", "amdahl") or not 0.0 <= value <= 1.0:
        raise BadInput(f"--speedup: {quoted(text)}: {RIGHT} is expected")
    return Curve("power" if kind == "power" else "amdahl", value)


def owners_words(text: str) -> Malleable:
    """Read ``max-resizes=5,min-run=2h``, as ``--malleable`` of a job; "": neither. Raises BadInput.

    The other words of its grammar change nothing in a replay.
    """
    found = parse_option(Request(), "malleable", text).malleable or NOT_LIMITED
    if found != Malleable(max_resizes=found.max_resizes, min_run_s=found.min_run_s):
        right = "max-resizes=N, min-run=TIME or both are expected"
        raise BadInput(f"--malleable: {quoted(text)}: {right}")
    return found


@dataclass(frozen=True, slots=True)
class Molding:
    """A job may have its GPUs halved, down to a ``shrink``-th, or doubled, up to ``grow`` times.

    ``restart_s``: what one change of a running job costs it, half of it in saving. ``users``: whose
    jobs alone; (): everybody's. ``malleable``: how often, and how soon again, owners let policies
    resize a running job.
    """

    shrink: int = 4
    grow: int = 1
    curve: Curve = Curve()
    restart_s: float = 60.0
    users: tuple[str, ...] = ()
    malleable: Malleable = NOT_LIMITED

    def is_of(self, user: str) -> bool:
        """Whether a user's jobs are taken as moldable."""
        return not self.users or user in self.users

    def totals(self, own: int) -> tuple[int, ...]:
        """Return the numbers of GPUs that a job of ``own`` may run on, in ascending order."""
        found = [own]
        times = 2
        while times <= self.shrink and own % times == 0:
            found.insert(0, own // times)
            times *= 2
        times = 2
        while times <= self.grow:
            found.append(own * times)
            times *= 2
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Relative:
    """A job's speed as a shape, against that on its ``own`` number of GPUs."""

    own: int
    curve: Curve

    def __call__(self, shape: Shape) -> float:
        """Return the speed; a shape on CPUs alone runs as it did."""
        gpus = float(shape.amount)
        return self.curve(gpus) / self.curve(self.own) if gpus else 1.0
