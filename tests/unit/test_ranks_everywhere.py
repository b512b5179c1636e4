"""Programs of several ranks that are asked for a checkpoint: who hangs, and how often."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.rank_programs import agrees, apart, hung, looks_by_itself, saves_in_its_handler
from benchmarks.rank_world import Rank, run

import pliant
from pliant import program

TOGETHER_S = 0.0
"""scancel --signal, at its best: all ranks in the same instant."""
ONE_SRUN_S = 0.0022
"""About as long as an srun takes that passes a signal on."""
ONE_EACH_S = 0.5
"""Between ranks that each have a `pliant run`: it looks once a second."""


@pytest.mark.parametrize(("apart_s", "runs"), [(TOGETHER_S, 50), (ONE_SRUN_S, 50), (2.0, 500)])
def test_ranks_that_agree_never_hang(apart_s: float, runs: int) -> None:
    assert hung(agrees, apart(apart_s), "many", runs) == 0


def test_a_signal_to_every_rank_hangs_those_that_save_in_its_handler() -> None:
    at_once, one_srun, one_each = (
        hung(saves_in_its_handler, apart(apart_s), "few", runs=200)
        for apart_s in (TOGETHER_S, ONE_SRUN_S, ONE_EACH_S)
    )
    assert 0 < at_once / 2 < one_srun < 2 * at_once < one_each == 200


def test_so_does_a_wish_that_each_rank_looks_for_by_itself() -> None:
    assert hung(looks_by_itself, apart(ONE_EACH_S), "few", runs=50) > 25


# The simulation itself


def test_a_signal_that_comes_in_a_collective_is_handled_after_it() -> None:
    """Rank 1 is late: rank 0 gets its signal as it waits for it."""
    handled: list[tuple[int, float, float]] = []

    def waits(rank: Rank) -> None:
        rank.handler = lambda: handled.append((rank.number, rank.now_s, rank.world.done))
        for _ in range(1 + rank.number):
            rank.compute()
        rank.any_rank("sum")
        raise SystemExit(85)

    assert run(waits, 1, [0.25, 99.0]) == ""
    ((number, at_s, done),) = handled
    assert (number, done) == (0, 1)
    assert at_s > 0.3


def test_collectives_are_matched_by_their_order() -> None:
    def crosses(rank: Rank) -> None:
        for name in ("a", "b") if rank.number else ("b", "a"):
            rank.any_rank(name)
        raise SystemExit(85)

    assert run(crosses, 1, [99.0, 99.0]) == "['a', 'b'], ended: []"


def test_no_two_steps_take_as_long() -> None:
    took: list[float] = []

    def counts(rank: Rank) -> None:
        for _ in range(200):
            before_s = rank.now_s
            rank.compute()
            took.append(rank.now_s - before_s)
        raise SystemExit(85)

    assert run(counts, 1, [99.0]) == ""
    assert len(set(took)) == 200
    assert 0.16 <= min(took) < 0.165
    assert 0.235 < max(took) <= 0.24


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

    def __init__(self, backend: str = "gloo", ranks: int = 2, config: str = "") -> None:
        """``config``: which backend is for which device; "": an old torch does not tell."""
        self.asked_on: list[str] = []
        self.distributed = SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            get_world_size=lambda: ranks,
            get_backend=lambda: backend,
            ReduceOp=SimpleNamespace(MAX="max"),
            all_reduce=lambda tensor, **_op: self.asked_on.append(tensor.device),
        )
        if config:
            self.distributed.get_backend_config = lambda: config
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


@pytest.mark.parametrize(
    ("backend", "config", "device"),
    [
        ("undefined", "cuda:nccl", "cuda:1"),  # torch 2.11 where no backend is named and GPUs are
        ("undefined", "cpu:gloo", "cpu"),  # the same where there are none
        ("undefined", "cpu:gloo,cuda:nccl", "cpu"),
        ("nccl", "cuda:nccl", "cuda:1"),
        ("gloo", "cpu:gloo,cuda:gloo", "cpu"),
        ("cpu:gloo,cuda:nccl", "cpu:gloo,cuda:nccl", "cpu"),
    ],
)
def test_torchs_ranks_agree_on_a_device_that_their_group_has_a_backend_for(
    asked: Path, monkeypatch: pytest.MonkeyPatch, backend: str, config: str, device: str
) -> None:
    torch = Torch(backend, config=config)
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
