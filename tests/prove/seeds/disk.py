"""The disk that the store lies on, which may be full."""

from __future__ import annotations

import sqlite3
from typing import Any

_WRITES = ("INSERT", "UPDATE", "DELETE", "BEGIN;")


class Disk:
    """Stands where :mod:`pliant.store.database` has the module ``sqlite3``."""

    def __init__(self) -> None:
        self.is_full = False
        self.was_full = False

    def fills(self) -> None:
        """Take no more from here on."""
        self.is_full = self.was_full = True

    def connect(self, name: str, **named: Any) -> sqlite3.Connection:
        disk, in_memory = self, name == ":memory:"

        class Connection(sqlite3.Connection):
            def _check(self, statement: str) -> None:
                on_disk = not in_memory or " file." in statement
                if disk.is_full and on_disk and statement.startswith(_WRITES):
                    raise sqlite3.OperationalError("database or disk is full")

            def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
                self._check(statement)
                return super().execute(statement, *values)

            def executescript(self, script: str) -> sqlite3.Cursor:
                self._check(script)
                return super().executescript(script)

        return sqlite3.connect(name, factory=Connection, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(sqlite3, name)
