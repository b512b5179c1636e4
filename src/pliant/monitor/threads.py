"""Count a job by its threads, where its cgroup cannot be counted.

Every thread of a process that is new here is opened with `inherit`: from then on the kernel itself
counts all that the thread clones, threads and processes, however short they live, and keeps what
those had counted that ended. A scan alone would miss each thread that begins and ends between two
scans, which is most of the work of a job that starts many short programs. It is still needed for
what counted threads did not clone: a process that the batch system started meanwhile. A process
whose parent was seen before is counted already and not opened again; so nothing is counted twice,
but for a process that lost its parent to init between two scans, until the counters are opened
anew. Missed is a thread cloned in the milliseconds between a process's listing and its opening.

What was opened stays open until `close`, for an ended thread's counters hold its descendants'.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pliant.monitor import perf
from pliant.monitor.perf import Event, Group, Reading
from pliant.monitor.refusals import CannotCount, Then, Way

_ENDED = (FileNotFoundError, ProcessLookupError)


class Threads:
    """The counters of a job's threads: look for new processes with `find`, then `read`."""

    def __init__(
        self,
        events: Sequence[Event],
        *,
        proc: Path = Path("/proc"),
        syscall: perf.Syscall = perf.perf_event_open,
    ) -> None:
        self._events = events
        self._proc = proc
        self._syscall = syscall
        self._seen: dict[int, str] = {}  # pid → when it started, in clock ticks: pids come again
        self._groups: list[Group] = []

    def find(self, pids: Iterable[int]) -> int:
        """Open the processes that are new among the job's; return how many counters were opened.

        Raises CannotCount where a living thread is refused: a job counted in part would look slow,
        so close this then.
        """
        born = {pid: stat for pid in pids if (stat := self._stat(pid))}
        new = [pid for pid, (_, start) in born.items() if self._seen.get(pid) != start]
        opened = [tid for pid in new if not self._cloned(born[pid][0]) for tid in self._tids(pid)]
        self._seen |= {pid: born[pid][1] for pid in new}
        before = len(self._groups)
        for tid in opened:
            self._open(tid)
        return len(self._groups) - before

    def read(self) -> Reading:
        """Return what the job has executed since its threads were found, of ended ones too."""
        return perf.total(self._groups, self._events)

    def close(self) -> None:
        """Count no longer."""
        perf.close(self._groups)
        self._groups = []

    def _cloned(self, parent: int) -> bool:
        """Tell whether a new process came from one that is counted."""
        return parent in self._seen

    def _stat(self, pid: int) -> tuple[int, str] | None:
        """Return a process's parent and start (proc(5), stat: fields 4 and 22), or None."""
        try:
            words = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except _ENDED:
            return None
        except OSError as unread:
            raise self._refused(unread) from unread
        return int(words[1]), words[19]

    def _tids(self, pid: int) -> list[int]:
        try:
            return sorted(int(task.name) for task in (self._proc / str(pid) / "task").iterdir())
        except _ENDED:
            return []
        except OSError as unread:
            raise self._refused(unread) from unread

    def _refused(self, error: OSError) -> CannotCount:
        return CannotCount(error.errno or 0, self._events[0].label, Way.THREADS)

    def _open(self, tid: int) -> None:
        try:
            group = perf.of_thread(tid, self._events, inherit=True, syscall=self._syscall)
        except CannotCount as refused:
            if refused.then is not Then.LEAVE_OUT:
                raise
        else:
            self._groups.append(group)
