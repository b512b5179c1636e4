"""What owners do about their jobs: they resize, hold, change, requeue and cancel them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from random import Random

from pliant.errors import PliantError
from pliant.grammar import find_token, parse_shape
from pliant.grammar import shapes as request_shapes
from pliant.model import shape_text
from pliant.wire import Message
from prove.fake_slurm import BY_OWNER, Record, array_task, called
from prove.seeds.site import UIDS, Site
from prove.world import Rejected

RESIZES_S = 2.5
"""How often somebody asks for a resize, on average."""
SAYS_S = 40.0
"""How often somebody does something else."""
SOON_S = 5
BY_SLURM_S = (119, 123)
"""When an owner lets a job begin: soon, or when Slurm would by itself after a requeue, or about so."""


class Owners:
    """All of them.

    ``said``: what they said last of what their jobs ask, by job and field; ``spoke_s``: when.
    A time to begin is left out of it where it need not stand; see :meth:`lets_begin`.
    """

    def __init__(self, site: Site, random: Random) -> None:
        self._site, self._random = site, random
        self.said: dict[int, dict[str, float]] = {}
        self.spoke_s: dict[int, float] = {}
        self.cancelled: set[int] = set()
        self._begins: set[tuple[str, float]] = set()  # all that were said, by job or array
        self.is_quiet = False
        self.did: Callable[[str], None] = lambda _what: None
        self._next(RESIZES_S, self._resizes)
        self._next(SAYS_S, self._says)

    def _next(self, every_s: float, does: Callable[[], None]) -> None:
        def again() -> None:
            if not self.is_quiet:
                does()
                self._next(every_s, does)

        self._site.time.after(self._random.expovariate(1 / every_s), again)

    # --- by pliant resize ------------------------------------------------------------------

    def _resizes(self) -> None:
        jobs = [j for j in self._site.cluster.state.jobs.values() if self._is_malleable(j)]
        if jobs:
            job = self._random.choice(jobs)
            shapes = _others(job)
            smaller = [text for text in shapes if parse_shape(text).amount < job.nodes * job.gpus]
            shape = self._random.choice(self._random.choice((smaller, shapes)) or shapes)
            self._site.nodes.create_task(self._ask("resize", job, shape=shape))

    def _is_malleable(self, job: Record) -> bool:
        malleable = "malleable" in self._site.says.get(job.number, "")
        return job.state == "RUNNING" and malleable and len(_others(job)) > 0

    async def _ask(self, verb: str, job: Record, **fields: str) -> None:
        """Ask pliantd where it knows the job: it would look anew for one that it does not."""
        if not self._site.knows(job.number):
            return
        message = Message(verb, {"job": str(job.number), **fields})
        try:
            answer = await self._site.say(UIDS[job.user], message, 30.0)
        except PliantError as error:
            words = str(error)
        else:
            words = answer.message or "done"
            if verb == "resize":
                self.said.get(job.number, {}).pop("gpus", None)
            else:
                self.did(verb)
        self._site.trace.note(f"owner: {verb} {job.number} {' '.join(fields.values())}: {words}")

    # --- by Slurm's own commands -----------------------------------------------------------

    def _says(self) -> None:
        jobs = [job for job in self._site.cluster.state.jobs.values() if not job.is_over]
        if jobs:
            self.acts(self._random.choice(jobs).number)

    def acts(self, number: int) -> bool:
        """Do something to one job; return whether that was taken."""
        every = (self._holds, self._requeues, self._cancels, self._changes, self._pins)
        return self._random.choices(every, (5, 3, 1, 6, 2))[0](number)

    def _tells(self, *words: str) -> bool:
        try:
            self._site.cluster.tell(*words)
        except Rejected as error:
            self._site.trace.note(f"owner: {' '.join(words)}: {error}")
            return False
        self._site.trace.note(f"owner: {' '.join(words)}")
        self.did(words[0])
        return True

    def _called(self, number: int) -> str:
        """What scontrol is told that a job is called, which it may have forgotten."""
        job = self._site.cluster.state.jobs.get(number)
        return called(job) if job is not None else f"{number}"

    def _holds(self, number: int) -> bool:
        is_held = self._tells("hold", self._called(number))
        if is_held:
            self._note(number, held=1.0)
            self._releases_later(number)
        return is_held

    def _releases_later(self, number: int) -> None:
        self._site.time.after(self._random.uniform(3, 30), self._releases, number)

    def _releases(self, number: int) -> None:
        """End a hold: of an array that of each task, which may have a record of its own by now."""
        job = self._site.cluster.state.jobs.get(number)
        array = array_task(job)[0] if job is not None else ""
        some = [j for j in self._site.cluster.state.jobs.values() if array_task(j)[0] == array]
        for one in (one.number for one in some) if array else (number,):
            self.said.get(one, {}).pop("held", None)
            self._tells("release", self._called(one))

    def _requeues(self, number: int) -> bool:
        return self._tells("requeue", self._called(number))

    def _cancels(self, number: int) -> bool:
        job = self._site.cluster.state.jobs.get(number)
        if job is None or job.is_over:
            return False
        self.cancelled.add(number)
        self._site.trace.note(f"owner: cancels {number}")
        self.did("cancel")
        self._site.cluster.cancel(number)
        return True

    def _changes(self, number: int) -> bool:
        job = self._site.cluster.state.jobs.get(number)
        if job is None:
            return False
        gpus = self._random.choice([some for some in (1, 2, 3, 4) if some != job.gpus])
        less = max(1, job.limit_min - 1)
        lower = max(1, job.own_priority - 200)
        word, said = self._random.choice(
            (
                (f"Gres=gpu:{gpus}", {"gpus": float(gpus)}),
                self._later(),
                (f"TimeLimit={less}", {"limit_min": float(less)}),
                (f"Priority={lower}", {}),  # which Slurm gives back, once Pliant has pinned it
            )
        )
        return self._asks(job, word, said)

    def delays(self, number: int) -> bool:
        """Let a job that waits begin later; return whether that was taken."""
        job = self._site.cluster.state.jobs.get(number)
        return job is not None and job.waits and self._asks(job, *self._later())

    def _later(self) -> tuple[str, dict[str, float]]:
        random = self._random
        for_s = random.choice((random.uniform(5, 40), SOON_S, random.randint(*BY_SLURM_S)))
        begin_s = float(int(self._site.time.now_s + for_s))
        begin = f"{datetime.fromtimestamp(begin_s, UTC):%Y-%m-%dT%H:%M:%S}"
        return f"StartTime={begin}", {"begin_s": begin_s}

    def _asks(self, job: Record, word: str, said: dict[str, float]) -> bool:
        number = job.number
        before, after = self._site.unnoted(number), self._site.becomes(number)
        is_taken = self._tells("update", f"jobid={self._called(number)}", word)
        if is_taken:
            if "begin_s" in said:
                self._begins.add((_family(job), said["begin_s"]))
            shapes = [parse_shape(text).gpus for text in (before, after) if text]
            as_ours = said.get("gpus") in shapes
            spec = find_token(job.comment)
            # one that is on its way back Slurm lets begin two minutes later, whatever was said
            begins_later = job.state == "COMPLETING" and "begin_s" in said
            if as_ours or begins_later or (spec is not None and spec.own is None):
                # for what pliantd knows, its own command may have come to nothing, or be done, or
                # this was what it asked at its submission, which got no answer
                said = {}
                self.said.get(number, {}).pop("gpus", None)
            self._note(number, **said)
        return is_taken

    def lets_begin(self, job: Record) -> bool:
        """Whether an owner has said that it begins then: of it, or of a task of the same array."""
        return (_family(job), job.begin_s) in self._begins

    def _pins(self, number: int) -> bool:
        job = self._site.cluster.state.jobs.get(number)
        if job is None or "pliant=" not in job.comment:
            return False
        verb = self._random.choice(("pin", "unpin"))
        self._site.nodes.create_task(self._ask(verb, job))
        return True

    def _note(self, number: int, **said: float) -> None:
        self.said.setdefault(number, {}).update(said)
        self.spoke_s[number] = self._site.time.now_s

    def forgotten(self, number: int) -> None:
        """Slurmctld has forgotten what was said of a job: also that a hold was ended."""
        said = self.said.pop(number, {})
        job = self._site.cluster.state.jobs[number]
        if job.reason == BY_OWNER and "held" not in said:
            self._releases_later(number)


def _family(job: Record) -> str:
    """What stays the same where a task is given a record of its own."""
    return array_task(job)[0] or str(job.number)


def _others(job: Record) -> Sequence[str]:
    """The shapes that a job may have, but for the one that it has."""
    has = f"{job.nodes}x{job.gpus}" if job.nodes > 1 else str(job.gpus)
    return [text for text in _allowed(job.comment) if text != has]


@lru_cache(maxsize=1024)
def _allowed(comment: str) -> Sequence[str]:
    spec = find_token(comment)
    if spec is None or spec.own is None:
        return ()
    return [*map(shape_text, request_shapes(spec.request, spec.own))]
