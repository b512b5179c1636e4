"""Vnodes of single GPUs, GPUs in shares, and types of GPUs on a running PBS (see pbs_fixtures.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from pbs_helpers import SHARE, TYPE, Server, needs_server, until

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

HOOK = "pliant_test_vnodes"
VNODES = """\
import pbs
event = pbs.event()
if pbs.get_local_nodename().partition(".")[0] == "{host}".partition(".")[0]:
    for gpu in range(4):
        name = "{host}-gpu%d" % gpu
        has = {{"ngpus": 1, "ncpus": 0}}
        if gpu == 3:
            has = {{"{share}": 1.0, "ncpus": 4, "mem": pbs.size("4gb")}}
        vnode = pbs.vnode(name)
        for resource, value in has.items():
            vnode.resources_available[resource] = value
        vnode.resources_available["{type}"] = "a100"
        event.vnode_list[name] = vnode
event.accept()
"""
"""A hook that says to the server which vnodes its host has. Only a host can say so of itself."""


@pytest.fixture
def host(server: Server) -> Iterator[str]:
    """A node of which each GPU is a vnode: three whole ones, one in shares; and types of GPUs."""
    created = server.run("qmgr", "-c", "print resource")
    missing = [name for name in (SHARE, TYPE) if f"create resource {name}\n" not in created]
    if missing:
        pytest.skip(f"the server has no resource {', '.join(missing)}")
    before = server.nodes()
    name, *others = before
    has = before[name]["resources_available"]
    vnodes = [f"{name}-gpu{gpu}" for gpu in range(4)]
    here = "resources_available"
    script = server.directory / "vnodes.py"
    script.write_text(VNODES.format(host=name, share=SHARE, type=TYPE))
    try:
        server.tell(f"create hook {HOOK}", f"set hook {HOOK} event = exechost_periodic")
        server.tell(f"set hook {HOOK} freq = 5")
        server.tell(f"import hook {HOOK} application/x-python default {script}")
        server.tell(f"set node {name} {here}.ngpus = 0", f"set node {name} {here}.{TYPE} = a100")
        server.tell(*(f"set node {other} {here}.{TYPE} = v100" for other in others))
        until(lambda: all(states(server).get(vnode) == "free" for vnode in vnodes))
        yield name
    finally:
        server.empty()
        server.run("qmgr", "-c", f"delete hook {HOOK}", check=False)
        time.sleep(6)  # so long it may say so again
        for vnode in vnodes:
            server.run("qmgr", "-c", f"delete node {vnode}", check=False)
        server.tell(f"set node {name} {here}.ngpus = {has['ngpus']}")
        server.run("qmgr", "-c", f"unset node {name} in_multivnode_host", check=False)
        for other in (name, *others):
            server.run("qmgr", "-c", f"unset node {other} {here}.{TYPE}", check=False)


def states(server: Server) -> dict[str, str]:
    return {name: str(one["state"]) for name, one in server.nodes().items()}


def whole(server: Server, host: str, but: int = 0) -> list[str]:
    """Take the whole GPUs of all nodes, ``but`` so many on the divided one."""
    jobs = [server.takes(name, 4) for name in server.nodes() if not name.startswith(host)]
    called = server.nodes()[host]["resources_available"]["host"]
    asked = f"select=1:ncpus=1:ngpus={3 - but}:host={called}"
    jobs.append(server.submit("sleep 600", "-l", asked, "-l", "walltime=20:00"))
    server.run_all(*jobs)
    server.until_seen()
    return jobs


SAYS = "echo $PLIANT_SHAPE $PLIANT_SHARE $CUDA_VISIBLE_DEVICES > $HOME/said-$PBS_JOBID; sleep 600"


def said(server: Server, job_id: str) -> list[str]:
    """What a job found in its environment."""
    path = server.home / f"said-{job_id}"
    return str(until(lambda: path.exists() and path.read_text())).split()


def asks(server: Server, select: str, moldable: str) -> str:
    words = ("-l", f"select={select}", "-l", f"moldable={moldable}", "-l", "walltime=10:00")
    return server.submit(SAYS, *words)


def test_a_job_starts_with_a_part_of_a_gpu_where_no_whole_one_is_free(
    server: Server, host: str
) -> None:
    whole(server, host)
    one = asks(server, "1:ncpus=1:ngpus=1", "gpus=1/4:1/2:1")
    server.run_all(one)
    assert server.job(one)["Resource_List"]["select"] == f"1:ncpus=1:ngpus=0:{SHARE}=0.5"
    assert server.job(one)["exec_vnode"].startswith(f"({host}-gpu3:")
    assert said(server, one) == ["1/2", "2", "3"]
    server.until_seen()
    other = asks(server, "1:ncpus=1:ngpus=1", "gpus=1/4:1/3:1")
    server.run_all(other)
    assert said(server, other) == ["1/3", "3", "3"]
    last = asks(server, "1:ncpus=1:ngpus=1", "gpus=1/4:1")
    server.until_seen()
    assert server.job(last)["job_state"] == "Q"  # a sixth is left
    server.run("qdel", one)
    server.run_all(last)
    assert said(server, last) == ["1/4", "4", "3"]


def test_a_part_that_was_asked_for_becomes_a_whole_gpu_where_one_is_free(
    server: Server, host: str
) -> None:
    whole(server, host, but=2)
    full = server.submit("sleep 600", "-l", f"select=1:ncpus=1:{SHARE}=0.9")
    server.run_all(full)
    server.until_seen()
    job_id = asks(server, f"1:ncpus=1:{SHARE}=0.5", "gpus=1/2:1:2")
    server.run_all(job_id)
    assert server.job(job_id)["Resource_List"]["select"] == "1:ncpus=1:ngpus=2"
    shape, share, devices = said(server, job_id)
    assert (shape, share) == ("2", "1")
    assert len(set(devices.split(",")) & {"0", "1", "2"}) == 2


def test_whole_gpus_are_never_those_in_shares(server: Server, host: str) -> None:
    whole(server, host)
    job_id = asks(server, "1:ncpus=1:ngpus=1", "gpus=1:2")
    server.until_seen()
    assert server.job(job_id)["job_state"] == "Q"


def test_a_gpu_type_is_chosen_where_one_is_free(server: Server, host: str) -> None:
    fillers = whole(server, host)
    job_id = asks(server, f"1:ncpus=1:ngpus=2:{TYPE}=a100", "gpus=1:2:4+gpu-type=a100:v100")
    server.until_seen()
    assert server.job(job_id)["job_state"] == "Q"
    server.run("qdel", fillers[0])
    server.run_all(job_id)
    assert server.job(job_id)["Resource_List"]["select"] == f"1:ncpus=1:ngpus=4:{TYPE}=v100"
    assert said(server, job_id)[0] == "4@v100"


def test_without_pliantd_parts_of_gpus_are_had_as_they_were_asked_for(
    server: Server, host: str
) -> None:
    whole(server, host)
    server.stop_pliantd(kill=True)
    try:
        job_id = asks(server, f"1:ncpus=1:{SHARE}=0.25", "gpus=1/4:1/2:1")
        server.run_all(job_id)
        assert server.job(job_id)["Resource_List"]["select"] == f"1:ncpus=1:{SHARE}=0.25"
        assert said(server, job_id) == ["1/4", "4", "3"]
    finally:
        server.start_pliantd()


def test_a_job_that_pliantd_left_waiting_for_a_part_starts_by_itself(
    server: Server, host: str
) -> None:
    whole(server, host)
    full = server.submit("sleep 600", "-l", f"select=1:ncpus=1:{SHARE}=0.9")
    server.run_all(full)
    job_id = asks(server, f"1:ncpus=1:{SHARE}=0.5", "gpus=1/2:1")
    server.until_seen()
    server.stop_pliantd(kill=True)
    try:
        server.run("qdel", full)
        server.run_all(job_id)
        assert said(server, job_id) == ["1/2", "2", "3"]
    finally:
        server.start_pliantd()
