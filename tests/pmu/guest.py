"""The first process of the emulated machine: mount what is needed, experiment, switch off."""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from pathlib import Path

LOOP = Path("/loop")
CGROUPS = Path("/sys/fs/cgroup")
POWER_OFF = 0x4321FEDC  # linux/reboot.h

libc = ctypes.CDLL(None, use_errno=True)


def mount(kind: str, where: Path) -> None:
    where.mkdir(parents=True, exist_ok=True)
    if libc.mount(kind.encode(), str(where).encode(), kind.encode(), 0, None):
        raise OSError(ctypes.get_errno(), f"mount {kind}")


def main() -> None:
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("cgroup2", str(CGROUPS))):
        mount(kind, Path(where))
    import experiments

    experiments.every(LOOP, int(sys.argv[1]), CGROUPS)


try:
    main()
except BaseException:  # the machine is switched off whatever happened, and has no other log
    traceback.print_exc()
finally:
    os.sync()
    libc.reboot(POWER_OFF)
