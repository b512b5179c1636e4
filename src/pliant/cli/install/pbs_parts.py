"""What a PBS server is to have for Pliant, as statements of qmgr(8). Pure.

qmgr prints a hook as the statements that would make it, its files in base64; what is there and what
is wanted are compared as such, so nothing is told that is so already.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pliant.filter.pbs.names import HOOKS as NAMES_BEGIN
from pliant.filter.pbs.names import RESOURCES, SENDS_BACK, TOKEN

PREFIX = NAMES_BEGIN
ALARM_S = {"queuejob": 5, "modifyjob": 5, "movejob": 5, "runjob": 5, "periodic": 60}
NODE_ALARM_S = 300
"""On a node PBS kills a hook at its alarm, and execjob_launch takes the job with it: a node that is
busy must not come near it."""
FREQ_S = 60
LAST = {"queuejob": 1000, "modifyjob": 1000, "movejob": 1000}
"""Their order. A site's own hooks come before: what they refuse is what an owner wrote."""
_SET = re.compile(r"set (hook|resource) (\S+) (\S+) (\+?=) (.*)")
_IMPORT = re.compile(r"import hook (\S+) application/x-(python|config) base64 -")


@dataclass(slots=True)
class Found:
    """What qmgr prints: attributes by kind and name, and hooks' files by (name, python|config)."""

    attributes: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    files: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def has(self, kind: str, name: str) -> bool:
        """Whether a hook or resource of this name is there."""
        return (kind, name) in self.attributes


def found_in(out: str) -> Found:
    """Read what ``print resource`` and ``print hook`` printed."""
    found, file, lines = Found(), None, []
    for line in [*out.splitlines(), ""]:
        if file is not None and line and not line.startswith(("#", "set ", "create ", "import ")):
            lines.append(line)
            continue
        if file is not None:
            found.files[file] = _decoded(lines)
            file, lines = None, []
        created = line.split()
        if created[:1] == ["create"] and len(created) == 3:
            found.attributes.setdefault((created[1], created[2]), {})
        said = _SET.fullmatch(line.strip())
        if said:
            attributes = found.attributes.setdefault((said[1], said[2]), {})
            value = said[5].strip('"')
            more = said[4] == "+=" and said[3] in attributes  # each further event of a hook
            attributes[said[3]] = f"{attributes[said[3]]},{value}" if more else value
        imported = _IMPORT.fullmatch(line.strip())
        if imported:
            file = (imported[1], imported[2])
    return found


def _decoded(lines: Sequence[str]) -> bytes:
    """Each line is a piece of its own, with its own padding."""
    try:
        return b"".join(map(base64.b64decode, lines))
    except (binascii.Error, ValueError):
        return b""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, with what follows it on qmgr's input; ``words`` say it to a person."""

    text: str
    words: str


def resources_wanted() -> Mapping[str, Mapping[str, str]]:
    """Return the resources by name, and their attributes: the token is for managers to write."""
    wanted: dict[str, Mapping[str, str]] = {n: {"type": "string"} for n in RESOURCES.values()}
    return {**wanted, TOKEN: {"type": "string", "flag": "r"}}


def foreign(found: Found, ours: Iterable[str]) -> str:
    """Say which of our names the site has given to another sort of resource; "" for none.

    ``ours``: those that we created, which are put right; jobs have the others as they are.
    """
    for name, wanted in resources_wanted().items():
        there = found.attributes.get(("resource", name))
        if there is None or name in ours:
            continue
        for key in ("type", "flag"):
            has, right = _letters(key, there), _letters(key, wanted)
            if has != right:
                words = f"its {key} is {has or 'not set'}, and Pliant's is {right or 'not set'}"
                return f"resource {name}: the site has one of this name: {words}"
    return ""


def _letters(key: str, attributes: Mapping[str, str]) -> str:
    """Return a type, or flags in one order."""
    said = attributes.get(key, "")
    return "".join(sorted(said)) if key == "flag" else said


def hook_attributes(event: str) -> Mapping[str, str]:
    """Return the attributes of one hook."""
    alarm_s = ALARM_S.get(event, NODE_ALARM_S)
    freq = {"freq": str(FREQ_S)} if event == "periodic" else {}
    order = {"order": str(LAST[event])} if event in LAST else {}
    return {"event": event, "alarm": str(alarm_s), **freq, **order, "enabled": "true"}


def config_text(settings: Mapping[str, object]) -> bytes:
    """Return the hooks' configuration."""
    return (json.dumps(settings, sort_keys=True) + "\n").encode()


def to_install(
    found: Found, hooks: Mapping[str, bytes], config: bytes, former: Sequence[str] = ()
) -> list[Statement]:
    """Return what is to be told so that all is there; the queuejob hook comes last.

    ``hooks``: each hook's text by event. Once all else stands, jobs are changed. ``former``: the
    events of hooks that an earlier release has made, and that are taken away.
    """
    statements: list[Statement] = []
    for name, wanted in resources_wanted().items():
        if not found.has("resource", name):
            statements.append(_plain(f"create resource {name}"))
        statements += _settings("resource", name, wanted, found)
    for event in sorted(hooks, key=lambda event: event == "queuejob"):
        name = PREFIX + event
        if not found.has("hook", name):
            statements.append(_plain(f"create hook {name}"))
            statements.append(_plain(f"set hook {name} enabled = false"))
        for kind, data in (("python", hooks[event]), ("config", config)):
            if found.files.get((name, kind)) != data:
                statements.append(_import(name, kind, data))
        fresh = {} if found.has("hook", name) else {"enabled": "false"}
        statements += _settings("hook", name, hook_attributes(event), found, fresh)
    return statements + _deleted(found, former)


def to_remove(found: Found, created: Iterable[str], events: Sequence[str]) -> list[Statement]:
    """Return what is to be told so that nothing of ours is left; resources that we made go last.

    The hook that sends jobs back goes before the one that refuses their next start.
    """
    firsts = ("queuejob", SENDS_BACK.removeprefix(PREFIX))
    statements = _deleted(found, sorted(events, key=lambda event: event not in firsts))
    ours = [name for name in created if found.has("resource", name)]
    return statements + [_plain(f"delete resource {name}") for name in ours]


def _deleted(found: Found, events: Iterable[str]) -> list[Statement]:
    hooks = (PREFIX + event for event in events)
    return [_plain(f"delete hook {name}") for name in hooks if found.has("hook", name)]


def turned(was: str, to: str) -> list[Statement]:
    """Return what enables or disables the hook that sends jobs back, where that is a change."""
    return [_plain(f"set hook {SENDS_BACK} enabled = {to}")] if was and was != to else []


def _settings(
    kind: str,
    name: str,
    wanted: Mapping[str, str],
    found: Found,
    known: Mapping[str, str] | None = None,
) -> list[Statement]:
    there = {**found.attributes.get((kind, name), {}), **(known or {})}
    return [
        _plain(f"set {kind} {name} {attribute} = {value}")
        for attribute, value in wanted.items()
        if there.get(attribute) != value
    ]


def _plain(text: str) -> Statement:
    return Statement(text, text)


def _import(name: str, kind: str, data: bytes) -> Statement:
    head = f"import hook {name} application/x-{kind} base64 -"
    body = base64.encodebytes(data).decode()
    return Statement(f"{head}\n{body}\n", f"import hook {name} ({kind}, {len(data)} bytes)")
