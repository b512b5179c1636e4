"""Types that several threads decode into at once, in fresh processes: none of them dies."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

PROCESSES = 200
AT_ONCE = 3
SCRIPT = """
import sys, threading
from pliant.cli import run_door
from pliant.daemon import config
from pliant.wire import ok

SAYS = {
    "daemon": {"listen": "127.0.0.1:1", "user": "root", "cycle_s": 1, "admins": ["a"], "batch": "pbs"},
    "pbs": {"server": "pbs", "timeout_s": 1, "back": "time", "wait_s": 60},
    "slurm": {"timeout_s": 1, "access": "mixed"},
}
ANSWER = ok(json='{"wish": "w", "why": "resize", "until_s": 1.5, "several": true, "run": 1}')
together = threading.Barrier(6)
right = []

def first():
    together.wait()
    said = config.parse(SAYS)
    answer = run_door.understood(ANSWER)
    right.append((said.pbs.back, answer.run) == ("time", 1))

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=first) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(0 if right == [True] * 6 else 3)
"""


def _exit_codes(script: Path, processes: int) -> Counter[int]:
    """Count how that many processes of a script end."""

    def one(_: int) -> int:
        return subprocess.run([sys.executable, script], check=False).returncode

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return Counter(pool.map(one, range(processes)))


@pytest.mark.timeout(1800)
def test_threads_that_decode_first_and_at_once_end_no_process(tmp_path: Path) -> None:
    """msgspec 0.22 builds what it knows of a type in the sight of all threads (SIGSEGV)."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert _exit_codes(script, PROCESSES) == Counter({0: PROCESSES})
