"""The policies, by the names that users choose them by.

A policy is a frozen dataclass whose fields are its options and whose call turns a snapshot into a
plan. Its module's docstring is its algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pliant.errors import BadInput
from pliant.plan import Policy
from pliant.policies.chosen import build, options_of
from pliant.policies.cosched import (
    CoschedEi,
    CoschedFcs,
    CoschedOptimal,
    CoschedPi,
    CoschedUcb,
)
from pliant.policies.easy import EasyBackfill
from pliant.policies.equipartition import MoldableEquipartition
from pliant.policies.fitgpp import Fifo, FitGpp, Lrtp, Rand
from pliant.policies.fms import Fms, FmsNodes, FmsType
from pliant.policies.fsched import FScheduling
from pliant.policies.malleable import MalleableEquipartition
from pliant.policies.mct import Mct, Torque
from pliant.policies.optimal import ManualOptimal
from pliant.policies.proportional import MalleableProportional, MoldableProportional
from pliant.policies.queues import Asjf, Rsa, Rsc
from pliant.policies.rigid import RigidFcfs, RigidShortest
from pliant.policies.roundrobin import BlindRoundRobin
from pliant.policies.shapes import allowed, base_shape, largest
from pliant.policies.static import StaticPartition

DEFAULT = "moldable-equipartition"

_POLICIES: dict[str, type[Any]] = {
    "moldable-equipartition": MoldableEquipartition,
    "malleable-equipartition": MalleableEquipartition,
    "moldable-proportional": MoldableProportional,
    "malleable-proportional": MalleableProportional,
    "fms": Fms,
    "f-scheduling": FScheduling,
    "easy-backfill": EasyBackfill,
    "rigid-fcfs": RigidFcfs,
    "rigid-shortest": RigidShortest,
    "static-partition": StaticPartition,
    "fitgpp": FitGpp,
    "fifo": Fifo,
    "lrtp": Lrtp,
    "rand": Rand,
    "rsa": Rsa,
    "rsc": Rsc,
    "asjf": Asjf,
    "blind-round-robin": BlindRoundRobin,
    "manual-optimal": ManualOptimal,
    "fms-type": FmsType,
    "fms-nodes": FmsNodes,
    "torque": Torque,
    "mct": Mct,
    "cosched-optimal": CoschedOptimal,
    "cosched-fcs": CoschedFcs,
    "cosched-pi": CoschedPi,
    "cosched-ei": CoschedEi,
    "cosched-ucb": CoschedUcb,
}


def names() -> tuple[str, ...]:
    """Return the names of all policies."""
    return tuple(_POLICIES)


def live_names() -> tuple[str, ...]:
    """Return the names of the policies that a real cluster can have."""
    return tuple(name for name in _POLICIES if not _is_simulated_only(name))


def live(name: str, chosen: Mapping[str, object]) -> Policy:
    """Return a policy for a real cluster, where a running job is changed only if that pays.

    ``chosen`` may say otherwise, but of what :func:`live_options` has. Raises BadInput as
    :func:`by_name` does, and for a policy that is for simulations only.
    """
    if _is_simulated_only(name):
        right = ", ".join(live_names())
        raise BadInput(f"policy {name}: it is for simulations only: one of {right} is expected")
    pays = {"pays": True} if "pays" in options(name) else {}
    target = {"target": "left"} if "target" in options(name) else {}
    needed = live_options(name)
    for option, value in needed.items():
        if chosen.get(option, value) != value:
            said = f"policy {name}: {option}: {chosen[option]!r}"
            raise BadInput(f"{said}: on a real cluster {value!r} is expected")
    return by_name(name, **{**pays, **target, **needed, **chosen})


def live_options(name: str) -> Mapping[str, object]:
    """Return what a policy's options must be on a real cluster.

    Raises BadInput for an unknown name.
    """
    found: Mapping[str, object] = getattr(_class(name), "live_options", {})
    return found


def _is_simulated_only(name: str) -> bool:
    return getattr(_class(name), "simulated_only", False)


def in_full(policy: Policy) -> Policy | None:
    """Return a policy in its paper's exact form; None where it asks for no change to pay."""
    if not getattr(policy, "pays", False):
        return None
    chosen = {option: getattr(policy, option) for option in options(policy.name)}
    return by_name(policy.name, **{**chosen, "pays": False})


def has_classes(policy: Policy) -> bool:
    """Return whether a policy looks at the classes of jobs: trial and best-effort."""
    return isinstance(policy, Fifo | FitGpp | Lrtp | Rand)


def preempts(policy: Policy) -> bool:
    """Return whether a policy tells best-effort jobs to make room for trial jobs."""
    return has_classes(policy) and policy.resizes


def options(name: str) -> dict[str, object]:
    """Return a policy's options with their defaults.

    Raises BadInput for an unknown name.
    """
    return options_of(_class(name))


def by_name(name: str, **chosen: object) -> Policy:
    """Return the policy of this name with these options.

    Raises BadInput, naming what would be right, for an unknown name, option or value.
    """
    policy: Policy = build(f"policy {name}", _class(name), chosen)
    return policy


def summary(name: str) -> str:
    """Return in one line what a policy does.

    Raises BadInput for an unknown name.
    """
    return (_class(name).__doc__ or "").partition("\n")[0].rstrip(".")


def _class(name: str) -> type[Any]:
    if name not in _POLICIES:
        raise BadInput(f"policy: {name!r}: one of {', '.join(_POLICIES)} is expected")
    return _POLICIES[name]


__all__ = [
    "DEFAULT",
    "allowed",
    "base_shape",
    "by_name",
    "has_classes",
    "in_full",
    "largest",
    "live",
    "live_names",
    "live_options",
    "names",
    "options",
    "preempts",
    "summary",
]
