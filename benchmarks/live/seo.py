"""Seo's experiment (paper 003, section 5): four training jobs on six GPUs, live.

What the thesis does not print is f. This one reproduces its table 2 to 0.4 s, as others do: a
fitted choice, as are the times to launch and to save. Time is scaled: a part of the steps, of
the times between submissions, to launch and to save; speeds are the thesis's. What Slurm, Pliant
and Python take themselves is not scaled and comes on top.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from benchmarks.live.arms import attempt, told
from benchmarks.live.jobs import Jobs, training
from benchmarks.live.phases import parts, phases
from benchmarks.section import Section, verdict
from pliant.daemon.answers import HistoryAnswer
from pliant.lifecycle import Phase
from pliant.sandbox import Options, Sandbox

STEPS = 2000
GAP_S = 100.0
LAUNCH_S, SAVE_S = 27.4, 23.0
F = {
    "ResNet-50": (1.829, 2.752, 3.309, 3.681, 3.948, 4.148),
    "InceptionV3": (1.627, 2.466, 2.978, 3.323, 3.571, 3.759),
}
WORKLOAD = ("ResNet-50", "InceptionV3", "ResNet-50", "InceptionV3")
V_BOUND = 0.5
"""The thesis's; it never binds."""
PAPER_S = {"F": 1350, "n=3": 1498, "n=1": 1557, "n=2": 1593, "n=6": 2138}
"""Table 2, in its order."""
PAYS = "F, pays"
"""F-scheduling as it is by default on a real cluster; the thesis has no such arm."""
GPUS = 6


@dataclass(frozen=True, slots=True)
class Ran:
    """One job of one run; instants are seconds since the run's first submission."""

    model: str
    submit_s: float
    end_s: float
    restarts: int
    log: list[tuple[Phase, float]]
    shapes: list[tuple[float, str]]
    whole: bool  # counted to the end

    @property
    def flow_s(self) -> float:
        """From its submission to its end."""
        return self.end_s - self.submit_s


def sections(scale: float) -> Iterator[Section]:
    """Run F-scheduling, then the other arms beside each other, and tell of it.

    An arm that fails is told and ends no other.
    """
    failed: dict[str, str] = {}
    ran = {"F": _attempt("F", scale, failed)}
    with ThreadPoolExecutor() as pool:
        others = [*(name for name in PAPER_S if name != "F"), PAYS]
        each = pool.map(lambda name: _attempt(name, scale, failed), others)
        ran |= dict(zip(others, each, strict=True))
    found = {name: one for name, one in ran.items() if one is not None}
    yield _totals(found, failed, scale)
    yield _jobs(found)
    yield _parts(found)
    if "F" in found:
        yield _logs(found["F"])


def _attempt(name: str, scale: float, failed: dict[str, str]) -> list[Ran] | None:
    return attempt(_words(name), lambda: run(name, scale), failed)


def run(name: str, scale: float) -> list[Ran]:
    """Run the workload on a cluster of its own."""
    slot = int(name.removeprefix("n=")) if name.startswith("n=") else 0
    policy, options = "f-scheduling", {"v_bound": V_BOUND, "pays": name == PAYS}
    if slot:
        policy, options = "static-partition", {"slot": slot}
    wanted = Options(nodes=1, gpus=GPUS, policy=policy, policy_with={**options})
    sandbox = Sandbox(f"live-seo-{'pays' if name == PAYS else slot}", wanted)
    sandbox.down()  # what a run that was killed has left
    try:
        sandbox.up()
        return _run(Jobs(sandbox), slot, scale)
    finally:
        sandbox.down()


def _run(jobs: Jobs, slot: int, scale: float) -> list[Ran]:
    began_s = time.time()
    steps = round(STEPS * scale)
    numbers = []
    for at, model in enumerate(WORKLOAD):
        while time.time() < began_s + at * GAP_S * scale:
            jobs.look()
            time.sleep(0.1)
        command = training(jobs.file(str(at)), steps, F[model], LAUNCH_S * scale, SAVE_S * scale)
        numbers.append(jobs.submit(f"exec pliant run -- {command}", *_options(model, slot, steps)))
    assert jobs.wait(began_s + 1200), "the four jobs did not end within 20 minutes"
    histories = [_history(jobs, number) for number in numbers]
    return [_ran(jobs, at, histories, began_s, steps) for at in range(len(numbers))]


def _options(model: str, slot: int, steps: int) -> list[str]:
    given = ",".join(f"{gpus}:{rate}" for gpus, rate in enumerate(F[model], 1))
    shapes = [f"--gres=gpu:{slot or GPUS}", *([] if slot else [f"--moldable=gpus=1-{GPUS}"])]
    said = ["--malleable=grace=60", f"--throughput={given}", f"--steps={steps}"]
    return ["-N1", "-t60", "--open-mode=append", *shapes, *said]


def _history(jobs: Jobs, number: int) -> HistoryAnswer:
    argv = ["pliant", "history", "--json", str(number)]
    told = jobs.sandbox.run(argv, check=True).stdout
    return msgspec.json.decode(told, type=HistoryAnswer)


def _ran(
    jobs: Jobs, at: int, histories: Sequence[HistoryAnswer], began_s: float, steps: int
) -> Ran:
    number = int(histories[at].job)
    seen, events = jobs.seen[number], jobs.events(str(at))
    last = events[-1] if events else None
    end_s = last.at_s if last and last.what == "end" else seen.changes[-1].at_s
    others = [row.at_s for other in histories for row in other.handovers]
    promised = min((at_s for at_s in others if at_s >= seen.submit_s), default=float("inf"))
    log = phases(histories[at], seen.submit_s, end_s, seen.changes, promised)
    return Ran(
        WORKLOAD[at],
        seen.submit_s - began_s,
        end_s - began_s,
        seen.restarts,
        [(phase, at_s - began_s) for phase, at_s in log],
        [(max(0.0, row.start_s - began_s), row.shape) for row in histories[at].runs],
        whole=last is not None and last.what == "end" and last.step == steps,
    )


# --- what is told of it ---------------------------------------------------------------------


def _totals(found: dict[str, list[Ran]], failed: dict[str, str], scale: float) -> Section:
    totals = {name: max(one.end_s for one in ran) for name, ran in found.items()}
    order = sorted(totals.keys() & PAPER_S.keys(), key=lambda name: totals[name])
    rows = [
        (
            _words(name),
            f"{PAPER_S[name]}" if name in PAPER_S else "-",
            f"{PAPER_S[name] * scale:.1f}" if name in PAPER_S else "-",
            f"{totals[name]:.1f}",
            f"{totals[name] / scale:.0f}",
            f"{sum(one.restarts for one in found[name])}",
            f"{sum(one.whole for one in found[name])} of {len(WORKLOAD)}",
        )
        for name in found
    ]
    text = (
        f"Order measured: {' < '.join(map(_words, order))}; order of table 2: "
        f"{' < '.join(map(_words, PAPER_S))}: {verdict(order == [*PAPER_S])}. F-scheduling before "
        f"every static partition: {verdict(not failed and order[0] == 'F')}. {told(failed)}"
    ).strip()
    header = (
        "",
        "paper s",
        "paper, scaled s",
        "measured s",
        "… unscaled s",
        "restarts",
        "counted to the end",
    )
    return Section("Seo: until all four jobs are done (table 2)", _how(scale), header, rows, text)


def _how(scale: float) -> str:
    return (
        "One node of six fake GPUs on a real Slurm; ResNet-50, InceptionV3, ResNet-50, "
        f"InceptionV3, one every {GAP_S:.0f} s, {STEPS} steps each. Time is scaled by {scale:g}: "
        f"{STEPS * scale:.0f} steps, one job every {GAP_S * scale:.0f} s, {LAUNCH_S * scale:.1f} s "
        f"to launch, {SAVE_S * scale:.1f} s to save; what Slurm, Pliant and Python take themselves "
        "is not scaled and comes on top. The training is a stand-in: a program under `pliant run` "
        "that counts steps by the clock at the f of its model and number of GPUs, saves when it is "
        "asked and goes on from there. f, launch and save times are fitted to table 2, not printed "
        "in the thesis. F-scheduling is the thesis's exact form, with its v_bound of "
        f"{V_BOUND:g} and its 1 step/s, and without Pliant's own condition that a change must pay "
        "(`pays = false`); with it, as by default on a real cluster, it is told beside. A static "
        "partition of n is jobs of n GPUs under the policy static-partition. F-scheduling ran "
        "first, then all others beside each other, each on a cluster of its own."
    )


def _words(name: str) -> str:
    words = {"F": "F-scheduling", PAYS: "F-scheduling, if it pays"}
    return words.get(name, f"static {name}")


def _jobs(found: dict[str, list[Ran]]) -> Section:
    header = ("flow time s", *(f"job {at} {model}" for at, model in enumerate(WORKLOAD, 1)), "mean")
    rows = []
    for name, ran in found.items():
        flows = [one.flow_s for one in ran]
        rows.append((_words(name), *(f"{flow:.1f}" for flow in flows), f"{sum(flows) / 4:.1f}"))
    how = "From each job's submission to its end, as scaled."
    return Section("Seo: each job", how, header, rows)


def _parts(found: dict[str, list[Ran]]) -> Section:
    rows = []
    for name, ran in found.items():
        each = [parts(one.log) for one in ran]
        rows.append((_words(name), *(f"{sum(part[at] for part in each):.1f}" for at in range(3))))
    how = (
        "All four jobs together, divided as in the thesis's figure 3: queuing is waiting for the "
        "first resources; launching delay is standby, launching, checkpointing and stopping; "
        "running is running and running-protected."
    )
    header = ("", "queuing s", "launching delay s", "running s")
    return Section("Seo: where the time goes (figure 3)", how, header, rows)


def _logs(ran: Sequence[Ran]) -> Section:
    rows = []
    for at, one in enumerate(ran, 1):
        words = ", ".join(f"{phase} {at_s:.1f}" for phase, at_s in one.log)
        shapes = ", ".join(f"{shape} from {at_s:.0f}" for at_s, shape in one.shapes)
        rows.append((f"{at} {one.model}", shapes, words))
    reached = {phase for one in ran for phase, _ in one.log}
    missing = [phase for phase in Phase if phase not in reached]
    text = f"{len(reached)} of the nine states were seen"
    text += f"; not {', '.join(missing)}." if missing else "."
    how = (
        "Under F-scheduling: each state with the second in which it began, from the first "
        "submission on. Runs, checkpoints and hand-overs are those of `pliant history --json`, the "
        "table of states is Pliant's own; the end of a run that was checkpointed is when Slurm was "
        "first seen to have put the job back into the queue, and a job stands by from the moment "
        "another is told to make room."
    )
    return Section("Seo: state logs", how, ("job", "GPUs", "states"), rows, text)
