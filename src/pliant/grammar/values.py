"""One value each: counts, amounts, lists, names, sizes, times, shapes.

Every reader takes the option's name first, for its message, and raises BadSpec.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from pliant.errors import BadSpec
from pliant.model import Kind, Shape

MAX_COUNT = 4096
"""The largest number of GPUs, nodes or cores that a request may name."""
MAX_SHARE = 64
MAX_VALUE = 4096
"""The longest value of one option, in bytes."""
MAX_SHAPES = 64
"""The most shapes in one throughput."""
QUOTED_BYTES = 40

MAX_GRACE_S = 24 * 3600

_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_SHARE = re.compile(r"1/([0-9]{1,9})", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_PATH = re.compile(r"[A-Za-z0-9._/@-]{1,255}", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,7})([MGT]?)", re.ASCII)
_TIME = re.compile(r"([0-9]{1,6})([smh]?)", re.ASCII)
NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_SHAPE = re.compile(r"(?:([0-9]{1,9})x)?(1/[0-9]{1,9}|[0-9]{1,9})(?:@([^@]*))?", re.ASCII)


def raw_bytes(text: str) -> bytes:
    """Return the bytes that a text stands for; three for a surrogate that stands for none.

    JSON can hold such surrogates; they are refused like other characters that nobody expects.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def quoted(text: str) -> str:
    """Quote ``text`` for a message: at most 40 bytes, printable ASCII, the rest as ``?``."""
    raw = raw_bytes(text)
    shown = "".join(chr(byte) if 0x20 <= byte <= 0x7E else "?" for byte in raw[:QUOTED_BYTES])
    return f"'{shown}{'...' if len(raw) > QUOTED_BYTES else ''}'"


def bad(option: str, value: str, right: str) -> BadSpec:
    return BadSpec(f"{option}: {quoted(value)}: {right}")


def read_count(option: str, text: str, least: int = 1) -> int:
    if not _COUNT.fullmatch(text) or not least <= int(text) <= MAX_COUNT:
        raise bad(option, text, f"a whole number from {least} to {MAX_COUNT} is expected")
    return int(text)


def read_amount(option: str, text: str) -> Fraction:
    if text.startswith("1/"):
        match = _SHARE.fullmatch(text)
        if not match or not 2 <= int(match[1]) <= MAX_SHARE:
            raise bad(option, text, f"a share is 1/2 to 1/{MAX_SHARE} of one GPU")
        return Fraction(1, int(match[1]))
    if not _COUNT.fullmatch(text) or not 1 <= int(text) <= MAX_COUNT:
        raise bad(
            option,
            text,
            f"a number of GPUs from 1 to {MAX_COUNT}, or a share like 1/4, is expected",
        )
    return Fraction(int(text))


@lru_cache(maxsize=1)
def every_amount() -> tuple[Fraction, ...]:
    """Return all that there are: 1/64, 1/63 ... 1/2, 1, 2 ... 4096."""
    shares = (Fraction(1, share) for share in range(MAX_SHARE, 1, -1))
    return (*shares, *map(Fraction, range(1, MAX_COUNT + 1)))


def place(amount: Fraction) -> int:
    """Return where an amount stands among all."""
    return MAX_SHARE - 2 + int(amount) if amount >= 1 else MAX_SHARE - amount.denominator


def read_list(option: str, text: str, one: Callable[[str, str], Fraction]) -> tuple[Fraction, ...]:
    """Read ``LOW-HIGH:ONE:...``; the work goes with the text's length, not with its ranges'."""
    ranges: list[tuple[int, int]] = []
    for item in text.split(":"):
        low_text, dash, high_text = item.partition("-")
        low = one(option, low_text)
        high = one(option, high_text) if dash else low
        if low > high:
            raise bad(option, item, f"the range runs backwards; write {high_text}-{low_text}")
        ranges.append((place(low), place(high) + 1))
    values: list[Fraction] = []
    after = 0
    for begin, end in sorted(ranges):
        values += every_amount()[max(begin, after) : end]
        after = max(after, end)
    return tuple(values)


def read_words(option: str, text: str, valid: tuple[str, ...]) -> tuple[str, ...]:
    words = text.split(":")
    for word in words:
        if word not in valid:
            raise bad(option, word, f"one of {', '.join(valid)} is expected")
    return tuple(word for word in valid if word in words)


def _is_gpu_type(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in ("cpu", "both")


def read_names(option: str, text: str) -> tuple[str, ...]:
    names = text.split(":")
    for name in names:
        if not _is_gpu_type(name):
            raise bad(option, name, "the name of a GPU type, like a100, is expected")
    return tuple(dict.fromkeys(names))


def read_path(option: str, text: str) -> str:
    if not _PATH.fullmatch(text):
        right = "a path of at most 255 letters, digits and ._/@- is expected"
        raise bad(option, text, right)
    return text


def read_size_mib(option: str, text: str) -> int:
    match = _SIZE.fullmatch(text)
    if not match or int(match[1]) == 0:
        raise bad(option, text, "a size like 6G or 512M is expected")
    return int(match[1]) * {"": 1, "M": 1, "G": 1024, "T": 1024 * 1024}[match[2]]


def read_time_s(option: str, text: str) -> int:
    match = _TIME.fullmatch(text)
    seconds = int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]] if match else 0
    if not 1 <= seconds <= MAX_GRACE_S:
        raise bad(option, text, "a time like 90s, 2m or 1h, at most 24h, is expected")
    return seconds


def parse_shape(text: str, option: str = "shape") -> Shape:
    """Read ``[NODESx]GPUS[@TYPE]``.

    Raises BadSpec.
    """
    match = _SHAPE.fullmatch(text) if len(text) <= MAX_VALUE else None
    if not match:
        raise bad(option, text, "a shape like 4, 2x4, 1/4, 2x4@a100 or 1x0@cpu is expected")
    nodes = read_count(option, match[1]) if match[1] is not None else 1
    words = match[3].split(":") if match[3] is not None else []
    kind = Kind.GPU
    if words and words[-1] in ("cpu", "both"):
        kind = Kind(words.pop())
    if len(words) > 1 or (words and not _is_gpu_type(words[0])):
        raise bad(option, text, "after @ stands cpu, both, or the name of a GPU type")
    gpu_type = words[0] if words else ""
    if kind is Kind.CPU:
        if match[2] != "0" or gpu_type:
            raise bad(option, text, "a CPU shape has no GPU: write 1x0@cpu")
        return Shape(nodes, 0, 1, kind)
    if match[2] == "0":
        raise bad(option, text, "a shape without a GPU is written 1x0@cpu")
    amount = read_amount(option, match[2])
    if amount < 1:
        if nodes > 1:
            raise bad(
                option, text, "a share lies on one node: write 1/4, without a number of nodes"
            )
        return Shape(1, 1, amount.denominator, kind, gpu_type)
    return Shape(nodes, int(amount), 1, kind, gpu_type)


def read_cores(option: str, text: str) -> int:
    if not _COUNT.fullmatch(text) or not 1 <= int(text) <= MAX_COUNT:
        raise bad(option, text, f"a whole number from 1 to {MAX_COUNT}, or all, is expected")
    return int(text)
