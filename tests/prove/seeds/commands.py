"""How pliantd's commands reach slurmctld: each takes its time, and one may go wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pliant.batch.slurm.commands import Answer
from pliant.errors import Unavailable
from pliant.handover import GUEST, HANDED
from prove.seeds.cluster import Cluster
from prove.seeds.loops import Killed, Loop, Time

TIMEOUT_S = 10.0
TEMPORARY = "Requested operation is presently disabled"
FOR_GOOD = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


class Trouble(StrEnum):
    """What may become of one command."""

    DIES_BEFORE = "pliantd is killed before"
    DIES_AFTER = "pliantd is killed after"
    REFUSED = "refused for now"
    BARRED = "refused for good"
    HALF = "refused halfway"
    UNHEARD = "no answer, and not done"
    UNANSWERED = "no answer, and done"
    SLOW = "slow"


@dataclass(slots=True)
class Armed:
    """Something that is to go wrong with a command: ``step``, for the ``nth`` time from now."""

    step: str
    trouble: Trouble
    nth: int = 1
    came: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Commands:
    """What one pliantd runs commands by."""

    time: Time
    loop: Loop
    cluster: Cluster
    takes_s: Callable[[bool], float]
    kill: Callable[[str], None]
    done: Callable[[str, Sequence[str], str, float], None]
    armed: list[Armed] = field(default_factory=list)

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Run one as :class:`pliant.batch.clients.Clients` does."""
        step, began_s = step_of(argv), self.time.now_s
        trouble = self._trouble(step)
        is_look = not step and "-j" not in argv
        self._lasts(self.takes_s(is_look) * (40 if trouble is Trouble.SLOW else 1))
        if trouble is Trouble.DIES_BEFORE:
            self.kill(f"before {step}")
        self._check_alive()
        if self.time.now_s < self.cluster.away_until_s:
            raise Unavailable(f"{argv[0]}: Unable to contact slurm controller (connect failure)")
        answer = self._answer(trouble, argv, env, stdin)
        if step:
            self.done(step, argv, answer.words if answer.status else "", began_s)
        if trouble is Trouble.DIES_AFTER:
            self.kill(f"after {step}")
        self._check_alive()
        if trouble in (Trouble.UNHEARD, Trouble.UNANSWERED):
            self._lasts(TIMEOUT_S)
            raise Unavailable(f"{argv[0]}: no answer within {TIMEOUT_S:g} s")
        return answer

    def _lasts(self, for_s: float) -> None:
        self._check_alive()
        self.time.pass_for(for_s)
        self._check_alive()

    def _check_alive(self) -> None:
        if self.loop.is_dead:
            raise Killed

    def _trouble(self, step: str) -> Trouble | None:
        for one in self.armed:
            if one.step in (step, "any" if step else "read"):
                one.nth -= 1
                if not one.nth:
                    self.armed.remove(one)
                    one.came()
                    return one.trouble
        return None

    def _answer(
        self,
        trouble: Trouble | None,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        stdin: str,
    ) -> Answer:
        match trouble:
            case Trouble.UNHEARD:
                return Answer("", "", 0)
            case Trouble.REFUSED | Trouble.BARRED | Trouble.HALF:
                if trouble is Trouble.HALF:
                    self._half(argv)
                words = FOR_GOOD if trouble is Trouble.BARRED else TEMPORARY
                return Answer("", f"slurm_update error: {words}\n", 1)
        return self.cluster.run(argv, env=env, stdin=stdin)

    def _half(self, argv: Sequence[str]) -> None:
        """Of a call that is refused a part may be applied: what is noted, say."""
        some = [word for word in argv if word.startswith(("AdminComment=", "TimeLimit="))]
        if argv[:2] == ("scontrol", "update") and some and argv[2].startswith("jobid="):
            self.cluster.run(("scontrol", "update", argv[2], *some))


_PINS = {**{str(priority): "pin" for priority in HANDED}, str(GUEST): "pin-guest"}


def step_of(argv: Sequence[str]) -> str:
    """Return what a command does, as the steps of hand-overs are called; "" for one that reads."""
    match list(argv):
        case ["scontrol", "create", *_]:
            return "fence"
        case ["scontrol", "delete", *_]:
            return "unfence"
        case ["scontrol", "requeue" | "release" as what, *_]:
            return what
        case ["scontrol", "update", what, *words]:
            return _update(what, words)
    return ""


def _update(what: str, words: Sequence[str]) -> str:
    if not what.startswith("jobid="):
        return "renew"
    said = dict(word.partition("=")[::2] for word in words)
    if said.get("Priority") in _PINS:
        return _PINS[said["Priority"]]
    if "StartTime" in said:
        return "reshape" if len(said) > 1 else "put back"
    if "Gres" in said or "TresPerNode" in said:
        return "mold"
    return "note"
