"""Authenticates requests to an app: only its gateway, by key hash and signature."""

from collections.abc import Callable, Mapping
from hmac import compare_digest
from urllib.parse import urlsplit

from toolcrib.apps.signature import (
    KEY_HEADER,
    SIGNATURE_HEADER,
    InvalidSignature,
    SignedRequest,
    key_digest,
    signing_secret,
    verify,
)
from toolcrib.errors import Refused

Headers = Mapping[bytes, bytes]
"""Headers by lower-case name."""

_KEY, _SIGNATURE = KEY_HEADER.lower().encode(), SIGNATURE_HEADER.lower().encode()
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_PORTS = {"ws": 80, "wss": 443}

Origin = tuple[str, str, int]


class GatewayAuthentication:
    """Verifies a request's headers against the app's key, in constant time."""

    def __init__(self, key: str, *, gateway: str | None, signed: bool, clock: Callable[[], float]) -> None:
        self._digest, self._secret = key_digest(key), signing_secret(key)
        self._signed, self._clock = signed, clock
        self._gateway = None if gateway is None else _origin(gateway)
        if gateway is not None and self._gateway is None:
            raise ValueError("gateway must be the URL of a gateway, such as https://gateway.example")
        if not signed and gateway is None:
            raise ValueError(
                "signed=False accepts unsigned requests: set gateway=…, the only one they may name"
            )

    @property
    def signed(self) -> bool:
        """Whether requests must be signed."""
        return self._signed

    def check(self, headers: Headers, body: bytes) -> SignedRequest | None:
        """Return the signed claims of a request; None if signatures are not required."""
        if not compare_digest(headers.get(_KEY, b""), self._digest.encode()):
            raise _refusal(f"{KEY_HEADER} is not the sha256 of this app's key")
        if not self._signed:
            return None
        header = headers.get(_SIGNATURE)
        if header is None:
            raise _refusal(f"{SIGNATURE_HEADER} is missing; a gateway that does not sign needs signed=False")
        try:
            return verify(self._secret, header.decode("latin-1"), body=body, now=self._clock())
        except InvalidSignature as error:
            raise _refusal(str(error)) from error

    def match(self, signed: SignedRequest | None, *, user: str, tool: str = "") -> None:
        """Refuse a request signed for another user or tool than its body names."""
        if signed is not None and signed != SignedRequest(user, tool):
            raise _refusal(f"{SIGNATURE_HEADER} was made for another user or tool")

    def is_gateway_url(self, url: str) -> bool:
        """Whether a WebSocket's address belongs to the gateway; any is accepted if `gateway` is not set."""
        origin = _origin(url)
        if origin is None or not url.startswith(("ws://", "wss://")):
            return False
        return self._gateway is None or origin == self._gateway


def _origin(url: str) -> Origin | None:
    try:
        parts = urlsplit(url)
        scheme, host, port = _SCHEMES.get(parts.scheme), parts.hostname, parts.port
    except ValueError:
        return None
    if scheme is None or not host or parts.username is not None:
        return None
    return scheme, host, port or _PORTS[scheme]


def _refusal(message: str) -> Refused:
    return Refused("UNAUTHENTICATED", message)
