"""What an owner said to Pliant in a submission: by flags, in the comment, or both."""

from __future__ import annotations

from collections.abc import Mapping

from pliant.grammar import (
    MOLDABLE_KEYS,
    OPTIONS,
    from_comment,
    parse,
    parse_option,
)
from pliant.model import Request

OPTION = "option."
"""Before the name of a SPANK option's field."""


def says_something(submission: Mapping[str, str]) -> bool:
    """Whether the owner speaks to Pliant at all."""
    flagged = any(OPTION + option in submission for option in OPTIONS)
    return flagged or from_comment(submission.get("comment", "")) is not None


def read_request(submission: Mapping[str, str]) -> Request:
    """Read the comment's words and the flags, which win, option by option.

    Raises BadSpec.
    """
    words: dict[str, str] = {}
    said = from_comment(submission.get("comment", ""))
    if said is not None:
        parse(said)  # it must be right even where a flag wins
        for position, word in enumerate(said.split(";")):
            option, _, value = word.partition("=")
            shortened = position == 0 and option in MOLDABLE_KEYS
            words["moldable" if shortened else option] = word if shortened else value
    for option in OPTIONS:
        if OPTION + option in submission:
            value = submission[OPTION + option]
            words[option] = "" if value == "(null)" else value  # spank.h: no argument given
    request = Request()
    for option, value in words.items():
        request = parse_option(request, option, value)
    return request
