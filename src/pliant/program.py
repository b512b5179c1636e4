"""What a program may say and ask while it runs under `pliant run`; the standard library alone.

It runs in the program's own Python, 3.6 or later: no newer words are used here.

Outside a job, and without `pliant run`, all of it does nothing. Nothing here raises because of
Pliant, and nothing waits: one look at a file, or one small file written, at most once a second.
"""

import os
import sys
import time

TYPE_CHECKING = False  # typing is not imported where nobody checks
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    AnyRank = Callable[[bool], bool]

CHECKPOINTED = 85
"""The exit code by which a program says: I have saved as I was asked, run me again."""

_EVERY_S = 1.0
_RANKS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
"""Where launchers say of how many processes a program is: torchrun, Open MPI, MPICH, srun."""
_told_s = 0.0
_agreed = None  # type: AnyRank | None
"""By what all processes agreed that a checkpoint is wanted; None: they have not, or no more."""


class Shape:
    """What this run has: ``gpus`` and ``nodes`` in all; 0 GPUs also where that is not known."""

    __slots__ = ("gpus", "nodes", "share", "text", "type")

    def __init__(self, gpus: int, nodes: int, type: str, share: int, text: str) -> None:
        self.gpus = gpus
        self.nodes = nodes
        self.type = type  # gpu, cpu, both; "" where not known
        self.share = share  # 4 for a quarter of a GPU, else 1
        self.text = text  # as users write it: 4, 2x4, 1/4; "" where not known

    def __repr__(self) -> str:
        """Show it as it would be written."""
        return (
            f"Shape(gpus={self.gpus}, nodes={self.nodes}, type={self.type!r}, "
            f"share={self.share}, text={self.text!r})"
        )


def heartbeat(step: int) -> None:
    """Say that this step is done; written at most once a second, by one process of a node."""
    global _told_s  # noqa: PLW0603  # one program, one heart
    directory = _directory()
    now_s = time.monotonic()
    if not directory or (now_s - _told_s < _EVERY_S and _told_s):
        return
    # of torchrun or srun: all processes do the same steps
    if os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", "0")) != "0":
        return
    _told_s = now_s
    _write(directory, "heartbeat", f"{int(step)} {time.time():.3f}")


def checkpoint_wanted() -> bool:
    """Whether the program is asked to save and to end by :func:`checkpointed`.

    For a program of one process: several that each look by themselves see it at different steps,
    and wait for each other for ever. They call :func:`checkpoint_wanted_everywhere`.
    """
    path = _requested()
    return path != "" and os.path.exists(path)


def checkpoint_wanted_everywhere(any_rank: "AnyRank | None" = None) -> bool:
    """Whether any process of the program is asked to save: the same answer in all of them.

    A collective call: every process makes it, at the end of the same step, as often as the others.
    Where it is True, each saves its part and calls :func:`checkpointed`.

    ``any_rank``: takes this process's word to all others and returns whether any of them said True.
    Left out, torch.distributed is taken where it is initialized, else mpi4py where it is imported.
    A program of one process needs none of them.

    Raises RuntimeError where several processes run and there is no way to agree, TypeError where
    ``any_rank`` is not such a function.
    """
    global _agreed  # noqa: PLW0603  # one program, one word
    agree = _own_any_rank() if any_rank is None else any_rank
    if not callable(agree):
        raise TypeError(f"any_rank: a function is expected, not {agree!r}")
    wanted = checkpoint_wanted()
    said = agree(wanted)
    if said is None or (wanted and not said):
        raise TypeError(
            f"any_rank({wanted}) returned {said!r}: whether any process said True is expected"
        )
    _agreed = agree if said else None
    return bool(said)


def checkpointed() -> None:
    """Say that the checkpoint is written, and end the program: SystemExit(85), run me again.

    Returns, having done nothing, where no `pliant run` is there to run it again. After a
    :func:`checkpoint_wanted_everywhere` that was True every process calls it, and each waits until
    all others have called it too: none ends, and is reported, before all have saved. All end then,
    those on nodes without a `pliant run` too.
    """
    directory = _directory()
    if _agreed is not None:
        _agreed(False)
    if directory:
        _write(directory, "saved", "")
    if directory or _agreed is not None:
        raise SystemExit(CHECKPOINTED)


def shape() -> Shape:
    """What this run has, as the job's environment says."""
    nodes = _number("PLIANT_NODES", _number("SLURM_JOB_NUM_NODES", 1))
    gpus = _number("PLIANT_GPUS", nodes * _number("SLURM_GPUS_ON_NODE", 0))
    text = os.environ.get("PLIANT_SHAPE", "")
    return Shape(gpus, nodes, os.environ.get("PLIANT_TYPE", ""), _number("PLIANT_SHARE", 1), text)


def _own_any_rank() -> "AnyRank":
    """Return how the processes of this program agree, as far as that can be seen.

    What is not imported is not used; each process of a program sees the same here.
    """
    torch = sys.modules.get("torch")
    mpi = sys.modules.get("mpi4py.MPI")  # type: Any
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return _by_torch(torch)
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        return lambda word: bool(mpi.COMM_WORLD.allreduce(word, op=mpi.LOR))
    several = [f"{name}={os.environ[name]}" for name in _RANKS if _number(name, 1) > 1]
    if several and _requested():
        raise RuntimeError(
            f"checkpoint_wanted_everywhere: several processes run ({several[0]}), but "
            "torch.distributed is not initialized and mpi4py is not imported: give any_rank, a "
            "function that takes a bool and returns whether any process gave True"
        )
    return bool


def _by_torch(torch: "Any") -> "AnyRank":
    """Return how the processes of torch's default group agree."""
    group = torch.distributed
    if group.get_world_size() == 1:
        return bool
    # "cuda:nccl,cpu:gloo": get_backend() says "undefined" where the program named none.
    backend = str(getattr(group, "get_backend_config", group.get_backend)()).lower()
    by_device = ":" in backend
    of_cpus = ("cpu:",) if by_device else ("gloo", "mpi", "ucc", "undefined")
    on_cpu = any(name in backend for name in of_cpus)
    if not on_cpu and ("cuda:" if by_device else "nccl") not in backend:
        raise RuntimeError(
            f"checkpoint_wanted_everywhere: torch.distributed's backend {backend} is none of gloo, "
            "mpi, ucc, nccl: give any_rank, a function that takes a bool and returns whether any "
            "process gave True"
        )

    def any_rank(word: bool) -> bool:
        device = "cpu" if on_cpu else f"cuda:{torch.cuda.current_device()}"
        words = torch.tensor([int(word)], dtype=torch.int32, device=device)
        group.all_reduce(words, op=group.ReduceOp.MAX)
        return bool(words.item())

    return any_rank


def _requested() -> str:
    """Return the file by which the wrapper asks; "" where none is there, or another job's.

    A job submitted from within a job inherits the variable, and anybody may make a directory of
    that name once its owner is gone.
    """
    path = os.environ.get("PLIANT_CHECKPOINT_REQUESTED", "")
    job = os.environ.get("SLURM_JOB_ID") or os.environ.get("PBS_JOBID", "").partition(".")[0]
    name = os.path.basename(os.path.dirname(path))
    return path if not job or name.startswith(f"pliant-{job}-") else ""


def _directory() -> str:
    """Return where the wrapper of this node looks; "" where there is none."""
    directory = os.path.dirname(_requested())
    return directory if directory and os.path.isdir(directory) else ""


def _write(directory: str, name: str, text: str) -> None:
    new = os.path.join(directory, f"{name}.{os.getpid()}")
    try:
        with open(new, "w") as file:
            file.write(text)
        os.replace(new, os.path.join(directory, name))
    except OSError:
        return  # a full disk is no reason to disturb a program


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else otherwise
