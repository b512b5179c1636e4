"""Count to N with a checksum, save when asked, go on where the last run ended.

usage: pliant run -- python count.py N FILE [SECONDS A STEP]

The file holds the last step and the checksum over all steps; it is written under another name and
renamed, so that there is always a whole one. In the end the program prints both.
"""

import os
import sys
import time
from pathlib import Path

import pliant

MODULUS = 2**61 - 1


def after(checksum, step):
    """The checksum after one more step: it tells steps left out, done twice or out of order."""
    return (checksum * 31 + step) % MODULUS


def load(path):
    """The last step and the checksum that were saved; 0 and 0 at the first start."""
    try:
        step, checksum = path.read_text().split()
    except FileNotFoundError:
        return 0, 0
    return int(step), int(checksum)


def save(path, step, checksum):
    """Write a whole checkpoint or none."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with new.open("w") as file:
        file.write(f"{step} {checksum}\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def main(last, path, step_s):
    step, checksum = load(path)
    while step < last:
        time.sleep(step_s)
        step += 1
        checksum = after(checksum, step)
        pliant.heartbeat(step)
        if pliant.checkpoint_wanted():
            save(path, step, checksum)
            pliant.checkpointed()
    save(path, step, checksum)
    print(step, checksum, flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]), Path(words[1]), float(words[2]) if len(words) > 2 else 0.01)
