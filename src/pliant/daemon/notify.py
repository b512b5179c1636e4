"""What systemd is told, by sd_notify(3)'s datagram; nothing where systemd does not listen."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping


class Notifier:
    """Speaks to $NOTIFY_SOCKET; an unreachable one is ignored, as sd_notify(3) advises."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        """Take the socket's address and the watchdog's interval from the environment."""
        self._address = environ.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):  # an abstract socket
            self._address = "\0" + self._address[1:]
        usec = environ.get("WATCHDOG_USEC", "")
        self.watchdog_s = int(usec) / 1e6 if usec.isascii() and usec.isdecimal() else 0.0
        """How often systemd wants to hear of us; 0: it did not ask."""

    def tell(self, *lines: str) -> None:
        """Send ``VARIABLE=value`` lines."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
                door.settimeout(0.5)
                door.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            pass

    def ready(self, status: str) -> None:
        """Say that the doors are open."""
        self.tell("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """Say that the configuration is read again; ``ready`` ends it."""
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Say that the end has begun."""
        self.tell("STOPPING=1")

    def alive(self) -> None:
        """Feed the watchdog."""
        self.tell("WATCHDOG=1")
