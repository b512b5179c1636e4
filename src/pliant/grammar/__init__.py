"""What an owner may say about a job, in text, and back.

::

    SHAPE       [NODESx]GPUS[@TYPE]       4  2x4  1/4  2x4@a100  1x0@cpu  1@both  2@a100:both
    moldable    KEY=VALUE{,KEY=VALUE}     (PBS writes + for the comma)
                gpus=LIST                 totals: 1-4, 1:2:4:8, 1/4-4 (1/4, 1/3, 1/2, 1, 2, 3, 4)
                nodes=LIST                1-4, 1:2
                type=gpu:cpu:both         any of them
                cores=N|all               per node, for cpu and both
                gpu-type=NAME{:NAME}
                gpu-mem=SIZE              6G; of one GPU, for shares
    malleable   KEY=VALUE{,KEY=VALUE}, or nothing
                grace=TIME                at most so long for a checkpoint
                signal=NAME
                stalled=requeue|leave     what becomes of a program that a request hung
                max-resizes=N             how often policies may resize it; 0: never
                min-run=TIME              ... and how long it works in between, at least
                checkpoint=PATH           what a checkpoint must have changed, of letters, digits,
                                          and ._/@-
    job-class   trial | best-effort
    throughput  SHAPE:NUMBER{,SHAPE:NUMBER}   steps per second
    steps       N
    colocate    [yes|no]

One job's words together, as ``--comment=pliant:...`` has them and as the token keeps them, are
``OPTION[=VALUE]`` separated by ``;``. A first word that names a key of moldable may leave out
``moldable=``: ``pliant:gpus=1-4;steps=2000``.

Every error is one line of printable ASCII, ``OPTION: 'VALUE': what would be right``; the SPANK
plugin says the same words. Values are quoted by :func:`quoted`.
"""

from pliant.grammar.options import (
    MOLDABLE_KEYS,
    OPTIONS,
    SIGNALS,
    parse,
    parse_option,
)
from pliant.grammar.shapes import dropped, no_larger, shapes
from pliant.grammar.text import request_text
from pliant.grammar.token import (
    MAX_NODES,
    MEMORY,
    MIN_CPUS,
    NICE,
    PRIORITY,
    TIME_MIN,
    UNANSWERED,
    find_token,
    from_comment,
    note,
    noted,
    put_token,
    spec_text,
    token_text,
    tokens,
)
from pliant.grammar.values import parse_shape, quoted

__all__ = [
    "MAX_NODES",
    "MEMORY",
    "MIN_CPUS",
    "MOLDABLE_KEYS",
    "NICE",
    "OPTIONS",
    "PRIORITY",
    "UNANSWERED",
    "SIGNALS",
    "TIME_MIN",
    "dropped",
    "find_token",
    "from_comment",
    "no_larger",
    "note",
    "noted",
    "parse",
    "parse_option",
    "parse_shape",
    "put_token",
    "quoted",
    "request_text",
    "shapes",
    "spec_text",
    "token_text",
    "tokens",
]
