"""What the pages show being typed: found, typed for real, and its output compared.

In a block of kind ``console``, a line that begins with ``$ `` is typed, and below it stands what is
printed; where nothing stands, the command must not fail. In running text and tables a command stands
in backticks, with its words: `pliant pause`; a program's name alone is no command, nor is what has …

What is printed is as shown if the two are the same once everything in `VARIES` is replaced by one
word. A line … stands for any number of lines.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from limits import HANG_S

TOP = Path(__file__).parents[1]
WRITTEN_BY_PROGRAMS = {
    *("benchmarks.md", "benchmarks-sim.md", "commands.md", "drill.md", "live.md", "releases.md"),
    *("resizes.md", "soak.md"),
}
PAGES = [
    "README.md",
    *(
        f"docs/{p.name}"
        for p in sorted((TOP / "docs").glob("*.md"))
        if p.name not in WRITTEN_BY_PROGRAMS
    ),
    *("docker/README.md", "spank/README.md", "wrappers/README.md"),
]

PROGRAMS = (
    *("pliant", "pliantd", "sbatch", "squeue", "scontrol", "systemctl", "journalctl"),
    *("make", "docker", "apt-get", "python", "rm"),
)
NAMES = {
    *("pliant why", "pliant set", "pliant pin", "pliant sbatch", "pliant sandbox", "pliant resize"),
    "pliant qsub",
    *("pliant simulate", "pliant compare", "pliant whatif"),
    *("pliant run", "pliant run --", "pliant run --signal USR1", "pliant run [OPTIONS] -- COMMAND"),
    *(
        "pliant reproduce",
        "pliant monitor",
        "pliant monitor --trace",
        "pliant monitor --trace FILE",
    ),
    *("scontrol update", "scontrol show job", "apt-get install", "apt-get purge"),
    *("docker image rm", "rm -r"),
}
"""Commands that the text names without what they need to be typed."""

VARIES = (
    (r"\b\d\d-\d\d \d\d:\d\d:\d\d\b", "TIME"),
    (r"\b\d+(\.\d+)? (ms|s|min)\b", "DURATION"),
    (r"\b\d\d\.\d\d(\.\d+)?\b", "RELEASE"),  # of Slurm
    (r"\bpliantd \d+\.\d+\.\d+(\.dev\d+)? on\b", "pliantd VERSION on"),
    (r"(?m)GPUs \d+,\d+$", "GPUs 0,1"),  # which of a node's they are
    (r"\bgres:gpu\b", "gres/gpu"),  # as before Slurm 23.11
    (r"[ \t]+", " "),  # columns are as wide as what stands in them
)
ONLY_LOOKS = re.compile(
    r"(docker compose exec \w+ )?(squeue|cat|scontrol ping|pliant (why|jobs|status|plan|doctor))\b"
)
"""What may be typed again until it prints what is shown: a cluster takes its time."""
OPENS_A_SHELL = re.compile(r"(\bbash|^pliant sandbox shell)$")


@dataclass(frozen=True)
class Typed:
    """One command of a page, and what the page shows that it prints."""

    command: str
    shown: str = ""


def fenced(page: str, kind: str) -> list[str]:
    """Return a page's blocks of a kind."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (TOP / page).read_text(), re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == kind]


def blocks(page: str) -> list[list[Typed]]:
    """Return a page's console blocks."""
    found = []
    for block in fenced(page, "console"):
        parts = re.split(r"^\$ (.*?)(?:  +# .*)?\n", block, flags=re.MULTILINE)[1:]
        found.append([Typed(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)])
    return found


def in_text(page: str) -> list[str]:
    """Return the commands that stand in a page's running text and tables."""
    text = re.sub(r"^```.*?^```$", "", (TOP / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]
    command = re.compile(rf"(\w+=\S+ )*({'|'.join(PROGRAMS)}) [^…]+")
    return [span for span in spans if command.fullmatch(span) and span not in NAMES]


def on_page(page: str, first: str) -> list[Typed]:
    """Return the block that begins with a command, or that command of the text.

    Raises LookupError where the page has neither.
    """
    for block in blocks(page):
        if block[0].command == first:
            return block
    if first not in in_text(page):
        raise LookupError(
            f"{page}: no block begins with `{first}`, and the text has no such command"
        )
    return [Typed(first)]


def with_words(text: str, words: Mapping[str, str]) -> str:
    """Return a text with other words in place of some: what a page can only give an example of."""
    for old, new in words.items():
        text = new.join(re.split(rf"(?<!\w){re.escape(old)}(?!\w)", text))
    return text


def alike(shown: str, printed: str) -> bool:
    """Whether a command printed what a page shows."""
    lines = ["(.*\n)*" if line == "…" else f"{re.escape(line)}\n" for line in _plain(shown)]
    return (
        re.fullmatch("".join(lines), "".join(f"{line}\n" for line in _plain(printed))) is not None
    )


def _plain(text: str) -> list[str]:
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return [line.strip() for line in text.strip().splitlines()]


class Terminal:
    """A shell into which a test types what a page shows."""

    def __init__(
        self,
        *argv: str,
        cwd: Path = TOP,
        env: Mapping[str, str] = os.environ,
        limit_s: float = HANG_S,
        compares: bool = True,
    ) -> None:
        """Start it; ``argv``: what ends in a shell, ``limit_s``: how long a command may take.

        ``compares``: else commands are typed only, where the pages show what another Slurm prints.
        """
        self._compares = compares
        self._limit_s = limit_s
        self._process = subprocess.Popen(
            argv or ("bash",),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._number = 0

    def close(self) -> None:
        """End the shell."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=HANG_S)

    def types(self, page: str, first: str, words: Mapping[str, str] | None = None) -> str:
        """Type the block of a page that begins with a command, or a command of its text.

        ``words``: what stands in place of some words there. Returns what was printed last.
        """
        printed = ""
        for typed in on_page(page, first):
            command, shown = (
                with_words(text, words or {}) for text in (typed.command, typed.shown)
            )
            printed = self._types(page, command, shown)
        return printed

    def _types(self, page: str, command: str, shown: str) -> str:
        end = time.monotonic() + HANG_S
        while True:
            status, printed = self.run(command)
            as_shown = alike(shown, printed) or not self._compares
            if as_shown if shown else status == 0:
                return printed
            if not ONLY_LOOKS.match(command) or time.monotonic() > end:
                raise AssertionError(
                    f"{page}: $ {command}\n{shown or 'must not fail'}\n-- ended with {status}:\n{printed}"
                )
            time.sleep(0.2)

    def run(self, command: str) -> tuple[int, str]:
        """Type a command and return its exit status and what it printed."""
        self._number += 1
        mark = f"-- {self._number} ended with"
        # On another host errors travel on a way of their own: here they are to stand where they came.
        line = command if OPENS_A_SHELL.search(command) else f"{{ {command}\n}} </dev/null 2>&1"
        assert self._process.stdin
        self._process.stdin.write(f"{line}\nprintf '\\n{mark} %d\\n' $?\n".encode())
        self._process.stdin.flush()
        printed = self._until(re.compile(rf"\n{mark} (\d+)\n$"), command)
        text, status = re.split(rf"\n{mark} (\d+)\n$", printed)[:2]
        return int(status), text

    def _until(self, mark: re.Pattern[str], command: str) -> str:
        assert self._process.stdout
        end, printed = time.monotonic() + self._limit_s, b""
        while not mark.search(printed.decode(errors="replace")):
            left_s = max(0.0, end - time.monotonic())
            ready, _, _ = select.select([self._process.stdout], [], [], left_s)
            part = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not part:
                why = "the shell ended" if ready else f"not ended within {self._limit_s:g} s"
                raise AssertionError(f"$ {command}\n{printed.decode(errors='replace')}-- {why}")
            printed += part
        return printed.decode(errors="replace")
