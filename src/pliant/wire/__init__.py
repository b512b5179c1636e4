"""One protocol for both doors of pliantd: one line in, one line out.

::

    request   VERB field=value&field=value
    answer    ok field=value&...           or           no message=...

A line ends with a newline. In fields and values every byte but ``A-Za-z0-9_.-`` is written as
``%XX``, so that nothing a user wrote can end a line or begin a field. Values are bytes; here they
are text as Python has file names (UTF-8, other bytes kept by surrogateescape).

Door 1 is a Unix socket: the client sends the request, and the next one on the same connection where
it is still open. Door 2 is TCP: the client says ``hello``, is answered ``ok challenge=...``, and
sends ``munge <credential>``, whose payload is the request with that challenge as a field: recorded,
it is of no use on any other connection, to whichever pliantd. Where pliantd's user is known nobody
else can read the credential, and a key in it seals the answer.

``plugins/slurm/pliant.lua`` speaks door 1 in its own words and must agree with
:mod:`pliant.wire.lines`.
"""

from pliant.wire.client import ask, ask_over_tcp
from pliant.wire.lines import (
    CHALLENGE,
    HELLO,
    MAX_ANSWER,
    MAX_REQUEST,
    NO,
    OK,
    SEAL_KEY,
    STANDS_BY,
    Message,
    decode,
    encode,
    escape,
    no,
    ok,
    sealed,
)

__all__ = [
    "CHALLENGE",
    "HELLO",
    "MAX_ANSWER",
    "MAX_REQUEST",
    "NO",
    "OK",
    "SEAL_KEY",
    "STANDS_BY",
    "Message",
    "ask",
    "ask_over_tcp",
    "decode",
    "encode",
    "escape",
    "no",
    "ok",
    "sealed",
]
