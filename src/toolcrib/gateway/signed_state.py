"""Signs what a caller is to bring back: bound to who it is and what was called, good for a while."""

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
"""The longest payload that is sealed."""
_SIGNATURE, _UNTIL = 32, 8
_LONGEST_TEXT = (MOST_BYTES + _SIGNATURE + _UNTIL) * 4 // 3 + 1


class StateSigner:
    """Whoever has the key can open what any other holder of it closed: another replica, or a restarted one.

    The payload is signed, not hidden: it was handed to the caller, and nobody else.
    """

    def __init__(self, key: Callable[[], bytes], now: Callable[[], float] = time) -> None:
        self._make_key, self._now = key, now

    def close(self, kind: str, payload: str, bound: bytes, seconds: float) -> str:
        """Return a text of letters, digits, `-` and `_` that opens for the same kind and bound, so long."""
        said = payload.encode(errors="surrogatepass")
        if len(said) > MOST_BYTES:
            cap = f"the state has {len(said)} bytes, the cap is {MOST_BYTES}"
            raise Broken("RESULT_TOO_LARGE", f"what asks gives more to remember than is passed on: {cap}")
        body = ceil(self._now() + seconds).to_bytes(_UNTIL, "big") + said
        return _spelled(self._signature(kind, bound, body) + body)

    def open(self, kind: str, text: str, bound: bytes) -> str:
        """Return the payload; whatever is wrong with the text, it is refused in the same words."""
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
    """Spell what a state belongs to: a principal in a context, what it called, and with which arguments."""
    who = (caller.id, caller.user, caller.context)
    return orjson.dumps((who, what, arguments), option=orjson.OPT_SORT_KEYS)


def of_no_use() -> Refused:
    """Refuse a state, without a word on why."""
    message = "this state is of no use: it is used up, too old, or of another call; call again without it"
    return Refused("INVALID_REQUEST", message, path="state")


def _spelled(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read(text: str) -> bytes:
    """Decode a text that is the one spelling of its bytes; the decoder overlooks what it cannot read."""
    if not text.isascii() or len(text) > _LONGEST_TEXT:
        raise of_no_use()
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except Error:
        raise of_no_use() from None
    if _spelled(raw) != text:
        raise of_no_use()
    return raw
