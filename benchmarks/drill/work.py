"""What became of the steps that the job that counts had done and saved (see faulty_count.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Work:
    """Reads the program's log on: ``saved``: the last step that is known to have been saved."""

    log: Path
    saved: int = 0
    read: int = 0  # lines

    def lost(self) -> tuple[int, int]:
        """Return how many saved steps runs since the last call began without, and how many steps
        in all they began anew."""
        lost = redone = 0
        lines = self.log.read_text().splitlines()
        for line in lines[self.read :]:
            what, *numbers = line.split()
            step, *done = map(int, numbers)
            if what == "saved":
                self.saved = step
            else:
                lost += max(0, self.saved - step)
                redone += max(0, done[0] - step)
        self.read = len(lines)
        return lost, redone
