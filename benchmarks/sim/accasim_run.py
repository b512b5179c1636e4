"""One run of AccaSim: ``python -m benchmarks.sim.accasim_run TRACE fifo|easy NODES [files]``.

Run by the Python of AccaSim's own environment. NODES: on so many nodes its 240 processors lie.
``files``: it writes its schedule and its statistics, as it does by default.
Prints one line of JSON: jobs, wall seconds from before the trace is opened, peak MiB, means.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.sim.accasim_shims import divides_by_no_zero
from benchmarks.sim.memory import peak_mib

PROCESSORS = 240


def main(arguments: list[str]) -> None:
    """Run it and say what came of it."""
    trace, scheduler, nodes, *rest = arguments
    with tempfile.TemporaryDirectory() as folder:
        came = run(Path(trace), scheduler, int(nodes), Path(folder), files=rest == ["files"])
        print(json.dumps(came))


def run(trace: Path, scheduler: str, nodes: int, folder: Path, *, files: bool) -> dict[str, float]:
    """Simulate a trace; the jobs that it starts are all of it."""
    # Its own environment alone has it.
    from accasim.base.allocator_class import FirstFit  # noqa: PLC0415  # not in ours
    from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut  # noqa: PLC0415  # not in ours
    from accasim.base.simulator_class import Simulator  # noqa: PLC0415  # not in ours

    classes = {"fifo": FirstInFirstOut, "easy": divides_by_no_zero(EASYBackfilling)}
    config = folder / "system.json"
    config.write_text(json.dumps(system(nodes)))
    began_s = time.perf_counter()
    simulator = Simulator(
        str(trace),
        str(config),
        classes[scheduler](FirstFit()),
        scheduling_output=files,
        statistics_output=files,
        show_statistics=False,
        RESULTS_FOLDER_PATH=str(folder),
        LOG_LEVEL="ERROR",
        tweak_function=_tweak(),
    )
    simulator.start_simulation()
    wall_s = time.perf_counter() - began_s
    return {
        "jobs": simulator.dispatched_jobs,
        "wall_s": wall_s,
        "peak_mib": peak_mib(),
        "wait_s": fmean(simulator.mapper.wtimes),
        "slowdown": fmean(simulator.mapper.slowdowns),
    }


def system(nodes: int) -> dict[str, Any]:
    """Return AccaSim's description of a machine of nothing but processors."""
    return {
        "groups": {"node": {"core": PROCESSORS // nodes}},
        "resources": {"node": nodes},
        "equivalence": {"processor": {"core": 1}},
    }


def _tweak() -> Any:
    """What makes a request of a line of the trace: AccaSim's own, but for memory."""
    from accasim.utils.reader_class import DefaultTweaker  # noqa: PLC0415  # not in ours

    class Processors(DefaultTweaker):  # type: ignore[misc]  # AccaSim has no types
        def tweak_function(self, line: dict[str, Any]) -> Any:
            line.pop("mem", None)
            return super().tweak_function(line)

    return Processors(0)


if __name__ == "__main__":
    main(sys.argv[1:])
