"""Trial and best-effort jobs at a site: what [trial] of pliant.toml allows, and what is in the way.

::

    [trial]                                  # of one user's trial jobs
    max_jobs = 4                             # that wait and run at once; or "unlimited"
    max_gpus = 8                             # of one job
    max_minutes = 60                         # its time limit

    [trial.users.alice]                      # instead, for one user
    max_jobs = 20
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pliant.cycle import trials_held
from pliant.errors import BadConfig
from pliant.filter import Trials
from pliant.grammar import quoted
from pliant.model import Snapshot, TrialCap, TrialCaps
from pliant.plan import Policy
from pliant.policies import has_classes, preempts

UNLIMITED: Final = "unlimited"
DEFAULT: Final = TrialCap(max_jobs=4, max_gpus=8, max_minutes=60)
"""A trial job goes before others and takes their GPUs: without a cap all jobs would be some."""
_KEYS: Final = {
    "max_jobs": (0, 100_000, "jobs"),
    "max_gpus": (0, 100_000, "GPUs"),
    "max_minutes": (1, 525_600, "minutes"),
}


def read_caps(name: str, values: Mapping[str, Any]) -> TrialCaps:
    """Read [trial]; ``name`` of the file stands in messages.

    Raises BadConfig in one line: the key, the value, what would be right.
    """
    users = values.get("users", {})
    if not isinstance(users, dict):
        raise _bad(name, "[trial] users", users, "a section [trial.users.NAME] is expected")
    general = {key: value for key, value in values.items() if key != "users"}
    default = _cap(name, "[trial]", general, DEFAULT)
    some = {}
    for user, own in users.items():
        section = f"[trial.users.{user}]"
        if not isinstance(own, dict):
            raise _bad(name, section, own, "a section is expected")
        some[user] = _cap(name, section, own, default)
    return TrialCaps(default, some)


def _cap(name: str, section: str, values: Mapping[str, Any], otherwise: TrialCap) -> TrialCap:
    for key in values:
        if key not in _KEYS:
            right = f"one of {', '.join(_KEYS)} is expected"
            raise _bad(name, f"{section} {key}", values[key], right)
    jobs, gpus, minutes = (
        _number(name, section, key, values[key]) if key in values else getattr(otherwise, key)
        for key in _KEYS
    )
    return TrialCap(jobs, gpus, minutes)


def _number(name: str, section: str, key: str, value: object) -> int | None:
    least, most, unit = _KEYS[key]
    if value == UNLIMITED:
        return None
    if type(value) is not int or not least <= value <= most:
        right = f'a whole number of {unit} from {least} to {most}, or "{UNLIMITED}", is expected'
        raise _bad(name, f"{section} {key}", value, right)
    return value


def _bad(name: str, key: str, value: object, right: str) -> BadConfig:
    return BadConfig(f"{name}: {key}: {quoted(str(value))}: {right}")


def trials_seen(snapshot: Snapshot, policy: Policy, caps: TrialCaps) -> Trials | None:
    """Return what the filter is to know of trial jobs; None where the policy has no classes."""
    return Trials(caps, trials_held(snapshot)) if has_classes(policy) else None


def preemption_trouble(policy: Policy, itself: str) -> str:
    """Return why a policy that preempts jobs does not do so here, in one line; "" where it does.

    ``itself``: as Abilities.preempts.
    """
    if not itself or not preempts(policy):
        return ""
    return f"[daemon] policy {policy.name} preempts no job and decides as fifo: {itself}"
