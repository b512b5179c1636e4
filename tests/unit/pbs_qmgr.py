"""What qmgr knows of resources and hooks, and qmgr itself: for what installs and what looks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pliant.batch.clients import Answer
from pliant.cli import cli
from pliant.hooks import hook_text

TEXT = cache(hook_text)


class Server:
    """What qmgr knows, and qmgr itself."""

    def __init__(self, directory: Path) -> None:
        self.record = directory / "record.json"
        self.state: dict[str, dict[str, dict[str, str]]] = {
            "resource": {"ngpus": {"type": "long", "flag": "hn"}},
            "hook": {},
        }
        self.looks: list[dict[str, object]] = []  # what qstat says, one after the other
        self.schedulers = ""  # what is listed of them
        self.told: list[str] = []
        self.busy: frozenset[str] = frozenset()
        self.holds: dict[str, str] = {}  # what qrls says, where it does not release

    def install(self, *words: str, status: int = 0, catches: bool = True) -> Result:
        argv = ["install", "pbs", "--record", str(self.record), *words]
        result = CliRunner().invoke(cli, argv, catch_exceptions=catches)
        assert result.exit_code == status, result.output
        return result

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer as qmgr, qstat and qrls."""
        if argv[0] == "qstat":
            return Answer(json.dumps({"Jobs": self.looks.pop(0) if self.looks else {}}), "", 0)
        if argv[0] == "qrls":
            self.told.append(" ".join(argv))
            return Answer("", self.holds.get(argv[-1], ""), int(argv[-1] in self.holds))
        assert (argv[0], env) == ("qmgr", None)
        self.told += [stdin.partition("\n")[0]] if stdin else []
        if argv[1:] == ("-c", "list sched"):
            return Answer(self.schedulers, "", 0)
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
                    first, *more = value.split(",") if key == "event" else [value]
                    yield f"set {kind} {name} {key} = {first}\n"
                    yield from (f"set {kind} {name} {key} += {one}\n" for one in more)

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


def qmgr(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a server that `pliant install pbs` tells; pliant.toml lies in ``directory``."""
    monkeypatch.setenv("PLIANT_CONFIG", str(directory / "pliant.toml"))
    made = Server(directory)
    pbs = sys.modules["pliant.cli.install.pbs"]  # its command has the same name
    monkeypatch.setattr(pbs, "Commands", lambda *_words, **_named: made)
    monkeypatch.setattr(pbs, "hook_text", TEXT)
    return made
