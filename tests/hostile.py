"""What nobody should write, in one list for all doors: what is malformed, and what is hostile."""

from __future__ import annotations

from pliant.grammar import OPTIONS

MALFORMED = [
    "gpus=", "gpus=0", "gpus=-1", "gpus=x", "gpus=1-", "gpus=-4", "gpus=4-1", "gpus=1..4",
    "gpus=1,4", "gpus=1:", "gpus=:1", "gpus=1/1", "gpus=1/0", "gpus=1/65", "gpus=2/3", "gpus=1.5",
    "gpus=4097", "gpus=99999999999999999999", "gpus=0x2", "gpus=1;gpus=2", "gpus=1,gpus=2",
    "nodes=0", "nodes=1/2", "nodes=a", "gpus=1-4,nodes=", "gpus=1,type=tpu", "gpus=1,cores=many",
    "gpus=1,gpu-mem=6X", "gpus=1,gpu-type=cpu", "cores=4", "gpus=1,speed=2", "moldable=",
    "malleable=grace=2y", "malleable=signal=KILL", "malleable=max-resizes=-1",
    "malleable=max-resizes=$(id)", "malleable=min-run=0", "malleable=min-run=1d",
    "malleable=checkpoint=$(id)", "malleable=checkpoint=a=b", "job-class=vip", "throughput=2x4",
    "throughput=1:-5", "steps=0", "steps=1e9", "colocate=maybe", "own=4", "gpus=1-4;set=4",
    "gpus=1-4;fp=1,0,1,0,0,0,0", "gpus=1-4;pinned", "", ";", "gpus=1-4096,nodes=1-4096",
    "gpus=$(id)", "gpus=`id`", "gpus=1|2", "gpus=\u0661", "gpus=1'", 'gpus="1"', "gpus=1\\n2",
]  # fmt: skip
"""A job's words, as its comment would have them."""
HOSTILE = [
    "", "gpus=4-1", "gpus=0", "gpus=1 AdminComment=x", "gpus=$(touch /tmp/pliant-owned)", "gpus=a|b",
    "gpus=1\nsbatch: error: no", "'\"`\\", "gpus=é\u0661", "x" * 65_536, "gpus=%n%s", "nodes=1,nodes=2",
]  # fmt: skip
"""Values of --moldable."""


def values() -> list[tuple[str, str]]:
    """Return both lists as options and their values; all of them are wrong."""
    said = [("moldable", value) for value in HOSTILE]
    for words in MALFORMED:
        option, _, value = words.partition("=")
        said.append((option, value) if option in OPTIONS else ("moldable", words))
    return list(dict.fromkeys(said))
