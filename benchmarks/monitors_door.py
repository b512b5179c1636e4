"""pliantd's second door alone, over a made cluster, for :mod:`benchmarks.bench_monitors`.

``python -m benchmarks.monitors_door MUNGE_SOCKET NODES JOBS`` prints its port and serves.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import cast

from pliant.daemon import sockets
from pliant.daemon.cycling import Cycling
from pliant.daemon.lines import LineServer
from pliant.daemon.monitors import Monitors
from pliant.daemon.munge import Munge
from pliant.daemon.munge_door import MungeDoor
from pliant.daemon.origins import Origins
from pliant.daemon.rights import Site, asker
from pliant.daemon.verbs import Verbs
from pliant.model import Job, JobState, Node, Snapshot

WINDOW_S = 10.0


def node_name(node: int) -> str:
    """Return a node's name."""
    return f"node{node:04d}"


def job_number(node: int, job: int) -> str:
    """Return the number of a node's job."""
    return str(1 + 100 * node + job)


def cluster(nodes: int, jobs: int) -> Snapshot:
    """Return so many nodes with so many jobs each, as they are now."""
    names = [node_name(node) for node in range(nodes)]
    running = tuple(
        Job(job_number(node, job), state=JobState.RUNNING, start_s=1.0, nodes=(names[node],))
        for node in range(nodes)
        for job in range(jobs)
    )
    rows = tuple(Node(name, 64, 0, 0, 0) for name in names)
    return Snapshot(time.time(), rows, (), (), running)


async def serve(munge_socket: str, nodes: int, jobs: int) -> None:
    """Serve until this process is ended."""
    look = cluster(nodes, jobs)
    monitors = Monitors(lambda: look, time.time, Origins(time.monotonic))
    # no other verb is asked for
    verbs = Verbs(cast("Cycling", None), lambda: None, time.time, tuple, int, 0.0)
    door = MungeDoor(
        *(Munge(munge_socket), verbs, lambda uid: asker(uid, Site(), ())), monitors=monitors
    )
    lines = LineServer("the second door", door.begin, door.limits, time.monotonic)
    listening = sockets.tcp_socket("127.0.0.1:0")
    server = await asyncio.start_server(lines, sock=listening, limit=lines.most_bytes)
    print(listening.getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
