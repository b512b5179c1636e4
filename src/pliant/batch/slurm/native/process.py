"""The worker process: started when it is first asked, killed where it does not answer in time."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pliant.batch.slurm.native.frames import receive, send
from pliant.errors import Unavailable

_MODULE = "pliant.batch.slurm.native.worker"


class Worker:
    """Asks the worker one question at a time; safe to call from several threads."""

    def __init__(self, env: Mapping[str, str], timeout_s: float = 10.0) -> None:
        """``env`` is its environment, beside where pliantd finds Python's modules.

        ``timeout_s`` bounds each answer, the start of the process included.
        """
        self._env, self._timeout_s = dict(env), timeout_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None

    def ask(self, request: Sequence[object]) -> Any:
        """Return its answer.

        Raises Unavailable where none comes in time or the worker ends: what it was doing then may
        be done or not.
        """
        if not self._lock.acquire(timeout=self._timeout_s):
            raise Unavailable(f"pyslurm: busy for {self._timeout_s:g} s")
        try:
            return self._ask(request, time.monotonic() + self._timeout_s)
        except TimeoutError:
            self._end()
            raise Unavailable(f"pyslurm: no answer within {self._timeout_s:g} s") from None
        except (OSError, EOFError, ValueError) as error:
            raise Unavailable(f"pyslurm: its process ended{self._end()} {error}".rstrip()) from None
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the worker; the next question starts another."""
        with self._lock:
            self._end()

    def _ask(self, request: Sequence[object], deadline: float) -> Any:
        door = self._door or self._start()
        for step in (lambda: send(door, request), lambda: receive(door)):
            door.settimeout(max(0.001, deadline - time.monotonic()))
            answer = step()
        return answer

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                # -P: nothing is imported from the directory that we stand in
                [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno()), str(self._timeout_s)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # pyslurm prints what it does not know
                env={**self._env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                pass_fds=(theirs.fileno(),),
            )
        self._door = ours
        return ours

    def _end(self) -> str:
        """Kill it; return how it had ended, in words."""
        door, process, self._door, self._process = self._door, self._process, None, None
        if door is not None:
            door.close()
        if process is None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):  # it may hang in the kernel
            status = process.wait(0.2)
            return f" with status {status}"
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        return ""
