"""What pliantd takes of monitors' reports, and what it refuses and counts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import build
import pytest
from msgspec.structs import replace as altered

from fake_door import stays
from pliant.daemon import answers as a
from pliant.daemon.cycling import Cycling
from pliant.daemon.held import GAP_S, Idle, held
from pliant.daemon.monitors import MOST_KEPT, Monitors
from pliant.daemon.munge import BadCredential, Munge, Proof
from pliant.daemon.munge_door import MungeDoor
from pliant.daemon.origins import KNOWN_S, Origins
from pliant.daemon.rights import Asker
from pliant.daemon.verbs import Verbs
from pliant.daemon.watched import MonitorRow, MonitorsRow, SpeedRow
from pliant.errors import PliantError
from pliant.model import Snapshot
from pliant.wire import CHALLENGE, Message, decode, encode
from pliant.wire import monitor as wire
from pliant.wire.monitor import Report, ReportAnswer, Window

START, ANOTHER = "0" * 32, "f" * 32
ADDRESSES = {"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "127.0.1.1"}
LOOK_S = 5000.0


def window(job: str = "7", end_s: float = 4990.0, value: float = 0.5) -> Window:
    return Window(job, end_s - 10, end_s, "cpu", value, "cpu-s/s", 10.0)


def report(*windows: Window, number: int = 1, node: str = "n1", start: str = START) -> Report:
    return Report(node, start, number, 5000.0, windows or (window(),))


def looked(at_s: float = LOOK_S) -> Snapshot:
    """Nodes n1 to n4; 7 runs on n1 and n2, a task that squeue calls 8_1 on n2."""
    nodes = [build.node(f"n{n}") for n in range(1, 5)]
    jobs = [
        build.running(7, "2x1", "n1 n2", 9000),
        replace(build.running(8, "1", "n2", 9000), id="8_1", number="9"),
    ]
    return replace(build.snapshot(nodes, [], jobs), now_s=at_s)


@dataclass
class Site:
    """A pliantd that has looked at a cluster."""

    now_s: float = 5001.0
    look: Snapshot | None = field(default_factory=looked)
    standing_by: str = ""
    looked_up: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=lambda: dict(ADDRESSES))
    monitors: Monitors = field(init=False)

    def __post_init__(self) -> None:
        self.monitors = Monitors(
            lambda: self.look,
            lambda: self.now_s,
            Origins(lambda: self.now_s, self._address),
            lambda: self.standing_by,
        )

    def _address(self, name: str) -> frozenset[str]:
        self.looked_up.append(name)
        if name not in self.names:
            raise socket.gaierror
        return frozenset({self.names[name]})

    def tell(self, said: Report, uid: int = 0, host: str = "10.0.0.1") -> ReportAnswer | str:
        return self.tell_fields(dict(wire.request(said).fields), uid, host)

    def tell_fields(
        self, fields: dict[str, str], uid: int = 0, host: str = "10.0.0.1"
    ) -> ReportAnswer | str:
        async def run() -> ReportAnswer:
            return await self.monitors.answer(fields, Proof(uid, b"", host))

        try:
            return asyncio.run(run())
        except PliantError as error:
            return str(error)

    @property
    def refused(self) -> dict[str, int]:
        return dict(self.monitors.row(with_nodes=False).refused)

    def ends(self, job: str) -> dict[str, list[float]]:
        return {node: [m.end_s for m in kept] for node, kept in self.monitors.of(job).items()}


@pytest.fixture
def site() -> Site:
    return Site()


TAKEN = ReportAnswer("taken")


def test_a_report_is_kept_by_job_and_node_on_pliantds_clock(site: Site) -> None:
    assert site.tell(report(window("7", 4990.0), window("7", 5000.0))) == TAKEN
    assert site.tell(report(window("9", 4980.0), node="n2"), host="10.0.0.2") == TAKEN
    assert site.ends("7") == {"n1": [4991.0, 5001.0]}
    assert site.ends("8_1") == {"n2": [4981.0]}
    assert site.monitors.row(with_nodes=True) == MonitorsRow(
        nodes=2,
        reports=2,
        windows=3,
        last=(
            MonitorRow("n1", 5001.0, (SpeedRow("7", "cpu", 0.5, "cpu-s/s", 5001.0),)),
            MonitorRow("n2", 5001.0, (SpeedRow("9", "cpu", 0.5, "cpu-s/s", 4981.0),)),
        ),
    )
    assert site.monitors.row(with_nodes=False).last == ()


# GPUs


GPUS = tuple(wire.NodeGpu(f"GPU-{n}", n, 0.5, 100, 80_000, 1) for n in range(4))


def on(at_s: float, *gpus: int, number: int, **fields: Any) -> Report:
    """Job 7, which holds one of n1's four GPUs, is on these at ``at_s``; so the node's clock."""
    uses = tuple(wire.GpuUse(f"GPU-{n}", 100, 0.5) for n in gpus)
    seen = altered(window("7", at_s), gpus=uses, all_gpus=fields.pop("all_gpus", True))
    return Report("n1", START, number, at_s, (seen,), fields.pop("gpus", GPUS), at_s)


def idle_since(site: Site, *said: Report) -> tuple[float, ...]:
    """Tell these; return since when GPUs of job 7 have been idle."""
    for each in said:
        site.now_s = each.now_s
        assert site.tell(each) == TAKEN
    (row,) = site.monitors.nodes()["n1"].speeds
    return row.idle_since_s


def test_a_nodes_gpus_are_kept_as_they_were_seen_last(site: Site) -> None:
    site.now_s = 5061.0
    said = replace_now(on(5000.0, 0, number=1), 5060.0)
    assert site.tell(said) == TAKEN
    row = site.monitors.nodes()["n1"]
    assert (row.heard_s, row.seen_s, row.gpus) == (5061.0, 5001.0, GPUS)
    assert site.monitors.gpu_mib() == {"n1": 80_000}
    assert row.speeds[0].gpus == (wire.GpuUse("GPU-0", 100, 0.5),)
    part = Report("n1", START, 2, 5070.0, (window("7", 5070.0),))  # one of several, not the last
    assert site.tell(part) == TAKEN
    assert site.monitors.nodes()["n1"].gpus == GPUS
    gone = Report("n1", START, 3, 5070.0, (), (), 5070.0)  # the driver has been unloaded
    assert site.tell(gone) == TAKEN
    assert site.monitors.nodes()["n1"].gpus == ()


def test_a_gpu_that_a_job_holds_and_is_not_on_is_idle_since_the_first_look(site: Site) -> None:
    assert idle_since(site, on(5000.0, number=1), on(5060.0, number=2)) == (5000.0,)
    assert idle_since(site, on(5120.0, 3, number=3)) == ()
    assert idle_since(site, on(5180.0, number=4)) == (5180.0,)


def test_what_cannot_be_told_is_not_idle(site: Site) -> None:
    unknowns: list[dict[str, Any]] = [{"all_gpus": False}, {"gpus": GPUS[:3]}]
    for number, unknown in enumerate(unknowns, 1):
        assert idle_since(site, on(5000.0 + number, number=number, **unknown)) == ()
    site.look = looked()
    assert site.look is not None
    fewer = replace(site.look.nodes[0], pools=(replace(site.look.nodes[0].pools[0], free=4),))
    site.look = replace(site.look, nodes=[fewer, *site.look.nodes[1:]])  # in use by half a job
    assert idle_since(site, on(5010.0, number=3)) == ()


def test_the_gpus_of_an_earlier_run_are_none_of_this_run(site: Site) -> None:
    assert idle_since(site, on(5000.0, number=1)) == (5000.0,)
    look = looked()
    again = [replace(job, start_s=5030.0) for job in look.running]
    site.look = replace(look, running=again)
    assert idle_since(site, on(5060.0, number=2)) == (5060.0,)
    elsewhere = [replace(job, start_s=5070.0, nodes=("n3",)) for job in look.running]
    site.look = replace(look, running=elsewhere)
    site.now_s = 5100.0
    assert site.tell(Report("n1", START, 3, 5100.0, (), (), 5100.0)) == TAKEN
    assert site.monitors.nodes()["n1"].speeds == ()


def test_so_many_are_idle_since_there_were_so_many() -> None:
    now = Idle()
    for idle, at_s in ((1, 0.0), (3, 60.0), (2, 120.0), (4, 180.0)):
        now = now.seen(idle, at_s)
    assert now == Idle((0.0, 60.0, 180.0, 180.0), 180.0)
    assert now.seen(0, 100.0) == now  # it comes late
    assert now.seen(2, 200.0 + GAP_S) == Idle((200.0 + GAP_S,) * 2, 200.0 + GAP_S)
    assert now.seen(0, 200.0) == Idle((), 200.0)


def test_whole_gpus_are_held_where_all_of_a_nodes_are_accounted_for() -> None:
    nodes = [build.node("n1"), build.node("n2"), build.node("n3", shards=4, parts=(3,))]
    jobs = [
        build.running(1, "2x2", "n1 n2", 9000),
        build.running(2, "1", "n2", 9000),
        build.running(3, "1x0@cpu", "n1", 9000),
        build.running(4, "2", "n3", 9000),
    ]
    seen = build.snapshot(nodes, [], jobs)
    all_held = {("1", "n1"): 2, ("1", "n2"): 2, ("2", "n2"): 1, ("4", "n3"): 2}
    assert held(seen) == all_held
    uneven = replace(seen.nodes[1].pools[0], free=2)  # job 1 has one there, not two
    seen = replace(seen, nodes=[seen.nodes[0], replace(seen.nodes[1], pools=(uneven,))])
    assert held(seen) == {("1", "n1"): 2}


@pytest.mark.parametrize("skew_s", [-4000.0, 0.0, 7200.0, 1e9])
def test_a_nodes_clock_may_be_hours_off(site: Site, skew_s: float) -> None:
    late = Window("7", 4930.0 + skew_s, 4940.0 + skew_s, "cpu", 0.5, "cpu-s/s", 10.0)
    assert site.tell(Report("n1", START, 1, 5000.0 + skew_s, (late,))) == TAKEN
    assert site.ends("7") == {"n1": [4941.0]}


@pytest.mark.parametrize("uid", [1, 1000, 65534])
def test_a_user_is_refused_whatever_he_sends(site: Site, uid: int) -> None:
    for fields in (dict(wire.request(report()).fields), {"v": "1", "report": "!"}):
        assert site.tell_fields(fields, uid) == "only root's monitor of a node may report"
    assert site.refused == {"not root": 2}
    assert site.ends("7") == {}


def test_a_report_from_another_host_is_refused(site: Site) -> None:
    assert site.tell(report(), host="10.0.0.2") == ReportAnswer(
        "refused",
        "n1: the report was made at 10.0.0.2, which is no address of this node's name: "
        "munged --origin sets what its host is known by",
    )
    assert site.refused == {"foreign host": 1}
    assert site.ends("7") == {}


@pytest.mark.parametrize(
    ("node", "host"),
    [
        ("n1", "127.0.1.1"),  # munged's host has loopback for its own name
        ("n1", ""),
        ("n3", "10.0.0.9"),  # the node's name is loopback here
        ("n4", "10.0.0.9"),  # its name is not known
    ],
)
def test_where_no_address_tells_the_host_root_is_believed(site: Site, node: str, host: str) -> None:
    answer = site.tell(report(node=node), host=host)
    assert isinstance(answer, ReportAnswer)
    assert answer.verdict == "taken"
    assert site.refused.get("foreign host") is None


def test_a_name_is_looked_up_once_in_a_while(site: Site) -> None:
    for number in range(1, 4):
        site.tell(report(number=number))
    site.now_s += KNOWN_S
    site.tell(report(number=4))
    assert site.looked_up == ["n1", "n1"]


def test_a_name_server_that_hangs_keeps_no_report(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.daemon.origins.LIMIT_S", 0.05)
    hangs = asyncio.Event

    async def run() -> bool:
        go = hangs()
        running = asyncio.get_running_loop()

        def look(_name: str) -> frozenset[str]:
            asyncio.run_coroutine_threadsafe(go.wait(), running).result(20)
            return frozenset()

        foreign = await Origins(lambda: 0.0, look).is_foreign("n1", "10.0.0.2")
        go.set()
        return foreign

    assert asyncio.run(run()) is False


def test_a_node_that_is_none_is_refused_and_not_looked_up(site: Site) -> None:
    assert site.tell(report(node="n9")) == ReportAnswer(
        "refused", "n9: no node of this name is known"
    )
    assert (site.refused, site.looked_up) == ({"unknown node": 1}, [])


def test_windows_of_jobs_that_do_not_run_there_are_left_out_and_counted(site: Site) -> None:
    mixed = report(window("7"), window("9"), window("4711"))
    assert site.tell(mixed) == ReportAnswer("taken", "job 9 does not run on n1", 2)
    assert site.ends("7") == {"n1": [4991.0]}
    assert site.ends("8_1") == {}
    assert site.refused == {"job not there": 2}


def test_a_job_that_began_after_the_last_look_is_asked_for_again(site: Site) -> None:
    young = report(window("7"), window("10", 4999.5))
    assert site.tell(young) == ReportAnswer("again", "job 10 was not seen yet")
    assert (site.ends("7"), site.refused) == ({}, {})
    later = looked(5010.0)
    job = replace(build.running(10, "1", "n1", 9000), start_s=4980.0)
    site.look = replace(later, running=(*later.running, job))
    site.now_s = 5011.0
    assert site.tell(replace_now(young, 5010.0)) == TAKEN
    assert site.ends("10") == {"n1": [5000.5]}


def replace_now(said: Report, now_s: float) -> Report:
    return altered(said, now_s=now_s)


def test_a_window_of_a_jobs_earlier_run_is_none_of_this_run(site: Site) -> None:
    look = looked()
    site.look = replace(look, running=(replace(look.running[0], start_s=4995.0),))
    answer = site.tell(report(window("7", 4990.0), window("7", 5000.0)))
    assert answer == ReportAnswer("taken", "job 7 does not run on n1", 1)
    assert site.ends("7") == {"n1": [5001.0]}


def test_what_comes_again_is_acknowledged_and_not_counted_again(site: Site) -> None:
    assert [site.tell(report(number=number)) for number in (1, 2, 2, 2)] == [TAKEN] * 4
    row = site.monitors.row(with_nodes=False)
    assert (row.reports, row.windows, row.repeated, row.missing) == (2, 2, 2, 0)


def test_an_older_number_is_refused(site: Site) -> None:
    site.tell(report(number=5))
    assert site.tell(report(number=4)) == ReportAnswer("refused", "n1: report 4 comes after 5")
    assert site.refused == {"out of order": 1}


def test_reports_that_never_came_are_counted(site: Site) -> None:
    for number in (7, 8, 12):
        site.tell(report(number=number))
    assert site.monitors.row(with_nodes=False).missing == 3


def test_a_monitor_that_was_started_anew_sends_what_it_had_kept_before(site: Site) -> None:
    told = ((START, 8), (ANOTHER, 1), (ANOTHER, 2), (START, 8))
    assert [site.tell(report(number=n, start=start)) for start, n in told] == [TAKEN] * 4
    assert site.monitors.row(with_nodes=False).repeated == 1


def test_few_starts_of_a_node_and_few_windows_of_a_job_are_remembered(site: Site) -> None:
    for number in range(1, 4 * MOST_KEPT):
        site.tell(report(number=number, start=f"{number:032x}"))
    assert len(site.monitors._nodes["n1"].numbers) == 4
    assert len(site.ends("7")["n1"]) == MOST_KEPT


def test_a_job_that_ends_is_forgotten(site: Site) -> None:
    site.tell(report())
    site.tell(report(window("9"), node="n2"), host="10.0.0.2")
    look = looked(5005.0)
    site.look = replace(look, running=look.running[1:])
    site.tell(report(number=2))
    assert (site.ends("7"), site.ends("8_1")) == ({}, {"n2": [4991.0]})


def test_before_the_first_look_and_while_standing_by_reports_stay_on_their_node(site: Site) -> None:
    site.standing_by = "ctl2 acts"
    assert site.tell(report()) == ReportAnswer("again", "ctl2 acts")
    site.standing_by, site.look = "", None
    assert site.tell(report()) == ReportAnswer("again", "the first look is not done yet")
    site.look = looked()
    assert site.tell(report()) == TAKEN


@pytest.mark.parametrize("fields", [{}, {"v": "1", "report": "e30"}, {"v": "1", "report": "\0"}])
def test_what_is_malformed_is_refused_and_counted(site: Site, fields: dict[str, str]) -> None:
    answer = site.tell_fields(fields)
    assert isinstance(answer, ReportAnswer)
    assert (answer.verdict, site.refused) == ("refused", {"malformed": 1})
    assert answer.why.startswith("report: ")


# At the door


class Credentials(Munge):
    """Believes credentials once: UID HOST REQUEST; none that begins with a word of munge's."""

    used: set[bytes]

    async def prove(self, credential: bytes) -> Proof:
        self.used = getattr(self, "used", set())
        if credential in self.used:
            raise BadCredential("replayed", "munge refused the credential: it was used before")
        self.used.add(credential)
        if credential.startswith(b"forged"):
            raise BadCredential("forged", "munge refused the credential: 'Invalid credential'")
        uid, host, payload = credential.split(b" ", 2)
        return Proof(int(uid), payload, host.decode())


def nobody(_uid: int) -> Asker:
    raise AssertionError("a report needs no names of users, which may take their time")


@pytest.fixture
def door(site: Site) -> MungeDoor:
    verbs = Verbs(cast("Cycling", None), lambda: None, lambda: 0.0, tuple, int, 0.0)  # not asked
    return MungeDoor(Credentials(""), verbs, nobody, None, site.monitors)


def at_the_door(door: MungeDoor, *lines: Callable[[str], bytes]) -> list[Message]:
    """Say lines on one connection, each made with its challenge."""

    async def run() -> list[Message]:
        answer = door.begin()
        challenge = decode(await answer(b"hello", stays)).fields[CHALLENGE]
        return [decode(await answer(line(challenge), stays)) for line in lines]

    return asyncio.run(run())


def sending(said: Report, who: bytes = b"0 10.0.0.1") -> Callable[[str], bytes]:
    def line(challenge: str) -> bytes:
        request = wire.request(said)
        fields = {**request.fields, CHALLENGE: challenge}
        return b"munge " + who + b" " + encode(Message(request.word, fields))

    return line


def test_a_replayed_credential_is_refused_at_the_door(site: Site, door: MungeDoor) -> None:
    made: list[bytes] = []

    def first(challenge: str) -> bytes:
        made.append(sending(report())(challenge))
        return made[0]

    taken, replayed = at_the_door(door, first, lambda _: made[0])
    assert a.from_json(ReportAnswer, taken.fields["json"]) == TAKEN
    assert replayed.message == "munge refused the credential: it was used before"
    (elsewhere,) = at_the_door(door, lambda _: made[0] + b"&more=1")
    assert elsewhere.message == "this munge credential was made for another connection"
    assert door.refused == {"replayed": 1, "for another connection": 1}
    assert site.monitors.row(with_nodes=False).reports == 1


def test_a_forged_credential_is_refused_at_the_door(site: Site, door: MungeDoor) -> None:
    forged = [sending(report(), who) for who in (b"forged 0", b"forged 1")]
    assert [answer.message for answer in at_the_door(door, *forged, sending(report()))] == [
        "munge refused the credential: 'Invalid credential'",
        "munge refused the credential: 'Invalid credential'",
        "",
    ]
    assert door.refused == {"forged": 2}
    assert (site.refused, site.monitors.row(with_nodes=False).reports) == ({}, 1)


def test_a_forged_uid_is_refused_at_the_door(site: Site, door: MungeDoor) -> None:
    (answer,) = at_the_door(door, sending(report(), b"1001 10.0.0.1"))
    assert answer == Message("no", {"message": "only root's monitor of a node may report"})
    assert (site.refused, door.refused) == ({"not root": 1}, {})


def test_a_thousand_monitors_at_once_are_no_crowd(site: Site, door: MungeDoor) -> None:
    nodes = [build.node(f"m{n}") for n in range(1000)]
    names = tuple(node.name for node in nodes)
    job = build.running(7, "1000x1", " ".join(names), 9000)
    site.look = replace(build.snapshot(nodes, [], []), now_s=LOOK_S, running=(job,))

    async def one(name: str) -> Message:
        answer = door.begin()
        hello = decode(await answer(b"hello", stays))
        line = sending(report(node=name))(hello.fields[CHALLENGE])
        return decode(await answer(line, stays))

    async def run() -> list[Message]:
        return await asyncio.gather(*map(one, names))

    assert {answer.word for answer in asyncio.run(run())} == {"ok"}
    assert site.monitors.row(with_nodes=False).nodes == 1000
