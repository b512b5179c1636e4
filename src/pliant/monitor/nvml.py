"""A session with NVML, and in words what NVML did not say.

The binding is nvidia-ml-py, the extra ``gpu``: imported when the session is opened, since nodes
without GPUs do without it. A session that is open keeps the driver loaded and its GPUs from being
reset, as any program on them does.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class SessionLostError(Exception):
    """There is no driver, or it was restarted: NVML must be opened again."""


class GpuLostError(Exception):
    """This GPU has fallen off the bus."""


class Nvml:
    """Calls of NVML by name; ``unread`` has in words what they did not answer, by what it is of."""

    def __init__(self) -> None:
        self.driver: str | None = None
        self.unread: dict[str, str] = {}
        self._binding: Any = None  # while a session is open; it has no types

    def open(self) -> None:
        """Begin a session unless there is one; raise SessionLostError where that cannot be."""
        if self._binding is not None:
            return
        try:
            import pynvml  # noqa: PLC0415  # the extra gpu: nodes without GPUs do without
        except ImportError:
            why = "nvidia-ml-py is not installed: pip install 'pliant[gpu]'"
            raise SessionLostError(why) from None
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise SessionLostError(str(error)) from None
        self._binding = pynvml
        self.driver = self.ask("NVML", "the driver's version", "nvmlSystemGetDriverVersion")

    def close(self) -> None:
        """Let go of the driver."""
        binding, self._binding, self.driver = self._binding, None, None
        if binding is not None:
            try:
                binding.nvmlShutdown()
            except binding.NVMLError:
                return  # the session has gone with the driver

    def ask(
        self,
        about: str,
        what: str,
        call: str,
        *arguments: Any,
        optional: bool = False,
        nothing: Collection[str] = (),
    ) -> Any:
        """Return what a call of the open session returns, or None, and note in words why.

        ``optional``: nothing is noted of a GPU or driver that does not have it. ``nothing``: errors
        that say no more than that there is none, as NVML's header names them.

        Raises GpuLostError and SessionLostError, which end the reading of the GPU and of all GPUs.
        """
        binding = self._binding
        try:
            return getattr(binding, call)(*arguments)
        except binding.NVMLError as error:
            name, words = _NAMES.get(error.value, ""), str(error)
        except AttributeError:  # another release of the binding
            name, words = "FUNCTION_NOT_FOUND", ""
        except UnicodeDecodeError:
            name, words = "", "it is no text"
        if name in _OF_THE_SESSION:
            raise SessionLostError(words)
        if name == "GPU_IS_LOST":
            raise GpuLostError(words)
        if name in nothing or (optional and name in _MISSING):
            return None
        if name == "FUNCTION_NOT_FOUND":  # said once for all GPUs
            self.unread[call] = f"driver {self.driver}, or this nvidia-ml-py, has no {call}"
        else:
            self.unread[f"{about} {call}"] = f"{about}: {what} cannot be read: {words}"
        return None


_NAMES = {
    0: "SUCCESS",  # the binding raises it where nvmlDeviceGetProcessUtilization has no samples
    1: "UNINITIALIZED",
    3: "NOT_SUPPORTED",
    6: "NOT_FOUND",
    7: "INSUFFICIENT_SIZE",
    9: "DRIVER_NOT_LOADED",
    13: "FUNCTION_NOT_FOUND",
    15: "GPU_IS_LOST",
    18: "LIB_RM_VERSION_MISMATCH",
}
"""nvmlReturn_t, as far as something depends on it (NVML API Reference, "Device Enums")."""
_OF_THE_SESSION = {"UNINITIALIZED", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH"}
_MISSING = {"NOT_SUPPORTED", "FUNCTION_NOT_FOUND"}
