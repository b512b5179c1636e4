"""``pliant metrics``: what pliantd counts, for Prometheus.

A verb that writes a file for node_exporter or serves by itself, and no port of pliantd's: the
daemon is not slowed by who scrapes it, needs no library and opens no door without munge, and a file
can say that pliantd is away. No label has a user's words or a job's number: there are as many
values as the cluster has partitions and nodes, and pliantd reasons to refuse a report or a
credential.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import click

from pliant.cli.door import SaidNo, ask
from pliant.cli.metrics_text import Histogram, Labels, Told, written
from pliant.cli.top_view import held_idle
from pliant.cli.written import check_written, printed_to
from pliant.daemon.answers import NOT_SHOWN, CountsAnswer, PartitionRow, StatusAnswer
from pliant.daemon.counting import TOOK_S
from pliant.daemon.watched import TopAnswer
from pliant.errors import BadInput, PliantError
from pliant.store import Tally

STATES = ("flagged", "other", "idle", "avoidable", "down")
"""Whose GPUs are, or why they are nobody's."""


@click.command(short_help="What pliantd counts, for Prometheus.")
@click.option(
    "--textfile",
    metavar="FILE",
    default="",
    help="Write them to FILE, for node_exporter's textfile collector.",
)
@click.option(
    "--serve",
    metavar="ADDRESS:PORT",
    default="",
    help="Answer scrapes of /metrics there until interrupted: 127.0.0.1:9680.",
)
def metrics(textfile: str, serve: str) -> None:
    """Print what pliantd counts in the text format of Prometheus.

    Where pliantd does not answer, pliant_up is 0, nothing else is told, and the exit code is 2.
    With --serve each scrape asks pliantd anew, and is told pliant_up 0 where it is away; run it as
    a user of its own.
    """
    if serve:
        if textfile:
            raise BadInput("--textfile writes once, --serve answers again and again: one of them")
        from pliant.cli import metrics_serve  # noqa: PLC0415  # brings http.server

        metrics_serve.serve(*metrics_serve.address_of(serve), lambda: asked()[0])
        return
    check_written({"--textfile": textfile})
    text, trouble = asked()
    with printed_to(textfile):
        click.echo(text, nl=False)
    if trouble:
        raise trouble


def asked() -> tuple[str, PliantError | None]:
    """Ask pliantd; return the metrics, and why there are none but pliant_up."""
    try:
        status, top = ask(StatusAnswer, "status"), ask(TopAnswer, "top")
        told: list[Told | Histogram] = [
            *(_up(1), *of_status(status), *of_counts()),
            *(*of_credentials(status), *of_monitors(status), *of_top(top)),
        ]
    except PliantError as error:
        return written([_up(0)]), error
    return written(told), None


def _one(name: str, words: str, value: float) -> Told:
    return Told(name, words, {(): value})


def _count(name: str, words: str, value: float) -> Told:
    return Told(name, words, {(): value}, kind="counter")


def _labelled(values: Mapping[str, float]) -> dict[Labels, float]:
    return {(label,): value for label, value in values.items()}


def _up(value: int) -> Told:
    return _one("up", "Whether pliantd answers.", value)


def of_status(said: StatusAnswer) -> Iterator[Told]:
    """Yield what ``pliant status`` says of pliantd, jobs and partitions."""
    yield Told("build_info", "The release of pliantd.", {(said.version,): 1}, ("version",))
    yield Told("policy_info", "The policy of pliantd.", {(said.policy,): 1}, ("policy",))
    yield _one("start_time_seconds", "When pliantd was started.", said.started_s)
    yield _one("paused", "Whether no job is changed, by pliant pause.", said.paused)
    yield _one("troubles", "How many things are wrong now.", len(said.troubles))
    yield _one("last_look_timestamp_seconds", "When the cluster was looked at.", said.observed_s)
    yield _one("look_duration_seconds", "How long the last look took.", said.observe_took_s)
    yield _one("decision_duration_seconds", "How long the last decision took.", said.cycle_took_s)
    yield _count("cycles", "Decisions.", said.cycles)
    yield _count("updates", "Changes of jobs that were made.", said.updates)
    yield _count("failed_updates", "Changes of jobs that Slurm refused.", said.failures)
    yield _one("deferred_updates", "Changes that are left for the next cycle.", said.deferred)
    yield _one("waiting_jobs", "Waiting jobs, an array as one.", said.waiting)
    yield _one("waiting_flagged_jobs", "Waiting jobs that may change.", said.waiting_flagged)
    yield _one("running_jobs", "Running jobs.", said.running)
    flagged = {"waiting": said.waiting_flagged, "running": said.running_flagged}
    words = "Jobs with Pliant's options, the waiting tasks of an array as one."
    yield Told("flagged_jobs", words, _labelled(flagged), ("state",))
    modes: dict[Labels, float] = {(row.name, row.mode): 1.0 for row in said.partitions}
    words = "What Pliant may do in a partition."
    yield Told("partition_mode_info", words, modes, ("partition", "mode"))
    yield _by_partition("nodes", "Nodes of a partition.", said.partitions)
    yield _by_partition("gpus", "GPUs of a partition.", said.partitions)
    yield _by_partition("gpus_free", "Whole free GPUs of a partition.", said.partitions)


def _by_partition(field: str, words: str, rows: Iterable[PartitionRow]) -> Told:
    values = {row.name: getattr(row, field) for row in rows}
    shown = {name: value for name, value in values.items() if value != NOT_SHOWN}
    return Told(f"partition_{field}", words, _labelled(shown), ("partition",))


def of_counts() -> Iterator[Told | Histogram]:
    """Yield what pliantd has counted since its start; nothing where an earlier release runs."""
    try:
        said = ask(CountsAnswer, "counts")
    except SaidNo:
        return
    total = said.total
    submissions = {
        "answered": total.answered,
        "refused": total.refused,
        "unanswered": total.unanswered,
    }
    words = "Submissions with Pliant's options, by what came of asking pliantd."
    yield Told("submissions", words, _labelled(submissions), ("answer",), "counter")
    yield _counted("starts", "Starts of jobs with Pliant's options.", said, "starts")
    words = "Starts in another shape than the job's own."
    yield _counted("molded_starts", words, said, "molded")
    seconds = {state: getattr(total, f"{state}_gpu_s") for state in STATES}
    words = "GPU time of all nodes: of jobs with Pliant's options, of others, idle or down."
    yield Told("gpu_seconds", words, _labelled(seconds), ("state",), "counter")
    resizes: dict[Labels, float] = {(row.why, row.result): row.count for row in said.resizes}
    words = "Changes of running jobs, by why and how they ended."
    yield Told("resizes", words, resizes, ("reason", "result"), "counter")
    took = said.took
    words = "From a job's checkpoint until it ran again in its new shape."
    yield Histogram("handover_seconds", words, TOOK_S, took.within, took.count, took.total_s)


def _counted(name: str, words: str, said: CountsAnswer, field: str) -> Told:
    """By partition, as far as the asker may see them."""

    def of(tally: Tally) -> float:
        return float(getattr(tally, field))

    values = {row.partition: of(row) for row in said.partitions}
    return Told(name, words, _labelled(values), ("partition",), "counter")


def of_credentials(said: StatusAnswer) -> Iterator[Told]:
    """Yield which munge credentials proved nothing."""
    words = "Munge credentials that were refused."
    refused = dict(sorted(said.refused_credentials.items()))
    yield Told("refused_credentials", words, _labelled(refused), ("kind",), "counter")


def of_monitors(said: StatusAnswer) -> Iterator[Told]:
    """Yield what ``pliant status`` says of nodes' monitors."""
    monitors = said.monitors
    yield _one("monitored_nodes", "Nodes whose monitor was heard.", monitors.nodes)
    yield _count("monitor_reports", "Reports that were taken.", monitors.reports)
    yield _count("monitor_repeated_reports", "Reports that came again.", monitors.repeated)
    yield _count("monitor_missing_reports", "Reports that never came.", monitors.missing)
    yield _count("monitor_windows", "Speeds of jobs in reports.", monitors.windows)
    refused = dict(sorted(monitors.refused.items()))
    words = "Reports that were refused, or windows of jobs that are not there."
    yield Told("monitor_refused", words, _labelled(refused), ("kind",), "counter")


def of_top(said: TopAnswer) -> Iterator[Told]:
    """Yield what ``pliant top`` says."""
    idle = sum(len(held_idle(job, said.now_s)) for job in said.jobs)
    yield _one("idle_held_gpus", "GPUs that jobs hold and do not use, for 5 minutes or more.", idle)
    words = "When a node's monitor was heard last."
    heard = {node.name: node.heard_s for node in said.nodes if node.heard_s}
    name = "monitor_last_report_timestamp_seconds"
    yield Told(name, words, _labelled(heard), ("node",))
