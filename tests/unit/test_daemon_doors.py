"""What a bad peer can do to the doors: nothing that another one notices."""

from __future__ import annotations

import asyncio
import base64
import os
import resource
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fake_door import stays
from pliant.batch import Batch
from pliant.daemon import libmunge, sockets
from pliant.daemon.config import parse
from pliant.daemon.lines import CROWD_S, GivingWay, Limits, LineServer, most_connections, peer_uid
from pliant.daemon.munge import BadCredential, Munge, Proof
from pliant.daemon.munge_door import PREFIX
from pliant.daemon.notify import Notifier
from pliant.daemon.rights import Asker, Site
from pliant.daemon.server import Daemon, Surroundings
from pliant.errors import PliantError, Unavailable
from pliant.model import Snapshot
from pliant.store import Store

LIMITS = Limits(connections=3, line_s=0.3, lines=2, line_bytes=1000)
ROOT = Asker(0, "root", admin=True, sees_all=True)
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def upper(line: bytes, giving_way: GivingWay) -> bytes:
    if line == b"fail":
        raise ValueError("on purpose")
    if line == b"think":
        await asyncio.sleep(0.2)
    if line == b"watch":
        with giving_way():
            await asyncio.sleep(20)
    return b"" if line == b"close" else line.upper()


def with_door(test: Callable[[LineServer, Path], Awaitable[None]], path: Path) -> None:
    """Run ``test`` beside a server that answers in capitals."""

    async def run() -> None:
        lines = LineServer("test", lambda: upper, LIMITS, time.monotonic)
        door = sockets.unix_socket(path)
        server = await asyncio.start_unix_server(lines, sock=door, limit=lines.most_bytes)
        try:
            async with asyncio.timeout(20):
                await test(lines, path)
        finally:
            server.close()
            await lines.close()

    asyncio.run(run())


async def ask(path: Path, *lines: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(b"".join(lines))
        writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_its_end_is_no_fault_of_a_request_that_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(_lines: LineServer, path: Path) -> None:
        _reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"watch\n")
        await asyncio.sleep(0.1)

    with_door(test, tmp_path / "door")
    assert caplog.messages == []


def test_a_line_in_is_a_line_out(tmp_path: Path) -> None:
    async def test(_lines: LineServer, path: Path) -> None:
        assert await ask(path, b"one\n", b"two\n") == b"ONE\nTWO\n"

    with_door(test, tmp_path / "s")


@pytest.mark.parametrize(
    "garbage",
    [
        b"no newline",
        b"x" * 100_000 + b"\n",
        b"",
        b"close\n",
        b"fail\n",
    ],
)
def test_a_bad_peer_gets_no_answer_and_the_next_one_does(tmp_path: Path, garbage: bytes) -> None:
    async def test(_lines: LineServer, path: Path) -> None:
        assert await ask(path, garbage) == b""
        assert await ask(path, b"\0\xff\n") == b"\0\xff\n"

    with_door(test, tmp_path / "s")


def test_a_connection_is_closed_after_its_lines(tmp_path: Path) -> None:
    async def test(_lines: LineServer, path: Path) -> None:
        assert await ask(path, b"a\n", b"b\n", b"c\n") == b"A\nB\n"

    with_door(test, tmp_path / "s")


def test_slow_peers_are_dropped(tmp_path: Path) -> None:
    async def test(_lines: LineServer, path: Path) -> None:
        slow = [await asyncio.open_unix_connection(str(path)) for _ in range(3)]
        slow[0][1].write(b"half a li")
        assert [await reader.read() for reader, _ in slow] == [b"", b"", b""]
        assert await ask(path, b"again\n") == b"AGAIN\n"
        for _, writer in slow:
            writer.close()

    with_door(test, tmp_path / "s")


async def connect(path: Path, *lines: bytes) -> Peer:
    """Connect and say something, once the door has seen it."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.writelines(lines)
    await asyncio.sleep(0.02)
    return reader, writer


def test_whoever_says_nothing_makes_way_for_a_new_connection_the_longest_silent_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(lines: LineServer, path: Path) -> None:
        first, second, third = [await connect(path) for _ in range(3)]
        first[1].write(b"one\n")  # from now on it is the second that is silent the longest
        assert await first[0].readline() == b"ONE\n"
        assert lines.trouble == ""
        assert await ask(path, b"new\n") == b"NEW\n"
        assert await second[0].read() == b""
        first[1].write(b"two\n")
        assert await first[0].readline() == b"TWO\n"
        crowd = [await connect(path) for _ in range(6)]
        assert await ask(path, b"again\n") == b"AGAIN\n"
        assert lines.turned_away == 6
        assert lines.trouble.startswith("test is crowded: more than 3 connections at once")
        for _, writer in (first, second, third, *crowd):
            writer.close()

    with_door(test, tmp_path / "s")
    assert [r.getMessage() for r in caplog.records if r.name == "pliant.doors"] == [
        "test: 3 connections are open, 3 of them from this host: the longest silent one is closed "
        "for each new one"
    ]


def test_no_connection_is_closed_for_another_while_its_request_is_answered(tmp_path: Path) -> None:
    async def test(lines: LineServer, path: Path) -> None:
        asked = [await connect(path, b"think\n") for _ in range(3)]
        assert await ask(path, b"too many\n") == b""
        assert [await reader.readline() for reader, _ in asked] == [b"THINK\n"] * 3
        assert lines.turned_away == 1
        for _, writer in asked:
            writer.close()

    with_door(test, tmp_path / "s")


def test_a_crowd_is_told_for_a_minute() -> None:
    now_s = [1000.0]
    lines = LineServer("test", lambda: upper, LIMITS, lambda: now_s[0])
    lines._turned_away_s = 1000.0
    assert lines.trouble
    now_s[0] += CROWD_S
    assert lines.trouble == ""


def test_half_of_the_files_that_may_be_open_are_left_for_all_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    assert [most_connections(wanted) for wanted in (512, 64)] == [128, 64]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert most_connections(512) == 512


def test_the_other_end_is_known(tmp_path: Path) -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peer_uid(one) == os.getuid()


def test_the_filters_door_is_for_slurmctlds_user(tmp_path: Path) -> None:
    path = tmp_path / "run" / "pliantd.sock"
    with sockets.unix_socket(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        sockets.hand_over(path, os.getuid())
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
    with sockets.unix_socket(path):  # what a killed daemon left is no hindrance
        assert [file.name for file in path.parent.iterdir()] == ["pliantd.sock"]


def test_a_second_door_whose_host_is_no_name_is_said() -> None:
    with pytest.raises(Unavailable) as wrong:
        sockets.tcp_socket("a..b:6830")
    assert str(wrong.value) == "a..b:6830: no name of a host: the second door is shut"


def test_a_second_daemon_is_kept_out(tmp_path: Path) -> None:
    handle = sockets.lock(tmp_path / "state")
    with pytest.raises(Unavailable) as error:
        sockets.lock(tmp_path / "state")
    assert str(error.value) == f"{tmp_path}/state: another pliantd runs with this state_dir"
    os.close(handle)
    os.close(sockets.lock(tmp_path / "state"))


def test_a_second_daemon_of_a_cluster_is_kept_out_whatever_its_state_dir(tmp_path: Path) -> None:
    cluster = f"{tmp_path}/slurm.conf"
    with sockets.only_one_of(cluster):
        with sockets.only_one_of(f"{tmp_path}/another.conf"):
            pass
        with pytest.raises(Unavailable) as error:
            sockets.only_one_of(cluster)
    words = f"another pliantd, process {os.getpid()}, is this cluster's on this host: end it first"
    assert str(error.value) == f"{cluster}: {words}"
    sockets.only_one_of(cluster).close()


def test_a_user_who_takes_a_clusters_name_keeps_no_daemon_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = f"{tmp_path}/slurm.conf"
    monkeypatch.setattr(sockets, "_holder", lambda _name: (7, 65534))
    with sockets.only_one_of(cluster):
        sockets.only_one_of(cluster).close()
    words = "whether another pliantd is this cluster's on this host is not known"
    assert caplog.messages == [f"{cluster}: {words}: Address already in use"]


# Munge: a stand-in that knows two credentials, and the library


def decoded(credential: bytes, socket: str) -> Proof:
    """Answer as a munged whose socket's path is its host's address."""
    if credential == b"MUNGE:slow:":
        time.sleep(0.6)
    if credential != b"MUNGE:good:":
        raise BadCredential("damaged", "munge refused the credential: 'Invalid credential format'")
    return Proof(1234, b"why job=7\nUID: 0\n", socket)


def prove(munge: Munge, credential: bytes) -> Proof | str:
    async def run() -> Proof:
        return await munge.prove(credential)

    try:
        return asyncio.run(run())
    except PliantError as error:
        return str(error)


def test_munge_proves_the_user_and_the_payload_cannot() -> None:
    munge = Munge("10.0.0.1", decoded)
    assert prove(munge, b"MUNGE:good:") == Proof(1234, b"why job=7\nUID: 0\n", "10.0.0.1")


@pytest.mark.parametrize(
    ("credential", "message"),
    [
        (b"MUNGE:bad:", "munge refused the credential: 'Invalid credential format'"),
        (b"hello", "a munge credential is expected"),
        (b"MUNGE:a\nb:", "a munge credential is expected"),
        (b"", "a munge credential is expected"),
    ],
)
def test_what_is_no_credential_is_refused(credential: bytes, message: str) -> None:
    assert prove(Munge("", decoded), credential) == message


def test_a_munge_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pliant.daemon.munge.TIME_LIMIT_S", 0.2)
    assert prove(Munge("", decoded), b"MUNGE:slow:") == "munge does not answer"


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libmunge, "LIBRARY", "libnone.so.2")
    libmunge._library.cache_clear()
    said = prove(Munge(""), b"MUNGE:good:")
    assert str(said).startswith("munge: libnone.so.2: cannot open shared object file")
    assert str(said).endswith(": is munge installed on this host?")


@pytest.mark.skipif(shutil.which("munged") is None, reason="munge is not installed")
def test_a_missing_munged_is_said(tmp_path: Path) -> None:
    munge = Munge(str(tmp_path / "none"))
    said = prove(munge, b"MUNGE:AwQDAAD:")
    assert str(said).startswith("munge refused the credential: 'Failed to access")


@dataclass
class Munged:
    """A munged with a key of its own."""

    socket: Path

    def made(self, *options: str) -> bytes:
        argv = ["munge", f"--socket={self.socket}", "--string=hi", *options]
        return subprocess.run(argv, capture_output=True, check=True).stdout.strip()


@pytest.fixture
def two_munged(tmp_path: Path) -> Iterator[list[Munged]]:
    """Two of different keys."""
    with ExitStack() as stack:
        found = []
        for at in (tmp_path / "ours", tmp_path / "theirs"):
            at.mkdir()
            (at / "key").write_bytes(os.urandom(128))
            (at / "key").chmod(0o600)
            files = [f"--{name}-file={at / name}" for name in ("key", "seed", "pid")]
            argv = ["munged", "--foreground", "--force", f"--socket={at / 'socket'}", *files]
            munged = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
            stack.callback(munged.wait)
            stack.callback(munged.terminate)
            found.append(Munged(at / "socket"))
            while not found[-1].socket.exists():
                assert munged.poll() is None
                time.sleep(0.01)
        yield found


def changed(credential: bytes, place: int) -> bytes:
    """A credential with one of its bytes changed."""
    raw = bytearray(base64.b64decode(credential[len(b"MUNGE:") : -1]))
    raw[place] ^= 0x41
    return b"MUNGE:" + base64.b64encode(raw) + b":"


@pytest.mark.skipif(shutil.which("munged") is None, reason="munge is not installed")
def test_what_munge_refuses_is_counted_by_kind(two_munged: list[Munged], tmp_path: Path) -> None:
    ours, theirs = two_munged
    again, sound = ours.made(), ours.made()
    sent = [
        *([again] * 3),  # the first is of no connection, as nothing made here is
        theirs.made(),
        changed(sound, -1),
        changed(sound, 0),
        sound[:20] + b":",
        b"MUNGE:AwQDAAD:",
        b"root",
        ours.made("--restrict-uid=1" if os.geteuid() != 1 else "--restrict-uid=2"),
    ]

    async def test(daemon: Daemon, _site: ASite) -> None:
        daemon._door_two._munge = Munge(str(ours.socket))
        answer = daemon._door_two.begin()
        for credential in sent:
            await answer(PREFIX + credential, stays)
        daemon._door_two._munge = Munge(str(tmp_path / "none"))  # no fault of a credential
        await answer(PREFIX + sound, stays)
        await answer(b"status", stays)
        said = await asyncio.to_thread(daemon._door_two._verbs.status, ROOT, {})
        assert said.refused_credentials == {
            "for no connection": 1,
            "replayed": 2,
            "forged": 2,
            "damaged": 4,
            "not for pliantd": 1,
        }

    with_daemon(test, tmp_path)


# systemd


def test_systemd_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(5)
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "2000000"}
        notifier = Notifier(environ)
        notifier.ready("fine")
        notifier.stopping()
        assert [systemd.recv(100), systemd.recv(100)] == [b"READY=1\nSTATUS=fine", b"STOPPING=1"]
    assert notifier.watchdog_s == 2.0
    notifier.alive()  # nobody listens any more: no error


def test_without_systemd_nothing_is_told() -> None:
    Notifier({}).ready("fine")
    assert Notifier({}).watchdog_s == 0.0


# What the site says


@dataclass(slots=True)
class ASite:
    """A site whose configuration changes, with an empty cluster."""

    private: frozenset[str] = frozenset()
    forgotten: int = 0

    def observe(self) -> Snapshot:
        return Snapshot(1000.0, (), (), (), ())

    def forget(self) -> None:
        self.forgotten += 1

    def said(self) -> Site:
        return Site(os.geteuid(), self.private)


def with_daemon(test: Callable[[Daemon, ASite], Awaitable[None]], tmp_path: Path) -> None:
    """Run ``test`` beside the loop of a daemon without doors."""

    async def run() -> None:
        site = ASite()
        surroundings = Surroundings(cast("Batch", site), site.said, site.forget)
        socket = str(tmp_path / "socket")
        daemon = Daemon(tmp_path / "none.toml", parse({"daemon": {"socket": socket}}), surroundings)
        daemon._build(Store(tmp_path))
        looping = asyncio.create_task(daemon._loop.run())
        try:
            async with asyncio.timeout(20):
                await test(daemon, site)
        finally:
            daemon._loop.stop()
            await looping

    asyncio.run(run())


def test_who_may_see_what_is_known_with_each_look(tmp_path: Path) -> None:
    async def test(daemon: Daemon, site: ASite) -> None:
        assert daemon._who(54321).sees_all
        site.private = frozenset({"jobs"})
        while daemon._who(54321).sees_all:
            daemon._loop.wake()
            await asyncio.sleep(0.01)

    with_daemon(test, tmp_path)


def test_that_no_jobs_place_can_be_kept_is_among_the_troubles(tmp_path: Path) -> None:
    async def test(daemon: Daemon, _site: ASite) -> None:
        cast("Any", daemon._cycling).elastic = elastic = SimpleNamespace()
        elastic.overs = SimpleNamespace(placeless=lambda: "nobody is asked")
        assert "nobody is asked" in daemon._troubles()
        daemon._cycling.elastic = None

    with_daemon(test, tmp_path)


def test_at_a_reload_who_may_see_what_is_asked_anew_at_once_whatever_pliant_toml_says(
    tmp_path: Path,
) -> None:
    async def test(daemon: Daemon, site: ASite) -> None:
        site.private = frozenset({"jobs"})
        await daemon._hang_up()
        assert site.forgotten == 1
        assert not daemon._who(54321).sees_all
        assert any("none.toml" in trouble for trouble in daemon._troubles())

    with_daemon(test, tmp_path)
