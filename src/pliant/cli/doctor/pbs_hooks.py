"""Pliant inside PBS: its resources, its hooks, their configuration, and what pliantd tells them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from pliant import __version__
from pliant.batch.pbs.values import number
from pliant.cli.doctor.findings import Finding, advice, fault, ok, skipped
from pliant.cli.doctor.pbs_patient import PbsPatient, read_settings
from pliant.cli.install.pbs_parts import PREFIX, Found, hook_attributes, resources_wanted
from pliant.errors import BadInput
from pliant.filter.pbs.names import SENDS_BACK
from pliant.filter.pbs.state import MAX_AGE_S, MAX_BYTES, read_state
from pliant.hooks import FORMER, HOOKS, hook_text
from pliant.hooks.reading import Settings

INSTALL = "pliant install pbs --apply, as root on the server's host"
_HEAD = re.compile(rb"# Pliant (\S+): the ")
_NEEDED = ("event", "enabled")
"""Attributes without which a hook is none."""


def check_hooks(patient: PbsPatient) -> Iterator[Finding]:
    """Look at resources and hooks: what the installer would tell is what is missing."""
    if patient.server is None:
        return
    if patient.resources is not None:
        yield _resources(patient.resources)
    if patient.hooks is None:
        yield skipped("hooks", f"qmgr tells {patient.user} nothing of them here")
        return
    if not any(patient.hooks.has("hook", PREFIX + event) for event in HOOKS):
        yield fault("hooks", "none of Pliant's is there", INSTALL)
        return
    for event in HOOKS:
        yield _hook(event, patient.hooks)
    for name in (PREFIX + event for event in FORMER):
        if patient.hooks.has("hook", name):
            yield advice(name, "of an earlier release: each job starts later for it", INSTALL)
    yield from _uncalled(patient.hooks)
    yield from _configuration(patient, patient.hooks)


def _resources(found: Found) -> Finding:
    name, wanted = "resources", resources_wanted()
    missing = [one for one in wanted if not found.has("resource", one)]
    if missing:
        return fault(name, f"{', '.join(missing)}: not there", INSTALL)
    wrong = [
        f"{one}: {_differing(found.attributes['resource', one], said)}"
        for one, said in wanted.items()
        if _differing(found.attributes["resource", one], said)
    ]
    if wrong:
        return fault(name, "; ".join(wrong), INSTALL)
    return ok(name, ", ".join(wanted))


def _differing(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """Return which attributes are others than is wanted, in words; "" for none."""
    return ", ".join(
        f"{key} is {found.get(key) or 'not set'} instead of {value}"
        for key, value in wanted.items()
        if found.get(key) != value
    )


def _hook(event: str, found: Found) -> Finding:
    hook = PREFIX + event
    said, wanted = found.attributes.get(("hook", hook)), hook_attributes(event)
    if said is None:
        return fault(hook, "it is not there", INSTALL)
    differing = _differing(said, wanted)
    if differing:
        broken = any(said.get(key) != wanted[key] for key in _NEEDED) or _kills(said, wanted)
        return (fault if broken else advice)(hook, differing, INSTALL)
    text = found.files.get((hook, "python"), b"")
    if text == hook_text(event).encode():
        return ok(hook, f"enabled, alarm {wanted['alarm']} s")
    if not text:
        return fault(hook, "it has no text", INSTALL)
    head = _HEAD.search(text[:300])
    release = head[1].decode(errors="replace") if head else ""
    other = release if release not in ("", __version__) else "another text"
    return advice(hook, f"it is of {other}, not of this pliant {__version__}", INSTALL)


def _uncalled(found: Found) -> Iterator[Finding]:
    """Name the site's hooks of a run's end that are not called where ours sends the job back.

    PBS calls no further hook of an event that one has refused, and a job goes back by that.
    """
    ours = found.attributes.get(("hook", SENDS_BACK), {})
    for (kind, name), said in found.attributes.items():
        events = said.get("event", "").split(",")
        if kind != "hook" or name.startswith(PREFIX) or said.get("enabled") != "true":
            continue
        if "execjob_epilogue" not in events or "execjob_end" in events:
            continue
        if _order(said) >= _order(ours):
            yield advice(
                name,
                f"execjob_epilogue: not called for a run that {SENDS_BACK} sends back",
                "what cleans up after a run belongs into execjob_end, which is called always",
            )


def _order(said: Mapping[str, str]) -> int:
    """Return which place among the hooks of its event a hook has; PBS begins with the least."""
    return number(said.get("order", "1"))


def _kills(said: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether an alarm comes sooner than is right: on a node it ends the job with the hook."""
    alarm = said.get("alarm", "")
    return wanted["event"].startswith("exec") and not (
        alarm.isdecimal() and int(alarm) >= int(wanted["alarm"])
    )


def _configuration(patient: PbsPatient, found: Found) -> Iterator[Finding]:
    """Look at the hooks' configuration: whether it leads to what pliantd tells."""
    name, faults, remarks = "hooks' settings", dict[str, str](), dict[str, str]()
    for event in HOOKS:
        if not found.has("hook", PREFIX + event):
            continue
        settings = read_settings(found.files.get((PREFIX + event, "config"), b""))
        if settings is None:
            faults.setdefault("no JSON object: they take their defaults", event)
            continue
        for words in _wrong(settings, patient):
            faults.setdefault(words, event)
        for words in _unknown(settings):
            remarks.setdefault(words, event)
    for words, event in faults.items():
        yield fault(name, f"{PREFIX}{event}: {words}", _cure(patient))
    for words, event in remarks.items():
        yield advice(name, f"{PREFIX}{event}: {words}", "docs/pbs.md has the table of keys")
    if not faults and not remarks:
        state = patient.settings.pbs.state
        yield ok(name, f"they read {state} of root or uid {patient.pliantd_uid}")


def _wrong(said: Mapping[str, object], patient: PbsPatient) -> Iterator[str]:
    """Yield what keeps hooks from what pliantd writes."""
    pbs, ours = patient.settings.pbs, Settings()
    state, owner = said.get("state", ours.state), said.get("owner", ours.owner)
    if state != pbs.state:
        yield f"state is {state}, and pliantd writes {pbs.state}"
    if patient.pliantd_uid not in (0, owner):
        yield f"owner is {owner}, and pliantd's user has uid {patient.pliantd_uid}"


def _unknown(said: Mapping[str, object]) -> Iterator[str]:
    """Yield which keys hooks do not read, or not as they are."""
    ours = Settings()
    for key, value in said.items():
        right = type(getattr(ours, key, None))
        if key not in {one.name for one in fields(Settings)}:
            yield f"{key} is no key that it reads"
        elif type(value) is not right:
            yield f"{key} is {value!r:.40}: a value of type {right.__name__} is expected"


def _cure(patient: PbsPatient) -> str:
    user = patient.settings.daemon.user
    named = f" --user {user}" if user else ""
    return f"pliant install pbs{named} --apply; it writes all of that configuration"


def check_state(patient: PbsPatient) -> Iterator[Finding]:
    """Look at the file by which the queuejob hook knows what is free."""
    name, path = "state file", Path(patient.settings.pbs.state)
    if patient.server is None:
        return
    if not patient.is_controller:
        if patient.has_pliantd:
            yield fault(
                "host",
                f"pliantd runs here, and PBS's server on {patient.server_host}: its hooks do not "
                "find what pliantd writes",
                f"run it on {patient.server_host}",
            )
        yield skipped(name, f"it is looked at on {patient.server_host}")
        return
    yield _state(name, path, patient)


def _state(name: str, path: Path, patient: PbsPatient) -> Finding:
    until = "until then hooks note requests and change nothing"
    try:
        seen = path.lstat()
        text = path.read_text(errors="replace") if stat.S_ISREG(seen.st_mode) else ""
    except OSError as error:
        return fault(name, f"{path}: {error.strerror}", f"{patient.start}; {until}")
    trouble = _untrusted(seen, patient)
    if trouble:
        return fault(name, f"{path}: {trouble}", f"take it away, and {patient.start}; {until}")
    try:
        state = read_state(text)
    except BadInput as wrong:
        return fault(name, f"{path}: {wrong}", f"{patient.start}; {until}")
    age_s = patient.now_s - state.written_s
    if not state.is_live(patient.now_s):
        return fault(
            name,
            f"{path}: written {age_s:.0f} s ago; hooks believe it for {MAX_AGE_S:.0f} s",
            f"{patient.start}; {until}",
        )
    return ok(name, f"{path}, written {max(0.0, age_s):.0f} s ago")


def _untrusted(seen: os.stat_result, patient: PbsPatient) -> str:
    """Say why the hooks do not trust a file, as pliant.hooks.reading does; "" where they do."""
    owner = patient.hooks_owner
    checks = (
        (not stat.S_ISREG(seen.st_mode), "it is no regular file"),
        (seen.st_size > MAX_BYTES, f"it is larger than {MAX_BYTES} bytes"),
        (
            owner is not None and seen.st_uid not in (0, owner),
            f"it is of uid {seen.st_uid}, whom the hooks do not believe",
        ),
        (bool(seen.st_mode & 0o022), f"others may write it: {stat.filemode(seen.st_mode)}"),
    )
    return next((words for holds, words in checks if holds), "")
