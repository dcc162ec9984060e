"""A signed header on what we send to apps: for which user, which tool and which body, for a minute."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as keyed
from typing import Any, cast

import orjson

HEADER = "X-Toolcrib-Signature"
KEY_HEADER = "X-App-API-Key"
"""Where an app finds the sha256 of its own key; it proves who asks, and nothing about what is asked."""
LIFE = 60.0
"""Seconds for which a signature holds."""

_VERSION = "v1"
_LONGEST = 4_096


class InvalidSignature(ValueError):
    """A header that was not made by us for this body, or too long ago; `reason` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{HEADER}: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """What a signature vouches for. `tool` is empty where the request is no tool call."""

    user: str
    tool: str


def digest(key: str) -> str:
    """Hash an app's key: what we keep of it, and show to the app."""
    return sha256(key.encode()).hexdigest()


def signing(key: str) -> str:
    """Return what is signed with: another hash of the key, never sent, so nobody on the way has it."""
    return keyed(key.encode(), b"toolcrib signature", "sha256").hex()


def proof(
    shown: str | None, secret: str | None, *, user: str, tool: str, body: bytes, now: float
) -> dict[str, str]:
    """Return the headers that prove who asks, for whom and what; an app without a key is shown nothing."""
    headers = {} if shown is None else {KEY_HEADER: shown}
    if secret is not None:
        headers[HEADER] = sign(secret, user=user, tool=tool, body=body, now=now)
    return headers


def sign(secret: str, *, user: str, tool: str, body: bytes, now: float) -> str:
    """Make the header's value; `secret` is what `signing` gives for the app's key."""
    claims = {"user": user, "tool": tool, "body": sha256(body).hexdigest(), "expires": now + LIFE}
    spoken = _VERSION + "." + _text(orjson.dumps(claims))
    return f"{spoken}.{_text(_mac(secret, spoken))}"


def verify(secret: str, header: str, *, body: bytes, now: float) -> SignedRequest:
    """Return what a header vouches for; what it says is believed only once it is known to be ours."""
    spoken, _, mac = header.rpartition(".")
    version, _, claims = spoken.partition(".")
    if version != _VERSION or len(header) > _LONGEST or not header.isascii():
        raise InvalidSignature("it is not in a form we know")
    if not compare_digest(mac.encode(), _text(_mac(secret, spoken)).encode()):
        raise InvalidSignature("it was made with another key, or changed on its way")
    said = _read(claims)
    if said["expires"] <= now:
        raise InvalidSignature("it has expired; compare the clocks of the gateway and this app")
    if said["body"] != sha256(body).hexdigest():
        raise InvalidSignature("it was made for another body")
    return SignedRequest(said["user"], said["tool"])


def _mac(secret: str, spoken: str) -> bytes:
    return keyed(secret.encode(), spoken.encode(), "sha256")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _read(text: str) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4))))
    except (NotBase64, orjson.JSONDecodeError):
        raise InvalidSignature("it cannot be read") from None
