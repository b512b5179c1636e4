"""``pliant metrics``: what pliantd counts, for Prometheus.

A verb that writes a file for node_exporter, and no port of pliantd's: the daemon is not slowed by
who scrapes it, needs no library and opens no door without munge, and a file can say that pliantd is
away. No label has a user's words or a job's number: there are as many values as the cluster has
partitions and nodes, and pliantd reasons to refuse a report or a credential.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import click

from pliant.cli.door import ask
from pliant.cli.top_view import held_idle
from pliant.cli.written import check_written, printed_to
from pliant.daemon.answers import NOT_SHOWN, PartitionRow, StatusAnswer
from pliant.daemon.watched import TopAnswer
from pliant.errors import PliantError, Unavailable

MISSING = "metrics need prometheus-client: pip install 'pliant[metrics]'"


@dataclass(frozen=True, slots=True)
class Told:
    """A metric, its name without ``pliant_``; its values by that of ``label``, where it has one."""

    name: str
    words: str
    values: Mapping[str, float]
    label: str = ""
    kind: Literal["gauge", "counter"] = "gauge"


@click.command(short_help="What pliantd counts, for Prometheus.")
@click.option(
    "--textfile",
    metavar="FILE",
    default="",
    help="Write them to FILE, for node_exporter's textfile collector.",
)
def metrics(textfile: str) -> None:
    """Print what pliantd counts in the text format of Prometheus.

    Where pliantd does not answer, pliant_up is 0, nothing else is told, and the exit code is 2.
    """
    check_written({"--textfile": textfile})
    trouble = None
    try:
        status, top = ask(StatusAnswer, "status"), ask(TopAnswer, "top")
        of_doors = (*of_credentials(status), *of_monitors(status))
        told = [_up(1), *of_status(status), *of_doors, *of_top(top)]
    except PliantError as error:
        told, trouble = [_up(0)], error
    text = written(told)
    with printed_to(textfile):
        click.echo(text, nl=False)
    if trouble:
        raise trouble


def written(told: Iterable[Told]) -> str:
    """Write metrics in Prometheus' text format. Raises Unavailable without prometheus-client."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415  # an extra
        from prometheus_client.metrics_core import Metric  # noqa: PLC0415  # as the last
        from prometheus_client.registry import Collector  # noqa: PLC0415  # as the last
    except ImportError:
        raise Unavailable(MISSING) from None

    class Once(Collector):
        def collect(self) -> Iterator[Metric]:
            for each in told:
                metric = Metric(f"pliant_{each.name}", each.words, each.kind)
                total = "_total" if each.kind == "counter" else ""
                for label, value in each.values.items():
                    labels = {each.label: label} if each.label else {}
                    metric.add_sample(f"pliant_{each.name}{total}", labels, value)
                yield metric

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return generate_latest(registry).decode()


def _one(name: str, words: str, value: float) -> Told:
    return Told(name, words, {"": value})


def _count(name: str, words: str, value: float) -> Told:
    return Told(name, words, {"": value}, kind="counter")


def _up(value: int) -> Told:
    return _one("up", "Whether pliantd answers.", value)


def of_status(said: StatusAnswer) -> Iterator[Told]:
    """Yield what ``pliant status`` says of pliantd, jobs and partitions."""
    yield Told("build_info", "The release of pliantd.", {said.version: 1}, "version")
    yield Told("policy_info", "The policy of pliantd.", {said.policy: 1}, "policy")
    yield _one("start_time_seconds", "When pliantd was started.", said.started_s)
    yield _one("paused", "Whether no job is changed, by pliant pause.", said.paused)
    yield _one("troubles", "How many things are wrong now.", len(said.troubles))
    yield _one("last_look_timestamp_seconds", "When the cluster was looked at.", said.observed_s)
    yield _one("look_duration_seconds", "How long the last look took.", said.observe_took_s)
    yield _one("decision_duration_seconds", "How long the last decision took.", said.cycle_took_s)
    yield _count("cycles", "Decisions.", said.cycles)
    yield _count("submissions", "Submissions that were answered.", said.submissions)
    yield _count("updates", "Changes of jobs that were made.", said.updates)
    yield _count("failed_updates", "Changes of jobs that Slurm refused.", said.failures)
    yield _one("deferred_updates", "Changes that are left for the next cycle.", said.deferred)
    yield _one("waiting_jobs", "Waiting jobs, an array as one.", said.waiting)
    yield _one("waiting_flagged_jobs", "Waiting jobs that may change.", said.waiting_flagged)
    yield _one("running_jobs", "Running jobs.", said.running)
    yield _by_partition("nodes", "Nodes of a partition.", said.partitions)
    yield _by_partition("gpus", "GPUs of a partition.", said.partitions)
    yield _by_partition("gpus_free", "Whole free GPUs of a partition.", said.partitions)


def _by_partition(field: str, words: str, rows: Iterable[PartitionRow]) -> Told:
    values = {row.name: getattr(row, field) for row in rows}
    shown = {name: value for name, value in values.items() if value != NOT_SHOWN}
    return Told(f"partition_{field}", words, shown, "partition")


def of_credentials(said: StatusAnswer) -> Iterator[Told]:
    """Yield which munge credentials proved nothing."""
    words = "Munge credentials that were refused."
    refused = dict(sorted(said.refused_credentials.items()))
    yield Told("refused_credentials", words, refused, "kind", "counter")


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
    yield Told("monitor_refused", words, refused, "kind", "counter")


def of_top(said: TopAnswer) -> Iterator[Told]:
    """Yield what ``pliant top`` says."""
    idle = sum(len(held_idle(job, said.now_s)) for job in said.jobs)
    yield _one("idle_held_gpus", "GPUs that jobs hold and do not use, for 5 minutes or more.", idle)
    words = "When a node's monitor was heard last."
    heard = {node.name: node.heard_s for node in said.nodes if node.heard_s}
    yield Told("monitor_last_report_timestamp_seconds", words, heard, "node")
