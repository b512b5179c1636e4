"""What pliantd tells the queuejob hook, through a small file: who may be changed, what fits now.

pliantd writes it after each cycle, under another name, and renames it. The hook looks at nothing
else of the cluster, so the file is small: nodes that are alike stand together, and their number
does not depend on that of the jobs. A file that is old says only which requests may be refused and
rewritten no more (see :mod:`pliant.filter.pbs.decide`).

::

    {"pliant_state": 2, "written_s": 1700000000.0, "mode": "enforce", "modes": {"debug": "off"},
     "default_queue": "workq", "type_resource": "gpu_model", "share_resource": "",
     "molds": true, "careful": true,
     "queues": {"workq": TEXT, ...}}

    TEXT: {"kinds": [[nodes, gpus, cpus, mem_mib, "type", 0.0], ...],
           "rooms": [[nodes, gpus, cpus, mem_mib, "type", until_s], ...]}

What stands of a queue is a text, JSON again, so that the hook takes one queue's apart alone. What
a job may have in it the hook asks the server itself. ``careful`` is for hooks of 0.1.0, which knew
of no such limits: by it they make no job larger than it was written.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from typing import Any

from pliant.errors import BadInput
from pliant.model.cluster import Mode

VERSION = 2
MAX_BYTES = 256 * 1024
"""The largest file that is read."""
MAX_AGE_S = 30.0
"""How old a file may be for jobs to be refused or rewritten by it."""


@dataclass(frozen=True, slots=True)
class Room:
    """Nodes that are alike: what each of them has, free until ``until_s`` (0: for good)."""

    nodes: int
    gpus: int
    cpus: int
    mem_mib: int
    gpu_type: str = ""
    until_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ground:
    """What a queue's nodes are when nothing runs (``kinds``), and what no planned job takes now."""

    kinds: tuple[Room, ...] = ()
    rooms: tuple[Room, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """All that the file says.

    ``modes`` are those of queues that differ from ``mode``. ``type_resource``: the resource of a
    chunk that names the type of its GPUs; "": none. ``share_resource``: that of a part of one GPU.
    ``molds``: whether the policy chooses shapes.
    """

    written_s: float
    mode: Mode = Mode.OBSERVE
    modes: tuple[tuple[str, Mode], ...] = ()
    default_queue: str = ""
    type_resource: str = ""
    share_resource: str = ""
    molds: bool = True
    queues: tuple[tuple[str, Ground], ...] = ()

    def mode_of(self, queue: str) -> Mode:
        """Return what may be done in a queue, "" being the default one."""
        return dict(self.modes).get(queue or self.default_queue, self.mode)

    def ground(self, queue: str) -> Ground:
        """Return what a queue has; nothing where it is not known."""
        return dict(self.queues).get(queue or self.default_queue, Ground())

    def is_live(self, now_s: float) -> bool:
        """Whether it was written shortly before ``now_s``."""
        return -MAX_AGE_S <= now_s - self.written_s <= MAX_AGE_S


def state_text(state: State) -> str:
    """Write the file."""
    said = {
        "pliant_state": VERSION,
        "written_s": state.written_s,
        "mode": state.mode,
        "modes": dict(state.modes),
        "default_queue": state.default_queue,
        "type_resource": state.type_resource,
        "share_resource": state.share_resource,
        "molds": state.molds,
        "careful": True,
        "queues": {
            name: _dense(
                {
                    "kinds": [astuple(kind) for kind in ground.kinds],
                    "rooms": [astuple(room) for room in ground.rooms],
                }
            )
            for name, ground in state.queues
        },
    }
    return _dense(said) + "\n"


def _dense(said: Any) -> str:
    return json.dumps(said, separators=(",", ":"))


def read_state(text: str, queue: str | None = None) -> State:
    """Read the file; of the queues only ``queue``, "" being the default one. None: all of them.

    Raises BadInput where it is not one, or one of another version.
    """
    try:
        said = json.loads(text)
        if said["pliant_state"] != VERSION:
            raise BadInput(f"pliant_state: {said['pliant_state']!r:.40}: {VERSION} is expected")
        return State(
            _is(float, said["written_s"]),
            Mode(said["mode"]),
            tuple((name, Mode(mode)) for name, mode in said["modes"].items()),
            _is(str, said["default_queue"]),
            _is(str, said["type_resource"]),
            _is(str, said.get("share_resource", "")),
            _is(bool, said["molds"]),
            _grounds(said["queues"], queue if queue is None else queue or said["default_queue"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as wrong:
        raise BadInput(f"the state file is damaged: {type(wrong).__name__}") from None


def _grounds(said: Any, only: str | None) -> tuple[tuple[str, Ground], ...]:
    names = said if only is None else {only} & said.keys()
    return tuple((name, _ground(json.loads(said[name]))) for name in names)


def _ground(said: Any) -> Ground:
    return Ground(*(tuple(map(_room, said[part])) for part in ("kinds", "rooms")))


def _room(said: Any) -> Room:
    nodes, gpus, cpus, mem_mib, gpu_type, until_s = said
    counts = (nodes, gpus, cpus, mem_mib)  # at once: there may be hundreds of rooms
    if {type(count) for count in counts} != {int} or min(counts) < 0:
        raise TypeError(counts)
    return Room(nodes, gpus, cpus, mem_mib, _is(str, gpu_type), _is(float, until_s))


def _is(kind: type[Any], value: Any) -> Any:
    """Return a value that is of this type, and no negative number; raise TypeError."""
    if kind is float and type(value) is int:
        return _is(float, float(value))
    if type(value) is not kind or (kind in (int, float) and not value >= 0):
        raise TypeError(value)
    return value
