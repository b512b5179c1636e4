"""The hooks of PBS as they ship, each called for one event of the fake's.

A hook's own text is run once, with nothing to do; then its ``main`` is called, as PBS would run all
of it. What it reads of files and of a clock comes from here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType, SimpleNamespace
from typing import Any

from pbs_double import Environment, Event, Job, Pbs
from pliant import resources
from pliant.filter.pbs.fences import Fence
from pliant.filter.pbs.limits import Bounds
from pliant.filter.pbs.state import State
from pliant.hooks.reading import Settings
from pliant.model import Limits, Mode

NAMES = ("execjob_epilogue", "execjob_launch", "modifyjob", "runjob")
SCHEDULER = "Scheduler"


class Hooks:
    """Those that a hand-over meets; ``clock`` counts seconds since the epoch."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._said: Mapping[str, Any] = {}
        self._of = {name: self._loaded(name) for name in NAMES}

    def _loaded(self, name: str) -> dict[str, Any]:
        text = resources.find("plugins", "pbs", f"{name}.py").read_text()
        inside: dict[str, Any] = {"__name__": name}
        with _there(_Nothing("pbs")), suppress(_Nothing.Ends):
            exec(compile(text, name, "exec"), inside)  # noqa: S102  # so does PBS
        inside.update(
            time=SimpleNamespace(time=self._clock),
            read_settings=lambda _path: Settings(),
            read_state_file=lambda _settings, _queue: self._said["state"],
            read_fences_file=lambda _settings: self._said["fences"],
            bounds_now=lambda _queue: Bounds(Limits()),
            taken_before=lambda _settings, _now_s: 0.0,
        )
        return inside

    def _run(self, name: str, event: Event) -> bool:
        """Run a hook; whether it accepts."""
        pbs, inside = Pbs(event), self._of[name]
        inside["pbs"] = pbs
        with _there(pbs), suppress(SystemExit):
            inside["main"](event)
        assert event.verdict is not None, name
        return event.verdict[0] == "accept"

    def epilogue(self, **job: Any) -> tuple[Any, bool]:
        """Return a job as it is at the end of its run, and whether it goes back to the queue."""
        seen = Job("execjob_epilogue", **job)
        accepts = self._run("execjob_epilogue", Event("execjob_epilogue", job=seen))
        return seen, not accepts and "rerun" in seen.__dict__["done"]

    def launch(self, env: Mapping[str, str], **job: Any) -> bool:
        """Whether a job's program is launched, by the first of its nodes."""
        seen = Job("execjob_launch", **job)
        event = Event("execjob_launch", job=seen, env=Environment(env))
        return self._run("execjob_launch", event)

    def modify(self, was: Mapping[str, Any], **changes: Any) -> Any | None:
        """Return what a qalter sets in the end; None where it is refused."""
        self._said = {"state": None}
        job, job_o = Job("modifyjob", **changes), Job("modifyjob", **was)
        taken = self._run("modifyjob", Event("modifyjob", job=job, job_o=job_o))
        return job if taken else None

    def runs(self, fences: Sequence[Fence], written_s: float, **job: Any) -> Any | None:
        """Return a job as the scheduler starts it; None where it may not.

        ``written_s``: of pliantd's last word.
        """
        state = State(written_s, Mode.ENFORCE, default_queue="workq")
        self._said = {"fences": fences, "state": state}
        seen = Job("runjob", **job)
        event = Event("runjob", job=seen, requestor=SCHEDULER)
        return seen if self._run("runjob", event) else None


class _Nothing(ModuleType):
    """PBS, for which nothing has happened yet."""

    class Ends(BaseException):
        """The hook has nothing to do."""

    def event(self) -> None:
        raise self.Ends


@contextmanager
def _there(pbs: ModuleType) -> Iterator[None]:
    """Let ``import pbs`` find it."""
    before = sys.modules.get("pbs")
    sys.modules["pbs"] = pbs
    try:
        yield
    finally:
        if before is None:
            del sys.modules["pbs"]
        else:
            sys.modules["pbs"] = before
