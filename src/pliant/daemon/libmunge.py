"""Reads munge credentials with libmunge, in this process.

unmunge(1) does the same in a process of its own, which takes about 2 ms of CPU time, half of it
pliantd's, where this takes 0.03 ms: too dear for a thousand nodes that report each minute. Where
there is an unmunge or a munge(1), there is the library that it is linked with.

libmunge gives up a munged that hangs by itself, after 10 s (seen with 0.5.15), and lets other
threads run meanwhile. Contexts are not shared between threads (munge(3), NOTES).
"""

from __future__ import annotations

import ctypes
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from pliant.errors import Unavailable
from pliant.grammar import quoted

LIBRARY = "libmunge.so.2"

# munge_opt_t, munge_ctx(3)
_ADDR4, _SOCKET = 5, 8
_SUCCESS = 0

_REASONS = {
    15: "it has expired; do the clocks of the two hosts agree?",
    16: "it is from the future; do the clocks of the two hosts agree?",
    17: "it was used before",
}
"""By munge_err_t, munge_enum(3): in these cases libmunge gives the payload too."""

_KINDS = {
    **dict.fromkeys(range(8, 14), "damaged"),  # cut off, or of no form, cipher, ... that there is
    14: "forged",  # another key made it, or what it says was changed: munge tells no difference
    15: "expired",
    16: "from the future",
    17: "replayed",
    18: "not for pliantd",  # munge --restrict-uid, --restrict-gid
}
"""By munge_err_t too: what of a credential is wrong, and not of munge here."""


class BadCredential(Unavailable):
    """A credential that proves nothing; ``kind``: what is wrong with it, to count it by."""

    def __init__(self, kind: str, words: str) -> None:
        """``words``: one line for who sent it."""
        super().__init__(words)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Proof:
    """A credential's proven user, what it carried, and where it was made.

    ``host``: the IPv4 address that the munged there takes for its own; "" where it knows none.
    Many hosts have a loopback address for their own name, and munged then says that.
    """

    uid: int
    payload: bytes
    host: str = ""


def decode(credential: bytes, socket: str) -> Proof:
    """Return what a credential proves, asking munged at ``socket`` ("": its default).

    Raises BadCredential, and Unavailable without a munge, in one line. It may take 10 s.
    """
    lib = _library()
    with _context(lib, socket) as context:
        payload, length = ctypes.c_void_p(), ctypes.c_int()
        uid, gid = ctypes.c_uint32(), ctypes.c_uint32()
        found = (payload, length, uid, gid)
        try:
            code = lib.munge_decode(credential, context, *map(ctypes.byref, found))
            if code != _SUCCESS:
                words = lib.munge_ctx_strerror(context) or lib.munge_strerror(code) or b""
                reason = _REASONS.get(code, quoted(words.decode(errors="replace")))
                says = f"munge refused the credential: {reason}"
                raise BadCredential(_KINDS[code], says) if code in _KINDS else Unavailable(says)
            content = ctypes.string_at(payload, length.value) if payload else b""
        finally:
            lib.free(payload)
        return Proof(uid.value, content, _address(lib, context))


def _address(lib: ctypes.CDLL, context: ctypes.c_void_p) -> str:
    raw = (ctypes.c_ubyte * 4)()  # a struct in_addr, in network order
    if lib.munge_ctx_get(context, _ADDR4, raw) != _SUCCESS or not any(raw):
        return ""
    return str(ipaddress.IPv4Address(bytes(raw)))


@contextmanager
def _context(lib: ctypes.CDLL, socket: str) -> Iterator[ctypes.c_void_p]:
    made = lib.munge_ctx_create()
    if not made:
        raise Unavailable("munge: no memory")
    context = ctypes.c_void_p(made)
    try:
        if socket and lib.munge_ctx_set(context, _SOCKET, ctypes.c_char_p(socket.encode())):
            raise Unavailable(f"munge: {quoted(socket)}: no socket")
        yield context
    finally:
        lib.munge_ctx_destroy(context)


@cache
def _library() -> ctypes.CDLL:
    """Return libmunge, with munge.h's types of what is called, and free(3).

    Raises Unavailable.
    """
    try:
        lib = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise Unavailable(f"munge: {error}: is munge installed on this host?") from None
    pointer, number = ctypes.c_void_p, ctypes.c_int
    lib.munge_ctx_create.argtypes, lib.munge_ctx_create.restype = [], pointer
    lib.munge_ctx_destroy.argtypes, lib.munge_ctx_destroy.restype = [pointer], None
    lib.munge_ctx_strerror.argtypes = [pointer]
    lib.munge_ctx_strerror.restype = ctypes.c_char_p
    lib.munge_strerror.argtypes, lib.munge_strerror.restype = [number], ctypes.c_char_p
    lib.munge_decode.argtypes = [ctypes.c_char_p, *[pointer] * 5]
    lib.munge_decode.restype = number
    # The last argument is variadic; its type is given by each call.
    lib.munge_ctx_set.argtypes = lib.munge_ctx_get.argtypes = [pointer, number]
    lib.munge_ctx_set.restype = lib.munge_ctx_get.restype = number
    lib.free.argtypes, lib.free.restype = [pointer], None
    return lib
