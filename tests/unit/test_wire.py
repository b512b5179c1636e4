"""The doors' protocol, and its client against servers that behave and that do not."""

from __future__ import annotations

import base64
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.errors import BadInput, Unavailable
from pliant.wire import (
    MAX_REQUEST,
    SEAL_KEY,
    Message,
    ask,
    ask_over_tcp,
    decode,
    encode,
    no,
    ok,
    sealed,
)
from pliant.wire.lines import SEAL, unsealed

# Unpaired surrogates beyond those of surrogateescape stand for no bytes.
TEXT = st.binary(max_size=60).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
NAMES = st.text(min_size=1, max_size=20, alphabet="abcz_.-09= \n%&\u00e9")
MESSAGES = st.builds(
    Message,
    st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True),
    st.dictionaries(NAMES, TEXT, max_size=5),
)


@given(MESSAGES)
def test_a_message_comes_back_from_its_line(message: Message) -> None:
    line = encode(message)
    assert b"\n" not in line
    assert decode(line) == decode(line + b"\n") == message


def test_a_line_looks_like_this() -> None:
    fields = {"name": "a b&c=\n|$(id) ~é", "partition": "gpu_1.x-y"}
    assert encode(Message("submit", fields)) == (
        b"submit name=a%20b%26c%3D%0A%7C%24%28id%29%20%7E%C3%A9&partition=gpu_1.x-y"
    )
    assert encode(ok()) == b"ok"
    assert encode(no("not now")) == b"no message=not%20now"


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused_in_one_line(line: bytes) -> None:
    try:
        message = decode(line)
    except BadInput as wrong:
        assert str(wrong).isprintable() and str(wrong).isascii() and len(str(wrong)) < 200
    else:
        assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b" a=b", b"Ok a=b", b"ok a", b"ok =b", b"ok a=b&", b"ok a=b&&c=d", b"ok a=b c=d",
     b"ok a=b\nok", b"ok a=%4", b"ok a=%GG", b"ok a=\0", b"ok a=b&a=c", b"ok %61=b&a=c", b"ok\ta=b",
     b"ok " + b"&".join(b"f%d=1" % n for n in range(300)), b"\xff\xfe"],
)  # fmt: skip
def test_what_is_no_line_is_refused(line: bytes) -> None:
    with pytest.raises(BadInput, match=r"^line: '"):
        decode(line)


Serve = Callable[[socket.socket], None]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[Serve, bool], tuple[str, int]]]:
    """Serve one connection; return the Unix socket's path, or the TCP address."""
    listeners: list[socket.socket] = []

    def serve(how: Serve, tcp: bool) -> tuple[str, int]:
        listener = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
        listener.bind(("127.0.0.1", 0) if tcp else str(tmp_path / "door"))
        listener.listen(1)
        listeners.append(listener)

        def loop() -> None:
            connection, _ = listener.accept()
            with connection:
                how(connection)

        threading.Thread(target=loop, daemon=True).start()
        return listener.getsockname() if tcp else (str(tmp_path / "door"), 0)

    yield serve
    for listener in listeners:
        listener.close()


def echo(connection: socket.socket) -> None:
    """Answer with the request's line as one field, in small parts."""
    line = connection.makefile("rb").readline()
    answer = encode(ok(line=line.decode())) + b"\n"
    for start in range(0, len(answer), 7):
        connection.sendall(answer[start : start + 7])


def challenge(how: Serve) -> Serve:
    """Say what pliantd says first at door two, then go on."""

    def served(connection: socket.socket) -> None:
        assert connection.recv(100) == b"hello\n"
        connection.sendall(b"ok challenge=4c1e\n")
        how(connection)

    return served


def earlier(connection: socket.socket) -> None:
    """Answer as the pliantd of a release without challenges."""
    assert connection.recv(100) == b"hello\n"
    connection.sendall(encode(no("munge <credential> is expected")) + b"\n")


def wait_for_end(connection: socket.socket) -> None:
    connection.recv(1)


def wait_long(connection: socket.socket) -> None:
    threading.Event().wait(5)


def trickle(connection: socket.socket) -> None:
    try:
        for _ in range(500):
            connection.sendall(b"o")
            threading.Event().wait(0.01)
    except OSError:
        pass


def garbage(connection: socket.socket) -> None:
    connection.makefile("rb").readline()
    connection.sendall(b"\xff garbage\n")


def test_an_answer_comes_back_from_door_one(served: Callable[..., tuple[str, int]]) -> None:
    path, _ = served(echo, False)
    assert ask(path, Message("submit", {"a": "b c"})) == ok(line="submit a=b%20c\n")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (wait_long, "does not answer in time"),
        (trickle, "does not answer in time"),
        (lambda _: None, "the connection was closed before an answer|reset|Broken pipe"),
        (garbage, "its answer is not understood"),
    ],
)
def test_a_door_that_does_not_answer_is_said_in_one_line(
    served: Callable[..., tuple[str, int]], how: Serve, message: str
) -> None:
    path, _ = served(how, False)
    with pytest.raises(Unavailable, match=message):
        ask(path, Message("ping"), timeout_s=0.3)


def test_no_door_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="nobody: No such file or directory"):
        ask(tmp_path / "nobody", Message("ping"))


def test_a_request_that_no_door_takes_is_not_sent(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="takes requests up to"):
        ask(tmp_path / "nobody", Message("submit", {"a": "x" * MAX_REQUEST}))


def fake_munge(tmp_path: Path, body: str) -> str:
    path = tmp_path / "munge"
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    path.chmod(0o755)
    return str(path)


CREDENTIAL = """
import base64
print("MUNGE:" + base64.b64encode(sys.stdin.buffer.read()).decode() + ":" + str(sys.argv[1:]))
"""


def test_door_two_gets_a_credential_with_the_request_and_its_own_challenge(
    served: Callable[..., tuple[str, int]], tmp_path: Path
) -> None:
    host, port = served(challenge(echo), True)
    munge = fake_munge(tmp_path, CREDENTIAL)
    request = Message("why", {"job": "4711"})
    answer = ask_over_tcp(host, port, request, munge_socket="/run/m", munge=munge)
    assert answer.fields["line"] == (
        f"munge MUNGE:{base64_of('why job=4711&challenge=4c1e')}:['--socket=/run/m']\n"
    )
    assert json.dumps(answer.message) == '""'


def says(line: bytes) -> Serve:
    """Answer with a line, whatever is asked."""

    def served(connection: socket.socket) -> None:
        connection.makefile("rb").readline()
        connection.sendall(line + b"\n")

    return served


def sealing(with_key: Callable[[str], str]) -> Serve:
    """Seal an answer with what a credential has for it, or with something else."""

    def served(connection: socket.socket) -> None:
        line = connection.makefile("rb").readline().split(b":")[1]
        request = decode(base64.b64decode(line))
        answer = sealed(ok(uid="--restrict-uid=4711"), with_key(request.fields[SEAL_KEY]))
        connection.sendall(encode(answer) + b"\n")

    return served


def test_an_answer_that_pliantds_user_sealed_is_believed(
    served: Callable[..., tuple[str, int]], tmp_path: Path
) -> None:
    host, port = served(challenge(sealing(str)), True)
    body = f"assert sys.argv[1:] == ['--restrict-uid=4711']\n{CREDENTIAL}"
    answer = ask_over_tcp(
        host, port, Message("jobs"), munge=fake_munge(tmp_path, body), reader=4711
    )
    assert answer == ok(uid="--restrict-uid=4711")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (echo, "no seal"),
        (sealing(lambda _key: "guessed"), "no seal"),
        (sealing(lambda key: key + "\udcff"), "no seal"),
        (says(b"ok seal=%FF"), "no seal"),
        (says(b"no message=away%1B"), "'away?'"),
    ],
)
def test_no_other_answer_is_where_pliantds_user_is_known(
    served: Callable[..., tuple[str, int]], tmp_path: Path, how: Serve, why: str
) -> None:
    host, port = served(challenge(how), True)
    munge = fake_munge(tmp_path, CREDENTIAL)
    with pytest.raises(Unavailable) as wrong:
        ask_over_tcp(host, port, Message("run-watch"), munge=munge, reader=4711)
    words = f"what answers there is not known to be pliantd: {why}"
    assert str(wrong.value) == f"pliantd at {host}:{port}: {words}"


@given(MESSAGES, TEXT)
def test_a_seal_tells_every_change(message: Message, key: str) -> None:
    answer = Message(message.word, {k: v for k, v in message.fields.items() if k != SEAL})
    line = decode(encode(sealed(answer, key)))
    assert unsealed(line, key) == answer
    assert unsealed(line, key + "x") is None
    assert unsealed(Message(line.word, {**line.fields, "more": "x"}), key) is None


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_pliantd_of_an_earlier_release_is_said_in_one_line(
    served: Callable[..., tuple[str, int]], tmp_path: Path
) -> None:
    host, port = served(earlier, True)
    with pytest.raises(Unavailable) as wrong:
        ask_over_tcp(host, port, Message("jobs"), munge=fake_munge(tmp_path, CREDENTIAL))
    assert str(wrong.value) == (
        f"pliantd at {host}:{port}: it is of an earlier release than this pliant: upgrade it there"
    )


@pytest.mark.parametrize(
    ("how", "message", "timeout_s"),
    [
        (wait_long, "does not answer in time", 0.3),
        (challenge(wait_long), "does not answer", 2),
        (lambda _: None, "the connection was closed before an answer|reset|Broken pipe", 60),
        (challenge(lambda _: None), "the connection was closed before an answer|reset|pipe", 60),
        (garbage, "its answer is not understood", 60),
    ],
)
def test_a_second_door_that_does_not_answer_is_said_in_one_line(
    served: Callable[..., tuple[str, int]],
    tmp_path: Path,
    how: Serve,
    message: str,
    timeout_s: float,
) -> None:
    host, port = served(how, True)
    munge = fake_munge(tmp_path, CREDENTIAL)
    with pytest.raises(Unavailable, match=message):
        ask_over_tcp(host, port, Message("jobs"), munge=munge, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('munge: Error: Failed to access \"/run/m\"')", "Failed to access"),
        ("time.sleep(10)", "munge does not answer"),
    ],
)
def test_a_munge_that_fails_is_said_in_one_line(
    served: Callable[..., tuple[str, int]], tmp_path: Path, body: str, message: str
) -> None:
    host, port = served(challenge(wait_for_end), True)
    with pytest.raises(Unavailable, match=message):
        ask_over_tcp(host, port, Message("jobs"), munge=fake_munge(tmp_path, body), timeout_s=0.5)


def test_a_munge_that_is_not_there_is_said_in_one_line(
    served: Callable[..., tuple[str, int]],
) -> None:
    host, port = served(challenge(wait_for_end), True)
    with pytest.raises(Unavailable, match="is munge installed"):
        ask_over_tcp(host, port, Message("jobs"), munge="/nowhere/munge")


def test_a_name_server_that_is_away_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: ends.wait(60))
    with pytest.raises(Unavailable, match=r"ctl:1: no name server says in time where that is$"):
        ask_over_tcp("ctl", 1, Message("jobs"), munge=fake_munge(tmp_path, CREDENTIAL), timeout_s=1)
    ends.set()


def test_a_host_of_several_addresses_is_asked_at_one_that_answers(
    served: Callable[..., tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, port = served(challenge(echo), True)
    ipv4 = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    found = [(*ipv4, (host, 1)), (*ipv4, (host, port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: found)
    munge = fake_munge(tmp_path, CREDENTIAL)
    assert ask_over_tcp("ctl", port, Message("jobs"), munge=munge).is_ok


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_what_is_no_name_of_a_host_is_said_in_one_line(host: str, tmp_path: Path) -> None:
    munge = fake_munge(tmp_path, CREDENTIAL)
    with pytest.raises(Unavailable, match=rf"{host}:1: that is no name of a host$"):
        ask_over_tcp(host, 1, Message("jobs"), munge=munge)


def test_a_host_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    munge = fake_munge(tmp_path, CREDENTIAL)
    with pytest.raises(Unavailable, match=r"pliantd at 127\.0\.0\.1:1: Connection refused"):
        ask_over_tcp("127.0.0.1", 1, Message("jobs"), munge=munge)
