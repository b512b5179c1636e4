"""The token: one word in the batch system's own record that says all about a job.

``pliant=v1:<base64url of the text>:<Adler-32 of the text, 8 hex digits>`` stands in AdminComment
among other blank-separated words, which are left as they are. The check tells a cut or damaged
token from a whole one; who may write there is the batch system's affair (Slurm: administrators and
job_submit only).

The text is a request as :mod:`pliant.grammar` has it, followed by what the filter noted:
``own=SHAPE``, ``set=SHAPE``, ``fp=T,TG,C,CG,M,MC,MG`` (Footprint's fields in order), ``pinned``,
``renewed``, ``mark=NODE``.
A token that the submit plugin wrote while the daemon was away has the request alone.

What a key that it does not know says of a request, an older pliantd cannot tell: it would take the
whole token for none. So what its owner said and Pliant has to overwrite is noted in words of their
own beside it: for a hand-over the --time-min in minutes, ``pliant-time-min=20``, and the --nice,
``pliant-nice=100``, or the priority, ``pliant-priority=4294901400``, with the memory in MiB that a
job had which asked for none, ``pliant-memory=1000``; for a shape the CPUs that each
node must have, ``pliant-min-cpus=1``, and on how many nodes it may be, ``pliant-max-nodes=2``.
Where the submit filter got no answer in time it notes that too, ``pliant-unanswered=1``.
Older ones leave these words as they are.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable
from dataclasses import astuple, replace

from pliant.errors import BadSpec
from pliant.grammar.options import parse
from pliant.grammar.text import request_text
from pliant.grammar.values import parse_shape
from pliant.model import Footprint, Request, Spec, shape_text

PREFIX = "pliant=v1:"
TIME_MIN = "pliant-time-min="
NICE = "pliant-nice="
PRIORITY, MEMORY = "pliant-priority=", "pliant-memory="
MIN_CPUS, MAX_NODES = "pliant-min-cpus=", "pliant-max-nodes="
UNANSWERED = "pliant-unanswered="
COMMENT = "pliant:"
_FOOTPRINT_FIELDS = 7
_NUMBER = re.compile(r"-?[0-9]{1,10}", re.ASCII)


def from_comment(comment: str) -> str | None:
    """Return the words after ``pliant:`` at the start of a user's comment, up to a blank."""
    if not comment.startswith(COMMENT):
        return None
    return comment[len(COMMENT) :].split(maxsplit=1)[0] if comment[len(COMMENT) :].strip() else ""


def spec_text(spec: Spec) -> str:
    """Write all that a token says."""
    words = [request_text(spec.request)]
    if spec.own is not None:
        words.append(f"own={shape_text(spec.own)}")
    if spec.set is not None:
        words.append(f"set={shape_text(spec.set)}")
    if spec.footprint is not None:
        words.append(_footprint_text(spec.footprint))
    if spec.pinned:
        words.append("pinned")
    if spec.renewed:
        words.append("renewed")
    if spec.mark:
        words.append(f"mark={spec.mark}")
    return ";".join(word for word in words if word)


def parse_spec(text: str) -> Spec:
    """Read :func:`spec_text` back.

    Raises BadSpec.
    """
    request_words = []
    spec = Spec(Request())
    for word in text.split(";"):
        key, _, value = word.partition("=")
        match key:
            case "own":
                spec = replace(spec, own=parse_shape(value))
            case "set":
                spec = replace(spec, set=parse_shape(value))
            case "fp":
                spec = replace(spec, footprint=_footprint(value))
            case "pinned":
                spec = replace(spec, pinned=True)
            case "renewed":
                spec = replace(spec, renewed=True)
            case "mark":
                spec = replace(spec, mark=value)
            case _:
                request_words.append(word)
    return replace(spec, request=parse(";".join(request_words)) if request_words else Request())


def _footprint_text(footprint: Footprint) -> str:
    return "fp=" + ",".join(str(number) for number in astuple(footprint))


def _footprint(text: str) -> Footprint:
    numbers = text.split(",")
    if len(numbers) != _FOOTPRINT_FIELDS or not all(n.isascii() and n.isdecimal() for n in numbers):
        raise BadSpec(f"fp: '{text[:40]}': {_FOOTPRINT_FIELDS} whole numbers are expected")
    return Footprint(*(int(number) for number in numbers))


def token_text(spec: Spec) -> str:
    """Write the token's one word."""
    return pack(spec_text(spec))


def tokens(spec: Spec) -> Callable[[Footprint], str]:
    """Return what writes the token of a spec that has a footprint, with another one in its place.

    All else is written once.
    """
    assert spec.footprint is not None  # noqa: S101  # a mistake of our own
    text = _footprint_text(spec.footprint)
    before, _, after = spec_text(spec).rpartition(text)  # what an owner may have said comes before
    return lambda footprint: pack(f"{before}{_footprint_text(footprint)}{after}")


def pack(text: str) -> str:
    """Wrap a text into a token, as the submit plugin does too."""
    raw = text.encode()
    return f"{PREFIX}{base64.urlsafe_b64encode(raw).decode()}:{zlib.adler32(raw):08x}"


def unpack(word: str) -> str | None:
    """Return a token's text, or None where it is not a whole token of this version."""
    body, _, check = word.removeprefix(PREFIX).partition(":")
    if not word.startswith(PREFIX):
        return None
    try:
        raw = base64.b64decode(body, altchars=b"-_", validate=True)
        return raw.decode() if f"{zlib.adler32(raw):08x}" == check else None
    except (binascii.Error, ValueError):
        return None


def find_token(admin_comment: str) -> Spec | None:
    """Return what the first whole, readable token in AdminComment says, or None."""
    for word in admin_comment.split(" "):
        text = unpack(word) if word.startswith(PREFIX) else None
        if text is not None:
            try:
                return parse_spec(text)
            except BadSpec:
                continue
    return None


def put_token(admin_comment: str, spec: Spec) -> str:
    """Return AdminComment with our token in place of the old ones; other words stay as they are."""
    others = [word for word in admin_comment.split(" ") if not word.startswith(PREFIX)]
    return " ".join([*others, token_text(spec)]).strip(" ")


def noted(admin_comment: str, key: str) -> int:
    """Return the number that is noted beside the token, by one of these keys; 0 where none is."""
    words = (word.removeprefix(key) for word in admin_comment.split(" ") if word.startswith(key))
    return next((int(word) for word in words if _NUMBER.fullmatch(word)), 0)


def note(admin_comment: str, key: str, number: int) -> str:
    """Return AdminComment with a number noted beside the token; with 0, with none noted."""
    others = [word for word in admin_comment.split(" ") if not word.startswith(key)]
    return " ".join([*others, *([f"{key}{number}"] if number else [])]).strip(" ")
