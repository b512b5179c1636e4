"""A double of the ``pbs`` module that PBS gives its hooks; it does what facts of OpenPBS 23.06 say.

accept() and reject() raise SystemExit; the alarm raises KeyboardInterrupt, wherever the hook is.
What an event does not have raises EventIncompatibleError; what it must not set, or a resource
that the site has not created, raises too. Resource_List.keys() is complete in queuejob and empty
in runjob, postqueuejob and jobobit. A resource that is set to None in queuejob stands there as "",
and PBS refuses a job with an empty select or place, or with one of a chunk's resources beside it. Variable_List takes items alone, and not PBS_O_*. In
queuejob a job has no id and no owner. The server and its queues show their attributes: those of
resources are there also where nothing is set, and "" as text then; they are told by name alone, as
keys() is empty. A queue that is not there is None. On a node select and custom resources are not known, and
a bare comma ends a value of the launch environment.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

BUILT_IN = (
    "select place nodes nodect ncpus ngpus mem mpiprocs ompthreads walltime software"
    " min_walltime max_walltime"
).split()
CUSTOM = (
    "pliant moldable malleable job_class throughput steps colocate gpu_model gpu_share scratch"
).split()
NO_KEYS = ("runjob", "postqueuejob", "jobobit", "server")
ON_NODE = ("execjob_prologue", "execjob_launch", "execjob_epilogue")
IN_SERVER = ("queuejob", "modifyjob", "movejob", "runjob", "postqueuejob", "jobobit")
"""Those events for which the server does nothing else meanwhile."""
NUMBERS = ("ncpus", "ngpus", "mpiprocs", "ompthreads")
OF_CHUNKS = ("ncpus", "ngpus", "mem", "mpiprocs", "ompthreads")
BOUNDS = (
    *("resources_max", "resources_min", "resources_available"),
    *("resources_default", "default_chunk"),
)
OF_SEVERAL = (
    "max_run_res max_queued_res queued_jobs_threshold_res max_user_res max_group_res"
    " max_run_res_soft max_user_res_soft max_group_res_soft".split()
)
ORDERING = ("job_sort_formula", "node_group_enable", "node_group_key")
PARAMETERS = {
    "queuejob": ("job",),
    "modifyjob": ("job", "job_o"),
    "movejob": ("job", "src_queue", "requestor"),
    "runjob": ("job", "requestor"),
    "execjob_prologue": ("job", "vnode_list"),
    "execjob_launch": ("job", "vnode_list", "progname", "argv", "env"),
    "execjob_epilogue": ("job", "vnode_list"),
    "periodic": ("vnode_list", "freq"),
}
SETTABLE = {
    "queuejob": ("queue", "Hold_Types", "Execution_Time", "Job_Name", "project", "Rerunable"),
    "modifyjob": ("Hold_Types", "Execution_Time", "Job_Name", "project", "run_count"),
    "movejob": ("queue",),
    "runjob": ("Hold_Types", "Execution_Time"),
    "execjob_prologue": ("Hold_Types", "Execution_Time"),
    "execjob_launch": (),
    "execjob_epilogue": ("Hold_Types", "Execution_Time", "run_count"),
    "periodic": (),
}
ATTRIBUTES = (
    "id Job_Name Job_Owner queue Resource_List Variable_List Hold_Types Execution_Time Rerunable"
    " project comment exec_vnode schedselect run_count Exit_status job_state session_id"
    " Submit_arguments resources_used depend array_indices_submitted"
).split()


class EventIncompatibleError(Exception):
    """The event has no such parameter."""


class BadAttributeValueError(Exception):
    """An attribute cannot be set so."""


class LookedAtJobs(BaseException):
    """A hook that the server waits for went over all jobs: no part of PBS, which would be busy."""


class UnsetResourceNameError(Exception):
    """There is no such resource."""


class UnsetAttributeNameError(Exception):
    """There is no such attribute."""


class Text:
    """select, place, size, hold_types: made from a text, and a text again by str()."""

    def __init__(self, value: str) -> None:
        if not isinstance(value, str) or not value:
            raise BadAttributeValueError(repr(value))
        self.value = value

    def __str__(self) -> str:
        return self.value


class Resources:
    """Resource_List."""

    def __init__(self, event: str, values: Mapping[str, Any], custom: tuple[str, ...]) -> None:
        self.event = event
        self.known = (*BUILT_IN, *custom)
        self.values = dict(values)
        self.writes: list[str] = []

    def __getitem__(self, name: str) -> Any:
        if name not in self.known:
            raise AttributeError(name)
        if self.event in ON_NODE and (name == "select" or name in CUSTOM):
            return None
        return self.values.get(name)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self.known:
            raise UnsetResourceNameError(name)
        if self.event not in ("queuejob", "modifyjob"):
            raise BadAttributeValueError(f"{name} is read-only")
        if name in ("select", "place") and not isinstance(value, Text | None):
            value = Text(value)  # PBS takes a text as well
        if name in NUMBERS and value is not None and type(value) is not int:
            raise BadAttributeValueError(f"{name} is a number")
        self.writes.append(name)
        self.values[name] = "" if value is None and self.event == "queuejob" else value

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values.items())

    def refusal(self) -> str:
        """Return what PBS says of a submission that a hook has accepted; "" where it takes it."""
        empty = [name for name in ("select", "place") if self.values.get(name) == ""]
        if empty:
            return "Illegal attribute or resource value Resource_List." + empty[0]
        beside = [name for name in OF_CHUNKS if self.values.get(name) is not None]
        if beside and any(self.values.get(name) is not None for name in ("select", "place")):
            words = '"-lresource=" cannot be used with "select" or "place", resource is: '
            return words + beside[-1]
        return ""

    def keys(self) -> list[str]:
        """Return the names of those that are set, where the event tells."""
        if self.event in NO_KEYS:
            return []
        return [name for name in self.known if self.values.get(name) is not None]


class Variables(dict[str, str]):
    """Variable_List."""

    def __init__(self, event: str, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.event = event

    def __setitem__(self, name: str, value: str) -> None:
        if name.startswith("PBS_O_") or self.event in ("execjob_launch", "movejob", "periodic"):
            raise BadAttributeValueError(f"{name} is read-only")
        if not isinstance(value, str):
            raise BadAttributeValueError(repr(value))
        super().__setitem__(name, value)


class Environment(dict[str, str]):
    """The env of execjob_launch."""

    def arrives(self) -> dict[str, str]:
        """Return what the program finds: a value ends at its first comma without a backslash."""
        marked = {name: value.replace("\\,", "\0") for name, value in self.items()}
        return {name: value.partition(",")[0].replace("\0", ",") for name, value in marked.items()}


class Chunk:
    """One of exec_vnode's chunks, like ``gn1:ngpus=2:ncpus=2``."""

    def __init__(self, text: str) -> None:
        self.vnode_name, *rest = text.strip("()").split(":")
        pairs = (item.split("=") for item in rest)
        values = {name: float(n) if "." in n else n for name, n in pairs}
        self.chunk_resources = Resources("chunk", values, tuple(CUSTOM))


class ExecVnode:
    """exec_vnode."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.chunks = [Chunk(part) for part in text.split("+")]

    def __str__(self) -> str:
        return self.text


class Job:
    """A job as an event shows it; attributes that are not given are None."""

    Resource_List: Resources
    Variable_List: Variables

    def __init__(
        self,
        event: str,
        resources: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
        custom: tuple[str, ...] = tuple(CUSTOM),
        **attributes: Any,
    ) -> None:
        owned = {"PBS_O_WORKDIR": "/home/ada", **(variables or {})}
        given = {
            **dict.fromkeys(ATTRIBUTES),
            "id": "" if event == "queuejob" else "7.head",
            "Job_Owner": None if event == "queuejob" else "ada@login",
            "Rerunable": True,
            "Resource_List": Resources(event, resources or {}, custom),
            "Variable_List": Variables(event, owned),
            **attributes,
        }
        if isinstance(given["exec_vnode"], str):
            given["exec_vnode"] = ExecVnode(given["exec_vnode"])
        self.__dict__.update(given, event=event, done=[])

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ATTRIBUTES:
            raise UnsetAttributeNameError(name)
        if name not in SETTABLE[self.__dict__["event"]]:
            raise BadAttributeValueError(f"{name} is read-only")
        self.__dict__[name] = value
        self.__dict__["done"].append(name)

    def in_ms_mom(self) -> bool:
        """Whether this is the first node of the job."""
        if self.__dict__["event"] not in ON_NODE:
            raise NotImplementedError("in_ms_mom(): only for hooks on a node")
        return True

    def rerun(self) -> None:
        """Let the job be requeued; the server does so once the hook has rejected the event."""
        if self.__dict__["event"] not in ON_NODE:
            raise NotImplementedError("rerun(): only for hooks on a node")
        self.__dict__["done"].append("rerun")


class Event:
    """What pbs.event() returns."""

    def __init__(self, kind: str, **parameters: Any) -> None:
        self.type = kind
        self.parameters = parameters
        self.verdict: tuple[str, str] | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in PARAMETERS[self.type]:
            raise EventIncompatibleError(name)
        return self.parameters.get(name)

    def accept(self) -> None:
        """End the hook; the event goes on."""
        job = self.parameters.get("job")
        refusal = job.Resource_List.refusal() if self.type == "queuejob" and job else ""
        self.verdict = ("reject", refusal) if refusal else ("accept", "")
        raise SystemExit("0")

    def reject(self, message: str = "", _code: int = 255) -> None:
        """End the hook; the event does not go on."""
        self.verdict = ("reject", message)
        raise SystemExit("255")


class Limited:
    """What the server or a queue says of limits; ``said``: its attributes by name."""

    def __init__(self, name: str, said: Mapping[str, Any]) -> None:
        self.name = name
        self.managers, self.operators = said.get("managers"), said.get("operators")
        self.job_sort_formula = said.get("job_sort_formula")
        self.node_group_key = said.get("node_group_key")
        self.node_group_enable = said.get("node_group_enable")
        for kind in (*BOUNDS, *OF_SEVERAL):
            setattr(self, kind, Resources("server", said.get(kind, {}), tuple(CUSTOM)))

    def __str__(self) -> str:
        return self.name


class Pbs(types.ModuleType):
    """The module, for one event. ``jobs``: those of the server.

    ``limits``: what the server says of them, and each queue, by its name; "": the server.
    """

    LOG_DEBUG, LOG_WARNING = 7, 4
    logs = True
    """False: as OpenPBS 23.06 that was built with Python 3.10 or later."""
    scheduling = True
    """Of the server: whether its scheduler is on."""

    def __init__(
        self,
        event: Event,
        jobs: tuple[Job, ...] = (),
        config: str | None = None,
        node: str = "gn1",
        limits: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__("pbs")
        self.the_event = event
        self.all_jobs = jobs
        self.hook_config_filename = config
        self.node = node
        self.log: list[str] = []
        self.looked = 0
        some = {"": {}, "workq": {}, **(limits or {})}
        self.limits = {name: Limited(name, said) for name, said in some.items()}
        self.select = self.place = self.size = self.hold_types = Text

    def event(self) -> Event:
        """Return the event."""
        return self.the_event

    def server(self) -> Pbs:
        """Return the server."""
        return self

    @property
    def default_queue(self) -> Limited:
        """The queue of who names none."""
        return self.limits["workq"]

    def queue(self, name: str) -> Limited | None:
        """Return a queue; None where there is none of that name."""
        return self.limits.get(name)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the server's."""
        known = (*BOUNDS, *OF_SEVERAL, "managers", "operators", *ORDERING)
        if name in known and name != "resources_min":
            return getattr(self.limits[""], name)
        raise AttributeError(name)

    def jobs(self) -> Iterator[Job]:
        """Go over all jobs, which takes a real server seconds.

        Raises LookedAtJobs where the server waits for the hook; run() does, if the hook caught it.
        """
        self.looked += 1
        if self.the_event.type in IN_SERVER:
            raise LookedAtJobs
        return iter(self.all_jobs)

    def logmsg(self, _level: int, message: str) -> None:
        """Write into the log."""
        if not self.logs:
            raise SystemError("PY_SSIZE_T_CLEAN macro must be defined for '#' formats")
        self.log.append(message)

    def get_local_nodename(self) -> str:
        """Return this node's name."""
        return self.node


def run(code: types.CodeType, pbs: Pbs, alarm_at: int = 0) -> tuple[str, str]:
    """Run a hook as PBS does, and return what it says: accept or reject, and a message.

    ``alarm_at``: the alarm comes before this line of all that the hook runs, if the hook has not
    decided by then and is about to end; 0: never. A hook that ends otherwise than by accept() or
    reject() raises, as it would have PBS refuse the job.
    """
    before = sys.modules.get("pbs")
    sys.modules["pbs"] = pbs
    tracer = _alarm(code.co_filename, alarm_at, pbs.the_event) if alarm_at else None
    traced = sys.gettrace()
    try:
        sys.settrace(tracer or traced)
        exec(code, {"__name__": "__main__"})  # noqa: S102  # so does PBS
    except SystemExit:
        pass
    finally:
        sys.settrace(traced)
        if before is None:
            del sys.modules["pbs"]
        else:
            sys.modules["pbs"] = before
    if pbs.looked and pbs.the_event.type in IN_SERVER:
        raise LookedAtJobs
    assert pbs.the_event.verdict is not None, "the hook has not decided"
    return pbs.the_event.verdict


def _alarm(filename: str, line: int, event: Event) -> Callable[..., Any]:
    left = [line]

    def trace(frame: types.FrameType, what: str, _argument: object) -> Any:
        if frame.f_code.co_filename != filename:
            return None
        if what == "line" and left[0] > 0:
            left[0] -= 1
            if not left[0] and event.verdict is None:
                raise KeyboardInterrupt
        return trace

    return trace
