"""Hear a daemon's READY=1, as systemd would (sd_notify(3))."""

from __future__ import annotations

import socket
from pathlib import Path


class Notified:
    """A NOTIFY_SOCKET for one start of one daemon."""

    def __init__(self, path: Path) -> None:
        """Listen at the path; an old socket there goes."""
        path.unlink(missing_ok=True)
        self.path = path
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._door.bind(str(path))
        self._ready = False

    def ready(self) -> bool:
        """Return whether READY=1 has come."""
        while not self._ready:
            try:
                said = self._door.recv(4096)
            except BlockingIOError:
                break
            self._ready = b"READY=1" in said.split(b"\n")
        return self._ready

    def close(self) -> None:
        """Stop listening; the daemon goes on without."""
        self._door.close()
        self.path.unlink(missing_ok=True)
