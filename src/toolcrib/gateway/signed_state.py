"""HMAC-signed opaque state, bound to the caller and the call, with an expiry time."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from hmac import compare_digest, digest
from math import ceil
from time import time

import orjson

from toolcrib.errors import Broken, Refused
from toolcrib.model import Caller, JsonObject

MOST_BYTES = 64 * 1024
"""Largest payload that is signed, in bytes."""
_SIGNATURE, _UNTIL = 32, 8
"""Bytes of the HMAC-SHA256 signature and of the expiry time."""
_LONGEST_TEXT = (MOST_BYTES + _SIGNATURE + _UNTIL) * 4 // 3 + 1
"""Longest state that is decoded, in characters of base64url."""


class StateSigner:
    """Signs and verifies state. Every holder of the key can verify it: replicas, or a restarted process.

    The payload is signed, not encrypted: it was returned to this caller anyway.
    """

    def __init__(self, key: Callable[[], bytes], now: Callable[[], float] = time) -> None:
        self._make_key, self._now = key, now

    def close(self, kind: str, payload: str, bound: bytes, seconds: float) -> str:
        """Return signed state as base64url; valid for the same kind and binding, for `seconds`."""
        said = payload.encode(errors="surrogatepass")
        if len(said) > MOST_BYTES:
            cap = f"the state has {len(said)} bytes, the cap is {MOST_BYTES}"
            raise Broken("RESULT_TOO_LARGE", f"what asks gives more to remember than is passed on: {cap}")
        body = ceil(self._now() + seconds).to_bytes(_UNTIL, "big") + said
        return _spelled(self._signature(kind, bound, body) + body)

    def open(self, kind: str, text: str, bound: bytes) -> str:
        """Return the payload; every invalid state is refused with the same message."""
        raw = _read(text)
        signature, body = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if len(body) < _UNTIL or not compare_digest(signature, self._signature(kind, bound, body)):
            raise of_no_use()
        if int.from_bytes(body[:_UNTIL], "big") < self._now():
            raise of_no_use()
        return body[_UNTIL:].decode(errors="surrogatepass")

    @cached_property
    def _key(self) -> bytes:
        return self._make_key()

    def _signature(self, kind: str, bound: bytes, body: bytes) -> bytes:
        return digest(self._key, b"%b\0%b%b" % (kind.encode(), sha256(bound).digest(), body), "sha256")


def bound_to(caller: Caller, what: str, arguments: JsonObject) -> bytes:
    """Return the binding of a state: the principal in its context, what it called, and the arguments."""
    who = (caller.id, caller.user, caller.context)
    return orjson.dumps((who, what, arguments), option=orjson.OPT_SORT_KEYS)


def of_no_use() -> Refused:
    """Return the refusal of a state; it does not reveal the reason."""
    message = "this state is of no use: it is used up, too old, or of another call; call again without it"
    return Refused("INVALID_REQUEST", message, path="state")


def _spelled(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read(text: str) -> bytes:
    """Decode base64url, canonical encodings only; the decoder would ignore invalid characters."""
    if not text.isascii() or len(text) > _LONGEST_TEXT:
        raise of_no_use()
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except Error:
        raise of_no_use() from None
    if _spelled(raw) != text:
        raise of_no_use()
    return raw
