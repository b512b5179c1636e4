"""Options as users write them, checked: a dataclass's fields, their types and defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from pliant.errors import BadInput

Built = TypeVar("Built")
Load = Annotated[float, "load"]
"""What arrives over what a cluster could do: an option that nothing can be divided by is none."""
Count = Annotated[int, "count"]
"""How many, of which none would be nothing."""
_LEAST, _MOST = 1e-12, 10**12
"""No option is larger, or nearer to 0: the figures of a replay would have no end, or be 0."""


def options_of(built: type[Any]) -> dict[str, object]:
    """Return the options of a class with their defaults."""
    return {field.name: field.default for field in fields(built)}


def build(what: str, built: type[Built], chosen: Mapping[str, object]) -> Built:
    """Return an object of a class with these options; ``what`` is its name to users.

    Raises BadInput, naming what would be right, for an unknown option or value.
    """
    known = options_of(built)
    hints = get_type_hints(built, include_extras=True)
    for option, value in chosen.items():
        if option not in known:
            right = ", ".join(f"{key} ({typed(default)})" for key, default in known.items())
            expected = f"one of {right} is expected" if right else "it has no options"
            raise BadInput(f"{what}: option {option!r}: {expected}")
        _check(f"{what}: {option}", value, hints[option])
    return built(**chosen)


def typed(value: object) -> str:
    """Return an option's value as users write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(what: str, value: object, hint: object) -> None:
    if get_origin(hint) is Literal:
        right, fits = " or ".join(map(str, get_args(hint))), value in get_args(hint)
    else:
        right, fits = _CHECKS[hint][0], _CHECKS[hint][1](value)
    if not fits:
        raise BadInput(f"{what}: {value!r}: {right} is expected")


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return value == 0 or _LEAST <= value <= _MOST


def _is_load(value: object) -> bool:
    return _is_number(value) and 0.001 <= cast(float, value) <= 1000


_CHECKS: dict[object, tuple[str, Callable[[object], bool]]] = {
    bool: ("true or false", lambda value: isinstance(value, bool)),
    Load: ("a number from 0.001 to 1000", _is_load),
    float: ("0, or a number from 1e-12 to 1e12,", _is_number),
    Count: (
        "a whole number from 1 to 1e12",
        lambda value: type(value) is int and 1 <= value <= _MOST,
    ),
    int: ("a whole number from 0 to 1e12", lambda value: type(value) is int and _is_number(value)),
    str: ("a text", lambda value: isinstance(value, str)),
}
