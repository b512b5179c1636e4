"""qsub, qrls, qdel and qmgr over a queue in memory, where ``depend=runone`` joins all to all."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence

from pliant.batch.clients import Answer
from pliant.errors import Unavailable


class FakePbs:
    """Says yes to everything but what it is told to refuse."""

    def __init__(self, made: tuple[str, ...] = ()) -> None:
        self.made = made
        self.said: list[list[str]] = []
        self.scripts: list[str] = []
        self.jobs: dict[str, set[str]] = {}
        self.held: set[str] = set()
        self.fails: dict[str, str] = {}
        """What is refused, by the command or by the job's number, and in which words."""
        self.interrupted_at = 0
        self.interrupt: Callable[[], object] = lambda: signal.raise_signal(signal.SIGINT)
        self._number = 0

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer one command."""
        assert env is None
        self.said.append(list(argv))
        words = self.fails.get(argv[0], "")
        if argv[0] == "qsub":
            words = words or self.fails.get(str(self._number + 1), "")
        asked = argv[-1].removeprefix("list resource ").split(",") if argv[0] == "qmgr" else []
        if set(asked) - set(self.made):
            words = words or f"qmgr obj={asked[0]} svr=default: Unknown resource"
        if words == "away":
            raise Unavailable(f"{argv[0]}: no answer within 60 s")
        if words:
            return Answer("", f"{words}\n", 1)
        return Answer(str(getattr(self, f"_{argv[0]}")(list(argv[1:]), stdin)), "", 0)

    def _qmgr(self, words: list[str], _stdin: str) -> str:
        return f"Resource {words[1].removeprefix('list resource ')}\n"

    def _qsub(self, words: list[str], stdin: str) -> str:
        self._number += 1
        new = f"{self._number}.head"
        first = [word.partition(":")[2] for word in words if word.startswith("depend=runone:")]
        joined = {first[0], *self.jobs[first[0]]} if first else set()
        self.jobs[new] = joined
        for one in joined:
            self.jobs[one].add(new)
        self.held |= {new} if "-h" in words else set()
        self.scripts.append(stdin)
        if self._number == self.interrupted_at:
            self.interrupt()
        return f"{new}\n"

    def _qrls(self, words: list[str], _stdin: str) -> str:
        assert words[:2] == ["-h", "u"]
        self.held -= set(words[2:])
        return ""

    def _qdel(self, words: list[str], _stdin: str) -> str:
        for one in words:
            del self.jobs[one]
        return ""
