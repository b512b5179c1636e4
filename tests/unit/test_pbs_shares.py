"""One vnode for each GPU on PBS, and GPUs in shares: what policies see, what qalter is told."""

from __future__ import annotations

from typing import Any

import pytest
from pbs_recorded import NAMES, NOW_S, Recorded
from pbs_site import Site as Hooks

from pliant.batch import Change
from pliant.batch.pbs.vnodes import SHARDS
from pliant.cycle import cycle
from pliant.daemon.gpu_memory import GpuMemory
from pliant.errors import Refused
from pliant.filter.fields import Fixed
from pliant.filter.pbs.shares import read_share, share_text
from pliant.filter.pbs.state import State, read_state, state_text
from pliant.filter.pbs.written import read_written
from pliant.grammar import parse_shape, token_text
from pliant.grammar.options import parse_option
from pliant.model import Job, Node, Pool, Request, Shape, Snapshot, Spec
from pliant.policies import live


def vnode(host: str, has: dict[str, Any], given: dict[str, Any], state: str = "free") -> Any:
    """What pbsnodes says of one."""
    has = {"host": host, "gpu_model": "a100", **has}
    return {"state": state, "resources_available": has, "resources_assigned": given}


def divided(site: Recorded, shares: float = 0.0) -> dict[str, Any]:
    """Let gn1 have three vnodes of one GPU each, and one with a GPU in shares."""
    nodes: dict[str, Any] = site.answers["nodes"]["nodes"]
    nodes["gn1"] = vnode("gn1", {"ncpus": 12, "mem": "48gb"}, {"ncpus": 2, "mem": "4gb"})
    for gpu in range(3):
        given = {"ngpus": 1} if gpu == 1 else {}
        nodes[f"gn1-gpu{gpu}"] = vnode("gn1", {"ngpus": 1}, given)
    nodes["gn1-gpu3"] = vnode(
        "gn1",
        {"ncpus": 4, "mem": "16gb", "gpu_share": "1.0", "gpu_mem": "40gb"},
        {"gpu_share": shares, "ncpus": 1} if shares else {},
    )
    return nodes


@pytest.fixture
def site() -> Recorded:
    site = Recorded()
    divided(site)
    return site


def job(snapshot: Snapshot, job_id: str) -> Job:
    return next(one for one in (*snapshot.waiting, *snapshot.running) if one.id == job_id)


def asks(site: Recorded, select: str, moldable: str, own: Shape, job_id: str = "32") -> None:
    """Let a waiting job ask for something else."""
    request = parse_option(Request(), "moldable", moldable)
    asked = {
        **site.job(job_id)["Resource_List"],
        "select": select,
        "moldable": moldable,
        "pliant": token_text(Spec(request, own, None, read_written({"select": select}).footprint)),
    }
    asked.pop("ngpus")
    site.job(job_id)["Resource_List"] = asked


def test_the_vnodes_of_a_host_are_one_node_and_a_gpu_in_shares_its_own(site: Recorded) -> None:
    nodes = {node.name: node for node in site.pbs().observe().nodes}
    assert nodes["gn1"] == Node("gn1", 12, 10, 49152, 45056, (Pool("a100", 3, 2),))
    part = Pool("a100", 1, 0, SHARDS, (SHARDS,), told_mib=40960, in_parts_alone=True)
    assert nodes["gn1-gpu3"] == Node("gn1-gpu3", 4, 4, 16384, 16384, (part,))
    assert list(nodes) == ["gn1", "gn2", "gn3", "gn1-gpu3"]
    assert site.pbs().observe().partitions[0].nodes == tuple(nodes)


@pytest.mark.parametrize(
    ("lent", "left"), [(0.25, (3780,)), (0.6666, (1680,)), (0.9999, ()), (1.0, ()), (1.5, ())]
)
def test_what_is_left_of_a_gpu(site: Recorded, lent: float, left: tuple[int, ...]) -> None:
    divided(site, lent)
    assert site.pbs().observe().nodes[-1].pools[0].parts == left


def test_vnodes_that_are_down_give_nothing_and_take_nothing_with_them(site: Recorded) -> None:
    nodes = site.answers["nodes"]["nodes"]
    nodes["gn1-gpu0"]["state"] = "offline"
    gn1 = site.pbs().observe().nodes[0]
    assert (gn1.up, gn1.pools) == (True, (Pool("a100", 2, 1),))
    for name in ("gn1", "gn1-gpu1", "gn1-gpu2"):
        nodes[name]["state"] = "down"
    assert not site.pbs().observe().nodes[0].up


def test_gpus_of_two_types_on_one_host_are_two_pools(site: Recorded) -> None:
    site.answers["nodes"]["nodes"]["gn1-gpu2"]["resources_available"]["gpu_model"] = "v100"
    assert site.pbs().observe().nodes[0].pools == (Pool("a100", 2, 1), Pool("v100", 1, 1))


def test_jobs_are_on_the_nodes_of_their_vnodes(site: Recorded) -> None:
    running = site.job("30")
    for exec_vnode, nodes in (
        ("(gn1:ncpus=2:mem=4gb+gn1-gpu0:ngpus=1)", ("gn1",)),
        ("(gn1-gpu3:ncpus=1:gpu_share=0.25)", ("gn1-gpu3",)),
        ("(gn1-gpu3:ncpus=2+gn1-gpu0:ngpus=1)+(gn2:ncpus=2:ngpus=1)", ("gn1", "gn2")),
    ):
        running["exec_vnode"] = exec_vnode
        assert job(site.pbs().observe(), "30").nodes == nodes


# Shapes


def test_a_job_may_take_a_part_of_one_gpu(site: Recorded) -> None:
    asks(site, "1:ncpus=2:ngpus=1", "gpus=1/4:1/2:1:2", Shape(1, 1))
    seen = job(site.pbs().observe(), "32")
    assert [str(shape) for shape in seen.shapes] == ["1/4", "1/2", "1", "2"]


@pytest.mark.parametrize(
    ("select", "moldable", "left"),
    [
        ("1:ncpus=5:ngpus=1", "gpus=1/4:1", ["1"]),  # more cores than the GPU's vnode has
        ("1:ncpus=2:ngpus=1:mem=20gb", "gpus=1/4:1", ["1"]),
        ("1:ncpus=2:ngpus=1", "gpus=1/11:1", ["1"]),  # into so many parts we do not count it
    ],
)
def test_a_part_that_no_vnode_could_give_is_none(
    site: Recorded, select: str, moldable: str, left: list[str]
) -> None:
    asks(site, select, moldable, Shape(1, 1))
    assert [str(shape) for shape in job(site.pbs().observe(), "32").shapes] == left


def changed(site: Recorded, shape: str) -> str:
    pbs = site.pbs()
    seen = job(pbs.observe(), "32")
    asked = parse_shape(shape)
    (error,) = pbs.change([Change(seen, asked, seen.noted(asked))])
    assert error is None, error
    return str(site.job("32")["Resource_List"]["select"])


def test_from_whole_gpus_to_a_part_and_back(site: Recorded) -> None:
    asks(site, "1:ncpus=2:ngpus=1:mem=4096mb", "gpus=1/3:1:2", Shape(1, 1))
    assert changed(site, "1/3") == "1:ncpus=2:ngpus=0:mem=4096mb:gpu_share=0.3333"
    seen = job(site.pbs().observe(), "32")
    assert (seen.shape, seen.frozen) == (Shape(1, 1, 3), "")
    assert changed(site, "2") == "1:ncpus=2:ngpus=2:mem=4096mb"
    assert job(site.pbs().observe(), "32").frozen == ""


def test_without_such_vnodes_nothing_is_shared(site: Recorded) -> None:
    asks(site, "1:ncpus=2:ngpus=1", "gpus=1/2:1", Shape(1, 1))
    site.answers["nodes"]["nodes"].pop("gn1-gpu3")
    assert [str(shape) for shape in job(site.pbs().observe(), "32").shapes] == ["1"]


@pytest.mark.parametrize(("text", "share"), [("0.5", 2), ("0.3333", 3), (".25", 4), ("0.142", 0)])
def test_amounts_of_a_gpu(text: str, share: int) -> None:
    if not share:
        with pytest.raises(Fixed, match="is no 1/n of a GPU"):
            read_share("gpu_share", text)
    else:
        assert read_share("gpu_share", text) == share


@pytest.mark.parametrize("text", ["", "0", "1", "1.0", "-0.5", "0.00005", "nan", "inf", "1/4", "x"])
def test_what_is_no_part_of_a_gpu_keeps_its_shape(text: str) -> None:
    with pytest.raises(Fixed, match="is no 1/n of a GPU"):
        read_share("gpu_share", text)


def test_no_part_that_is_written_is_more_than_it_says() -> None:
    for share in range(2, 100):
        assert read_share("gpu_share", share_text(share)) == share
        assert round(float(share_text(share)) * 10_000) * share <= 10_000


def test_several_gpus_are_not_shared_at_once() -> None:
    for select in ("2:ncpus=1:gpu_share=0.5", "1:ngpus=1:gpu_share=0.5"):
        with pytest.raises(Fixed, match="keep the shape"):
            read_written({"select": select}, "", "gpu_share")


# Decisions


def planned(site: Recorded, job_id: str = "32") -> list[tuple[str, tuple[str, ...]]]:
    """What a cycle lets a job start as, and where."""
    seen = GpuMemory({}, dict).known(site.pbs().observe())
    plan = cycle(seen, live("moldable-equipartition", {}), 50)
    starts = [start for start in plan.starts if start.job.id == job_id]
    return [(str(start.shape), start.nodes) for start in starts]


def only(site: Recorded, *job_ids: str) -> None:
    jobs = site.answers["jobs"]["Jobs"]
    site.answers["jobs"]["Jobs"] = {name: jobs[name] for name in [f"{one}.head" for one in job_ids]}


def full(site: Recorded) -> None:
    """Let no whole GPU be free."""
    for name, node in site.answers["nodes"]["nodes"].items():
        if name != "gn1-gpu3":
            node["resources_assigned"] = {"ngpus": node["resources_available"].get("ngpus", 0)}


def test_a_job_starts_with_a_part_where_no_whole_gpu_is_free(site: Recorded) -> None:
    only(site, "32")
    full(site)
    asks(site, "1:ncpus=2:ngpus=1", "gpus=1/4:1/2:1", Shape(1, 1))
    assert planned(site) == [("1/2", ("gn1-gpu3",))]
    divided(site, 0.7)
    full(site)
    assert planned(site) == [("1/4", ("gn1-gpu3",))]


def test_a_gpu_in_shares_is_never_taken_whole(site: Recorded) -> None:
    only(site, "32")
    full(site)
    asks(site, "1:ncpus=2:ngpus=1", "gpus=1:2", Shape(1, 1))
    assert planned(site) == []


@pytest.mark.parametrize(("memory", "starts"), [("8G", "1/4"), ("12G", ""), ("10G", "1/4")])
def test_a_part_has_as_large_a_part_of_the_memory(site: Recorded, memory: str, starts: str) -> None:
    only(site, "32")
    full(site)
    moldable = f"gpus=1/4:1,gpu-mem={memory}"
    asks(site, "1:ncpus=2:ngpus=1", moldable, Shape(1, 1))
    assert [shape for shape, _ in planned(site)] == ([starts] if starts else [])


# Hooks


def test_the_hook_notes_a_part_and_leaves_it_to_pliantd(tmp_path: Any) -> None:
    hooks = Hooks(tmp_path)
    hooks.says(share_resource="gpu_share")
    select = "1:ncpus=2:gpu_share=0.25"
    seen = hooks.queuejob({"select": select, "moldable": "gpus=1/4:1"})
    assert (seen.resources["select"], seen.variables["PLIANT_SHAPE"]) == (select, "1/4")
    assert "own=1/4" in seen.token


def test_what_the_hook_is_told_can_be_read_also_where_it_says_nothing_of_shares() -> None:
    said = State(NOW_S, share_resource=NAMES.share)
    assert read_state(state_text(said)).share_resource == "gpu_share"
    without = state_text(said).replace(',"share_resource":"gpu_share"', "")
    assert read_state(without) == State(NOW_S)


def test_a_share_that_cannot_be_asked_for_is_refused(site: Recorded) -> None:
    asks(site, "1:ncpus=2:ngpus=1", "gpus=1/2:1", Shape(1, 1))
    pbs = site.pbs()
    seen = job(pbs.observe(), "32")
    site.refuses = "qalter: Unknown resource  gpu_share"
    half = Shape(1, 1, 2)
    (error,) = pbs.change([Change(seen, half, seen.noted(half))])
    assert isinstance(error, Refused)
    assert "Unknown resource" in str(error)
