"""The clients that the command line itself runs: argument lists, time limits, no shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pliant.errors import Unavailable

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def last_words(self) -> str:
        """The last line that it printed, on stderr where it said something there."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1] if lines else f"exit {self.code}"


def run(
    argv: Sequence[str],
    timeout_s: float = TIMEOUT_S,
    text: str = "",
    environment: dict[str, str] | None = None,
) -> Done:
    """Run one command; ``text`` goes to its stdin.

    Raises Unavailable where it is missing or does not answer in time.
    """
    try:
        done = subprocess.run(
            list(argv),
            input=text.encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env={**os.environ, **(environment or {})},
        )
    except OSError as wrong:
        raise Unavailable(f"{argv[0]}: {wrong.strerror}") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{argv[0]} did not answer within {timeout_s:g} s") from None
    return Done(done.returncode, _text(done.stdout), _text(done.stderr))


def scontrol_config(
    conf: str = "", bin_dir: str = "", timeout_s: float = TIMEOUT_S
) -> dict[str, str]:
    """Return ``scontrol show config`` by key; it asks slurmctld.

    Raises Unavailable.
    """
    scontrol = str(Path(bin_dir) / "scontrol") if bin_dir else "scontrol"
    environment = {"SLURM_CONF": conf} if conf else None
    done = run([scontrol, "show", "config"], timeout_s, environment=environment)
    if done.code != 0:
        raise Unavailable(f"scontrol show config: {done.last_words}")
    return config_values(done.out)


def config_values(text: str) -> dict[str, str]:
    """Read ``KEY = VALUE`` lines; ``(null)`` is ""."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {
        key.strip(): "" if value.strip() == "(null)" else value.strip() for key, _, value in pairs
    }


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
