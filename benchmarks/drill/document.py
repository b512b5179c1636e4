"""``python -m benchmarks.drill.document``: writes docs/drill.md of all runs that count.

What they showed, by batch system and by kind of fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb
from statistics import median

from benchmarks import machine
from benchmarks.drill.fault import Fault
from benchmarks.drill.record import ROOT, RUNS, Run, counted, read
from benchmarks.drill.run import LEFT_S, Ran, Seen
from benchmarks.drill.systems import faults_on
from benchmarks.section import Section, verdict

_HEADER = (
    *("fault", "the job ends", "runs", "hand-overs", "not good, at most"),
    *("jobs lost", "steps lost", "stuck", "slipped in", "fences", "pins"),
    *("another first by the fault itself", "not made", "put right by hand", "steps done again"),
    "median s",
)
_ALL_HEADER = (
    *("batch system", "runs", "hand-overs", "kinds tried", "fewest of a kind"),
    *("jobs lost", "steps lost", "stuck", "slipped in", "fences", "pins"),
    *("not good", "not good, at most"),
)
_GOALS = ("lost", "steps_lost", "stuck", "slipped", "fences", "pins")
MANY, EACH = 1000, 15
_TOLD = ("first", "not_made", "righted", "redone")
CONFIDENCE = 0.95

_HEAD = """\
# Hand-overs with faults

Written by `make drill`; every number below was counted by its runs. GPUs are fake; the batch \
systems are real.
"""

_HOW = f"""\
In each run a job that counts (docs/examples/count.py, its checkpoint made to take a second, \
its protected time cut short) is resized, or preempted for a trial job, while another waits for \
all GPUs of its node, and the fault is injected at a moment drawn by the seed. Where the job goes \
on, it is handed over again, three times in all, with the same fault at other moments. One of two \
jobs is submitted before pliantd may be asked about it. What died is started again within 1.5 s.

"Fences": a reservation of Pliant's that stands for {LEFT_S:.0f} s though its job waits behind it \
or is in no hand-over any more; "pins": the same of its priorities. They may for as long as the \
fault itself lasts, and by how much pliantd's clock is wrong. (A fence that nobody ends ends by \
itself after two minutes.) An owner's update or hold that does not stand once pliantd has nothing \
under way is not good either, nor is a time to begin that neither its owner nor the batch system's \
own requeue has given the job.

"Not good, at most" bounds how often a hand-over with a fault of this kind does harm, with 95 % \
confidence (the exact bound of Clopper and Pearson; for none of n about 3/n, the rule of three), \
where each hand-over counts as a draw of its own. "Another first by the fault itself": \
the batch system or a user sends the job back, and whoever waits may start before it; whether \
somebody slipped in is not asked then. "Not made": the job goes on without what was asked for it, \
as it may where the fault keeps it from that; where nothing does, that counts as not good. What it \
has then the batch system says. "Steps done again" were done, and not saved, when a run was ended. \
Where the fault itself ends it (a node goes down, a user requeues the job), that is only told; \
else it is not good, be it one step: a program ends with what it has saved. "Put right by hand": \
what an administrator does where the batch system itself does not go on.

A slurmctld that is killed forgets its last seconds, with or without Pliant: a job that it had \
started in them it starts again, its node refuses that, and Slurm holds the job and drains the \
node; or it takes GPUs for used until it is reconfigured. The drill then does what an \
administrator would, which is counted apart. Or it ends the run that it has forgotten \
("Registered PENDING") and starts the job again within the same second, for which the node has \
just revoked the job's credential: the job has FAILED, as a plain one would have; it is counted \
as another first. Or it has forgotten that the job was requeued and runs again: pliantd requeues \
it once more, and the few seconds of that run are done again.

A "second pliantd of the same state" is one of the same configuration, which the lock of its state \
directory, or its cluster's name on this host, keeps from working; one with another directory on \
another host is not tried here."""

_GO_ON = """\
## How to go on

A run is a line of benchmarks/drill/runs.jsonl, and counts for as long as the files under test \
(src/pliant, plugins, spank, wrappers, benchmarks/drill, the sandbox's templates and \
docs/examples/count.py; not those that only another batch system's runs execute) have that hash: \
those of any other are left out here. More are made by

    make drill N=100          100 runs, of the kinds first that were tried least; K=4: four at once
    make drill EACH=15 K=4    until there are 15 hand-overs of each kind
    make drill SUITE=forky N=100    on the Slurm of that Debian, in a container
    python -m benchmarks.drill --batch pbs --each 5    on the PBS that PLIANT_PBS_* points at: \
see benchmarks/drill/pbs_field.py

and end clean at Ctrl-C or SIGTERM. A run is drawn by its seed: \
`python -m benchmarks.drill --runs 1 --only 'KIND' --seed SEED --logs DIR` draws it again."""


def document(runs: Sequence[Run]) -> str:
    """Return the whole page."""
    systems = sorted({run.origin.on for run in runs})
    of = {on: [run for run in runs if run.origin.on == on] for on in systems}
    lines = [_HEAD, *_machine(), "", _HOW, "", *_overall(of).markdown(), *_GO_ON.splitlines(), ""]
    for on, some in of.items():
        lines += _section(on, some).markdown()
    lines += [line for run in runs for line in _bad(run)]
    return "\n".join(lines).rstrip() + "\n"


def _machine() -> Iterator[str]:
    """Yield what is not told of each run: the machine that all are taken to be of."""
    return (line for line in machine.lines() if line.startswith("- Machine"))


def _overall(of: Mapping[str, Sequence[Run]]) -> Section:
    rows = [_sum(on, runs) for on, runs in of.items()]
    every = [run for runs in of.values() for run in runs]
    enough = any(_is_enough(on, runs) for on, runs in of.items())
    result = (
        f"Nothing lost, stuck or left: {verdict(all(run.ran.is_good for run in every))}; on one"
        f" batch system {MANY:,} runs, with {EACH} hand-overs of each kind: {verdict(enough)}."
    )
    times, commits = sorted(run.at for run in every), sorted({run.origin.commit for run in every})
    files = ", ".join(f"{_files(runs)} on {on}" for on, runs in of.items())
    words = (
        f"{len(every)} runs from {times[0]} to {times[-1]}, of commit {', '.join(commits)}: in all"
        f" of those on one batch system the files under test are the same, whose hash is {files}."
    )
    return Section("All", words, _ALL_HEADER, rows, result)


def _is_enough(on: str, runs: Sequence[Run]) -> bool:
    counts = counted(runs, on)
    return len(runs) >= MANY and all(counts[kind.name] >= EACH for kind in faults_on(on))


def _files(runs: Sequence[Run]) -> str:
    """Return the hash that all of them share."""
    (files,) = {run.origin.files for run in runs}
    return files


def _sum(on: str, runs: Sequence[Run]) -> Sequence[str]:
    counts, kinds = counted(runs, on), faults_on(on)
    seen = [each for run in runs for each in run.ran.seen]
    bad, done = sum(not each.is_good for each in seen), counts.total()
    tried = f"{sum(counts[kind.name] > 0 for kind in kinds)} of {len(kinds)}"
    least = min(counts[kind.name] for kind in kinds)
    told = (len(runs), done, tried, least, *_totals(seen, _GOALS), bad)
    return (on, *map(str, told), f"{at_most(bad, done):.2%}")


def _section(on: str, runs: Sequence[Run]) -> Section:
    counts, kinds = counted(runs, on), faults_on(on)
    rest = [f'"{kind.name}"' for kind in kinds if not counts[kind.name]]
    words = (
        f"Of {len(rest)} of {len(kinds)} kinds there is no hand-over in this record: "
        f"{'; '.join(rest)}."
        if rest
        else f"Of each of the {len(kinds)} kinds there are {min(counts.values())} hand-overs or"
        " more in this record."
    )
    return Section(on, words, _HEADER, [*table([run.ran for run in runs], kinds)])


def _bad(run: Run) -> Iterator[str]:
    for number, seen in enumerate(run.ran.seen, 1):
        if not seen.is_good:
            which = f"{run.ran.fault}, hand-over {number} ({seen.moment}), seed {run.seed}"
            yield f"- {run.origin.on}, {which}: {seen.words}"


def table(ran: Sequence[Ran], kinds: Sequence[Fault]) -> Iterator[Sequence[str]]:
    """Yield a row for each kind of fault, and one for all."""
    for kind in kinds:
        those = [one for one in ran if one.fault == kind.name]
        if those:
            yield _row(kind.name, kind.ends.lower(), those, excused=kind.first)
    yield _row("all", "", ran)


def _row(name: str, ends: str, ran: Sequence[Ran], *, excused: bool = False) -> Sequence[str]:
    """``excused``: another may be first by the fault itself."""
    seen, faults = [each for one in ran for each in one.seen], sum(one.faults for one in ran)
    bound = at_most(sum(not one.is_good for one in seen), faults)
    totals = dict(zip((*_GOALS, *_TOLD), _totals(seen, (*_GOALS, *_TOLD)), strict=True))
    if excused and totals["slipped"] == "0":
        totals["slipped"] = "not asked"
    counts = (str(len(ran)), str(faults), f"{bound:.1%}", *totals.values())
    return (name, ends, *counts, f"{median(one.seconds for one in ran):.0f}")


def _totals(seen: Sequence[Seen], names: Sequence[str]) -> Iterator[str]:
    return (str(sum(getattr(one, what) for one in seen)) for what in names)


def at_most(bad: int, runs: int) -> float:
    """Return the rate above which so few of so many would be bad in one of twenty cases only."""
    low, high = 0.0, 1.0
    for _ in range(40):
        rate = (low + high) / 2
        chance = sum(
            comb(runs, some) * rate**some * (1 - rate) ** (runs - some) for some in range(bad + 1)
        )
        low, high = (rate, high) if chance > 1 - CONFIDENCE else (low, rate)
    return high


def main() -> None:
    """Write it."""
    runs = read(RUNS)
    if runs:
        (ROOT / "docs" / "drill.md").write_text(document(runs))
    else:
        print("no run is recorded of the files as they are: docs/drill.md is left as it is")


if __name__ == "__main__":
    main()
