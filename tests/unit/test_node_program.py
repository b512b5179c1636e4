"""What is seen of a program before it is sent the signal of its choice."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from fake_door import wait_until
from pliant.node.program import BLOCKS_S, Program

MASKS = """
import os, signal, sys, time
for number, how in enumerate((signal.SIG_BLOCK, signal.SIG_UNBLOCK, signal.SIG_BLOCK)):
    signal.pthread_sigmask(how, signal.valid_signals())
    open(f"is{number}", "w").close()
    while not os.path.exists(f"was{number}"): time.sleep(0.01)
"""


def test_only_a_program_that_goes_on_blocking_a_signal_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who starts a process blocks all for a moment; a signal that came then would end it."""
    monkeypatch.chdir(tmp_path)
    program = Program([sys.executable, "-c", MASKS], os.environ, ())
    now_s = time.monotonic()
    seen: list[list[bool]] = []
    for number in range(3):
        wait_until((tmp_path / f"is{number}").exists, "the program to set its mask")
        seen.append([])
        for at_s in (0.0, BLOCKS_S / 2, BLOCKS_S):
            with monkeypatch.context() as clock:
                clock.setattr(time, "monotonic", lambda at_s=now_s + at_s: at_s)
                seen[-1].append(program.survives(signal.SIGUSR1))
        (tmp_path / f"was{number}").touch()
    assert seen == [[False, False, True], [False] * 3, [False, False, True]]
    assert program.wait() == 0
