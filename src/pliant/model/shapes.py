"""What a job may run as."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache


class Kind(StrEnum):
    """What a shape computes on."""

    GPU = "gpu"
    CPU = "cpu"
    BOTH = "both"


_fraction = lru_cache(maxsize=4096)(Fraction)  # asked for again and again, and slow to make


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """What a job may run as: ``nodes`` × ``gpus`` whole GPUs, or 1/``share`` of one, or CPU cores.

    ``gpus`` counts on each node. A share is ``Shape(1, 1, share=4)``; a CPU shape has ``gpus=0``.
    """

    nodes: int = 1
    gpus: int = 0
    share: int = 1
    kind: Kind = Kind.GPU
    gpu_type: str = ""

    @property
    def amount(self) -> Fraction:
        """The GPUs of all nodes together: 8 for 2x4, 1/4 for a quarter, 0 for a CPU shape."""
        return _fraction(self.nodes * self.gpus, self.share)

    @property
    def whole_gpus(self) -> int:
        """The whole GPUs of all nodes together: 0 for shares and CPU shapes."""
        return self.nodes * self.gpus if self.share == 1 else 0

    @property
    def is_share(self) -> bool:
        """Whether this is a part of one GPU."""
        return self.share > 1

    def __str__(self) -> str:
        return shape_text(self)


def shape_text(shape: Shape) -> str:
    """Write a shape as users do: ``4``, ``2x4``, ``1/4``, ``1x0@cpu``, ``2@a100``."""
    if shape.kind is Kind.CPU:
        return f"{shape.nodes}x0@cpu"
    gpus = f"1/{shape.share}" if shape.is_share else str(shape.gpus)
    nodes = f"{shape.nodes}x" if shape.nodes > 1 else ""
    tail = ":".join(
        word for word in (shape.gpu_type, "both" if shape.kind is Kind.BOTH else "") if word
    )
    return f"{nodes}{gpus}" + (f"@{tail}" if tail else "")
