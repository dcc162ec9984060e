"""Signed header of requests to apps: binds user, tool and body, and expires after a minute."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as keyed
from typing import Any, cast

import orjson

SIGNATURE_HEADER = "X-Toolcrib-Signature"
KEY_HEADER = "X-App-API-Key"
"""Header with the SHA-256 of the app's own key; it authenticates the gateway, not the request."""
SIGNATURE_SECONDS = 60.0
"""Seconds until a signature expires."""

_VERSION = "v1"
_MAX_HEADER_CHARS = 4_096


class InvalidSignature(ValueError):
    """A header that does not match this body and key, or has expired; `reason` states which."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{SIGNATURE_HEADER}: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The verified claims of a signature. `tool` is empty unless the request is a tool call."""

    user: str
    tool: str


def key_digest(key: str) -> str:
    """Hash an app's key: the stored value, which is also sent to the app in KEY_HEADER."""
    return sha256(key.encode()).hexdigest()


def signing_secret(key: str) -> str:
    """Derive the signing secret from an app's key (HMAC). It is never sent, so it cannot be intercepted."""
    return keyed(key.encode(), b"toolcrib signature", "sha256").hex()


def authentication_headers(
    digest: str | None, secret: str | None, *, user: str, tool: str, body: bytes, now: float
) -> dict[str, str]:
    """Return the authentication headers of a request; a missing digest or secret omits its header."""
    headers = {} if digest is None else {KEY_HEADER: digest}
    if secret is not None:
        headers[SIGNATURE_HEADER] = sign(secret, user=user, tool=tool, body=body, now=now)
    return headers


def sign(secret: str, *, user: str, tool: str, body: bytes, now: float) -> str:
    """Return the header's value; `secret` is the result of `signing` for the app's key."""
    claims = {
        "user": user,
        "tool": tool,
        "body": sha256(body).hexdigest(),
        "expires": now + SIGNATURE_SECONDS,
    }
    payload = _VERSION + "." + _base64(orjson.dumps(claims))
    return f"{payload}.{_base64(_mac(secret, payload))}"


def verify(secret: str, header: str, *, body: bytes, now: float) -> SignedRequest:
    """Verify a header and return its claims; they are parsed only after the MAC has been verified."""
    payload, _, mac = header.rpartition(".")
    version, _, claims = payload.partition(".")
    if version != _VERSION or len(header) > _MAX_HEADER_CHARS or not header.isascii():
        raise InvalidSignature("its format is unknown")
    if not compare_digest(mac.encode(), _base64(_mac(secret, payload)).encode()):
        raise InvalidSignature("it was made with another key, or was modified")
    parsed = _parse_claims(claims)
    if parsed["expires"] <= now:
        raise InvalidSignature("it has expired; compare the clocks of the gateway and this app")
    if parsed["body"] != sha256(body).hexdigest():
        raise InvalidSignature("it was made for another body")
    return SignedRequest(parsed["user"], parsed["tool"])


def _mac(secret: str, payload: str) -> bytes:
    return keyed(secret.encode(), payload.encode(), "sha256")


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _parse_claims(text: str) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4))))
    except (NotBase64, orjson.JSONDecodeError):
        raise InvalidSignature("it cannot be read") from None
