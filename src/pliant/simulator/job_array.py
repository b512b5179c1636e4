"""Many runs as one Slurm job array, by submitit.

submitit writes what each task is to do into a folder and submits the array; each task leaves its
result there. The folder lies in the directory that the user is in, which the nodes have to see. It
is removed once all is done, and kept where a task ended without a result: Slurm is asked whether
the tasks are still there, for one that was killed leaves nothing.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.batch.slurm import Commands
from pliant.errors import BatchError, PliantError, Unavailable
from pliant.simulator.sweep import Ended, Item, Result

if TYPE_CHECKING:  # an extra
    from submitit import Job

TASKS = 200
"""At most so many: sites limit arrays, and each task starts a Python. More runs share them."""
LOOK_S = 0.5
"""How often the folder is looked at for results."""
ASK_S = 15.0
"""How often Slurm is asked which tasks are still there."""
OURS = ("array", "error", "job-name", "open-mode", "output")
"""Options of sbatch that are not for the user to choose."""


class _Lost(Unavailable):
    """A task has ended without a result."""


@dataclass(frozen=True, slots=True)
class _Failed:
    """What a task returns whose run raised an exception."""

    error: Exception


@dataclass(frozen=True, slots=True)
class JobArray:
    """A Slurm job array of at most ``at_once`` tasks at once (0: as many as start).

    ``options``: of sbatch, without their dashes; True stands for a flag.
    """

    options: Mapping[str, str | bool] = field(default_factory=dict)
    at_once: int = 0

    def each(
        self, run: Callable[[Item], Result], items: Sequence[Item], ended: Ended
    ) -> list[Result]:
        """Return ``run(item)`` for each item, as :meth:`Sweep.each` says.

        Raises Unavailable where sbatch refuses, or a task ends without a result, being killed for
        one. Whether there is a Slurm and submitit, :func:`check` has seen.
        """
        count = min(TASKS, len(items))
        shares = [items[number::count] for number in range(count)]
        results: list[Any] = [None] * len(items)
        done = 0
        with _folder() as folder, _cancelled_at_last(folder.name):
            jobs = self._submitted(run, shares, folder)
            for number, found in _as_they_end(jobs, folder):
                results[number::count] = found
                done += len(found)
                ended(done)
        return results

    def _submitted(
        self, run: Callable[[Item], Result], shares: Sequence[Sequence[Item]], folder: Path
    ) -> list[Job[Any]]:
        from submitit import SlurmExecutor  # noqa: PLC0415  # an extra
        from submitit.core.utils import FailedJobError, FailedSubmissionError  # noqa: PLC0415  # same

        executor = SlurmExecutor(folder)
        executor.update_parameters(
            job_name=folder.name,
            array_parallelism=self.at_once or len(shares),
            time=None,  # none of submitit's own: the partition's, or what the user says
            wckey=None,
            signal_delay_s=0,  # no warning before the limit: there is nothing to save
            additional_parameters=dict(self.options),
        )
        try:
            # submitit shows what sbatch complains of, which is said below
            with redirect_stderr(StringIO()), executor.batch():
                return [executor.submit(_share, run, share) for share in shares]
        except (FailedJobError, FailedSubmissionError) as wrong:
            raise Unavailable(f"--slurm: {wrong}") from wrong


def check() -> None:
    """Raise Unavailable where no array could be submitted from here."""
    if find_spec("submitit") is None:
        raise Unavailable("--slurm needs submitit: pip install 'pliant[sweeps]'")
    for program in ("sbatch", "srun"):
        if shutil.which(program) is None:
            raise Unavailable(f"--slurm: {program} is not there: this host submits to no Slurm")


# --- in the jobs ----------------------------------------------------------------------------------


def _share(run: Callable[[Item], Result], items: Sequence[Item]) -> list[Result] | _Failed:
    """Do one task's runs, one after the other."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # submitit lets it pass: scancel would take long
    try:
        return [run(item) for item in items]
    except Exception as error:
        error.add_note(traceback.format_exc())
        return _Failed(error)


# --- here -----------------------------------------------------------------------------------------


@contextmanager
def _folder() -> Iterator[Path]:
    """Yield a new folder, whose name is the array's too; it stays where a task was lost."""
    here = Path.cwd()
    try:
        folder = Path(tempfile.mkdtemp(prefix="pliant-sweep-", dir=here))
    except OSError as wrong:
        words = f"{here}: {wrong.strerror}: a directory that the nodes see, too, is expected"
        raise Unavailable(f"--slurm: {words}") from wrong
    try:
        yield folder
    except _Lost:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _cancelled_at_last(name: str) -> Iterator[None]:
    """Cancel what is left of the array where not all has ended well.

    By its name: who is interrupted while sbatch runs does not know the number yet.
    """
    try:
        yield
    except BaseException:
        with suppress(PliantError):
            Commands().run(["scancel", f"--name={name}"])
        raise


def _as_they_end(jobs: Sequence[Job[Any]], folder: Path) -> Iterator[tuple[int, list[Any]]]:
    """Yield each task's number and results. Raises what it raised, and _Lost."""
    waiting = dict(enumerate(jobs))
    gone: set[str] = set()
    ask_at_s = time.monotonic() + ASK_S
    while waiting:
        there = {path.name for path in folder.iterdir()}
        for number, job in [*waiting.items()]:
            if job.paths.result_pickle.name in there:
                del waiting[number]
                yield number, _results(job)
        if waiting and time.monotonic() >= ask_at_s:
            ask_at_s = time.monotonic() + ASK_S
            # Files of other hosts may be seen late: who is gone is lost when asked for again.
            gone, before = _gone([job.job_id for job in waiting.values()], folder.name), gone
            for job in waiting.values():
                if job.job_id in gone & before:
                    raise _lost(job)
        elif waiting:
            time.sleep(LOOK_S)


def _results(job: Job[Any]) -> list[Any]:
    from submitit.core.utils import UncompletedJobError  # noqa: PLC0415  # an extra

    try:
        found: list[Any] | _Failed = job.result()
    except UncompletedJobError as wrong:
        raise _lost(job) from wrong
    if isinstance(found, _Failed):
        raise found.error
    return found


def _gone(ids: Sequence[str], name: str) -> set[str]:
    """Return which tasks Slurm has no more; none where it does not answer."""
    try:
        answer = Commands().run(["squeue", "--noheader", "--array", f"--name={name}", "-o", "%i"])
    except (BatchError, Unavailable):
        return set()
    return set(ids) - set(answer.out.split()) if answer.status == 0 else set()


def _lost(job: Job[Any]) -> _Lost:
    lines = (job.stderr() or "").splitlines()
    said = [line.strip() for line in lines if line.strip() and not line.startswith("srun: ")]
    folder = job.paths.folder
    words = said[-1] if said else f"it left no word; do the nodes see {folder}?"
    return _Lost(f"--slurm: task {job.job_id} ended without a result: {words} (see {folder})")
