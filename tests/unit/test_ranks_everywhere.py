"""Programs of several ranks that are asked for a checkpoint: who hangs, and how often."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import pliant
from fake_ranks import STEP_S, Rank, run
from pliant import program

RANKS, RUNS, STEPS = 4, 500, 40
TOGETHER_S = 0.0
"""scancel --signal, at its best: all ranks in the same instant."""
ONE_SRUN_S = 0.0022
"""Where `pliant run` signals an srun that passes it on: measured on Slurm 22.05, 4 tasks, 2 nodes."""
ONE_EACH_S = 0.5
"""Between ranks that each have a `pliant run`: it looks once a second."""
SPEC = importlib.util.find_spec("pliant.program")
Program = Callable[[Rank], None]


def saves_in_its_handler(rank: Rank) -> None:
    """What Lightning does, and others: the handler itself saves, with all ranks."""

    def save() -> None:
        rank.any_rank("save")
        raise SystemExit(85)

    rank.handler = save
    for _ in range(STEPS):
        rank.compute()
        rank.any_rank("gradients")


def looks_by_itself(rank: Rank) -> None:
    """Each rank asks at the end of its step; what it sees is no other rank's."""
    ours = its_own_pliant(rank)
    for _ in range(STEPS):
        rank.compute()
        rank.any_rank("gradients")
        if ours.checkpoint_wanted():
            rank.any_rank("save")
            ours.checkpointed()


def agrees(rank: Rank) -> None:
    """All ranks ask together."""
    ours = its_own_pliant(rank)
    for _ in range(STEPS):
        rank.compute()
        rank.any_rank("gradients")
        if ours.checkpoint_wanted_everywhere(lambda word: rank.any_rank("wanted", word)):
            rank.any_rank("save")
            ours.checkpointed()


def its_own_pliant(rank: Rank) -> Any:
    """The real module as another process would have it; the wish is seen by a flag of its own."""
    assert SPEC is not None
    assert SPEC.loader is not None
    ours: Any = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(ours)
    seen: list[bool] = []
    rank.handler = lambda: seen.append(True)
    ours.checkpoint_wanted = lambda: bool(seen)
    ours._directory = lambda: "/nonexistent"
    return ours


def hung(what: Program, apart_s: float, runs: int = RUNS) -> int:
    """How many of so many runs hung; ``apart_s``: between the first and the last rank's signal."""
    draw = random.Random(f"{what.__name__} {apart_s}")  # noqa: S311  # a draw, no secret
    count = 0
    for seed in range(runs):
        at_s = draw.uniform(2, STEPS / 2) * STEP_S
        late_s = [
            at_s,
            at_s + apart_s,
            *(at_s + draw.uniform(0, apart_s) for _ in range(RANKS - 2)),
        ]
        count += run(what, seed, draw.sample(late_s, RANKS)) != ""
    return count


@pytest.mark.parametrize("apart_s", [TOGETHER_S, ONE_SRUN_S, 2.0])
def test_ranks_that_agree_never_hang(apart_s: float) -> None:
    assert hung(agrees, apart_s, runs=50) == 0


def test_a_signal_to_every_rank_hangs_those_that_save_in_its_handler() -> None:
    rates = {
        "scancel --signal, all at once": hung(saves_in_its_handler, TOGETHER_S),
        "pliant run --signal -- srun": hung(saves_in_its_handler, ONE_SRUN_S),
        "srun pliant run --signal": hung(saves_in_its_handler, ONE_EACH_S),
        "checkpoint_wanted_everywhere": hung(agrees, ONE_EACH_S),
    }
    for how, count in rates.items():
        print(f"{how:32} {count:3} of {RUNS} hung")
    at_once, one_srun, one_each, everywhere = rates.values()
    assert everywhere == 0 < at_once
    assert at_once / 2 < one_srun < 2 * at_once < one_each


def test_so_does_a_wish_that_each_rank_looks_for_by_itself() -> None:
    assert hung(looks_by_itself, ONE_EACH_S, runs=50) > 25


# What programs call


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program under `pliant run` that is asked for a checkpoint; the directory between them."""
    directory = tmp_path / "pliant-7-x"
    directory.mkdir()
    (directory / "checkpoint-requested").touch()
    monkeypatch.setenv("PLIANT_CHECKPOINT_REQUESTED", str(directory / "checkpoint-requested"))
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    yield directory
    program._agreed = None


def test_outside_of_pliant_nothing_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLIANT_CHECKPOINT_REQUESTED", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert not pliant.checkpoint_wanted_everywhere()
    assert not pliant.checkpoint_wanted_everywhere(lambda word: word)


def test_one_process_needs_nobody_to_agree_with(asked: Path) -> None:
    assert pliant.checkpoint_wanted_everywhere()
    with pytest.raises(SystemExit, match="85"):
        pliant.checkpointed()
    assert (asked / "saved").exists()


def test_a_rank_that_sees_nothing_learns_it_and_ends_like_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PLIANT_CHECKPOINT_REQUESTED", raising=False)
    said: list[bool] = []

    def another_sees_it(word: bool) -> bool:
        said.append(word)
        return True

    assert pliant.checkpoint_wanted_everywhere(another_sees_it)
    with pytest.raises(SystemExit, match="85"):
        pliant.checkpointed()
    assert said == [False, False]  # the second: nobody ends before all have saved
    assert not pliant.checkpoint_wanted_everywhere(lambda word: word)
    pliant.checkpointed()  # nobody wants it any more


def test_nothing_is_reported_before_all_have_saved(asked: Path) -> None:
    def another_has_failed(word: bool) -> bool:
        if not word:
            raise ConnectionError("a rank is gone")
        return word

    assert pliant.checkpoint_wanted_everywhere(another_has_failed)
    with pytest.raises(ConnectionError):
        pliant.checkpointed()
    assert not (asked / "saved").exists()


@pytest.mark.parametrize(
    ("any_rank", "says"),
    [
        (4, "any_rank: a function is expected, not 4"),
        (lambda _word: None, "any_rank(True) returned None"),
        (lambda _word: False, "any_rank(True) returned False"),
    ],
)
def test_what_cannot_agree_is_said_in_one_line(asked: Path, any_rank: Any, says: str) -> None:
    with pytest.raises(TypeError) as raised:
        pliant.checkpoint_wanted_everywhere(any_rank)
    assert str(raised.value).startswith(says)


def test_several_processes_without_a_way_to_agree_are_told_so(
    asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(RuntimeError, match=r"several processes run \(SLURM_STEP_NUM_TASKS=4\)"):
        pliant.checkpoint_wanted_everywhere()


class Torch:
    """torch.distributed as far as it is used: the other rank says False."""

    int32 = "int32"

    def __init__(self, backend: str = "gloo", ranks: int = 2) -> None:
        self.asked_on: list[str] = []
        self.distributed = SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            get_world_size=lambda: ranks,
            get_backend=lambda: backend,
            ReduceOp=SimpleNamespace(MAX="max"),
            all_reduce=lambda tensor, **_op: self.asked_on.append(tensor.device),
        )
        self.cuda = SimpleNamespace(current_device=lambda: 1)

    @staticmethod
    def tensor(words: list[int], dtype: str, device: str) -> SimpleNamespace:
        assert dtype == "int32"
        return SimpleNamespace(item=lambda: max(*words, 0), device=device)


def loaded(monkeypatch: pytest.MonkeyPatch, name: str, module: object) -> None:
    monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize(
    ("backend", "device"),
    [("gloo", "cpu"), ("nccl", "cuda:1"), ("cpu:gloo,cuda:nccl", "cpu"), ("undefined", "cpu")],
)
def test_torchs_ranks_agree_by_themselves(
    asked: Path, monkeypatch: pytest.MonkeyPatch, backend: str, device: str
) -> None:
    torch = Torch(backend)
    loaded(monkeypatch, "torch", torch)
    assert pliant.checkpoint_wanted_everywhere()
    assert torch.asked_on == [device]


def test_one_torch_process_asks_nobody(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch(ranks=1)
    loaded(monkeypatch, "torch", torch)
    assert pliant.checkpoint_wanted_everywhere()
    assert torch.asked_on == []


def test_a_backend_that_is_not_known_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(monkeypatch, "torch", Torch("xccl"))
    with pytest.raises(RuntimeError, match="backend xccl is none of"):
        pliant.checkpoint_wanted_everywhere()


def test_mpis_ranks_agree_by_themselves(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpi = ModuleType("mpi4py.MPI")
    world = SimpleNamespace(allreduce=lambda word, op: word and op == "or")
    vars(mpi).update(
        Is_initialized=lambda: True, Is_finalized=lambda: False, LOR="or", COMM_WORLD=world
    )
    loaded(monkeypatch, "mpi4py.MPI", mpi)
    assert pliant.checkpoint_wanted_everywhere()
