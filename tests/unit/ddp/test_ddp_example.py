"""The example for PyTorch, resized beside a fake pliantd: the losses are those of one long run."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from losses import AS_IN_ONE_RUN, losses, world_sizes
from wrapped_job import Job, wrapped_job

STEPS = 200


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with wrapped_job(tmp_path) as one:
        one.knows("torchrun", sys.executable, "-m", "torch.distributed.run")
        yield one


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """The losses of one process that nobody disturbs."""
    with wrapped_job(tmp_path_factory.mktemp("undisturbed")) as one:
        one.knows("torchrun", sys.executable, "-m", "torch.distributed.run")
        return losses(one.sized("ddp.sh", str(STEPS), gpus=[1], moments_s=[]))


def test_the_world_follows_the_gpus_and_the_losses_are_the_same(
    job: Job, undisturbed: list[float]
) -> None:
    draw = random.Random(1)  # noqa: S311  # a draw, no secret
    moments_s = [draw.uniform(2.0, 5.0) for _ in range(2)]
    printed = job.sized("ddp.sh", str(STEPS), "0.05", gpus=[1, 4, 2], moments_s=moments_s)
    assert world_sizes(printed) == [1, 4, 2]
    assert losses(printed) == pytest.approx(undisturbed, **AS_IN_ONE_RUN)


def test_the_model_learns(undisturbed: list[float]) -> None:
    assert undisturbed[-1] < undisturbed[0] / 5
