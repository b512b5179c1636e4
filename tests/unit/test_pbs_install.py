"""`pliant install pbs`, over a small double of qmgr."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pliant.batch.clients import Answer
from pliant.cli import cli
from pliant.cli.install.pbs_parts import found_in
from pliant.filter.pbs.names import RESOURCES, TOKEN
from pliant.hooks import HOOKS, hook_text

TEXT = cache(hook_text)


class Server:
    """What qmgr knows, and qmgr itself."""

    def __init__(self, directory: Path) -> None:
        self.record = directory / "record.json"
        self.state: dict[str, dict[str, dict[str, str]]] = {
            "resource": {"ngpus": {"type": "long"}},
            "hook": {},
        }
        self.busy: frozenset[str] = frozenset()

    def install(self, *words: str, status: int = 0) -> Result:
        argv = ["install", "pbs", "--record", str(self.record), *words]
        result = CliRunner().invoke(cli, argv)
        assert result.exit_code == status, result.output
        return result

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer as qmgr."""
        assert (argv[0], env) == ("qmgr", None)
        if argv[1:]:
            return Answer("".join(self._printed(argv[2].split()[1])), "", 0)
        words = self._told(stdin)
        return Answer("", f"qmgr obj= svr=default: {words}\n" if words else "", int(words != ""))

    def _printed(self, kind: str) -> Iterator[str]:
        for name, one in self.state[kind].items():
            yield f"#\n# Create and define {kind} {name}\n#\ncreate {kind} {name}\n"
            for key, value in one.items():
                if key in ("python", "config"):
                    yield f"import hook {name} application/x-{key} base64 -\n{value}\n\n"
                else:
                    yield f"set {kind} {name} {key} = {value}\n"

    def _told(self, text: str) -> str:
        head, _, body = text.partition("\n")
        verb, kind, name, *rest = head.split()
        there = self.state[kind]
        if verb == "create":
            assert name not in there
            there[name] = {}
        elif verb == "delete":
            if name in self.busy:
                return "Resource busy on job"
            del there[name]
        elif verb == "set":
            if kind == "hook" and rest == ["enabled", "=", "true"]:
                assert "python" in there[name]
            there[name][rest[0]] = rest[2]
        else:
            there[name][rest[0].rpartition("-")[2]] = body.strip()
        return ""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("PLIANT_CONFIG", str(tmp_path / "pliant.toml"))
    made = Server(tmp_path)
    pbs = sys.modules["pliant.cli.install.pbs"]  # its command has the same name
    monkeypatch.setattr(pbs, "Commands", lambda *_words, **_named: made)
    monkeypatch.setattr(pbs, "hook_text", TEXT)
    return made


def test_what_is_shown_is_what_is_done_and_done_once(server: Server) -> None:
    before = deepcopy(server.state)
    shown = server.install("--print").output
    assert server.state == before
    assert server.install("--apply").output.startswith(shown)
    assert server.install().output == "all is installed\n"
    assert server.install("--apply").output == "all is installed\n"


def test_all_stands_before_a_job_is_changed(server: Server) -> None:
    lines = server.install("--apply").output.splitlines()
    assert lines[-2] == "set hook pliant_queuejob enabled = true"
    state = server.state
    assert {"ngpus", TOKEN, *RESOURCES.values()} == set(state["resource"])
    assert state["resource"][TOKEN] == {"type": "string", "flag": "r"}
    assert {name.removeprefix("pliant_") for name in state["hook"]} == set(HOOKS)
    for one in state["hook"].values():
        compile(base64.b64decode(one["python"]), "hook", "exec")
        assert json.loads(base64.b64decode(one["config"]))["owner"] == 0
    alarms = {name: int(one["alarm"]) for name, one in state["hook"].items()}
    assert alarms["pliant_queuejob"] <= 5  # the server stands still meanwhile
    assert alarms["pliant_execjob_launch"] >= 300  # its end would be the job's


def test_what_somebody_changed_is_put_right_and_nothing_else(server: Server) -> None:
    server.install("--apply")
    server.state["hook"]["pliant_queuejob"]["alarm"] = "90"
    server.state["hook"]["pliant_launch"] = {"event": "execjob_launch"}
    assert server.install().output == "set hook pliant_queuejob alarm = 5\n"


def test_removal_leaves_the_server_as_it_was(server: Server) -> None:
    server.state["resource"]["steps"] = {"type": "string"}  # the site has one of this name
    before = deepcopy(server.state)
    server.install("--apply")
    server.install("--remove")
    assert (server.state, server.record.exists()) == (before, False)
    assert server.install("--remove").output == "nothing is installed\n"


def test_what_a_job_still_has_is_left_and_said(server: Server) -> None:
    server.install("--apply")
    server.busy = frozenset({"moldable"})
    output = server.install("--remove", status=1).output
    assert "left: delete resource moldable: qmgr obj= svr=default: Resource busy on job" in output
    assert (list(server.state["resource"]), server.state["hook"]) == (["ngpus", "moldable"], {})
    server.busy = frozenset()
    assert server.install("--remove").output == "delete resource moldable\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--apply", "--remove"), "one of them is expected"),
        (("--user", "nobody-here"), "the name of a user here is expected"),
        (("--record", "x"), "an absolute path is expected"),
    ],
)
def test_bad_words_are_said_in_one_line(
    server: Server, words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        CliRunner().invoke(cli, ["install", "pbs", *words], catch_exceptions=False)
    assert server.state["hook"] == {}


def test_what_qmgr_prints_of_a_file_in_pieces_is_one_file() -> None:
    text = b"x" * 3000
    pieces = "\n".join(base64.b64encode(text[i : i + 512]).decode() for i in range(0, 3000, 512))
    out = (
        f"create hook a\nimport hook a application/x-python base64 -\n{pieces}\n\nset hook a b = c"
    )
    found = found_in(out)
    assert found.files == {("a", "python"): text}
    assert found.attributes == {("hook", "a"): {"b": "c"}}
