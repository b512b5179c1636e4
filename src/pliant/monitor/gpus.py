"""What this node's NVIDIA GPUs do and which processes use them, by NVML.

What is easily got wrong, and what is done here:

- NVML's index is not the device file's number. Slurm knows a GPU by its file, /dev/nvidiaN: N is
  the *minor number*, and :meth:`GpuReading.of_minors` finds GPUs by it, never by the index.
- A pid may be one of another pid namespace: here it is nobody's or somebody else's. A process is
  ``known`` only if its open files in our /proc show the GPU's device file.
- With MIG each instance is a row of its own, with the minor number of its GPU, and processes stand
  in the instances' rows alone. Neither instances nor their processes have a utilisation.
- MIG instances come and go while the driver runs: nothing is kept from one reading to the next but
  the session and when processes were last sampled.

Source: NVML API Reference, "Device Queries", "GRID Virtualization APIs" (utilisation of processes)
and "Multi Instance GPU Management".
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pliant.monitor.device_files import holds
from pliant.monitor.nvml import GpuLostError, Nvml, SessionLostError

log = logging.getLogger("pliant.gpus")

STALE_S = 30.0
"""A process's utilisation that was sampled longer ago says nothing of now."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """One process on a GPU.

    ``known``: whether pid is that process in our /proc. ``sm_pct``: percent of the time since the
    last reading, half a minute at most, in which its kernels ran; None where it cannot be told, or
    was not sampled since then, as beside another process that fills the GPU.
    """

    pid: int
    mem_mib: int | None
    sm_pct: int | None
    known: bool


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG device: the ids of its GPU instance and its compute instance, and its GPU's UUID."""

    gpu_instance: int | None
    compute_instance: int | None
    parent: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, or one MIG instance of it; None for what could not be read.

    ``index`` is NVML's and may change with a restart of the driver; ``minor`` is the number of
    /dev/nvidiaN. ``mem_used_mib`` has what the driver keeps for itself in it. ``util_pct``: percent
    of the last sample period (1 s or less) in which any kernel ran.
    """

    uuid: str
    index: int
    minor: int | None
    name: str | None
    mem_used_mib: int | None
    mem_total_mib: int | None
    util_pct: int | None
    processes: tuple[GpuProcess, ...] | None
    instance: Instance | None = None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """All that could be read at one moment (seconds of Unix time), and in words what could not."""

    at_s: float
    driver: str | None
    gpus: tuple[Gpu, ...]
    unread: tuple[str, ...] = ()

    def of_minors(self, minors: Collection[int]) -> tuple[Gpu, ...]:
        """Return the GPUs of these device files, /dev/nvidiaN, and their MIG instances."""
        return tuple(gpu for gpu in self.gpus if gpu.minor in minors)


class Gpus:
    """Readings of all GPUs. None of them makes it raise: a reading says in words what is missing.

    Each such word is logged once when it comes, and once when it goes.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._nvml = Nvml()
        self._sampled_us: dict[str, int] = {}  # by UUID: the newest sample of a process
        self._labels: dict[int, str] = {}  # by index: what a GPU was called when it could be read
        self._told: dict[str, str] = {}

    def read(self, now_s: float) -> GpuReading:
        """Return what the GPUs do now (Unix time, for the driver's samples have it)."""
        unread = self._nvml.unread = {}
        gpus: tuple[Gpu, ...] = ()
        for _ in range(2):  # the second time with a new session
            try:
                self._nvml.open()
                gpus = tuple(self._gpus(int(now_s * 1e6)))
            except SessionLostError as error:
                self.close()
                unread.clear()
                unread[""] = f"no GPU can be read: {error}"
            else:
                unread.pop("", None)
                break
        self._tell(unread)
        return GpuReading(now_s, self._nvml.driver, gpus, tuple(unread.values()))

    def close(self) -> None:
        """Let go of the driver, so that it can be unloaded; the next reading opens it again."""
        self._nvml.close()

    def _tell(self, unread: dict[str, str]) -> None:
        """Log what has changed of what cannot be read."""
        for key, words in self._told.items():
            if key not in unread:
                log.info("no longer so: %s", words)
        for key, words in unread.items():
            if self._told.get(key) != words:
                log.warning("%s", words)
        self._told = unread

    def _gpus(self, now_us: int) -> Iterator[Gpu]:
        count = self._nvml.ask("NVML", "the number of GPUs", "nvmlDeviceGetCount")
        for index in range(count or 0):
            try:
                yield from self._gpu(index, now_us)
            except GpuLostError as error:
                label = self._label(index)
                self._nvml.unread[label] = f"{label}: cannot be read: {error}"

    def _label(self, index: int) -> str:
        return self._labels.get(index, f"the GPU with NVML's index {index}")

    def _gpu(self, index: int, now_us: int) -> list[Gpu]:
        """Return a GPU and its MIG instances: all of them, or none where it is lost meanwhile."""
        ask, label = self._nvml.ask, self._label(index)
        handle = ask(label, "its handle", "nvmlDeviceGetHandleByIndex", index)
        uuid = handle and ask(label, "its UUID", "nvmlDeviceGetUUID", handle)
        if not uuid:
            return []
        minor = ask(uuid, "its minor number", "nvmlDeviceGetMinorNumber", handle)
        label = self._labels[index] = uuid if minor is None else f"{uuid} (/dev/nvidia{minor})"
        gpu = self._filled(handle, label, Gpu(uuid, index, minor, None, None, None, None, ()))
        mig = ask(label, "its MIG mode", "nvmlDeviceGetMigMode", handle, optional=True)
        if mig and mig[0]:  # the mode now; the other comes with the next reset
            return [gpu, *self._instances(handle, label, gpu)]
        used = ask(label, "its utilisation", "nvmlDeviceGetUtilizationRates", handle)
        sm_pct = self._sm_pct(handle, label, uuid, now_us)
        processes = self._processes(handle, label, minor, sm_pct)
        return [replace(gpu, util_pct=used and used.gpu, processes=processes)]

    def _filled(self, handle: Any, label: str, gpu: Gpu) -> Gpu:
        """Fill in what GPUs and MIG instances both have."""
        memory = self._nvml.ask(label, "its memory", "nvmlDeviceGetMemoryInfo", handle)
        return replace(
            gpu,
            name=self._nvml.ask(label, "its name", "nvmlDeviceGetName", handle),
            mem_used_mib=memory and memory.used >> 20,
            mem_total_mib=memory and memory.total >> 20,
        )

    def _instances(self, handle: Any, label: str, gpu: Gpu) -> Iterator[Gpu]:
        ask = self._nvml.ask
        most = ask(label, "its MIG devices", "nvmlDeviceGetMaxMigDeviceCount", handle)
        for number in range(most or 0):  # not all of them need be there
            what, call = f"its MIG device {number}", "nvmlDeviceGetMigDeviceHandleByIndex"
            mig = ask(f"{label}, {number}", what, call, handle, number, nothing=("NOT_FOUND",))
            uuid = mig and ask(f"{label}, {number}", f"{what}'s UUID", "nvmlDeviceGetUUID", mig)
            if not uuid:
                continue
            instance = Instance(
                ask(uuid, "its GPU instance", "nvmlDeviceGetGpuInstanceId", mig),
                ask(uuid, "its compute instance", "nvmlDeviceGetComputeInstanceId", mig),
                gpu.uuid,
            )
            row = self._filled(mig, uuid, replace(gpu, uuid=uuid, instance=instance))
            yield replace(row, processes=self._processes(mig, uuid, gpu.minor, {}))

    def _processes(
        self, handle: Any, label: str, minor: int | None, sm_pct: dict[int, int]
    ) -> tuple[GpuProcess, ...] | None:
        """Return the processes by pid; None where they cannot be listed.

        Compute, graphics and MPS processes are three lists, and one may stand in several of them.
        """
        compute = self._listed(handle, label, "Compute")
        if compute is None:
            return None
        others = [self._listed(handle, label, kind) for kind in ("Graphics", "MPSCompute")]
        mem = {one.pid: one.usedGpuMemory for some in (*others, compute) for one in some or ()}
        return tuple(
            GpuProcess(pid, used and used >> 20, sm_pct.get(pid), self._is_known(pid, minor))
            for pid, used in sorted(mem.items())
        )

    def _listed(self, handle: Any, label: str, kind: str) -> Any:
        """List one kind of processes, in the newest way that the driver has."""
        what, call = f"its {kind} processes", f"nvmlDeviceGet{kind}RunningProcesses"
        newest = self._nvml.ask(label, what, f"{call}_v3", handle, optional=True)
        if newest is not None:
            return newest
        return self._nvml.ask(label, what, f"{call}_v2", handle, optional=kind != "Compute")

    def _sm_pct(self, handle: Any, label: str, uuid: str, now_us: int) -> dict[int, int]:
        """Return by pid the newest sample since the last reading: the driver's mean over that time.

        No samples is the error NOT_FOUND, or one whose number is that of success; one more process
        between the binding's two calls is INSUFFICIENT_SIZE.
        """
        seen_us = self._sampled_us.get(uuid, 0)
        if seen_us > now_us:  # the clock was set back
            seen_us = 0
        since_us = max(seen_us, now_us - int(STALE_S * 1e6), 0)
        samples = self._nvml.ask(
            label,
            "its processes' utilisation",
            "nvmlDeviceGetProcessUtilization",
            handle,
            since_us,
            nothing=("SUCCESS", "NOT_FOUND", "INSUFFICIENT_SIZE"),
        )
        fresh = sorted(
            (one.timeStamp, one.pid, one.smUtil)
            for one in samples or ()
            if one.timeStamp > since_us and one.smUtil <= 100
        )
        if fresh:
            self._sampled_us[uuid] = fresh[-1][0]
        return {pid: percent for _, pid, percent in fresh}

    def _is_known(self, pid: int, minor: int | None) -> bool:
        try:
            return holds(self._proc / str(pid), minor)
        except PermissionError:
            self._nvml.unread["fd"] = (
                "which processes are on a GPU is known to root alone: permission denied"
            )
            return False
