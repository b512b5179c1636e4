"""GPUs as PBS counts them: ngpus and the resource of shares, on nodes, and what names types."""

from __future__ import annotations

from collections.abc import Iterator

from pliant.batch.pbs.node_rows import NodeRow
from pliant.batch.pbs.values import number, real
from pliant.cli.doctor.findings import Finding, advice, fault, ok, skipped
from pliant.cli.doctor.pbs_patient import PbsPatient

GPUS = "ngpus"


def check_gpus(patient: PbsPatient) -> Iterator[Finding]:
    """Look at the resources, the nodes, and the types."""
    if patient.server is None:
        return
    yield _counted(patient, GPUS, "long")
    share = patient.settings.pbs.share_resource
    if share:
        yield _counted(patient, share, "float")
    nodes = [row for row in patient.nodes if number(row.has.get(GPUS))]
    count = sum(number(row.has.get(GPUS)) for row in nodes)
    if not nodes:
        yield fault(
            "gpus", f"no node has {GPUS}", f"qmgr -c 'set node NAME resources_available.{GPUS} = 4'"
        )
        return
    hosts = {row.has.get("host", row.name) for row in nodes}  # each GPU may be a vnode
    parts = sum(real(row.has.get(share.lower())) > 0 for row in patient.nodes) if share else 0
    more = f", and {parts} in shares" if parts else ""
    yield ok("gpus", f"{count} on {len(hosts)} nodes{more}")
    yield _types(patient, nodes)


def _counted(patient: PbsPatient, name: str, wanted: str) -> Finding:
    """Whether what a node has of a resource is counted down as jobs take it."""
    if patient.resources is None:
        return skipped(name, f"qmgr does not say: {patient.qmgr_trouble}")
    make = f"qmgr -c 'create resource {name} type={wanted},flag=nh'"
    said = patient.resources.attributes.get(("resource", name))
    if said is None:
        return fault(name, "there is no resource of this name", make)
    kind, flag = said.get("type", ""), said.get("flag", "")
    if kind != wanted or not {"n", "h"} <= set(flag):
        return fault(
            name,
            f"its type is {kind or 'not set'}, its flag {flag or 'not set'}: nodes do not count it",
            f"type {wanted} and flag nh are expected: qmgr -c 'set resource {name} flag = nh'",
        )
    return ok(name, f"type {wanted}, flag {flag}")


def _types(patient: PbsPatient, nodes: list[NodeRow]) -> Finding:
    name, resource = "gpu types", patient.settings.pbs.type_resource
    if not resource:
        return advice(
            name,
            "[pbs] type_resource is not set",
            "name the resource of nodes that says it: without types gpu-type= cannot be asked for",
        )
    known = patient.resources
    if known is not None and not known.has("resource", resource):
        return fault(
            name,
            f"[pbs] type_resource is {resource}, and there is no such resource",
            f"qmgr -c 'create resource {resource} type=string,flag=h'; or take it from pliant.toml",
        )
    untyped = [row.name for row in nodes if not row.has.get(resource.lower())]
    if untyped:
        more = f" and {len(untyped) - 1} more nodes say" if untyped[1:] else " says"
        return advice(
            name,
            f"{untyped[0]}{more} nothing of {resource}",
            f"qmgr -c 'set node {untyped[0]} resources_available.{resource} = a100'",
        )
    return ok(name, ", ".join(sorted({row.has[resource.lower()] for row in nodes})))
