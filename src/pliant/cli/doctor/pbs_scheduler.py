"""PBS's schedulers: do they run, in which order do jobs start, and what of it is not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pliant.batch.pbs.schedulers import path_of, read_config, schedulers_of
from pliant.batch.pbs.values import true
from pliant.cli.doctor.findings import Finding, advice, fault, ok, skipped
from pliant.cli.doctor.pbs_patient import PbsPatient
from pliant.cli.install.pbs_sched import CURE, uncounted, wanted
from pliant.filter.pbs.limits import SHAPED
from pliant.filter.pbs.schedulers import shaped_in
from pliant.filter.pbs.written import JOB_WIDE

_ORDERS = {"fair_share": "true", "round_robin": "true"}
"""What of sched_config orders jobs otherwise where it is set so; job_sort_key does in any case."""


def check_scheduler(patient: PbsPatient) -> Iterator[Finding]:
    """Look at what starts jobs, and in which order."""
    if patient.server is None:
        return
    if not patient.server.scheduling:
        yield advice(
            "scheduling",
            "off: PBS starts no job by itself",
            "if that is not meant: qmgr -c 'set server scheduling = True'",
        )
    for name, said in patient.schedulers.items():
        yield _runs(name, said)
    yield from _unserved(patient)
    configs = {
        name: read_config(said, patient.hostname) for name, said in patient.schedulers.items()
    }
    yield from _resources(patient, configs)
    yield _order(patient, configs)
    yield from _sets(patient)
    yield _limits(patient)
    yield from _defaults(patient)


def _runs(name: str, said: Mapping[str, str]) -> Finding:
    host, state = said.get("sched_host", "its host"), said.get("state", "")
    if state == "down":
        return fault("scheduler", f"{name} is down: no job starts", f"start pbs_sched on {host}")
    if not true(said.get("scheduling", True)):
        return advice(
            "scheduler",
            f"{name} does not schedule",
            f"if that is not meant: qmgr -c 'set sched {name} scheduling = True'",
        )
    return ok("scheduler", f"{name} on {host} is {state}")


def _unserved(patient: PbsPatient) -> Iterator[Finding]:
    """Name partitions whose queues' jobs nobody starts."""
    served = schedulers_of(patient.schedulers).of if patient.schedulers else None
    for row in patient.queues:
        if served is not None and row.partition and row.partition not in served:
            yield fault(
                "scheduler",
                f"partition {row.partition} of queue {row.name} has none: no job there starts",
                f"qmgr -c 'set sched NAME partition = {row.partition}', and start it",
            )


def _resources(
    patient: PbsPatient, configs: Mapping[str, Mapping[str, str] | None]
) -> Iterator[Finding]:
    """Whether the schedulers count GPUs: without that they start jobs that have none."""
    needed = wanted(patient.settings)
    for name, config in configs.items():
        if config is None:
            yield skipped("sched_config", f"that of {name} is read by root on its host alone")
            continue
        missing = uncounted(config, patient.settings)
        if missing:
            path = path_of(patient.schedulers[name])
            yield fault(
                "sched_config",
                f"{path}: {', '.join(missing)} is not in resources: {name} does not count it",
                f"add it there, {CURE}",
            )
        else:
            yield ok("sched_config", f"{name} looks at {', '.join(needed)}")


def _order(patient: PbsPatient, configs: Mapping[str, Mapping[str, str] | None]) -> Finding:
    """Say what orders jobs otherwise than Pliant takes them to be ordered."""
    shaped = _shaped(patient)
    if shaped:
        return advice(
            "order",
            f"{'; '.join(shaped)}: no job is given another shape, which would change who is next",
            "order jobs by what a shape leaves as it is (queue_priority, job_priority, "
            "eligible_time), and their shapes are changed again",
        )
    places = (patient.attributes, *patient.schedulers.values())
    formulas = (said.get("job_sort_formula") for said in places)
    found = {f"job_sort_formula {one}" for one in formulas if one}
    for config in configs.values():
        known = config or {}
        found |= {
            name for name, value in _ORDERS.items() if value in known.get(name, "").lower().split()
        }
        found |= {"job_sort_key"} & known.keys()
    if not found:
        return ok("order", "queues by priority, then as jobs came: Pliant keeps to it")
    return advice(
        "order",
        f"{', '.join(sorted(found))}: not seen, so a job that Pliant makes fit may not be the next",
        "where PBS does not start it, that shape is left out for a while; leave queues in observe "
        "where this matters",
    )


def _shaped(patient: PbsPatient) -> list[str]:
    """Return what orders jobs by a resource that a shape changes."""
    share = patient.settings.pbs.share_resource
    named = shaped_in(patient.server.formula, share) if patient.server else ""
    schedulers = schedulers_of(patient.schedulers, share, patient.hostname)
    found = [f"job_sort_formula names {named}"] if named else []
    return found + [row.order for row in schedulers.of.values() if row.order]


def _sets(patient: PbsPatient) -> Iterator[Finding]:
    """Say where no job is spread over nodes because they lie in placement sets."""
    server = patient.server
    if server is None or not server.groups:
        return
    keys = {"the server": server.group_keys}
    keys |= {f"queue {row.name}": row.group_keys for row in patient.queues}
    found = [f"{','.join(some)} of {where}" for where, some in keys.items() if some]
    if found:
        yield ok(
            "placement sets",
            f"node_group_key {', '.join(found)}: no job is spread over several nodes that lie in "
            "several sets but as its owner wrote",
        )


def _limits(patient: PbsPatient) -> Finding:
    """Say which limits bound what one job, or several, may have."""
    own = list(_own_limits(patient))
    said = f"; {'; '.join(own)}" if own else ""
    found = [*patient.server.limited] if patient.server else []
    queues = [row.name for row in patient.queues if row.limited]
    found += [f"limits of queue {', '.join(queues)}"] if queues else []
    if found:
        return ok("limits", f"{', '.join(found)}: no job is made larger than its owner wrote{said}")
    return ok("limits", f"none bounds what several jobs may have{said}")


def _defaults(patient: PbsPatient) -> Iterator[Finding]:
    """Say where each job keeps its shape for what its chunks have by default."""
    server = patient.server
    chunks = {"the server": server.chunk if server else {}}
    chunks |= {f"queue {row.name}": row.chunk for row in patient.queues}
    for where, chunk in chunks.items():
        others = sorted(chunk.keys() - {*JOB_WIDE})
        if others:
            yield advice(
                "defaults",
                f"default_chunk.{others[0]} of {where}: jobs there keep their shapes",
                "tie vnodes to a queue by `set node NODE queue = QUEUE`, which Pliant knows of",
            )


def _own_limits(patient: PbsPatient) -> Iterator[str]:
    """Yield what bounds one job of all that a shape changes."""
    server = patient.server
    most = {"the server": server.most if server else {}}
    most |= {f"queue {row.name}": row.most for row in patient.queues}
    least = {f"queue {row.name}": row.least for row in patient.queues}
    for kind, words, some in (("max", "more", most), ("min", "less", least)):
        found = [
            f"resources_{kind}.{name}={said[name]} of {where}"
            for where, said in some.items()
            for name in SHAPED
            if name in said
        ]
        if found:
            yield f"{', '.join(found)}: no job is given {words}"
