"""A node made of files: a /proc and a cgroup tree, as the kernel and slurmd would have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pliant.monitor.proc import PAGE_BYTES, TICKS_PER_S

Times = tuple[float, float]
"""How long a thread ran, and waited (seconds)."""


@dataclass(frozen=True)
class FakeNode:
    """Where the files are: hand ``proc`` and ``cgroup`` to what is tested."""

    top: Path

    @property
    def proc(self) -> Path:
        return self.top / "proc"

    @property
    def cgroup(self) -> Path:
        return self.top / "cgroup"

    def write(self, path: str, text: str) -> None:
        """Write a file below the top, with the directories that it needs."""
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def process(
        self,
        pid: int,
        parent: int = 1,
        *,
        name: str = "work",
        title: str = "",
        program: str = "/usr/bin/work",
        uid: int = 1000,
        session: int = 0,
        own_s: float = 0.0,
        children_s: float = 0.0,
        rss_mib: int = 0,
        flags: int = 0,
        threads: dict[int, Times] | None = None,
    ) -> int:
        """Make a process, or make it anew; without ``threads`` it has one, which did nothing."""
        threads = threads or {pid: (0.0, 0.0)}
        fields = {
            4: parent,
            6: session or pid,
            9: flags,
            14: round(own_s * TICKS_PER_S),
            16: round(children_s * TICKS_PER_S),
            20: len(threads),
            22: 100 + pid,
            24: rss_mib * 2**20 // PAGE_BYTES,
        }
        rest = " ".join(str(fields.get(place, 0)) for place in range(4, 53))
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) S {rest}\n")
        self.write(f"proc/{pid}/cmdline", f"{title or name}\0")
        self.write(f"proc/{pid}/status", f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        for tid, (run_s, wait_s) in threads.items():
            times = f"{round(run_s * 1e9)} {round(wait_s * 1e9)} 7\n"
            self.write(f"proc/{pid}/task/{tid}/schedstat", times)
        exe = self.proc / str(pid) / "exe"
        exe.unlink(missing_ok=True)
        exe.symlink_to(program)
        return pid

    def stepd(self, pid: int, step: str, *, children_s: float = 0.0, session: int = 0) -> int:
        """Make the slurmstepd of a step, such as 12.batch."""
        return self.process(
            pid,
            name="slurmstepd",
            title=f"slurmstepd: [{step}]",
            program="/usr/sbin/slurmstepd-wlm",
            uid=0,
            session=session,
            children_s=children_s,
        )

    def unified(
        self,
        place: str,
        *,
        cpu_s: float,
        memory: dict[str, int] | None = None,
        stalled_s: float | None = None,
        **pids: tuple[int, ...],
    ) -> None:
        """Make a job's cgroup of v2; ``pids`` has step_S_slurm and step_S_user with a task below."""
        job = f"cgroup/system.slice/{place}"
        self.write(f"{job}/cpu.stat", f"usage_usec {round(cpu_s * 1e6)}\nuser_usec 0\n")
        if memory is not None:
            self.write(f"{job}/memory.stat", "".join(f"{k} {v}\n" for k, v in memory.items()))
        if stalled_s is not None:
            for resource in ("cpu", "memory", "io"):
                self.write(f"{job}/{resource}.pressure", pressure(stalled_s))
        for key, members in pids.items():
            step, _, leaf = key.rpartition("_")
            below = "/task_0" if leaf == "user" else ""
            listed = "".join(f"{pid}\n" for pid in members)
            self.write(f"{job}/{step}/{leaf}{below}/cgroup.procs", listed)


def pressure(stalled_s: float) -> str:
    """Return a file of pressure in which some work was stalled for so long."""
    averages = "avg10=0.00 avg60=0.00 avg300=0.00"
    return f"some {averages} total={round(stalled_s * 1e6)}\nfull {averages} total=0\n"
