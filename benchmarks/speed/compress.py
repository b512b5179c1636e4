"""zlib on the same text again and again, counted as the programs of programs.c are.

``compress.py FILE``: the 64-bit number in FILE is one more after each 32 KiB.
"""

import mmap
import random
import struct
import sys
import zlib
from pathlib import Path

SIZE = 32 << 10


def main() -> None:
    """Compress for ever."""
    draw = random.Random(0)
    words = [bytes(draw.choices(range(97, 123), k=draw.randint(2, 9))) for _ in range(500)]
    text = b" ".join(draw.choices(words, k=SIZE))[:SIZE]
    with Path(sys.argv[1]).open("r+b") as file:
        beats = mmap.mmap(file.fileno(), 0)
        done = 0
        while True:
            zlib.compress(text, 6)
            done += 1
            struct.pack_into("=Q", beats, 0, done)


if __name__ == "__main__":
    main()
