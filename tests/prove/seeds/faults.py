"""What goes wrong, and when: at moments of hand-overs, the rarer ones more often than they come.

Each fault waits for a moment (a step of pliantd's, a program that is asked or has saved, or merely
an instant), and comes then or shortly after; what it strikes is the job that the moment is of. It is
counted where it has done something: a start that is to fail once it does, say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from prove.fake_slurm import CLEANING_S, HELD
from prove.seeds.commands import Armed, Trouble
from prove.seeds.disk import Disk
from prove.seeds.owners import Owners
from prove.seeds.programs import Habit
from prove.seeds.site import Halt, Site

FEWEST, MOST = 9, 14
FAULTS = 5
"""How many come at least, of those that are drawn."""
STEPS: Mapping[str, float] = {
    "pin": 2, "fence": 2, "requeue": 2, "reshape": 3, "unfence": 3, "release": 2, "note": 1,
    "pin-guest": 4, "put back": 4, "renew": 4, "mold": 1,
}  # fmt: skip
"""Steps of pliantd's, and how much is made of each."""
MOMENTS: Mapping[str, float] = {**STEPS, "asked": 3, "saved": 3, "waits": 3, "time": 2}
BETWEEN: Mapping[str, float] = {"saved": 1, "requeue": 1, "waits": 3, "reshape": 3, "put back": 2}
"""The moments between two runs."""
THEN = frozenset(("owner acts", "start refused", "start killed", "slurmd started again"))
"""What strikes a job between two runs mostly: seldom anything comes in these few seconds."""
ONLY: Mapping[str, Mapping[str, float]] = {
    "slurmstepd killed": {"saved": 1},
    "owner delays it between two runs": {"waits": 1},
    "priority written back": {"waits": 3, "reshape": 3, "put back": 2, "pin-guest": 3},
}
"""Of which faults something comes at some moments alone."""
AT_ONCE = frozenset(("slurmstepd killed", "priority written back"))
"""What there is to strike for a moment only: a run that has saved, a job that waits pinned."""
HALTS: Mapping[str, float] = {
    "requeue": 5, "pin": 1, "fence": 1, "renew": 1, "reshape": 2, "put back": 2, "unfence": 2,
    "release": 1, "pin-guest": 1, "release-guest": 1,
}  # fmt: skip
"""Before which steps pliantd stands still, after it has looked at the job, and how often."""
SHORT_S, LONG_S = (5.0, 40.0), (130.0, 280.0)
"""For how long: until a wrapper does without it, or until the job's next run works."""
WAITS_S = 120.0
"""A fault whose moment does not come comes so long after it could have."""
Strikes = Callable[[int], bool]
"""Returns whether it has done something; what comes later counts itself then."""


@dataclass(slots=True)
class Fault:
    """``name`` is what it is counted by."""

    name: str
    moment: str
    from_s: float
    delay_s: float
    strikes: Strikes


class Faults:
    """Those of one seed, from ``from_s`` to ``until_s``."""

    def __init__(
        self, site: Site, owners: Owners, disk: Disk, random: Random, span_s: tuple[float, float]
    ) -> None:
        self._site, self._owners, self._disk, self._random = site, owners, disk, random
        self.came: Counter[str] = Counter()
        self._configured: tuple[str, str, str] | None = None  # before anything was reloaded
        self.disturbed: Callable[[], None] = lambda: None
        every: Sequence[tuple[str, float, Strikes | None]] = (
            ("pliantd killed at a command", 6, None),
            ("a command refused", 4, None),
            ("epilogs take long", 3, self._epilogs),
            ("a command unanswered", 3, None),
            ("a command slow", 2, None),
            ("pliantd killed", 3, self._kills),
            ("pliantd ended and started", 1, self._ends),
            ("pliantd started from an older store", 1, self._ages),
            ("slurmctld forgets", 4, self._forgets),
            ("head node away", 2, self._head_fails),
            ("node down", 2, self._node_fails),
            ("slurmd started again", 2, self._slurmd),
            ("priority written back", 3, self._writes_back),
            ("start refused", 2, self._refuses_start),
            ("start killed", 2, self._kills_start),
            ("owner acts", 5, self._owner),
            ("owner delays it between two runs", 3, self._delays),
            ("wrapper killed", 3, self._wrapper),
            ("slurmstepd killed", 2, self._stepd),
            ("checkpoint goes wrong", 4, self._habit),
            ("clock jumps", 2, self._clock),
            ("disk full", 2, self._fills),
            ("configuration reloaded", 2, self._reloads),
            ("pliantd unreachable", 2, self._unreachable),
            ("pliantd stands still before a step", 4, self._halts),
        )
        many = random.randint(FEWEST, MOST)
        chosen = random.choices(every, [weight for _, weight, _ in every], k=many)
        self._due = [self._fault(name, strikes, span_s) for name, _, strikes in chosen]
        for fault in self._due:
            site.time.at(fault.from_s + WAITS_S, self._comes_late, fault)
        site.time.at(span_s[1] + 2 * WAITS_S, self._makes_up)
        site.cluster.start_failed = self._counts
        site.told.append(self._told)
        site.moments.append(self.moment)

    def _fault(self, name: str, strikes: Strikes | None, span_s: tuple[float, float]) -> Fault:
        random = self._random
        from_s = random.uniform(*span_s)
        if strikes is None:
            trouble, step = self._trouble(name), _drawn(random, STEPS)
            if trouble in (Trouble.UNHEARD, Trouble.SLOW) and random.random() < 0.3:
                step = "read"
            self._site.time.at(from_s, self._arms, name, step, trouble)
            return Fault(name, "", float("inf"), 0.0, lambda _number: False)
        between = name in THEN and random.random() < 0.7
        moment = _drawn(random, ONLY.get(name, BETWEEN if between else MOMENTS))
        delay_s = random.choice((0.0, 0.0, random.uniform(0, 1), random.uniform(0, 8)))
        delay_s = 0.0 if name in AT_ONCE else delay_s
        return Fault(name, moment, from_s, delay_s, strikes)

    def _trouble(self, name: str) -> Trouble:
        return self._random.choice(
            {
                "pliantd killed at a command": (Trouble.DIES_BEFORE, Trouble.DIES_AFTER),
                "a command refused": (Trouble.REFUSED, Trouble.BARRED, Trouble.HALF),
                "a command unanswered": (Trouble.UNHEARD, Trouble.UNANSWERED),
                "a command slow": (Trouble.SLOW,),
            }[name]
        )

    def _arms(self, name: str, step: str, trouble: Trouble) -> None:
        nth = self._random.choice((1, 1, 2))
        self._site.armed.append(Armed(step, trouble, nth, lambda: self._came(name, trouble, step)))

    def _came(self, name: str, trouble: str, where: str) -> None:
        self._site.trace.note(f"FAULT: {trouble} ({where})")
        self._counts(name)

    def _counts(self, name: str) -> None:
        self.came[name] += 1
        self.disturbed()

    # --- moments ---------------------------------------------------------------------------

    def _told(self, step: str, argv: Sequence[str], complaint: str) -> None:
        number = 0 if complaint else self._job_of(argv)
        if number in self._site.work:
            self.moment(step, number)

    def _job_of(self, argv: Sequence[str]) -> int:
        """Which job a command is about."""
        for word in argv[1:]:
            text = word.removeprefix("ReservationName=pliant_").removeprefix("jobid=")
            if text.replace("_", "").isdecimal():
                return self._site.cluster.number_of(text)
        return 0

    def moment(self, moment: str, number: int) -> None:
        """Something has come to a moment."""
        now_s = self._site.time.now_s
        if moment == "asked":
            self._is_asked(number)
        for fault in [one for one in self._due if one.moment == moment and one.from_s <= now_s]:
            self._due.remove(fault)
            self._site.time.after(fault.delay_s, self._strikes, fault, number)

    def _comes_late(self, fault: Fault) -> None:
        """Its moment did not come: strike whoever there is."""
        if fault in self._due:
            self._due.remove(fault)
            jobs = self._site.cluster.state.jobs.values()
            there = [
                j.number for j in jobs if not j.is_over and "malleable" in self._site.says[j.number]
            ]
            if there:
                self._strikes(fault, self._random.choice(there))

    def _makes_up(self) -> None:
        """Some wait for a command that is not given: so many come at least."""
        if self.came.total() < FAULTS:
            self._strikes(Fault("pliantd killed", "late", 0.0, 0.0, self._kills), 0)
            self._site.time.after(WAITS_S, self._makes_up)

    def _strikes(self, fault: Fault, number: int) -> None:
        self._site.trace.note(f"FAULT: {fault.name} (job {number}, {fault.moment})")
        if fault.strikes(number):
            self._counts(fault.name)
        else:
            self._site.trace.note("  there is nothing to strike, or not yet")

    # --- faults ----------------------------------------------------------------------------

    def _kills(self, _number: int) -> bool:
        runs = self._site.process is not None
        self._site.kill("at once")
        return runs

    def _ends(self, _number: int) -> bool:
        return self._site.stop()

    def _ages(self, _number: int) -> bool:
        self._site.kill("at once, its store as it was a while ago")
        return self._site.ages()

    def _halts(self, _number: int) -> bool:
        """Before the next such step, whosever it is."""
        name, step = "pliantd stands still before a step", _drawn(self._random, HALTS)
        for_s = self._random.uniform(*self._random.choice((SHORT_S, LONG_S)))
        words = f"pliantd stands still for {for_s:.0f} s before {step}"
        self._site.halts.append(
            Halt(step, for_s, lambda job: self._came(name, words, f"job {job}"))
        )
        return False

    def _forgets(self, _number: int) -> bool:
        self._goes_away(self._random.uniform(1, 12))
        return True

    def _goes_away(self, for_s: float) -> None:
        before = self._site.cluster.state.jobs
        self._site.cluster.goes_away(for_s)
        for number, job in self._site.cluster.state.jobs.items():
            if job is not before[number]:
                self._owners.forgotten(number)

    def _head_fails(self, _number: int) -> bool:
        """Neither pliantd nor slurmctld answers, for so long that a wrapper does without them."""
        for_s = self._random.uniform(15, 60)
        self._site.kill("with its host", for_s)
        self._goes_away(for_s)
        return True

    def _node_fails(self, number: int) -> bool:
        node = self._node(number)
        is_up = node not in self._site.cluster.state.down
        self._site.cluster.fails(node, self._random.uniform(5, 60))
        return is_up

    def _slurmd(self, number: int) -> bool:
        self._site.cluster.starts_slurmd(self._node(number))
        return True

    def _node(self, number: int) -> str:
        job = self._site.cluster.state.jobs.get(number)
        return self._random.choice(job.on if job is not None else self._site.cluster.nodes)

    def _writes_back(self, _number: int) -> bool:
        return self._site.cluster.writes_back() != []

    def _refuses_start(self, number: int) -> bool:
        self._site.cluster.start_fails[number] = HELD
        return False

    def _kills_start(self, number: int) -> bool:
        self._site.cluster.late_kills.add(number)
        return False

    def _owner(self, number: int) -> bool:
        return self._owners.acts(number)

    def _delays(self, number: int) -> bool:
        return self._owners.delays(number)

    def _wrapper(self, number: int) -> bool:
        run = self._site.runs.get(number)
        if run is None or run.wrapper is None:
            return False
        run.loses_its_wrapper()
        return True

    def _stepd(self, number: int) -> bool:
        """Of a run that has saved: what one works on that nobody ends is its own matter."""
        run = self._site.runs.get(number)
        if run is None or not run.has_saved:
            return False
        run.is_left = True
        self._site.left.add(number)
        return True

    def _habit(self, number: int) -> bool:
        """Let its next checkpoint go wrong: that shows once it is asked for one."""
        habits = (Habit.NEVER, Habit.LATE, Habit.LATE, Habit.FAILS)
        self._site.work[number].habits.append(self._random.choice(habits))
        return False

    def _is_asked(self, number: int) -> None:
        run, habits = self._site.runs.get(number), self._site.work[number].habits
        if habits and run is not None and run.program.runs and not run.program.saving:
            self._came("checkpoint goes wrong", habits[0], f"job {number}")

    def _clock(self, _number: int) -> bool:
        random = self._random
        self._site.ahead_s = random.choice((-1, 1)) * random.choice((3.0, 40.0, 400.0, 4000.0))
        self._lasts(random.uniform(5, 90), self._is_right_again)
        return True

    def _is_right_again(self) -> None:
        self._site.ahead_s = 0.0

    def _lasts(self, for_s: float, until: Callable[..., object], *args: object) -> None:
        """Let something be over after a while."""
        self._site.lasting += 1
        self._site.time.after(for_s, self._is_over, until, *args)

    def _is_over(self, until: Callable[..., object], *args: object) -> None:
        self._site.lasting -= 1
        until(*args)
        self.disturbed()

    def _fills(self, _number: int) -> bool:
        self._disk.fills()
        self._lasts(self._random.uniform(5, 90), self._has_room)
        return True

    def _has_room(self) -> None:
        self._disk.is_full = False

    def _reloads(self, _number: int) -> bool:
        site = self._site
        before = self._configured = self._configured or (site.mode, site.policy, site.options)
        site.mode, site.policy, site.options = self._random.choice(
            (
                ("observe", site.policy, site.options),
                ("off", site.policy, site.options),
                ("enforce", "f-scheduling", ""),
                ("enforce", "no-such-policy", ""),
                ("enforce", "malleable-proportional", "least_left_s = 10.0\npays = false"),
            )
        )
        site.reload()
        self._lasts(self._random.uniform(5, 60), self._reloads_again, *before)
        return True

    def _reloads_again(self, *before: str) -> None:
        self._site.mode, self._site.policy, self._site.options = before
        self._site.reload()

    def _epilogs(self, _number: int) -> bool:
        """Runs that are requeued end by an epilog that takes long, for a while."""
        self._site.cluster.cleaning_s = self._random.uniform(5, 40)
        self._lasts(self._random.uniform(30, 120), self._epilogs_again)
        return True

    def _epilogs_again(self) -> None:
        self._site.cluster.cleaning_s = CLEANING_S

    def _unreachable(self, number: int) -> bool:
        self._site.unreached.add(number)
        self._lasts(self._random.uniform(5, 60), self._site.unreached.discard, number)
        return True


def _drawn(random: Random, weights: Mapping[str, float]) -> str:
    return random.choices([*weights], [*weights.values()])[0]
