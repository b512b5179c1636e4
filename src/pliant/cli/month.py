"""What `pliant whatif` does and prints."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pliant import policies
from pliant.batch.slurm import Commands
from pliant.batch.slurm.accounting import TIMEOUT_S, history, instant
from pliant.batch.slurm.queries import Queries
from pliant.cli.comparing import choices_of, run_cases
from pliant.cli.install.record import write
from pliant.cli.output import print_json
from pliant.cli.reporting import MODE, check_report, print_page, write_report
from pliant.cli.simulating import policy_words
from pliant.cli.sweeping import sweep_asked
from pliant.cli.written import check_written, printed_to
from pliant.errors import BadInput, Unavailable
from pliant.grammar import quoted
from pliant.simulator.curves import Trail
from pliant.simulator.runs import Case, Choice, Outcome
from pliant.simulator.tally import Tally
from pliant.simulator.traces import Record
from pliant.simulator.traces.guess import FORMATS, guess
from pliant.simulator.traces.sacct import MONTH, left_out
from pliant.simulator.whatif.cluster import SiteCluster, alike, from_slurm
from pliant.simulator.whatif.molding import Molding, curve, owners_words
from pliant.simulator.whatif.month import Month, happened
from pliant.simulator.whatif.report import page
from pliant.simulator.whatif.result import Result
from pliant.simulator.whatif.words import LAST_S, assumptions, end_s, seen

BASELINE = Choice("easy-backfill")
_READ = ("sacct", "sacct-json")


def run_whatif(
    *,
    choices: tuple[str, ...],
    since: str,
    until: str,
    save: str,
    trace: str,
    format: str,  # as the option is called
    processes: int | None,
    as_json: bool,
    out: str,
    html: str,
    plots: str,
    **said: Any,
) -> None:
    """Do and print what was asked for. Raises BadInput, Unavailable, BatchError."""
    chosen = choices_of(choices or (policies.DEFAULT,))
    if any(choice.name == BASELINE.name and not choice.options for choice in chosen):
        raise BadInput("easy-backfill: it is what the others are compared with already")
    molding = _molding(said)
    window = (instant("--since", since), instant("--until", until))
    _check_files(trace, save, format)
    check_written({"--out": out, "--html": html, "--save": save}, {"--trace": trace})
    check_report(html, plots)
    cluster = _cluster(said)
    with _recorded(trace, save, window) as path:
        month = Month(path, _format(path, format), cluster, molding)
        records = _records(month, trace, since)
        _check_records(records, molding)
        missing = left_out(Path(path), records) if month.format == "sacct" else None
        what = seen(records, month, missing)
        truth = _truth(records, month)
        del records
        result = _replayed(month, truth, chosen, processes)
    report = page(what, month, result)
    write_report(report, html, plots)
    with printed_to(out, MODE):
        if as_json:
            assumed = [*assumptions(what, month, BASELINE.name)]
            print_json(
                {"seen": what, "assumptions": assumed, "fit": result.fit}
                | {"figures": result.rows, "users": result.sides, "jobs": result.job_sides}
            )
        else:
            print_page(report)


def as_live(choice: Choice) -> Choice:
    """Return a policy as pliantd would have it: running jobs are changed only where that pays."""
    known = policies.options(choice.name)
    live = {"pays": True} if "pays" in known else {}
    chosen: dict[str, Any] = {**live, **policies.live_options(choice.name), **dict(choice.options)}
    asked = [(name, value) for name, value in chosen.items() if value != known.get(name)]
    found = Choice(choice.name, tuple(asked))
    found.policy_for(1)
    return found


def _molding(said: dict[str, Any]) -> Molding:
    users = tuple(user for user in said["users"].split(",") if user)
    if said["users"] and not users:
        raise BadInput(f"--users: {quoted(said['users'])}: names such as alice,bob are expected")
    speed = curve(said["speedup"])
    words = owners_words(said["malleable"])
    return Molding(said["shrink"], said["grow"], speed, said["restart"], users, words)


def _check_files(trace: str, save: str, of: str) -> None:
    if trace and save:
        raise BadInput("--save keeps what sacct prints now: it does not go with --trace")
    if of not in ("", *_READ):
        raise BadInput(f"--format: {quoted(of)}: sacct or sacct-json is expected")


def _format(path: str, said: str) -> str:
    if said:
        return said
    found = guess(Path(path))
    for name in _READ:
        if FORMATS[name] is found:
            return name
    raise BadInput(f"{path}: it is no output of sacct's: pliant compare replays other traces")


def _cluster(said: dict[str, Any]) -> SiteCluster:
    """Return the cluster that was described, or this site's. Raises BadInput, Unavailable."""
    gpus, cpus = said["gpus_per_node"] or 0, said["cpus_per_node"] or 0
    if said["nodes"]:
        return alike(said["nodes"], gpus, cpus)
    if gpus or cpus:
        raise BadInput("--gpus-per-node and --cpus-per-node go with --nodes")
    queries = Queries(Commands())
    try:
        name, rows, partitions = queries.site().cluster, queries.nodes(), queries.partitions()
    except Unavailable as wrong:
        raise Unavailable(f"{wrong}; --nodes N --gpus-per-node G says which cluster") from wrong
    return from_slurm(rows.values(), [*partitions.values()], name)


@contextmanager
def _recorded(trace: str, save: str, window: tuple[str, str]) -> Iterator[str]:
    """Yield where the trace lies: what sacct prints now goes where nobody else can read it."""
    if trace:
        yield trace
        return
    text = history(Commands(timeout_s=TIMEOUT_S), MONTH, *window)
    if save:
        write(Path(save), text, MODE)
        yield save
        return
    with tempfile.TemporaryDirectory(prefix="pliant-whatif-") as folder:
        path = Path(folder) / "sacct"
        write(path, text, MODE)
        yield str(path)


def _records(month: Month, trace: str, since: str) -> list[Record]:
    try:
        return list(month.records())
    except BadInput as wrong:
        if trace or " line " in str(wrong):
            raise
        raise BadInput(f"sacct: no job that has ended since {since}") from wrong


def _check_records(records: Sequence[Record], molding: Molding) -> None:
    """Raise BadInput for a user who has no job, and a time that no calendar has."""
    known = {record.user for record in records}
    for user in molding.users:
        if user not in known:
            raise BadInput(f"--users: {quoted(user)}: no job of this user's has run")
    last = max(records, key=end_s)
    if end_s(last) > LAST_S:
        raise BadInput(f"job {quoted(last.id)}: it ended after the year 9999: its times are wrong")


def _truth(records: Sequence[Record], month: Month) -> Outcome:
    tally, trail = Tally(), Trail()
    for task in happened(records, month):
        tally.add(task)
        trail.add(task)
    return Outcome("", (), tally.figures(month.cluster.gpus), trail.curves())


def _replayed(
    month: Month, truth: Outcome, chosen: Sequence[Choice], processes: int | None
) -> Result:
    rigid = Month(month.trace, month.format, month.cluster, month.molding, molds=False)
    cases = [Case(BASELINE, rigid, curves=True, jobs=True)]
    cases += [Case(as_live(choice), month, curves=True, jobs=True) for choice in chosen]
    outcomes = run_cases(cases, sweep_asked(processes))
    names = [policy_words(choice) for choice in (BASELINE, *chosen)]
    return Result(truth, dict(zip(names, outcomes, strict=True)))
