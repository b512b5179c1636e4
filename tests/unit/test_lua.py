"""The Lua module under every Lua that a slurmctld may have, beside a small fake of Slurm's side."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limits import HANG_S
from pliant.cli.templates import render
from pliant.grammar import find_token, put_token
from pliant.grammar.token import pack, spec_text, unpack
from pliant.model import Request, Spec
from pliant.wire import Message, decode, encode

PLUGINS = Path(__file__).parents[2] / "plugins" / "slurm"
HARNESS = Path(__file__).with_name("fake_slurm.lua")
LUAS = ("lua5.1", "lua5.2", "lua5.3", "lua5.4")
FLAG = "_SLURM_SPANK_OPTION_pliant_moldable=gpus=1-4"
TOKEN = pack("moldable=gpus=1-4")
NOTED = f"{TOKEN} pliant-unanswered=1"
"""What is written where nobody answered."""
NO_GPU = (
    "user pliant: not available now, and this job asks for no GPU beside --moldable: it keeps the"
    " request as written; add --gres=gpu:N to say what it should run with then"
)

Steps = Callable[..., list[str]]


def quoted(text: str | bytes) -> str:
    """Write a Lua string."""
    raw = text.encode() if isinstance(text, str) else text
    return '"' + "".join(f"\\{byte:03d}" for byte in raw) + '"'


def job(
    broken: str = "",
    spank: tuple[str, ...] = (),
    wait: float = 0,
    unset: str = "",
    **fields: object,
) -> str:
    """Write one step: a job is submitted, after a wait of the fake clock.

    ``broken`` names a field that cannot be read, ``unset`` one that cannot be set.
    """
    texts = [
        f"{name} = {quoted(value) if isinstance(value, str | bytes) else value}"
        for name, value in fields.items()
    ]
    if spank:
        entries = ", ".join(f"[{place}] = {quoted(entry)}" for place, entry in enumerate(spank))
        texts += [f"spank_job_env = {{{entries}}}"]
    texts += [f"spank_job_env_size = {len(spank)}"]
    extra = f", broken = {quoted(broken)}" if broken else ""
    extra += f", unset = {quoted(unset)}" if unset else ""
    return f"{{wait = {wait}, fields = {{{', '.join(texts)}}}{extra}}}"


@pytest.fixture(params=LUAS)
def lua(request: pytest.FixtureRequest) -> str:
    found = shutil.which(str(request.param))
    assert found, f"{request.param} is needed by these tests"
    return found


@pytest.fixture
def run(lua: str, tmp_path: Path) -> Steps:
    """Submit jobs to the module, or to a whole job_submit.lua, and return what was told."""

    def ran(
        *steps: str,
        door: Path | None = None,
        missing: str = "",
        what: str = "module",
        fake_door: str = "",
        patience: int = 100,
    ) -> list[str]:
        setup = f"socket = {quoted(str(door or tmp_path / 'nobody'))}"
        if fake_door:  # and a setup that asks for more time than there is
            setup = f"{setup}, timeout = 30}}, door = {{{fake_door}"
        luasocket = "" if fake_door else f"patience = {patience}, "
        if missing:
            luasocket += f"missing = {{[{quoted(missing)}] = true}}, "
        script = tmp_path / "steps.lua"
        script.write_text(
            f"return {{clock = 1000, setup = {{{setup}}}, {luasocket}{', '.join(steps)}}}"
        )
        done = subprocess.run(
            [lua, str(HARNESS), what, str(script)],
            env={
                "LUA_PATH": f"{PLUGINS}/?.lua;;",
                "PLIANT_SOCKET": str(door or tmp_path / "nobody"),
            },
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return ran


def effects(lines: list[str]) -> list[str]:
    """Leave out the reads."""
    return [line for line in lines if not line.startswith("read ")]


class Door:
    """A Unix socket with a thread behind it."""

    def __init__(self, path: Path, serve: Callable[[socket.socket, bytes], None]) -> None:
        self.path, self._asked = path, list[bytes]()
        self._serve = serve
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                line = b""
                while not line.endswith(b"\n"):
                    part = connection.recv(65536)
                    if not part:
                        break
                    line += part
                self._asked.append(line)
                with suppress(OSError):
                    self._serve(connection, line)

    def asked(self, count: int = 1) -> list[bytes]:
        """The request lines; on a busy machine they come later than whoever asked has given up."""
        deadline = time.monotonic() + HANG_S
        while len(self._asked) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return list(self._asked)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


MakeDoor = Callable[[Callable[[socket.socket, bytes], None]], Door]


@pytest.fixture
def door(tmp_path: Path) -> Iterator[MakeDoor]:
    made: list[Door] = []

    def make(serve: Callable[[socket.socket, bytes], None]) -> Door:
        made.append(Door(tmp_path / "door", serve))
        return made[-1]

    yield make
    for one in made:
        one.close()


def saying(**fields: str) -> Callable[[socket.socket, bytes], None]:
    """Answer every request with ok and these fields."""
    line = encode(Message("ok", {name.replace("__", "."): text for name, text in fields.items()}))
    return lambda connection, _: connection.sendall(line + b"\n")


# Jobs that say nothing


def test_a_job_that_says_nothing_costs_two_reads_and_is_left_alone(
    run: Steps, door: MakeDoor
) -> None:
    asked = door(saying(token=TOKEN))
    plain = job(name="x", tres_per_node="gres:gpu:2", script="#!/bin/sh")
    talking = job(comment="please run pliant: soon", name="x")
    assert run(plain, talking, door=asked.path) == [
        "read spank_job_env_size",
        "read comment",
        "rc 0",
        "read spank_job_env_size",
        "read comment",
        "rc 0",
    ]
    assert asked.asked(0) == []


def test_another_plugins_options_say_nothing_to_us(run: Steps, door: MakeDoor) -> None:
    asked = door(saying(token=TOKEN))
    other = job(spank=("_SLURM_SPANK_OPTION_x11_moldable=gpus=1-4", "PATH=/bin"))
    assert effects(run(other, door=asked.path)) == ["rc 0"]
    assert asked.asked(0) == []


# Asking


def test_what_a_job_asks_arrives_under_slurms_own_names(run: Steps, door: MakeDoor) -> None:
    asked = door(saying())
    run(
        job(
            spank=(FLAG, "_SLURM_SPANK_OPTION_pliant_job_class=trial"),
            comment="pliant:steps=5 my own words",
            tres_per_node="gres:gpu:2",
            num_tasks=4,
            min_nodes=4294967294,
            het_job_offset=4294967295,
            shared=65534,
            priority=65534,
            contiguous=1,
            reboot=0,
            features="a&b=\n%",
            partition="",
            time_limit=90,
            user_id=1000,
            script="#!/bin/sh",
        ),
        door=asked.path,
    )
    (line,) = asked.asked()
    assert decode(line) == Message(
        "submit",
        {
            "comment": "pliant:steps=5",
            "option.moldable": "gpus=1-4",
            "option.job-class": "trial",
            "tres_per_node": "gres:gpu:2",
            "num_tasks": "4",
            "contiguous": "1",
            "reboot": "0",
            "features": "a&b=\n%",
            "time_limit": "90",
            "priority": "65534",
            "batch": "1",
        },
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"spank": ("_SLURM_SPANK_OPTION_pliant_class=trial",)}, "alice"),
        ({"comment": "pliant:gpus=1-4;job-class=trial and more"}, "alice"),
        ({"comment": "pliant: gpus=1-4;job-class=trial and more"}, "alice"),
        ({"comment": "pliant:job-class=best-effort"}, None),
        ({"spank": (FLAG,), "comment": "job-class=trial"}, None),
        (
            {
                "spank": ("_SLURM_SPANK_OPTION_pliant_class=best-effort",),
                "comment": "pliant:job-class=trial",
            },
            None,
        ),
    ],
)
def test_whose_a_job_is_is_told_of_trial_jobs_alone(
    run: Steps, door: MakeDoor, said: dict[str, Any], told: str | None
) -> None:
    asked = door(saying())
    run(job(**said, user_name="alice"), door=asked.path)
    (line,) = asked.asked()
    assert decode(line).fields.get("user_name") == told


@pytest.mark.parametrize("name", ["requeue", "cpus_per_task", "min_nodes", "time_limit"])
def test_a_number_is_told_where_it_is_set(run: Steps, door: MakeDoor, name: str) -> None:
    """Slurm's "not set" has 16 bits or 32, as its field does (slurm.h)."""
    asked = door(saying())
    unset = 2**32 - 2 if name in ("min_nodes", "time_limit") else 2**16 - 2
    values: list[dict[str, Any]] = [{name: value} for value in (0, unset - 1, unset, unset + 1)]
    run(*(job(spank=(FLAG,), **value) for value in values), door=asked.path)
    told = [decode(line).fields.get(name) for line in asked.asked(4)]
    assert told == ["0", str(unset - 1), None, None]


def test_a_job_is_let_be_requeued(run: Steps, door: MakeDoor) -> None:
    told = run(job(spank=(FLAG,)), door=door(saying(set__requeue="1")).path)
    assert effects(told) == ["set requeue=1", "rc 0"]


def test_pliantd_is_told_how_long_ago_a_job_came_that_it_was_not_told_of(
    run: Steps, door: MakeDoor
) -> None:
    asked = door(saying(token=TOKEN))
    plain, flagged = job(name="x"), job(spank=(FLAG,))
    run(
        flagged,
        plain,
        flagged,
        job(spank=(FLAG,), wait=3),
        job(spank=(FLAG,), wait=9),
        door=asked.path,
    )
    told = [decode(line).fields.get("since") for line in asked.asked(4)]
    assert told == [None, "0", "3", None]


def test_an_answer_is_applied_and_said(run: Steps, door: MakeDoor) -> None:
    answer = door(
        saying(
            set__gres="gpu:2",
            set__min_nodes="1",
            set__tres_per_job="",
            say="one\ntwo %d",
            token=TOKEN,
        )
    )
    told = run(job(spank=(FLAG,), admin_comment="theirs pliant=v1:old:0"), door=answer.path)
    assert effects(told) == [
        f"set admin_comment=theirs {TOKEN}",
        "set gres=gpu:2",
        "set min_nodes=1",
        "set tres_per_job=",
        "user one",
        "user two %d",
        "rc 0",
    ]


def test_a_refusal_refuses_in_its_words(run: Steps, door: MakeDoor) -> None:
    answer = door(saying(refuse="pliant: moldable gpus: 'x': a number is expected"))
    assert effects(run(job(comment="pliant:gpus=x"), door=answer.path)) == [
        "user pliant: moldable gpus: 'x': a number is expected",
        "rc -1",
    ]


@pytest.mark.parametrize(
    "answer",
    [
        {"set__user_id": "0", "set__gres": "gpu:1"},
        {"set__script": "evil"},
        {"set__min_nodes": "1e9"},
        {"set__min_nodes": "-1"},
        {"set__min_nodes": "1e26"},
        {"set__min_nodes": "9" * 26},
        {"set__num_tasks": "4294967295"},
        {"set__cpus_per_task": "65535"},
        {"set__min_mem_per_node": "9007199254740993"},
        {"set__gres": "gpu:1" + ",gpu:1" * 200},
        {"set__gres": "gpu:1", "token": "pliant=v1:a b:00"},
        {"set__gres": "gpu:1", "token": "pliant=v1:a\nb:00"},
    ],
)
def test_an_answer_that_is_partly_unknown_changes_nothing(
    run: Steps, door: MakeDoor, answer: dict[str, str]
) -> None:
    told = effects(run(job(spank=(FLAG,)), door=door(saying(**answer)).path))
    assert told[-1] == "rc 0"
    assert [line for line in told if line.startswith(("set", "user"))] == []


def test_an_answer_that_slurm_takes_half_of_is_taken_back(run: Steps, door: MakeDoor) -> None:
    """Slurm's setters raise; none does it for these values, as far as is known."""
    answer = door(
        saying(set__gres="gpu:2", set__min_nodes="1", set__requeue="1", token=TOKEN, say="changed")
    )
    written: dict[str, Any] = {
        "tres_per_node": "gres:gpu:4",
        "gres": "gres:gpu:4",
        "min_nodes": 4294967294,
    }
    told = effects(run(job(unset="requeue", spank=(FLAG,), **written), door=answer.path))
    assert told == [
        f"set admin_comment={TOKEN}",
        "set gres=gpu:2",
        "set min_nodes=1",
        "set min_nodes=4294967294",
        "set tres_per_node=gres:gpu:4",
        "set admin_comment=",
        told[-2],
        "rc 0",
    ]
    assert "cannot set requeue: the job is accepted" in told[-2]


# Texts that are longer than Pliant reads

LONG = {
    "tres_per_node": ("--gres", 1024), "features": ("--constraint", 1024),
    "array_inx": ("--array", 4096), "partition": ("--partition", 1024),
    "clusters": ("--clusters", 1024),
}  # fmt: skip


@pytest.mark.parametrize("field", LONG)
def test_a_text_that_is_too_long_is_named_and_pliantd_not_asked(
    run: Steps, door: MakeDoor, field: str
) -> None:
    asked = door(saying())
    option, most = LONG[field]
    longer: dict[str, Any] = {field: "," * (most + 1)}
    longest: dict[str, Any] = {field: "," * most}
    told = run(job(spank=(FLAG,), **longer), job(spank=(FLAG,), **longest), door=asked.path)
    assert effects(told) == [
        f"set admin_comment={TOKEN}",
        f"user pliant: {option} has more than the {most} bytes that Pliant reads:"
        " the job is submitted as written",
        "rc 0",
        "rc 0",
    ]
    (line,) = asked.asked()  # and the breaker is closed
    assert decode(line).fields[field] == "," * most


@pytest.mark.parametrize("field", ["dependency", "req_nodes", "exc_nodes", "licenses"])
def test_of_some_texts_pliantd_is_told_only_that_they_are_there(
    run: Steps, door: MakeDoor, field: str
) -> None:
    asked = door(saying())
    long: dict[str, Any] = {field: "n" * 120_000}
    assert effects(run(job(spank=(FLAG,), **long), door=asked.path)) == ["rc 0"]
    assert decode(asked.asked()[0]).fields[field] == "1"


def test_texts_that_are_too_long_together_are_not_sent(run: Steps, door: MakeDoor) -> None:
    asked = door(saying())
    names = ("tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket", "cpus_per_tres",
             "mem_per_tres", "partition", "features", "reservation", "qos", "default_qos",
             "clusters")  # fmt: skip
    texts: dict[str, Any] = dict.fromkeys(names, "," * 1024) | {"array_inx": "," * 4096}
    told = effects(run(job(spank=(FLAG,), **texts), door=asked.path))
    assert told == [
        f"set admin_comment={TOKEN}",
        "user pliant: with --clusters the request has more than the 16384 bytes that Pliant reads:"
        " the job is submitted as written",
        "rc 0",
    ]
    assert asked.asked(0) == []


def test_options_that_are_too_long_are_named_and_not_noted(run: Steps, door: MakeDoor) -> None:
    asked = door(saying())
    words = "gpus=" + ":".join(["1"] * 600)
    spank = "_SLURM_SPANK_OPTION_pliant_moldable=" + words
    said = " has more than the 1024 bytes that Pliant reads: the job is submitted as written"
    assert effects(
        run(job(spank=(spank,)), job(comment=f"pliant:{words} mine"), door=asked.path)
    ) == [
        f"user pliant: --moldable{said}",
        "rc 0",
        f"user pliant: --comment{said}",
        "rc 0",
    ]
    assert asked.asked(0) == []


def test_words_that_are_too_long_even_for_a_token_are_not_written(run: Steps) -> None:
    assert effects(run(job(comment="pliant:gpus=" + "1" * 5000))) == [
        "user pliant: --comment has more than the 1024 bytes that Pliant reads:"
        " the job is submitted as written",
        "rc 0",
    ]


@pytest.mark.parametrize(
    "spank",
    [("OTHER=1",) * 4096 + (FLAG,),
     tuple(f"_SLURM_SPANK_OPTION_pliant_x{chr(97 + n // 26)}{chr(97 + n % 26)}=" for n in range(33))],
    ids=["entries", "options"],
)  # fmt: skip
def test_more_spank_options_than_any_job_has_are_not_read(
    run: Steps, door: MakeDoor, spank: tuple[str, ...]
) -> None:
    asked = door(saying(token=TOKEN))
    assert run(job(spank=spank, comment="pliant:gpus=1"), door=asked.path)[-1] == "rc 0"
    assert effects(run(job(spank=spank, comment="pliant:gpus=1"), door=asked.path)) == ["rc 0"]
    assert asked.asked(0) == []


def test_a_very_long_admin_comment_is_kept_behind_the_token(lua: str) -> None:
    before = f"{TOKEN} " + "their word " * 2000
    told = ask_lua(lua, f"m.with_token({quoted(before)}, {quoted(pack('moldable=gpus=2'))})")
    assert told.decode() == f"{pack('moldable=gpus=2')} {before}"
    found = find_token(told.decode())
    assert found is not None and spec_text(found) == "moldable=gpus=2"


def test_no_text_of_10_mb_costs_more_than_a_few_looks_at_its_bytes(lua: str) -> None:
    """CPU time against CPU time. A call for each byte costs 130 of such looks, no more 0.2."""
    done = subprocess.run(
        [lua, str(HARNESS.with_name("lua_cpu.lua")), "10000000"],
        env={"LUA_PATH": f"{PLUGINS}/?.lua"},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    costs = [line.split("\t") for line in done.stdout.splitlines()]
    assert {said for *_, said in costs} == {
        "ok token=pliant%3Dv1%3AYQ%3D%3D%3A00620062",
        "ok away=1",
        "none",
    }
    tried = {what.partition(" ")[0] for what, *_ in costs}
    assert tried >= {"comment", "script", "admin_comment", "user_name", "dependency", "entries"}
    assert [line for line in costs if float(line[1]) > 3] == []


# Nobody there


def hang(connection: socket.socket, _: bytes) -> None:
    time.sleep(0.5)


def trickle(connection: socket.socket, _: bytes) -> None:
    for _step in range(200):
        connection.sendall(b"o")
        time.sleep(0.01)


GARBAGE = (
    b"\0\xff\xfe\n",
    b"okay set.gres=gpu:1\n",
    b"ok set.gres\n",
    b"ok set.gres=gpu:1\n",
    b"ok set.gres=gpu%3A1;x\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"no message=busy\n",
    b"ok",
    b"",
    b"ok say=" + b"a" * 70_000 + b"\n",
)


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_leaves_the_job_with_its_token(run: Steps, door: MakeDoor, garbage: bytes) -> None:
    asked = door(lambda connection, _: connection.sendall(garbage))
    step = job(spank=(FLAG,), tres_per_node="gres:gpu:2")
    told = effects(run(step, step, door=asked.path))
    assert [line for line in told if not line.startswith("info ")] == [
        f"set admin_comment={NOTED}",
        "rc 0",
    ] * 2
    assert len(asked.asked(1)) == 1, "the second job found the breaker open"


@pytest.mark.parametrize("serve", [hang, trickle])
def test_a_slow_daemon_is_asked_once_per_breaker_period(
    run: Steps, door: MakeDoor, serve: Callable[[socket.socket, bytes], None]
) -> None:
    asked = door(serve)
    step = job(spank=(FLAG,), tres_per_node="gres:gpu:2")
    later = job(spank=(FLAG,), tres_per_node="gres:gpu:2", wait=6)
    begin = time.monotonic()
    told = effects(run(step, step, step, later, step, door=asked.path, patience=1))
    assert time.monotonic() - begin < 5, "two exchanges of at most 50 ms, and starting Lua"
    assert told.count("rc 0") == 5
    assert told.count(f"set admin_comment={NOTED}") == 5
    assert len([line for line in told if line.startswith("info ")]) == 2
    time.sleep(0.1)
    assert 1 <= len(asked.asked()) <= 2  # the second waits behind the first


def test_the_whole_exchange_ends_within_the_limit(lua: str, door: MakeDoor, tmp_path: Path) -> None:
    asked = door(trickle)
    clock = tmp_path / "clock.lua"
    clock.write_text(
        "slurm = {SUCCESS = 0, log_info = function() end, log_user = function() end}\n"
        "local pliant = require('pliant').setup({socket = arg[1], timeout = 30})\n"
        "local gettime = require('socket.core').gettime\n"
        "local begin = gettime()\n"
        "pliant.job_submit({comment = 'pliant:gpus=1-4'}, {}, 0)\n"
        "print(gettime() - begin)\n"
    )
    done = subprocess.run(
        [lua, str(clock), str(asked.path)],
        env={"LUA_PATH": f"{PLUGINS}/?.lua;;"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    # The server trickles for 2 s; 50 ms is the limit, and a busy machine may wake us late.
    assert 0.01 < float(done.stdout) < 1.0


SLOW_DOORS = {
    "silent": ("gap = math.huge", "0.0500"),
    "trickling": ("answer = ('o'):rep(200), gap = 0.01", "0.0500"),
    "slow to connect": ("connect = 10, answer = 'ok'", "0.0500"),
    "slow to take the request": ("send = 10, answer = 'ok'", "0.0500"),
    "slow in all": ("connect = 0.03, send = 0.01, gap = 0.01, answer = 'ok'", "0.0500"),
    "slow, and waking late": ("connect = 0.03, busy = 0.03, gap = math.huge", "0.0600"),
    "slow garbage": ("connect = 0.02, answer = 'HTTP/1.1 400', gap = 0.001", "0.0330"),
    "refusing": ("refused = true", "0.0000"),
    "silent, and no clock": ("no_clock = true, gap = math.huge", "0.0167"),
    "slow in all, and no clock": (
        "no_clock = true, connect = 0.015, send = 0.015, gap = math.huge", "0.0467",
    ),
}  # fmt: skip
"""Doors that give no answer in time, and what a submission may spend there, in seconds."""


@pytest.mark.parametrize("kind", SLOW_DOORS)
def test_a_submission_waits_for_the_limit_and_the_next_ones_not_at_all(
    run: Steps, kind: str
) -> None:
    fake, spent_s = SLOW_DOORS[kind]
    waits = (0, 0, 4, 1, 0)  # asked again after the five seconds of the breaker
    told = run(*(job(spank=(FLAG,), wait=wait) for wait in waits), fake_door=fake)
    once, never = f"spent {spent_s} asking 1", "spent 0.0000 asking 0"
    costs = [line for line in told if line.startswith("spent")]
    assert costs == [once, never, never, once, never]
    assert told.count("rc 0") == told.count(f"set admin_comment={NOTED}") == 5


def test_an_answer_just_in_time_is_taken_and_opens_no_breaker(run: Steps) -> None:
    fake = "connect = 0.02, send = 0.02, gap = 0.0003, answer = 'ok set.gres=gpu%3A2'"
    step = job(spank=(FLAG,))
    told = effects(run(step, step, fake_door=fake))
    assert told == ["set gres=gpu:2", "rc 0", "spent 0.0460 asking 1"] * 2


def test_a_job_that_says_nothing_waits_for_nobody(run: Steps) -> None:
    assert run(job(name="x"), fake_door="gap = math.huge")[-1] == "spent 0.0000 asking 0"


def test_nobody_there_costs_one_try(run: Steps) -> None:
    told = effects(run(job(spank=(FLAG,)), job(comment="pliant:gpus=1-4")))
    assert [line for line in told if not line.startswith("info ")] == [
        f"set admin_comment={NOTED}",
        NO_GPU,
        "rc 0",
    ] * 2
    assert len([line for line in told if line.startswith("info ")]) == 1


@pytest.mark.parametrize("missing", ["socket.unix", "socket.core"])
def test_without_luasocket_the_token_is_written(run: Steps, door: MakeDoor, missing: str) -> None:
    asked = door(saying(token=TOKEN, set__gres="gpu:1"))
    told = effects(run(job(spank=(FLAG,)), door=asked.path, missing=missing))
    wanted = 0 if missing == "socket.unix" else 1
    assert f"set admin_comment={TOKEN if wanted else NOTED}" in told
    assert told[-1] == "rc 0"
    assert len(asked.asked(wanted)) == wanted


def test_a_daemon_that_knows_nothing_yet_gets_the_token_without_a_breaker(
    run: Steps, door: MakeDoor
) -> None:
    asked = door(saying(away="1"))
    told = effects(run(job(spank=(FLAG,)), job(spank=(FLAG,)), door=asked.path))
    assert told == [f"set admin_comment={NOTED}", NO_GPU, "rc 0"] * 2
    assert len(asked.asked(2)) == 2


@pytest.mark.parametrize(
    ("fields", "is_told"),
    [
        ({}, True),
        ({"tres_per_node": "gres:gpu:1"}, False),
        ({"tres_per_job": "gres:gpu:1"}, False),
        ({"tres_per_task": "cpu=1,gres/gpu=1"}, False),
        ({"tres_per_node": "gres:shard:1"}, False),
        ({"tres_per_node": "gres:tmpfs:1"}, True),
    ],
)
def test_a_job_without_a_gpu_of_its_own_is_told_so(
    run: Steps, fields: dict[str, str], is_told: bool
) -> None:
    assert (NO_GPU in run(job("", (FLAG,), 0, **fields))) is is_told


@pytest.mark.parametrize(
    "comment",
    ["pliant:", "pliant:gpus=1-4;own=4", "pliant:set=4", "pliant:fp=1,2", "pliant:gpus=$(id)",
     "pliant:gpus=1;gpus=2", "pliant:gpus=1-4;pinned", "pliant:;", "pliant:gpus=1;moldable=gpus=2",
     "pliant:\tgpus=1|2", "pliant:gpus = 1-4", "pliant: gpus", "pliant: see notes"],
)  # fmt: skip
def test_words_that_cannot_be_right_write_no_token(run: Steps, comment: str) -> None:
    told = effects(run(job(comment=comment)))
    assert [line for line in told if not line.startswith("info ")] == [
        "user pliant: not available now, and what was said to it is not understood:"
        " the job is submitted as written",
        "rc 0",
    ]


# A connection that is kept


def test_the_next_submission_is_asked_on_the_same_connection(run: Steps) -> None:
    fake = "connect = 0.02, send = 0.01, gap = 0.005, answer = 'ok', keeps = true"
    told = effects(run(*[job(spank=(FLAG,))] * 3, fake_door=fake))
    first, later = ["rc 0", "spent 0.0450 asking 1"], ["rc 0", "spent 0.0250 asking 1"]
    assert told == first + later + later


def test_without_a_clock_none_is_kept(run: Steps) -> None:
    fake = "connect = 0.01, send = 0.01, gap = 0.001, answer = 'ok', keeps = true, no_clock = true"
    told = effects(run(*[job(spank=(FLAG,))] * 2, fake_door=fake))
    assert told == ["rc 0", "spent 0.0230 asking 1"] * 2


def sized(line: bytes) -> bytes:
    """An answer that only this request gets."""
    return b"ok set.num_tasks=" + decode(line).fields["num_tasks"].encode() + b"\n"


SIZES = [job(spank=(FLAG,), num_tasks=number) for number in range(1, 5)]
EACH_ITS_OWN = [line for number in range(1, 5) for line in (f"set num_tasks={number}", "rc 0")]


@pytest.mark.parametrize("after", [b"ok set.num_tasks=9\n", b"ok set.num_tasks=9", b"\n", b"\0"])
def test_no_job_gets_what_was_said_beyond_the_answer_to_another(
    run: Steps, door: MakeDoor, after: bytes
) -> None:
    def twice(connection: socket.socket, line: bytes) -> None:
        connection.sendall(sized(line) + after)
        connection.recv(65536)  # until it is closed

    asked = door(twice)
    assert effects(run(*SIZES, door=asked.path)) == EACH_ITS_OWN
    assert [decode(line).fields["num_tasks"] for line in asked.asked(4)] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("half", [b"", b"ok set.num_tasks=9"])
def test_a_connection_that_ends_while_it_is_used_again_is_replaced(
    run: Steps, door: MakeDoor, half: bytes
) -> None:
    """As pliantd does that is started anew, or has waited for two seconds."""

    def once(connection: socket.socket, line: bytes) -> None:
        connection.sendall(sized(line))
        connection.recv(65536)
        connection.sendall(half)

    asked = door(once)
    assert effects(run(*SIZES, door=asked.path)) == EACH_ITS_OWN
    assert len(asked.asked(2)) == 4


def test_what_comes_too_late_is_the_answer_to_nobody(run: Steps, door: MakeDoor) -> None:
    def late(connection: socket.socket, line: bytes) -> None:
        connection.sendall(sized(line))
        if more := connection.recv(65536):
            connection.recv(65536)  # until nobody waits any more
            connection.sendall(sized(more))

    asked = door(late)
    jobs = [job(spank=(FLAG,), num_tasks=number, wait=6) for number in (1, 2, 3)]
    told = effects(run(*jobs, door=asked.path, patience=1))
    assert [line for line in told if line.startswith("set")] == [
        "set num_tasks=1",
        f"set admin_comment={NOTED}",
        "set num_tasks=3",
    ]


# Mistakes of our own


@pytest.mark.parametrize("broken", ["spank_job_env_size", "comment", "partition", "admin_comment"])
def test_an_error_in_here_accepts_the_job(run: Steps, door: MakeDoor, broken: str) -> None:
    asked = door(saying(token=TOKEN))
    told = effects(run(job(broken=broken, spank=(FLAG,)), door=asked.path))
    assert told[-1] == "rc 0"
    assert told[-2].startswith("error pliant: ")


# job_submit.lua


def test_the_shipped_job_submit_lua_asks(run: Steps, door: MakeDoor) -> None:
    asked = door(saying(token=TOKEN))
    told = effects(run(job(spank=(FLAG,)), door=asked.path, what=str(PLUGINS / "job_submit.lua")))
    assert told == ["modify 0", f"set admin_comment={TOKEN}", "rc 0"]


@pytest.mark.parametrize(
    "module",
    [None, "return", "return true", "return {}", "error('broken')", "x = = 1", "return {setup = 1}",
     "return {setup = function() return nil end}",
     "return {setup = function() return {job_submit = error} end}"],
)  # fmt: skip
def test_the_shipped_job_submit_lua_accepts_without_its_module(
    lua: str, tmp_path: Path, module: str | None
) -> None:
    shutil.copy(PLUGINS / "job_submit.lua", tmp_path)
    if module is not None:
        (tmp_path / "pliant.lua").write_text(module)
    steps = tmp_path / "steps.lua"
    steps.write_text(f"return {{{job(spank=(FLAG,))}}}")
    done = subprocess.run(
        [lua, str(HARNESS), str(tmp_path / "job_submit.lua"), str(steps)],
        env={"LUA_PATH": ";;"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    told = effects(done.stdout.splitlines())
    assert done.returncode == 0, done.stderr
    assert [line for line in told if not line.startswith("info ")] == ["modify 0", "rc 0"]


# Encodings


def ask_lua(lua: str, program: str, *arguments: str) -> bytes:
    done = subprocess.run(
        [
            lua,
            "-e",
            f"slurm = {{}} local m = require('pliant') io.write({program})",
            "-",
            *arguments,
        ],
        stdin=subprocess.DEVNULL,
        env={"LUA_PATH": f"{PLUGINS}/?.lua;;"},
        capture_output=True,
        timeout=HANG_S,
        check=True,
    )
    return done.stdout


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(raw=st.binary(max_size=200))
def test_the_encodings_are_those_of_python(lua: str, raw: bytes) -> None:
    text = quoted(raw)
    told = ask_lua(
        lua,
        f"m.base64url({text}), ' ', m.adler32({text}), ' ', m.escape({text}), ' ',"
        f" tostring(m.unescape(m.escape({text})) == {text})",
    )
    line = encode(Message("x", {"a": raw.decode("utf-8", "surrogateescape")}))
    assert told.split(b" ") == [
        urlsafe_b64encode(raw),
        f"{zlib.adler32(raw):08x}".encode(),
        line.removeprefix(b"x a="),
        b"true",
    ]


def test_the_token_takes_its_place_among_other_words(lua: str) -> None:
    for before in ("", "theirs", " a  b ", f"{TOKEN} x {TOKEN}", "x\ny"):
        told = ask_lua(lua, f"m.with_token({quoted(before)}, {quoted(TOKEN)})").decode()
        spec = Spec(Request())
        expected = put_token(before, spec).split(" ")[:-1] if before.strip() else []
        assert told.split(" ")[-1] == TOKEN
        assert [word for word in told.split(" ")[:-1] if word] == [w for w in expected if w]
        found = find_token(told)
        assert found is not None and unpack(TOKEN) == "moldable=gpus=1-4"


SITE_RAISES = """
slurm_job_submit = function(job_desc)
   if job_desc.name == "raises" then error("no such field") end
   if job_desc.name == "object" then error({}) end
   if job_desc.name == "worse" then error(setmetatable({}, { __tostring = error })) end
   if job_desc.name == "nothing" then error(nil) end
   if job_desc.name == "endless" then
      local function f() return 1 + f() end
      return f()
   end
   if job_desc.name == "yields" then coroutine.yield() end
   if job_desc.name == "text" then return "refused" end
   if job_desc.name == "table" then return {} end
   if job_desc.name == "truth" then return true end
   if job_desc.name == "zero" then return "0" end
   return job_desc.name == "forbidden" and slurm.ERROR or slurm.SUCCESS
end
"""


def test_what_a_sites_own_function_raises_reaches_slurm_once_pliant_has_seen_the_job(
    run: Steps, tmp_path: Path
) -> None:
    block = render("install", "job_submit.lua", conf_dir=PLUGINS, socket=tmp_path / "nobody")
    script = tmp_path / "job_submit.lua"
    script.write_text(SITE_RAISES + block)
    raising = ("raises", "object", "worse", "nothing", "endless", "yields")
    no_number = ("text", "table", "truth", "zero")  # Slurm takes it for a success
    names = (*raising, *no_number, "fine", "forbidden")
    jobs = [job(name=name, spank=(FLAG,), tres_per_node="gres:gpu:2") for name in names]
    told = effects(run(*jobs, what=str(script)))
    errors = [line for line in told if line.startswith("error ")]
    assert len(errors) == len(raising)
    assert all(line.startswith("error slurm_job_submit failed: ") for line in errors)
    said = ("no such field", "table", "table", "nil", "stack overflow", "yield")
    for line, words in zip(errors, said, strict=True):
        assert words in line
    codes = [line for line in told if line.startswith("rc ")]
    assert codes == ["rc 0"] * (len(names) - 1) + ["rc -1"]
    assert told.count(f"set admin_comment={NOTED}") == len(names) - 1
