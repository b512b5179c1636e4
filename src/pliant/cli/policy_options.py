"""Options of a policy on a command line: ``--with OPTION=VALUE``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pliant.errors import BadInput
from pliant.grammar import quoted


def policy_options(words: Sequence[str]) -> dict[str, bool | int | float | str]:
    """Read ``OPTION=VALUE`` words; a value that is JSON is that value, anything else text.

    Raises BadInput.
    """
    found: dict[str, bool | int | float | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise BadInput(f"--with: {quoted(word)}: OPTION=VALUE is expected")
        option = name.replace("-", "_")
        if option in found:
            raise BadInput(f"--with: {quoted(word)}: {option} is given twice: one is expected")
        found[option] = _value(value)
    return found


def _value(text: str) -> bool | int | float | str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float | str) else text
