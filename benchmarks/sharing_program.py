"""A program that shares a node: usage: sharing_program.py KIND FOLDER NAME [STEPS [TIMES]]

It takes steps of 20 ms and tells how far it is. All nodes of a sandbox are one machine, so what two
do to each other on a node is played: a ``heavy`` one takes TIMES as long (three times, where that
is not said) beside another heavy one of its node, a ``light`` one never. It ends after STEPS, or
where FOLDER holds ``end-NAME``.
"""

import os
import sys
import time
from pathlib import Path

import pliant

STEP_S = 0.02


def main(kind: str, folder: Path, name: str, steps: int = 1_000_000, times: int = 3) -> None:
    here = folder / f"{kind}-{os.environ['SLURMD_NODENAME']}"
    saved = folder / f"saved-{name}"
    step = int(saved.read_text()) if saved.exists() else 0
    here.mkdir(exist_ok=True)
    present = here / name
    present.touch()
    try:
        while step < steps and not (folder / f"end-{name}").exists():
            hindered = kind == "heavy" and len([*here.iterdir()]) > 1
            time.sleep(STEP_S * (times if hindered else 1))
            step += 1
            pliant.heartbeat(step)
            if pliant.checkpoint_wanted():
                saved.write_text(str(step))
                present.unlink()
                pliant.checkpointed()
    finally:
        present.unlink(missing_ok=True)


main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:]))
