"""A message to a line and back; no I/O."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pliant.errors import BadInput
from pliant.grammar import quoted

MAX_REQUEST = 256 * 1024
"""The longest request, in bytes, with its newline."""
MAX_ANSWER = 256 * 1024 * 1024
"""The longest answer that a client takes, in bytes: lists of all jobs come as one field."""
MAX_FIELDS = 256

OK, NO = "ok", "no"
STANDS_BY = "stands-by"
"""A field of an answer from a pliantd that stands by: which other host acts, in words."""
HELLO = "hello"
"""The first request at door 2; its answer has the challenge."""
CHALLENGE = "challenge"
"""A field of that answer, and of the request that a credential carries on this connection."""

SEAL_KEY = "seal-key"
"""A field of a request that pliantd's user alone can read: what seals the answer."""
SEAL = "seal"
"""The last field of a sealed answer: nobody else could have written it."""

_WORD = re.compile(rb"[a-z][a-z0-9-]{0,31}")
_NAME = re.compile(rb"(?:[A-Za-z0-9_.-]|%[0-9A-Fa-f]{2}){1,192}")
_VALUE = re.compile(rb"(?:[A-Za-z0-9_.-]|%[0-9A-Fa-f]{2})*")


@dataclass(frozen=True, slots=True)
class Message:
    """A request (``word`` is its verb) or an answer (``word`` is ok or no)."""

    word: str
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        """Whether this answer is an ok."""
        return self.word == OK

    @property
    def message(self) -> str:
        """What an answer says to a person, in one line."""
        return self.fields.get("message", "")


def encode(message: Message) -> bytes:
    """Write a message as a line, without its newline."""
    pairs = [escape(name) + b"=" + escape(value) for name, value in message.fields.items()]
    return b" ".join([message.word.encode("ascii"), *([b"&".join(pairs)] if pairs else [])])


def decode(line: bytes) -> Message:
    """Read a line, with or without its newline.

    Raises BadInput in one line.
    """
    word, _, rest = line.removesuffix(b"\n").partition(b" ")
    if not _WORD.fullmatch(word):
        raise _bad(word, "a line begins with a word of a-z")
    pairs = rest.split(b"&", MAX_FIELDS) if rest else []
    if len(pairs) > MAX_FIELDS:
        raise _bad(word, f"at most {MAX_FIELDS} fields are expected")
    fields: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition(b"=")
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise _bad(pair, "field=value with other bytes as %XX is expected")
        text = _unescape(name)
        if text in fields:
            raise _bad(name, "this field stands twice")
        fields[text] = _unescape(value)
    return Message(word.decode("ascii"), fields)


def ok(**fields: str) -> Message:
    """Return an answer that says yes."""
    return Message(OK, fields)


def no(message: str) -> Message:
    """Return an answer that says no, and why."""
    return Message(NO, {"message": message})


def escape(text: str) -> bytes:
    """Write a name or a value as it stands in a line."""
    # urllib leaves "~" as it is; to the other side it is a byte like any other.
    raw = text.encode("utf-8", "surrogateescape")
    return quote_from_bytes(raw, safe="").replace("~", "%7E").encode("ascii")


def _unescape(raw: bytes) -> str:
    return unquote_to_bytes(raw).decode("utf-8", "surrogateescape")


def _bad(raw: bytes, right: str) -> BadInput:
    return BadInput(f"line: {quoted(raw.decode('utf-8', 'surrogateescape'))}: {right}")


def sealed(answer: Message, key: str) -> Message:
    """Return an answer with its seal."""
    return Message(answer.word, {**answer.fields, SEAL: _seal(answer, key)})


def unsealed(answer: Message, key: str) -> Message | None:
    """Return an answer without its seal; None where that is missing or broken."""
    fields = dict(answer.fields)
    said = fields.pop(SEAL, "")
    bare = Message(answer.word, fields)
    return bare if hmac.compare_digest(_bytes(said), _seal(bare, key).encode()) else None


def _seal(answer: Message, key: str) -> str:
    return hmac.digest(_bytes(key), encode(answer), "sha256").hex()


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
