"""What a program may say and ask while it runs under `pliant run`; the standard library alone.

It runs in the program's own Python, 3.6 or later: no newer words are used here.

Outside a job, and without `pliant run`, all of it does nothing. Nothing here raises because of
Pliant, and nothing waits: one look at a file, or one small file written, at most once a second.
"""

import os
import time

CHECKPOINTED = 85
"""The exit code by which a program says: I have saved as I was asked, run me again."""

_EVERY_S = 1.0
_told_s = 0.0


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
    if os.environ.get("LOCAL_RANK", "0") != "0":  # torchrun: all processes do the same steps
        return
    _told_s = now_s
    _write(directory, "heartbeat", f"{int(step)} {time.time():.3f}")


def checkpoint_wanted() -> bool:
    """Whether the program is asked to save and to end by :func:`checkpointed`.

    Processes that work together must agree on it, for each looks by itself: share what one saw.
    """
    path = _requested()
    return path != "" and os.path.exists(path)


def checkpointed() -> None:
    """Say that the checkpoint is written, and end the program: SystemExit(85), run me again.

    Returns, having done nothing, where no `pliant run` is there to run it again.
    """
    directory = _directory()
    if directory:
        _write(directory, "saved", "")
        raise SystemExit(CHECKPOINTED)


def shape() -> Shape:
    """What this run has, as the job's environment says."""
    nodes = _number("PLIANT_NODES", _number("SLURM_JOB_NUM_NODES", 1))
    gpus = _number("PLIANT_GPUS", nodes * _number("SLURM_GPUS_ON_NODE", 0))
    text = os.environ.get("PLIANT_SHAPE", "")
    return Shape(gpus, nodes, os.environ.get("PLIANT_TYPE", ""), _number("PLIANT_SHARE", 1), text)


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
