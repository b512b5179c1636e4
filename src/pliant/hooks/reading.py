"""What hooks read, with care: their configuration, the state file, attributes of PBS's objects.

This runs inside PBS. It waits for nothing but a local disk, and reads no more than a small file.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import Any

from pliant.errors import BadInput
from pliant.filter.pbs.defaults import Defaults, Pairs
from pliant.filter.pbs.fences import Fence, read_fences
from pliant.filter.pbs.limits import OF_RUNNING, OF_SEVERAL, SHAPED, Bounds, limits_of
from pliant.filter.pbs.names import ASKED, RESOURCES, TOKEN
from pliant.filter.pbs.schedulers import shaped_in
from pliant.filter.pbs.state import MAX_BYTES, State, read_state
from pliant.filter.pbs.written import JOB_WIDE

NAMES = ("select", "place", "nodes", "walltime", *JOB_WIDE, TOKEN, *RESOURCES.values())
"""The resources that are looked at."""
DEFAULTED = ("select", "place", "nodes", *JOB_WIDE)
"""Those whose defaults are looked at; of all others it counts that there is one."""
WAITS = (1, 2, 3)
"""Queued, held, waiting for its time: job_state as PBS's hooks have it."""
RUNS = 4
"""Running, as above."""
INSTANT = 32
"""As many characters as an instant is written with."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The hooks' configuration, a JSON object; what is missing or of another type is as here.

    ``owner``: the uid that pliantd runs as: the state file is its or root's. ``gpu_vnode``: see
    pliant.filter.pbs.launched. ``type_resource``: the resource of a GPU's type;
    ``share_resource``: the float resource of shares. ``wait_s``: how long a job waits at most
    that goes back to the queue. ``fences``: pliantd's file of them. ``taken``: our own file of when
    a job was last submitted or started.
    """

    state: str = "/run/pliant/pbs_state.json"
    fences: str = "/run/pliant/pbs_fences.json"
    taken: str = "/run/pliant/pbs_taken"
    owner: int = 0
    gpu_vnode: str = ""
    type_resource: str = ""
    share_resource: str = ""
    wait_s: int = 60
    qalter: str = "/opt/pbs/bin/qalter"
    qmgr: str = "/opt/pbs/bin/qmgr"

    @property
    def resources(self) -> tuple[str, str]:
        """What pliantd's file says too, while it is there."""
        return self.type_resource, self.share_resource


def read_settings(path: str | None) -> Settings:
    """Return the configuration at ``path`` (pbs.hook_config_filename)."""
    if not path:
        return Settings()
    try:
        said = json.loads(read_text(path, (os.geteuid(),)))
    except (OSError, ValueError, BadInput):
        return Settings()
    if not isinstance(said, dict):
        return Settings()
    ours = Settings()
    kept: dict[str, Any] = {
        name: value
        for name, value in said.items()
        if name[:1] != "_" and type(value) is type(getattr(ours, name, None))
    }
    return Settings(**kept)


def read_text(path: str, owners: tuple[int, ...]) -> str:
    """Return the text of a small regular file that nobody else could have written.

    Raises OSError, ValueError or BadInput.
    """
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
            raise BadInput("no small file")
        if found.st_uid not in (0, *owners) or found.st_mode & 0o022:
            raise BadInput("another user's file, or one that others may write")
        return os.read(file, MAX_BYTES + 1).decode("utf-8")
    finally:
        os.close(file)


def read_state_file(settings: Settings, queue: str) -> State | None:
    """Return what pliantd tells of a queue; None where nothing is to be had."""
    try:
        return read_state(read_text(settings.state, (settings.owner,)), queue)
    except (OSError, ValueError, BadInput):
        return None


def read_fences_file(settings: Settings) -> tuple[Fence, ...]:
    """Return what pliantd keeps for some seconds; nothing where nothing is to be had."""
    try:
        return read_fences(read_text(settings.fences, (settings.owner,)))
    except (OSError, ValueError, BadInput):
        return ()


def taken_before(settings: Settings, now_s: float) -> float:
    """Note that a job is submitted or starts, and return when one last did; 0.0: none did.

    It stands in a file: PBS begins its Python anew after so many hooks (python_restart_max_hooks),
    and what modules held is lost then. Where nothing can be noted, one may be taking what is free
    this moment.
    """
    how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(settings.taken, how, 0o600)
        try:
            said = os.read(file, INSTANT)
            os.pwrite(file, repr(now_s).ljust(INSTANT).encode(), 0)
        finally:
            os.close(file)
        return float(said or 0)
    except (OSError, ValueError):
        return now_s


# PBS's objects


def remark(hook: str, words: str) -> None:
    """Put a remark into the server's log, if there is one, and if PBS can.

    OpenPBS 23.06 that was built with Python 3.10 or later raises SystemError instead.
    """
    if words:
        import pbs  # noqa: PLC0415  # it is there in a hook alone

        try:  # noqa: SIM105  # one more import in each hook
            pbs.logmsg(pbs.LOG_DEBUG, "pliant: " + hook + ": " + ascii(words))
        except Exception:  # noqa: S110  # there is nowhere else to say it
            pass


def attribute(one: Any, name: str) -> Any:
    """Return an attribute; None where it is not set, or not known for this event."""
    try:
        return getattr(one, name)
    except Exception:  # PBS has its own exceptions for this, which differ by release
        return None


def item(some: Any, name: str) -> Any:
    """Return one of a job's resources or variables; None where there is none."""
    try:
        return some[name]
    except Exception:  # as above; a resource that a site has not created is an AttributeError
        return None


def bounds_now(queue: str) -> Bounds | None:
    """Return what bounds one job of a queue ("": the default one) at this moment; None: not known.

    And what it is given that it does not say.

    The server shows its attributes and a queue's, and looks at no job for it. It hears of no change
    before it has held them against this job itself, so what is within them is not refused.
    """
    import pbs  # noqa: PLC0415  # it is there in a hook alone

    try:
        server = pbs.server()
        own = server.queue(queue or str(server.default_queue))
        most = {**_limits(server.resources_max), **_limits(own.resources_max)}
        limits = limits_of(most, _limits(own.resources_min))
        careful = any(_bounds_several(one) for one in (server, own))
        most_of = server.resources_max, own.resources_max
        job = _defaults(*most_of, server.resources_default, own.resources_default)
        chunk = _defaults(server.default_chunk, own.default_chunk)
    except Exception:  # as above
        return None
    ordered = shaped_in(str(attribute(server, "job_sort_formula") or "")) != ""
    return Bounds(limits, careful, Defaults(job, chunk), _makes_sets(server, own), ordered)


def _makes_sets(server: Any, queue: Any) -> bool:
    """Whether a queue's nodes may lie in several placement sets."""
    named = any(str(attribute(one, "node_group_key") or "") for one in (queue, server))
    return named and str(attribute(server, "node_group_enable")) in ("1", "True")


def _bounds_several(one: Any) -> bool:
    """Whether the server or a queue bounds what several jobs may have of what a shape changes."""
    together = any(str(getattr(one, name)) for name in OF_SEVERAL)
    return together or not resource_names(getattr(one, OF_RUNNING)).isdisjoint(SHAPED)


def _defaults(*some: Any) -> Pairs:
    """Return defaults by name, the last word of each; a value only where it is looked at."""
    found = {}
    for resources in some:
        for name in resource_names(resources):
            found[name.lower()] = str(resources[name]) if name in DEFAULTED else ""
    return tuple(found.items())


def _limits(resources: Any) -> dict[str, str]:
    """Return what is said of the resources that a shape changes."""
    found = {name: resources[name] for name in SHAPED}
    return {name: str(value) for name, value in found.items() if value is not None}


def resource_names(resources: Any) -> set[str]:
    """Return which resources are said; keys() of a server's or a queue's tells of none."""
    return {item.partition("=")[0] for item in str(resources).split(",")} - {""}


def resource_texts(resources: Any, *, whole: bool = False) -> dict[str, str]:
    """Return those that are looked at, or (``whole``) all that keys() names, as text."""
    names = {*NAMES, *(resources.keys() if whole else ())}
    found = {name.lower(): item(resources, name) for name in names}
    return {name: str(value) for name, value in found.items() if value is not None}


def variable_texts(variables: Any, names: tuple[str, ...]) -> dict[str, str]:
    """Return some variables, and those by which an owner asks, as they were said."""
    found = {name: item(variables, name) for name in (*ASKED.values(), *names)}
    return {
        name: str(value).replace("\\,", ",") for name, value in found.items() if value is not None
    }


def seconds(duration: Any) -> int:
    """Return a duration in seconds; 0 where none is set."""
    return 0 if duration is None else max(0, int(duration))
