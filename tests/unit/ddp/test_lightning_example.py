"""The example for Lightning, resized beside a fake pliantd: no rank hangs, no step is lost."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

from wrapped_job import wrapped_job

STEPS = 150
GPUS = [4, 2, 3]


def test_ranks_that_agree_go_on_where_they_were(tmp_path: Path) -> None:
    draw = random.Random(1)  # noqa: S311  # a draw, no secret
    moments_s = [draw.uniform(6.0, 12.0) for _ in GPUS[1:]]
    with wrapped_job(tmp_path) as job:
        job.knows("torchrun", sys.executable, "-m", "torch.distributed.run")
        printed = job.sized("lightning_ranks.sh", str(STEPS), "0.1", gpus=GPUS, moments_s=moments_s)
    steps = re.findall(rf"^(\d+) of {STEPS} world size (\d+)$", printed, re.MULTILINE)
    assert [int(step) for step, _ in steps] == list(range(1, STEPS + 1))
    assert list(dict.fromkeys(int(world) for _, world in steps)) == GPUS
