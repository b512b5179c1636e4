"""What another user's submission costs while one user attacks slurmctld and pliantd by submissions.

One slurmctld serves with Pliant and without it in turn. In each block one user submits one hostile
request after the other, or asks pliantd's second door, until the block is over; meanwhile another
user's plain submissions are measured. Each attack is bounded by its block, and by a number.
"""

from __future__ import annotations

import random
import re
import signal
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from benchmarks.section import Section, verdict
from benchmarks.stats import estimate
from pliant.sandbox import Options, Sandbox

GOAL_RATIO = 2.0
GOAL_SWITCH_S = 1.0
_SIZE = 10_000_000
_LINES = 1_000_000
_REQUEST = 90_000
_MOST = 1000  # of one block's attacks
_SETTLE_S = 1.5
_LONGEST_S = 10
ATTACKER, VICTIM = "pliant-bob", "pliant-alice"
_PLAIN = ("sbatch", "--parsable", "--hold", "--output=/dev/null", "--job-name=bench")
_FLAGGED = (*_PLAIN, "--moldable=gpus=1-4", "--gres=gpu:1")

_HOW = """\
{rounds} rounds of blocks in shuffled order, with Pliant and on the plain Slurm
(`scontrol reconfigure` between the two); in each {count} plain submissions of another user, one
`sbatch` from start to end. An attack is one user's loop of `sbatch` of a script with a line
`#SBATCH --OPTION=` and 10 MB of commas after it (commas cost most to escape), and `--moldable`
beside it where there is Pliant; or with 10^6 lines `#SBATCH`; or of requests of 90 kB at pliantd's
second door, which is the one that a user reaches. What sbatch itself refuses reaches no slurmctld,
and costs the attacker alone; one that takes more than {longest} s is killed. A ratio is the median
one of the rounds: under this attack with Pliant by alone with Pliant, and by the same attack on the
plain Slurm."""


@dataclass(slots=True)
class Times:
    """What the other user's submissions took, in ms, by the round."""

    of_round: dict[int, list[float]] = field(default_factory=dict)
    attacks: int = 0

    def add(self, number: int, some: list[float]) -> None:
        """Note a block's."""
        self.of_round.setdefault(number, []).extend(some)

    @property
    def all(self) -> list[float]:
        """Those of all rounds."""
        return [one for some in self.of_round.values() for one in some]

    def by(self, other: Times) -> float:
        """Return the median ratio of the rounds' medians."""
        return statistics.median(
            statistics.median(some) / statistics.median(other.of_round[number])
            for number, some in self.of_round.items()
        )


def _scripts() -> Mapping[str, str]:
    """The attacks by a script, by what they are called."""
    options = (
        *("constraint", "comment", "licenses", "reservation", "gres", "dependency", "nodelist"),
        *("partition", "job-name", "array"),
    )
    of_commas = {f"`--{name}`, 10 MB": f"#SBATCH --{name}={',' * _SIZE}\n" for name in options}
    return of_commas | {
        "`--comment=pliant:`, 10 MB": f"#SBATCH --comment=pliant:gpus=1-4{';' * _SIZE}\n",
        "`--moldable`, 10 MB": f"#SBATCH --moldable={',' * _SIZE}\n",
        "10^6 lines `#SBATCH --moldable`": "#SBATCH --moldable=gpus=1-4\n" * _LINES,
        "10^6 lines `#SBATCH --comment`": "#SBATCH --comment=pliant:gpus=1-4\n" * _LINES,
    }


class Attacks:
    """What one user does to a sandbox. ``has_pliant``: whether slurmctld and sbatch have it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.has_pliant = True
        self._scripts = _scripts()

    @property
    def names(self) -> Sequence[str]:
        """What they are called."""
        return (*self._scripts, "the second door, 90 kB")

    def attack(self, name: str) -> None:
        """Attack once."""
        if name not in self._scripts:
            self._ask_the_door()
            return
        argv, script = _FLAGGED if self.has_pliant else _PLAIN, self._scripts[name]
        if not self.has_pliant:  # unknown there
            script = script.replace("#SBATCH --moldable=", "#SBATCH --comment=")
        with suppress(subprocess.TimeoutExpired):  # it is killed then
            self.sandbox.run(argv, ATTACKER, _LONGEST_S, stdin=f"#!/bin/sh\n{script}")

    def _ask_the_door(self) -> None:
        address = ("127.0.0.1", self.sandbox.record.ports.pliant)
        with socket.create_connection(address, timeout=10) as connection:
            try:
                connection.sendall(b"status x=" + b"%2C" * (_REQUEST // 3) + b"\n")
                connection.recv(65536)
            except OSError:
                return  # it hangs up on what is too long

    @contextmanager
    def under(self, name: str) -> Iterator[Callable[[], int]]:
        """Let one attack follow the other; what is given counts them."""
        over, begun, done = threading.Event(), threading.Event(), [0]

        def go_on() -> None:
            while not over.is_set() and done[0] < _MOST:
                begun.set()
                self.attack(name)
                done[0] += 1

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        begun.wait()
        try:
            yield lambda: done[0]
        finally:
            over.set()
            thread.join()
            self.sandbox.run(("scancel", "--state=PENDING", "--name=bench"), timeout=_LONGEST_S)


class Bench:
    """A sandbox, with Pliant in it or not."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._conf = sandbox.layout.slurm_conf.read_text()
        self._plugstack = sandbox.layout.plugstack.read_text()
        self._attacks = Attacks(sandbox)

    @property
    def attacks(self) -> Sequence[str]:
        """What they are called; the first is none."""
        return ("none", *self._attacks.names)

    def switch(self, has_pliant: bool) -> None:
        """Take Pliant into slurmctld and sbatch, or out."""
        layout = self.sandbox.layout
        bare = re.sub(r"^JobSubmitPlugins=.*\n", "", self._conf, flags=re.MULTILINE)
        layout.slurm_conf.write_text(self._conf if has_pliant else bare)
        layout.plugstack.write_text(self._plugstack if has_pliant else "")
        self._run("scontrol", "reconfigure")
        self._attacks.has_pliant = has_pliant
        time.sleep(_SETTLE_S)
        for _ in range(3):
            self.submission_ms()

    def _run(self, *argv: str, stdin: str = "", user: str | None = None) -> str:
        return self.sandbox.run(argv, user=user, stdin=stdin, timeout=_LONGEST_S).stdout

    def submission_ms(self) -> float:
        """Let the other user submit, and return how long it took."""
        began = time.perf_counter()
        done = self.sandbox.run((*_PLAIN, "--wrap=true"), user=VICTIM, timeout=_LONGEST_S)
        took_ms = 1000 * (time.perf_counter() - began)
        assert done.returncode == 0, f"a plain submission was refused: {done.stderr}"
        return took_ms

    @contextmanager
    def under(self, name: str) -> Iterator[Callable[[], int]]:
        """Let an attack go on, or none; what is given counts them."""
        with nullcontext(lambda: 0) if name == "none" else self._attacks.under(name) as attacks:
            yield attacks
        self._run("scancel", "--state=PENDING", "--name=bench")

    def block(self, name: str, count: int, times: Times, number: int) -> None:
        """Measure so many submissions under an attack; one attack must have ended meanwhile."""
        with self.under(name) as attacks:
            found: list[float] = []
            while len(found) < count or (name != "none" and not attacks()):
                found.append(self.submission_ms())
            times.add(number, found)
        times.attacks += attacks()

    def switch_off_s(self, name: str) -> float:
        """Return how long it takes from ``default = "off"`` to a submission left as written."""
        path = self.sandbox.layout.pliant_toml
        before = path.read_text()
        with self.under(name):
            off = re.sub(r"^default =.*$", 'default = "off"', before, flags=re.MULTILINE)
            began = time.perf_counter()
            self._configure(off)
            while self._is_marked():
                pass
            took_s = time.perf_counter() - began
        self._configure(before)
        while not self._is_marked():
            time.sleep(0.2)
        return took_s

    def _configure(self, text: str) -> None:
        self.sandbox.layout.pliant_toml.write_text(text)
        self.sandbox.signal("pliantd", signal.SIGHUP)

    def _is_marked(self) -> bool:
        job = self._run(*_FLAGGED, "--wrap=true", user=VICTIM).strip()
        return "AdminComment=pliant=v1:" in self._run("scontrol", "show", "job", job)


def measure(quick: bool) -> list[Section]:
    """Measure all attacks, with Pliant and without."""
    rounds, count, switches = (1, 3, 2) if quick else (2, 5, 10)
    sandbox = Sandbox("bench-attack", Options(nodes=2, gpus=4, mode="enforce"))
    sandbox.up()
    try:
        bench = Bench(sandbox)
        times = {(name, has): Times() for name in bench.attacks for has in (True, False)}
        order = random.Random(0)
        for number in range(rounds):
            for has_pliant in order.sample((True, False), 2):
                bench.switch(has_pliant)
                for name in order.sample(bench.attacks, len(bench.attacks)):
                    bench.block(name, count, times[name, has_pliant], number)
        bench.switch(has_pliant=True)
        names = ("none", "`--constraint`, 10 MB", "the second door, 90 kB")
        took = {name: [bench.switch_off_s(name) for _ in range(switches)] for name in names}
    finally:
        sandbox.down()
    how = _HOW.format(rounds=rounds, count=count, longest=_LONGEST_S)
    return [_section(bench.attacks, times, how), _switch_section(took)]


def _section(attacks: Sequence[str], times: Mapping[tuple[str, bool], Times], how: str) -> Section:
    alone = times["none", True]
    rows, over = [], []
    for name in attacks:
        ours, plain = times[name, True], times[name, False]
        by_alone, by_plain = ours.by(alone), ours.by(plain)
        if by_alone > GOAL_RATIO and by_plain > GOAL_RATIO:
            over.append(name)
        cells = [estimate(some.all).text(1) for some in (ours, plain)]
        rows.append(
            (name, *cells, f"{by_alone:.2f}", f"{by_plain:.2f}", f"{ours.attacks}, {plain.attacks}")
        )
    return Section(
        "Another user's submission under attack",
        how,
        ("attack", "with Pliant, ms", "plain, ms", "by alone", "by plain", "attacks"),
        rows,
        f"Goal: under no attack more than {GOAL_RATIO:.0f} times both its usual time and what"
        f" the same attack makes of it on the plain Slurm: {verdict(not over)}"
        + (f" ({'; '.join(over)})." if over else "."),
    )


def _switch_section(took: Mapping[str, Sequence[float]]) -> Section:
    reached = all(statistics.median(some) < GOAL_SWITCH_S for some in took.values())
    return Section(
        "The switch to off under attack",
        'From `default = "off"` written to pliant.toml, and SIGHUP to pliantd, until a moldable '
        "submission has ended that was left as it was written; submissions follow each other.",
        ("attack", "s", "max"),
        [(name, estimate(some).text(2), f"{max(some):.2f}") for name, some in took.items()],
        f"Goal: a median below {GOAL_SWITCH_S:.0f} s: {verdict(reached)}.",
    )
