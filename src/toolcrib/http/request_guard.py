"""Checks every request before routing: header limits, header syntax, Host and Origin allowlists."""

from toolcrib.errors import Refused
from toolcrib.http.framing import coding_fault
from toolcrib.http.hosts import AllowedHosts, split_host
from toolcrib.http.request import Request

HEADER_BYTES = 32 << 10
HEADERS = 100
_ONCE = frozenset(
    {b"host", b"authorization", b"x-user-id", b"content-length", b"content-type", b"origin", b"cookie"}
)
_CODING = b"transfer-encoding"
_MOST_KNOWN = 256
_COMMON = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"authorization",
        b"connection",
        b"content-length",
        b"content-type",
        b"host",
        b"user-agent",
    }
)


class RequestGuard:
    """Checks requests; caches the names, hosts and origins that passed, to check again by set lookup."""

    def __init__(self, hosts: AllowedHosts) -> None:
        self._hosts = hosts
        self._known_names = set(_COMMON)
        self._known_hosts: set[bytes] = set()
        self._known_origins: set[tuple[bytes, bytes]] = set()

    def admit(self, request: Request) -> None:
        """Return if the request passes, else raise Refused."""
        given, headers = request.scope["headers"], request.headers
        count = len(given)
        if count != len(headers):
            headers = request.headers = _joined(given)
        if not self._known_names.issuperset(headers):
            self._learn_names(headers)
            _check_coding(request)
        if count > HEADERS or (not _surely_small(request) and _size(headers) > HEADER_BYTES):
            limit = f"at most {HEADERS} headers of {HEADER_BYTES} bytes together"
            raise Refused("INVALID_REQUEST", f"the headers are too large; send {limit}", path="headers")
        host = headers.get(b"host")
        if host is None or host not in self._known_hosts:
            host = self._learn_host(host)
        origin = headers.get(b"origin")
        if origin is not None and (origin, host) not in self._known_origins:
            self._learn_origin(origin, host)

    def _learn_names(self, headers: dict[bytes, bytes]) -> None:
        for name in headers:
            if b"_" in name:
                shown = name.decode("latin-1")[:100]
                # Some servers read `_` as `-`: an alias of X-User-Id must not bypass the checks.
                message = f"the header name {shown!r} has an underscore; use `-`"
                raise Refused("INVALID_REQUEST", message, path=shown)
        if len(self._known_names) < _MOST_KNOWN:
            self._known_names.update(headers)
            # Never cached: a message with Transfer-Encoding is checked each time.
            self._known_names.discard(_CODING)

    def _learn_host(self, value: bytes | None) -> bytes:
        if value is None:
            raise Refused("INVALID_REQUEST", "the Host header is missing", path="Host")
        host = split_host(value.decode("latin-1"))
        if host is None:
            message = "the Host header is not a host name with an optional port"
            raise Refused("INVALID_REQUEST", message, path="Host")
        if host not in self._hosts:
            shown = value.decode("latin-1")[:100]
            hint = "use another address, or let the operator add this one to server.allowed_hosts"
            raise Refused("HOST_REFUSED", f"this gateway does not answer to {shown!r}; {hint}", path="Host")
        if len(self._known_hosts) < _MOST_KNOWN:
            self._known_hosts.add(value)
        return value

    def _learn_origin(self, origin: bytes, host: bytes) -> None:
        if not self.is_own(origin, host):
            shown = origin.decode("latin-1")[:100]
            message = (
                f"requests from pages of {shown!r} are refused; only the gateway's own page may send them"
            )
            raise Refused("ORIGIN_REFUSED", message, path="Origin")
        if len(self._known_origins) < _MOST_KNOWN:
            self._known_origins.add((origin, host))

    def is_own(self, origin: bytes, host: bytes) -> bool:
        """Return whether an Origin is this gateway, by the request's Host or by the configured public URL."""
        stated = origin.decode("latin-1").lower()
        scheme, _, name = stated.partition("://")
        same = scheme in {"http", "https"} and name == host.decode("latin-1").lower()
        return same or (stated == self._hosts.public_origin)


def _check_coding(request: Request) -> None:
    """Refuse ambiguous framing. The gateway's own server has checked it already; another may not have."""
    codings = [value for name, value in request.scope["headers"] if name == _CODING]
    if codings:
        version = request.scope.get("http_version", "1.1")
        fault = coding_fault(codings, version, has_length=b"content-length" in request.headers)
        if fault is not None:
            raise Refused("INVALID_REQUEST", fault, path="Transfer-Encoding")


def _surely_small(request: Request) -> bool:
    return request.short is not None and request.short.head <= HEADER_BYTES


def _size(headers: dict[bytes, bytes]) -> int:
    return sum(map(len, headers)) + sum(map(len, headers.values()))


def _joined(given: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Join repeated headers with a comma, as HTTP specifies; refuse those that must be unique."""
    joined: dict[bytes, bytes] = {}
    for name, value in given:
        if name not in joined:
            joined[name] = value
        elif name in _ONCE:
            shown = name.decode("latin-1")
            raise Refused("INVALID_REQUEST", f"the header {shown} is given twice; give it once", path=shown)
        else:
            joined[name] += b", " + value
    return joined
