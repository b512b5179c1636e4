"""A process that traces GPUs on a clock that it is told: `gpu_tracing.py FILE PROC CGROUP`.

On each line in stands a time, and the state of the stub of the driver's library for that look. With
LD_LIBRARY_PATH, the library is the stub's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pliant.monitor.gpus import Gpus
from pliant.monitor.service import Clocks, Node
from pliant.monitor.trace_file import TraceFile
from pliant.monitor.tracing import trace


def main() -> None:
    """Look at each of the times."""
    file, proc, cgroup = map(Path, sys.argv[1:])
    times: list[float] = []

    def wait(_seconds: float) -> bool:
        at_s, _, state = sys.stdin.readline().strip().partition(" ")
        if state:
            times.append(float(at_s))
            os.environ["NVML_STUB_STATE"] = state
        return not state

    wait(0.0)
    clocks = Clocks(lambda: times[-1], lambda: times[-1], lambda: 0.0)
    kept = TraceFile(file)
    trace(Node("n1", proc, cgroup, clocks), Gpus(proc), kept.append, 15.0, wait)
    kept.close()


if __name__ == "__main__":
    main()
