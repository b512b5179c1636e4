"""Slurm itself: there, of a known release, and set up so that Pliant can do its work."""

from __future__ import annotations

from collections.abc import Iterator

from pliant.batch.slurm.cluster import MODERN
from pliant.batch.slurm.gres import GPU, NO_GPU
from pliant.batch.slurm.nodes import shards_per_gpu
from pliant.batch.slurm.site import OLDEST
from pliant.cli.commands import is_there
from pliant.cli.doctor.down import starts_here
from pliant.cli.doctor.findings import Finding, advice, command, fault, ok, skipped
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.pbs_conf import conf_path
from pliant.daemon.rights import PRIVATE

NEWEST = (26, 5)
"""The newest release that was measured."""
SKEW_S = 2.0
SLOW_BACKFILL_S = 10
NO_MATTER = ("accounts", "cloud", "events", "reservations", "usage", "users")
"""Of PrivateData what is of no matter here: Pliant shows no reservation, and nothing of slurmdbd's.
Whose a job is it shows where it shows the job, as squeue does whatever ``users`` says."""


def check_slurm(patient: SlurmPatient) -> Iterator[Finding]:
    """Look for the commands, slurmctld and its release."""
    site = patient.site
    if site is None:
        cure = "start it, or name slurm.conf by SLURM_CONF or by [slurm] conf in pliant.toml"
        if is_there(conf_path()):
            cure += f'; for PBS, whose {conf_path()} is here, write batch = "pbs" under [daemon]'
        start = [command("systemctl", "start", "slurmctld")] if starts_here(patient) else []
        yield fault("slurmctld", patient.site_trouble, cure, start)
        return
    yield ok("slurmctld", f"cluster {site.cluster} answers, {site.conf}")
    if OLDEST <= site.version <= NEWEST:
        yield ok("release", f"Slurm {site.release}")
    else:
        yield advice(
            "release",
            f"Slurm {site.release} was not measured",
            "leave the partitions in observe until a trial in a sandbox went well",
        )
    if patient.may_see_all:
        yield ok("rights", f"looked at as {patient.user}")
    else:
        yield skipped("rights", f"{patient.user} does not see all: root or {site.slurm_user} does")
    yield from _clock(patient)


def _clock(patient: SlurmPatient) -> Iterator[Finding]:
    if abs(patient.skew_s) > SKEW_S:
        yield fault(
            "clock",
            f"slurmctld's clock is {patient.skew_s:+.0f} s from this host's",
            "run chrony or ntpd on both: munge refuses credentials from other times",
        )
    else:
        yield ok("clock", "as slurmctld's")


def check_host(patient: SlurmPatient) -> Iterator[Finding]:
    """Whether pliantd is where slurmctld is, and can tell it by the names."""
    if patient.site is None or patient.is_controller or not patient.has_pliantd:
        return
    names = patient.site.controllers
    told = f"pliantd runs here, and {patient.hostname} is none of SlurmctldHost: {', '.join(names)}"
    several = ": it acts also while pliantd does on one of them" if names[1:] else ""
    yield advice(
        "host",
        f"{told}{several}",
        "run it beside slurmctld alone; where slurmctld is here, give this host the name that"
        " slurm.conf has for it (hostnamectl hostname)",
    )


def check_gpus(patient: SlurmPatient) -> Iterator[Finding]:
    """Look at the nodes' GPUs: whole ones, shares, and the dummy for CPU shapes."""
    if not patient.nodes:
        return
    nodes = [row for row in patient.nodes if any(gres.name == GPU for gres in row.gres)]
    count = sum(gres.count for row in nodes for gres in row.gres if gres.name == GPU)
    if not nodes:
        yield fault(
            "gpus", "no node has Gres=gpu", "say what the nodes have in slurm.conf(5), Gres"
        )
        return
    yield ok("gpus", f"{count} on {len(nodes)} nodes")
    untyped = [row.name for row in nodes for g in row.gres if g.name == GPU and not g.type]
    if untyped:
        yield advice(
            "gpu types",
            f"{untyped[0]} and {len(untyped) - 1} more nodes name no type" if untyped[1:]
            else f"{untyped[0]} names no type",
            "write Gres=gpu:a100:4: without types gpu-type= cannot be asked for",
        )  # fmt: skip
    else:
        yield ok("gpu types", ", ".join(sorted({g.type for r in nodes for g in r.gres if g.type})))
    yield _shares(nodes_shards={shards_per_gpu(row) for row in nodes})
    yield _cpu_or_gpu(patient)


def _cpu_or_gpu(patient: SlurmPatient) -> Finding:
    """Whether a waiting job can give up its GPUs: what Abilities.gpu_to_cpu says of this site."""
    name = "cpu or gpu"
    if patient.site and patient.site.version < MODERN:
        return ok(
            name,
            f"in Slurm {patient.site.release} a waiting job cannot give up its GPUs: a "
            "type=gpu:cpu job that finds none free waits in its CPU form",
        )
    if all(any(gres.name == NO_GPU for gres in row.gres) for row in patient.nodes):
        return ok(name, "every node has the dummy GRES nogpu: a waiting job can give up its GPUs")
    return advice(
        name,
        "not every node has the dummy GRES nogpu: a waiting job cannot give up its GPUs",
        "add it as the administrator's guide says, if type=gpu:cpu jobs are wanted",
    )


def _shares(nodes_shards: set[int]) -> Finding:
    if nodes_shards == {0}:
        return advice(
            "shares",
            "no node has gres/shard: gpus=1/4 cannot be asked for",
            "add Gres=shard:N and Name=shard to gres.conf, if shares of a GPU are wanted",
        )
    if len(nodes_shards - {0}) > 1:
        return advice(
            "shares",
            "GPUs are divided into different numbers of shards",
            "divide all alike in a partition: shares are parts of a GPU",
        )
    return ok("shares", f"{max(nodes_shards)} shards per GPU")


def check_scheduler(patient: SlurmPatient) -> Iterator[Finding]:
    """Look at what decides how soon a molded job starts."""
    site = patient.site
    if site is None:
        return
    if patient.option("SchedulerType") != "sched/backfill":
        yield advice(
            "backfill",
            f"SchedulerType is {patient.option('SchedulerType')}",
            "SchedulerType=sched/backfill: only then jobs start in holes, and running ones are "
            "resized or make room",
        )
    elif site.backfill_interval_s > SLOW_BACKFILL_S:
        yield advice(
            "backfill",
            f"bf_interval is {site.backfill_interval_s} s: a job that was made to fit a hole "
            "starts as late as that",
            "SchedulerParameters=bf_interval=5",
        )
    else:
        yield ok("backfill", f"every {site.backfill_interval_s} s")
    if "bf_continue" in site.scheduler:
        yield ok("bf_continue", "set")
    else:
        yield advice(
            "bf_continue",
            "not set: each change of a job ends a running backfill pass",
            "SchedulerParameters=bf_continue",
        )
    if patient.option("SelectType") != "select/cons_tres":
        yield fault(
            "select",
            f"SelectType is {patient.option('SelectType')}",
            "SelectType=select/cons_tres: only it gives out single GPUs",
        )
    else:
        yield ok("select", "cons_tres")
    if patient.option("PriorityType") == "priority/basic":
        yield ok("priority", "basic: first come, first served; Pliant keeps to Slurm's order")
    else:
        yield ok("priority", "multifactor: Pliant keeps to Slurm's order")
    if site.user_top:
        yield advice(
            "scontrol top",
            "enable_user_top: no running job is asked for a checkpoint, for its owner could give "
            "another job the place that is kept for it",
            "take enable_user_top out of SchedulerParameters",
        )
    yield from _preemption(patient.option("PreemptType"))
    if site.private_data:
        yield _privacy(site.private_data)


def _privacy(private: frozenset[str]) -> Finding:
    """Which words of PrivateData hold for what users see here (slurm.conf(5))."""
    said = f"PrivateData={','.join(sorted(private))}"
    unknown = sorted(private - {*PRIVATE, *NO_MATTER})
    if unknown:
        return advice(
            "privacy",
            f"{said}: {', '.join(unknown)} is not known to Pliant and not respected",
            'look at what `pliant jobs`, `why` and `plan` show to a user; listen = "" in '
            "pliant.toml shuts them off",
        )
    parts = (
        ("respected", sorted(private.intersection(PRIVATE))),
        ("of no matter here", sorted(private.intersection(NO_MATTER))),
    )
    held = "; ".join(f"{words}: {', '.join(kinds)}" for words, kinds in parts if kinds)
    return ok("privacy", f"{said}: {held}")


def _preemption(kind: str) -> Iterator[Finding]:
    if kind == "preempt/partition_prio":
        yield ok("preemption", "by PriorityTier: no job that would preempt others becomes smaller")
    elif kind not in ("", "preempt/none"):
        yield advice(
            "preemption",
            f"{kind} is not seen: a job that would preempt others may get a smaller shape instead",
            "leave the partitions of such jobs in observe, or tell their users",
        )
