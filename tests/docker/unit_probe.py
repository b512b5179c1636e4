"""What a program may in the place of a daemon, as JSON; its argument is a busy process of another's.

It is run inside a unit, and is no test.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pliant.monitor.perf import Event, of_thread
from pliant.monitor.refusals import CannotCount

CLONE_NEWUSER = 0x10000000
WRITTEN_AND_RUN = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC

libc = ctypes.CDLL(None, use_errno=True)


def said(call: Callable[..., object], *words: object) -> str:
    """Return "done", or how the kernel refused: that it is not permitted has two numbers."""
    try:
        number = ctypes.get_errno() if call(*words) == -1 else 0
    except OSError as error:
        number = error.errno or 0
    return named(number) if number else "done"


def named(number: int) -> str:
    """Return an error's name."""
    return "not permitted" if number in (errno.EPERM, errno.EACCES) else errno.errorcode[number]


def counts(pid: int) -> str:
    """Count for how long a process is on a CPU, until there is something to count."""
    try:
        group = of_thread(pid, [Event.TASK_CLOCK], inherit=True)
    except CannotCount as refused:
        return named(refused.errno)
    while not group.read().counts[Event.TASK_CLOCK]:
        pass
    return "done"


def main() -> None:
    """Try it all."""
    pid = int(sys.argv[1])
    with tempfile.NamedTemporaryFile() as mine:
        found = {
            "count another's thread": counts(pid),
            "see another's process": Path(f"/proc/{pid}").exists(),
            "see the machine's memory": Path("/proc/meminfo").exists(),
            "see a GPU": Path("/dev/fakegpu0").exists(),
            "give a file away": said(os.chown, mine.name, os.geteuid(), -1),
            "be traced": said(libc.ptrace, 0, 0, 0, 0),
            "be less nice": said(os.setpriority, os.PRIO_PROCESS, 0, 19),
            "write anywhere": said(Path("/etc/pliant/new").touch),
            "make a namespace": said(libc.unshare, CLONE_NEWUSER),
            "speak to the kernel": said(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW),
            "run what it wrote": said(lambda: mmap.mmap(-1, 4096, prot=WRITTEN_AND_RUN)),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
