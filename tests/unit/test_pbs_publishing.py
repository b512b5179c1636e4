"""What the hooks of PBS are told after each cycle."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from pbs_recorded import NAMES, NOW_S, Recorded

from pliant.cycle import cycle, leftover
from pliant.daemon.config import Config
from pliant.daemon.publishing import MOST_SORTS, Publisher, state_of
from pliant.daemon.seen import Seen
from pliant.filter import Inventory
from pliant.filter.pbs.state import Ground, Room, State, read_state
from pliant.model import Mode
from pliant.plan import Plan
from pliant.policies import live

ENFORCED = Config(partitions={"default": Mode.ENFORCE, "debug": Mode.OFF})


def seen(site: Recorded) -> Seen:
    snapshot, policy = site.pbs().observe(), live("moldable-equipartition", {})
    plan = cycle(snapshot, policy, 50)
    inventory = Inventory.of(snapshot)
    return Seen(snapshot, plan, plan, leftover(snapshot, plan), inventory, policy, 0.0, 0.1, 0.1)


def told(site: Recorded, *, paused: bool = False) -> State:
    return state_of(seen(site), ENFORCED, paused=paused, names=NAMES)


def test_the_hooks_learn_what_a_queue_has_and_what_is_left_of_it() -> None:
    site = Recorded()
    site.answers["jobs"]["Jobs"] = {}
    said = told(site)
    kinds = (Room(2, 4, 16, 65536, "a100"), Room(1, 4, 16, 65536, "v100"))
    rooms = (
        Room(1, 1, 12, 61440, "a100"),
        Room(1, 0, 12, 65536, "a100"),
        Room(1, 0, 12, 65536, "v100"),
    )
    assert said.ground("") == Ground(kinds, rooms)
    assert (said.written_s, said.default_queue, said.type_resource) == (
        *(NOW_S, "workq"),
        "gpu_model",
    )
    assert (said.mode_of(""), said.mode_of("debug")) == (Mode.ENFORCE, Mode.OFF)


def test_of_many_sorts_of_nodes_the_hook_is_told_those_with_the_most_gpus() -> None:
    found = seen(Recorded())
    node = found.snapshot.nodes[0]
    pool = node.pools[0]
    nodes = tuple(
        replace(node, name=f"n{n}", free_cpus=n, pools=(replace(pool, total=n, free=n),))
        for n in range(MOST_SORTS + 20)
    )
    (queue, *_) = found.snapshot.partitions
    queue = replace(queue, nodes=tuple(one.name for one in nodes))
    snapshot = replace(found.snapshot, nodes=nodes, partitions=(queue,), waiting=())
    many = replace(found, snapshot=snapshot, plan=Plan())
    said = state_of(many, ENFORCED, paused=False, names=NAMES).ground(queue.name)
    assert [room.gpus for room in said.rooms] == [*range(MOST_SORTS + 19, 19, -1)]
    assert [room.gpus for room in said.kinds] == [*range(MOST_SORTS + 19, 19, -1)]


def test_what_waiting_jobs_can_start_with_is_not_given_twice_nor_what_is_kept_for_the_first() -> (
    None
):
    site = Recorded()
    site.job("36").update(job_state="Q", Hold_Types="n", comment="Not Running: Not enough")
    site.job("36")["queue_rank"] = 1
    left = told(site).ground("workq")
    assert [room.gpus for room in left.rooms] == [0, 0, 0]  # job 36 can start with one GPU
    assert any(room.until_s > NOW_S for room in left.rooms)


def test_the_hooks_learn_when_a_reservation_begins() -> None:
    site = Recorded()
    site.answers["jobs"]["Jobs"] = {}
    site.reserve()
    rooms = told(site).ground("").rooms
    assert [(room.gpus, room.until_s - NOW_S) for room in rooms if room.until_s] == [(1, 12148.0)]
    later = Recorded()  # when it has ended, and is still told of
    later.answers["jobs"]["Jobs"] = {}
    later.reserve()
    later.reserved = later.reserved.replace("Nov 23", "Nov 22")
    assert {room.until_s for room in told(later).ground("").rooms} == {0.0}


def test_a_node_that_is_down_has_no_room() -> None:
    site = Recorded()
    site.answers["nodes"]["nodes"]["gn1"]["state"] = "down"
    assert sum(room.nodes for room in told(site).ground("workq").rooms) == 2


def test_paused_nothing_is_enforced() -> None:
    said = told(Recorded(), paused=True)
    assert (said.mode_of(""), said.mode_of("debug")) == (Mode.OBSERVE, Mode.OFF)


def test_the_file_is_readable_by_all_and_gone_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run" / "state.json"
    publisher = Publisher(path, NAMES)
    publisher.publish(seen(Recorded()), ENFORCED, paused=False)
    assert path.stat().st_mode & 0o777 == 0o644
    assert read_state(path.read_text()) == told(Recorded())
    assert [one.name for one in path.parent.iterdir()] == ["state.json"]
    publisher.end()
    publisher.end()
    assert list(path.parent.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    publisher = Publisher(tmp_path / "file" / "state.json", NAMES)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            publisher.publish(seen(Recorded()), ENFORCED, paused=False)
    assert len(caplog.records) == 1
    assert "the hooks of PBS change nothing" in caplog.text
