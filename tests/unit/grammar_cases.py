"""What is right and wrong in the grammar, and texts that are nearly so: for every parser of it."""

from __future__ import annotations

import os

from hypothesis import strategies as st

from pliant.grammar import SIGNALS

GOOD = {
    "moldable": [
        "gpus=1-4", "gpus=1:2:4:8", "gpus=1/4-4", "gpus=1/64-4033", "gpus=8:1-2", "gpus=007",
        "gpus=2-2", "nodes=1-4,gpus=8", "gpus=8+nodes=1:2", "type=gpu:cpu:both,cores=16",
        "type=cpu,cores=all", "gpu-type=a100:h100", "gpu-type=a.b_c-d", "gpu-mem=6G,gpus=1/4",
        "gpus=1,gpu-mem=512", "gpus=1,gpu-mem=1T", "gpu-type=" + "a" * 64, "gpus=1/2-1/2",
        "gpus=" + "1:" * 2045 + "1", "gpus=1-4096", "nodes=1-4096:1-4096", "gpus=1-64,nodes=1-64",
        "gpus=1-512,nodes=1-4,gpu-type=a:b", "gpus=1-2048:7,gpu-type=a:b:a", "gpus=4033-4096:1/2-2",
    ],
    "malleable": [
        "", "grace=2m", "signal=USR1", "signal=SIGUSR1,grace=90", "grace=24h",
        "stalled=requeue", "stalled=leave,grace=2m", "max-resizes=3,min-run=2h", "max-resizes=0",
        "max-resizes=4096", "max-resizes=007", "min-run=24h", "min-run=1", "grace=2m+min-run=90s",
        "checkpoint=ckpt/last.pt", "checkpoint=/scratch/a.b_c-d@e,grace=2m", "checkpoint=" + "a" * 255,
        "checkpoint=.+min-run=1h", "checkpoint=../-x",
        "checkpoint=x,min-run=2h,max-resizes=5,stalled=requeue,signal=USR1,grace=1m",
    ],
    "job-class": ["trial", "best-effort"],
    "throughput": [
        "1:5.2", "1:5.2,2x4:16.9,1x0@cpu:0.4", "1:1+2:2", "1/4@a100:both:0.5", "4@both:3", "4:0",
        ",".join(f"{n}:1" for n in range(1, 65)), "2x4@a100:1.000000001", "4@a100:1,4@h100:1",
    ],
    "steps": ["1", "20000", "0001", "9" * 15],
    "colocate": ["", "yes", "no"],
}  # fmt: skip

BAD = {
    "moldable": [
        "", "gpus", "gpus=", "=4", "gpus=0", "gpus=4-1", "gpus=1-2-3", "gpus=1-", "gpus=-1",
        "gpus=4097", "gpus=1/65", "gpus=1/1", "gpus=1/0", "gpus=1/", "gpus=2/3", "gpus=1:",
        "gpus=:1", "gpus=1.5", "gpus= 1", "gpus=1 ", "gpus=+1", "gpus=1-4,", ",gpus=1",
        "gpus=1,gpus=2", "cpus=4", "nodes=1/2", "nodes=0", "nodes=2-1", "type=tpu", "type=GPU",
        "type=", "type=gpu:", "cores=16", "gpu-mem=6G", "type=cpu,cores=0", "type=cpu,cores=4097",
        "type=cpu,cores=ALL", "gpus=1/4-1/8", "gpus=4-1/2", "gpus=1,gpu-mem=0", "gpu-type=cpu",
        "gpus=1,gpu-mem=6g", "gpus=1,gpu-mem=6GB", "gpus=1,gpu-mem=12345678", "gpu-type=both:a100",
        "gpu-type=-a", "gpu-type=" + "a" * 65, "gpu-type=a b", "gpus=1;steps=2", "gpus=1,nodes",
        "gpus=1234567890", "gpus=1\n2", "gpus=4-1\n", "gpus=$(reboot)", "gpus=1|2", "gpus=`id`",
        "gpus='1'", 'gpus="1"', "gpus=1 AdminComment=x", "gpus=1%s%n", "gpus=\u0661", "gpus=１",
        "gpus=é", "\x7f\x01", "gpus=" + "1" * 65_536, "x" * 4096, "x" * 4097, "gpus=\udcff\udc80",
        "gpus=" + "1:" * 2046 + "1", "gpus=" + "é" * 60, "moldable", "gpus=1/64-4096",
        "gpus=1-4096:1/2", "gpus=1-64,nodes=1-65", "gpus=1-512,nodes=1-4,gpu-type=a:b:c",
        "gpus=1-2049,gpu-type=a:b:a", "gpus=1-4096,nodes=1-4096,gpu-type=" + "a:b:c:d:e",
        "gpus=1-4096,nodes=1-4096,gpu-type=cpu", "gpus=1-4096,nodes=1-2,gpu-mem=x",
        "nodes=1-4096,gpu-type=" + ":".join(map(str, range(1000))), "cores=4097,gpus=1-4096,nodes=2-3",
    ],
    "malleable": [
        "yes", "grace", "grace=", "grace=0", "grace=25h", "grace=2d", "grace=1234567", "grace=-1",
        "signal=", "signal=KILL", "signal=usr1", "signal=SIG", "signal=SIGSIGHUP", "grace=1,grace=2",
        "signal=KILL,grace=x", "grace=999999h", "grace=86401", "(null)",
        "stalled=", "stalled=yes", "stalled=Requeue", "stalled=leave,stalled=leave", "stalled=x,grace=x",
        "max-resizes", "max-resizes=", "max-resizes=-1", "max-resizes=4097", "max-resizes=1234567890",
        "max-resizes=1.5", "max-resizes=x", "max-resizes=1,max-resizes=1", "max-resizes=１", "resizes=1",
        "max-resizes= 1", "max-resizes=1h", "max_resizes=1", "min-run=", "min-run=0", "min-run=25h",
        "min-run=1d", "min-run=-1", "min-run=1h,min-run=1h", "min-run=x,max-resizes=x", "min-run=1:30",
        "max-resizes=x,stalled=x", "min-run=$(id)", "max-resizes=`id`",
        "checkpoint=", "checkpoint", "checkpoint=a b", "checkpoint=$(id)", "checkpoint=`id`", "checkpoint=a;b",
        "checkpoint=~/x", "checkpoint=a\nb", "checkpoint='a'", "checkpoint=a|b", "checkpoint=é", "checkpoint=a=b",
        "checkpoint=*", "checkpoint=" + "a" * 256, "checkpoint=a,checkpoint=a", "checkpoint=%j", "checkpoint=a:b",
        "checkpoint=$,min-run=x",
        ",", "grace=2m signal=HUP",
    ],
    "job-class": ["", "Trial", "trial ", "best_effort", "trial,best-effort", "\n", "t" * 41],
    "throughput": [
        "", "1", "1:", ":1", "1:fast", "0:1", "2x1/4:1", "1:1,1:2", "1:1,1x1:2", "1:1e3", "1:.5",
        "1:5.", "1:-1", "1:1.0000000001", "1x4@cpu:1", "1x0@cpu:a100:1", "1x0@a100:cpu:1", "4@:1",
        "4@@a:1", "4@cpu:both:1", "4@both:cpu:1", "4@both:both:1", "4@:cpu:1", "4@a:b:1", "00:1",
        "1x00@cpu:1", "0x4:1", "4097x1:1", "x4:1", "4x:1", "2x2x2:1", "1/4x2:1", "1/1:1", "1/65:1",
        "4@a\nb:1", "4@" + "a" * 65 + ":1", ",".join(f"{n}:1" for n in range(1, 66)), "1:1,,2:2",
        "1:1,", "1x0@cpu:1,1x0@cpu:2", "01:1,1:1", "4@a100:both:1,4@a100:both:1", "1234567890:1",
        "1/4@both:1,1/4@both:1", "0@cpu:1,1x0@cpu:1", "4@cpu:1", "0:1:1", "@:1", "@cpu:1",
    ],
    "steps": ["", "0", "000", "-1", "1.5", "1e6", "9" * 16, " 1", "1\n", "１", "0x10", "1_000"],
    "colocate": ["maybe", "NO", "no ", "yes,no", "yes=1"],
}  # fmt: skip


def pairs(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(option, value) for option, values in table.items() for value in values]


PIECES = [
    *"gpus nodes type cores gpu-type gpu-mem grace signal stalled requeue leave max-resizes min-run checkpoint ckpt gpu cpu both all trial best-effort".split(),
    *"yes no a100 h100 1x0@cpu 2x4 1/4 1/64 1/65 4096 4097 0 1 2 3 16 00 .5 5.2 1e3 90s 2m".split(),
    *"= = = , , + : : : - / @ x . ; % % | ' \" $( ) \\".split(),
    *SIGNALS, "SIG", " ", "\n", "\t", "é", "\udcff", "６",
]  # fmt: skip
NEAR_WORDS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
ANY_BYTES = st.binary(max_size=200).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"")))
LONG = st.tuples(NEAR_WORDS, st.integers(0, 9000)).map(lambda pair: pair[0] * pair[1])


def lists(item: st.SearchStrategy[str], separators: str) -> st.SearchStrategy[str]:
    """Texts of a few items: right, or nearly so."""
    separator = st.sampled_from(separators)
    return st.builds(
        lambda parts, s: s.join(parts), st.lists(item, min_size=1, max_size=4), separator
    )


NUMBERS = st.sampled_from(
    ["1", "2", "4", "8", "16", "4096", "4097", "0", "1/4", "1/2", "1/64", "1/65"]
)
RANGES = st.builds("{}-{}".format, NUMBERS, NUMBERS) | NUMBERS
KEYS = st.sampled_from(
    [
        *("gpus", "nodes", "type", "cores", "gpu-type", "gpu-mem", "grace", "signal", "stalled"),
        *("max-resizes", "min-run", "checkpoint"),
    ]
)
WORDS = st.sampled_from(
    ["gpu", "cpu", "both", "all", "a100", "6G", "90s", "2m", "requeue", "leave", *SIGNALS]
)
PAIRS = lists(st.builds("{}={}".format, KEYS, lists(RANGES | WORDS, ":")), ",+")
SHAPES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "1x", "2x", "0x"]),
    NUMBERS,
    st.sampled_from(["", "", "@cpu", "@both", "@a100", "@a100:both", "@a100:cpu", "@"]),
)
SPEEDS = lists(st.builds("{}:{}".format, SHAPES, st.sampled_from(["1", "5.2", "0.5", "1e3"])), ",+")
