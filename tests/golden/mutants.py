"""Rules of the decision, each taken out in turn: which policy's golden plans notice that.

``python -m golden.mutants`` tries all; a test does, too. It is the sources that are changed, in a
copy: what is wanted is that no rule goes missing when the decision is written anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "pliant"
TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule, the text that is its, what stands there instead, and the policy that shows it."""

    rule: str
    file: str
    old: str
    new: str
    case: str


MUTANTS = (
    Mutant(
        "the first that waits keeps its opening",
        "policies/easy.py",
        "desk.keep(job, (option[0],))",
        "pass",
        "easy-backfill",
    ),
    Mutant(
        "a job that waits for a limit keeps nothing",
        "policies/desk.py",
        "return not job.limited and not self._kept",
        "return not self._kept",
        "moldable-equipartition",
    ),
    Mutant(
        "all get their largest where that is free",
        "policies/equipartition.py",
        "elif most <= vacant:",
        "elif most < 0:",
        "moldable-equipartition",
    ),
    Mutant(
        "a running job keeps what nobody needs",
        "policies/step.py",
        "if final.fits_on(job, job.shape, job.nodes):\n                change",
        "if False:\n                change",
        "malleable-equipartition",
    ),
    Mutant(
        "a job that grows is done earlier by it",
        "policies/gain.py",
        "> job.restart_s",
        "> -1e12",
        "malleable-equipartition, live",
    ),
    Mutant(
        "others shrink only where all gain",
        "policies/gain.py",
        "return self._gained_s > 0",
        "return True",
        "malleable-equipartition, live",
    ),
    Mutant(
        "FitGpp goes by demand",
        "policies/fitgpp.py",
        "sizes[one.id] / most + s",
        "s",
        "fitgpp",
    ),
    Mutant(
        "FitGpp goes by grace period",
        "policies/fitgpp.py",
        "+ s * one.grace_s / longest_s",
        "",
        "fitgpp",
    ),
    Mutant(
        "nobody makes room more than P times",
        "policies/fitgpp.py",
        "if one.preempted < self.p and one.preemptible",
        "if one.preemptible",
        "fitgpp",
    ),
    Mutant(
        "room that was made is its trial job's",
        "policies/trials.py",
        "        self._keep_room()\n        for job",
        "        for job",
        "fitgpp",
    ),
    Mutant(
        "the longest run left is told first",
        "policies/fitgpp.py",
        "(-left_s(one, one.shape), one.id)",
        "(left_s(one, one.shape), one.id)",
        "lrtp",
    ),
    Mutant(
        "who has made room starts after it",
        "policies/trials.py",
        "if target and target not in seen and desk.waits(target):",
        "if False:",
        "fitgpp",
    ),
    Mutant(
        "of a share it is known which GPU it leaves",
        "placement/giving_up.py",
        "return len(lenders) == 1",
        "return True",
        "rand",
    ),
    Mutant(
        "neighbours are sorted by run time",
        "policies/fms.py",
        "queue.sort(key=self._group)",
        "pass",
        "fms",
    ),
    Mutant(
        "a slow pair is parted only where that pays",
        "policies/parting.py",
        "or gains_s <= _costs_s(job)",
        "",
        "cosched-fcs, live",
    ),
    Mutant(
        "nobody joins where the memory is taken",
        "policies/marks.py",
        "if node.mem_mib and takes.mem_mib > node.free_mem_mib:",
        "if False:",
        "cosched-fcs, live",
    ),
    Mutant(
        "who stays on a node is in what runs next",
        "policies/machines.py",
        "if machine.fixed <= s.tasks",
        "if True",
        "cosched-fcs",
    ),
    Mutant(
        "no start lies where Slurm keeps nodes",
        "cycle/kept.py",
        "elif kept_s and len(job.shapes) > 1:",
        "elif False:",
        "moldable-equipartition",
    ),
    Mutant(
        "none becomes smaller behind a shared limit",
        "cycle/gate.py",
        "yield _no_sooner(job, as_seen) if ahead.of(job) else as_seen",
        "yield as_seen",
        "moldable-equipartition",
    ),
    Mutant(
        "what was refused is not given back",
        "cycle/decide.py",
        "and base not in job.refused:",
        ":",
        "moldable-equipartition",
    ),
    Mutant(
        "one that is changed already is left alone",
        "cycle/running.py",
        "return job.state is JobState.RUNNING and not (under_way or kept)",
        "return job.state is JobState.RUNNING and not kept",
        "malleable-equipartition",
    ),
    Mutant(
        "nobody grows onto what Slurm keeps",
        "cycle/running.py",
        "if not plan.reshapes or seen.is_plain:",
        "if True:",
        "malleable-equipartition",
    ),
    Mutant(
        "marks are taken away before others are given",
        "cycle/decide.py",
        "key=lambda mark: mark.mark != UNMARKED",
        "key=lambda mark: mark.mark == UNMARKED",
        "cosched-fcs, live",
    ),
    Mutant(
        "nothing runs into a reservation",
        "placement/scopes.py",
        "and not kind.reservations & closed",
        "",
        "easy-backfill",
    ),
)


def noticed(mutant: Mutant) -> bool:
    """Whether the golden plans of its policy are others without a rule."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "pliant"
        shutil.copytree(SOURCES, copy)
        path = copy / mutant.file
        path.write_text(without(path.read_text(), mutant))
        path_of = {"PYTHONPATH": f"{place}:{TESTS}", "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [sys.executable, "-m", "golden", "check", mutant.case]
        done = subprocess.run(
            argv, env={**os.environ, **path_of}, capture_output=True, text=True, check=False
        )
    if done.returncode not in (0, 1) or done.stderr:
        raise RuntimeError(f"{mutant.rule}: {done.stderr}")
    return done.returncode == 1


def without(text: str, mutant: Mutant) -> str:
    """Return a source without a rule. Raises ValueError where it is not there, or not once."""
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file}: {mutant.old!r} is there {text.count(mutant.old)} times")
    return text.replace(mutant.old, mutant.new)


def main() -> int:
    """Try all."""
    left = [mutant.rule for mutant in MUTANTS if not noticed(mutant)]
    for rule in left:
        print(f"nobody notices: {rule}")
    print(f"{len(MUTANTS) - len(left)} of {len(MUTANTS)} are noticed")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
