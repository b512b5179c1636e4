"""What an owner said to Pliant in a submission: by resources, by variables, or both."""

from __future__ import annotations

from collections.abc import Mapping

from pliant.errors import BadSpec
from pliant.filter.pbs.names import ASKED, RESOURCES
from pliant.grammar.options import parse_option
from pliant.model.requests import Request

NO_COLOCATE = "colocate: on PBS Pliant lets no jobs share a node: leave it out"


def words(resources: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the options that were said and their values; resources win.

    ``-l`` cannot leave a value out: ``malleable=yes`` stands for malleable alone.
    """
    found: dict[str, str] = {}
    for option, name in RESOURCES.items():
        value = resources.get(name) or variables.get(ASKED[option])
        if value:
            bare = _unquoted(value)
            found[option] = "" if option == "malleable" and bare == "yes" else bare
    return found


def read_request(said: Mapping[str, str]) -> Request:
    """Read all options.

    Raises BadSpec.
    """
    request = Request()
    for option, value in said.items():
        request = parse_option(request, option, value)
    if request.colocate is not None:
        raise BadSpec(NO_COLOCATE)
    return request


def _unquoted(text: str) -> str:
    """Take away the quotes that a value with a comma needs on qsub's command line."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
