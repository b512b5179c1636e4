"""The one module by which text is decoded into types.

msgspec learns a type when it first decodes into it, and hangs what it is still learning on the type
for all threads to see. Where two threads decode into one type for the first time at once, one of
them reads what is not there yet and the process dies of SIGSEGV (msgspec 0.22: 170 of 2,000
processes of six threads each). So a type is learnt under a lock, before anybody decodes into it:
whoever makes a decoder has waited for that. Made at the head of a module, it costs nothing later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")
_LEARNS = threading.Lock()


class Decoder(Generic[T]):
    """Decodes into one type, in any number of threads."""

    def __init__(self, kind: type[T], dec_hook: Callable[[type, Any], Any] | None = None) -> None:
        """Learn the type; ``dec_hook`` is msgspec's."""
        self._kind = kind
        with _LEARNS:
            self._json = msgspec.json.Decoder(kind, dec_hook=dec_hook)

    def json(self, text: bytes | str) -> T:
        """Return what a text of JSON says.

        Raises msgspec.DecodeError, of which msgspec.ValidationError is one.
        """
        return self._json.decode(text)

    def plain(self, value: object) -> T:
        """Return what plain values say: dictionaries, lists, texts, numbers.

        Raises msgspec.ValidationError.
        """
        return msgspec.convert(value, self._kind)
