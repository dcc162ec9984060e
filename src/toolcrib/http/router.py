"""Routes requests, and rejects those that may not be served."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal
from urllib.parse import unquote

from toolcrib.errors import Refused
from toolcrib.http.client_address import AllowedHosts, split_host
from toolcrib.http.framing import coding_fault
from toolcrib.http.request import Request
from toolcrib.http.response import HttpResponse

# --- The route table: method and path to handler, with required authentication and permission ---

Handler = Callable[[Request], Awaitable[HttpResponse | None]]
"""Handles a request; returns None if it has sent the response itself."""

Access = Literal["open", "loopback", "key", "app"]
"""`open`: no authentication. `loopback`: none on this machine, elsewhere a key. `key`: a credential.
`app`: the handler itself authenticates the app's key."""

_Methods = dict[str, "Route"]
_MAX_SEGMENTS = 8


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path. `needs` names the permission that is required besides a credential."""

    method: str
    path: str
    handler: Handler
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The OpenAPI operation object, besides the summary."""
    _: KW_ONLY
    summary: str = ""
    """The summary in OpenAPI; by default the first line of the handler's docstring."""
    access: Access = "key"
    needs: str | None = None
    cookie: bool = True
    """Whether the web page's session is accepted as a credential."""
    fresh: bool = False
    """Whether the web page's session must be recent: the route grants privileges."""
    whole: bool = False
    """Whether it concerns the whole gateway; callers that are confined to contexts are refused."""
    calls: bool = False
    """Whether it runs tools; refused while the gateway drains."""
    present: bool = False
    """Whether the user that the caller acts for must have a session."""
    face: str = "rest"
    """The frontend that the record of calls names."""
    action: str | None = None
    """The administrative action in the audit log; None if it performs none."""
    stays: bool = False
    """Whether its response is an open-ended stream; nothing may wait for its end."""

    def __post_init__(self) -> None:
        if not self.summary:
            object.__setattr__(self, "summary", (self.handler.__doc__ or "").partition("\n")[0])

    @property
    def is_small(self) -> bool:
        """Whether it is cheap (health and metrics), and so is served while memory is short."""
        return self.access in {"open", "loopback"} and self.method in {"GET", "HEAD"} and not self.stays


class Router:
    """Routes a static path by one lookup, any other by its segments.

    Segments are split before they are decoded, so an encoded slash is never a separator.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._raw: dict[bytes, _Methods] = {}
        self._static: dict[tuple[str, ...], _Methods] = {}
        self._patterns: list[tuple[tuple[str, ...], _Methods]] = []
        for route in self.routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        methods = self._methods(route.path)
        if route.method in methods:
            message = f"two routes for {route.method} {route.path}"
            raise ValueError(message)
        methods[route.method] = route
        if route.method == "GET" and not route.stays:
            methods["HEAD"] = replace(route, method="HEAD")

    def _methods(self, path: str) -> _Methods:
        segments = tuple(path.split("/"))
        if "{" not in path:
            methods = self._raw.setdefault(path.encode("ascii"), {})
            return self._static.setdefault(_without_last_slash(segments), methods)
        for known, methods in self._patterns:
            if known == segments:
                return methods
        methods: _Methods = {}
        self._patterns.append((segments, methods))
        return methods

    def find(self, request: Request) -> Route:
        """Return the route of a request, and set the request's path parameters."""
        methods = self._raw.get(request.scope.get("raw_path") or b"")
        if methods is None:
            methods = self._search_patterns(request)
        route = methods.get(request.method)
        if route is None:
            allowed = sorted(methods)
            message = f"{request.method[:20]} is not allowed here; use {' or '.join(allowed)}"
            raise Refused("METHOD_NOT_ALLOWED", message, details={"allow": allowed})
        return route

    def _search_patterns(self, request: Request) -> _Methods:
        segments = _segments(request)
        methods = self._static.get(segments)
        if methods is not None:
            return methods
        for pattern, methods in self._patterns:
            params = _match(pattern, segments)
            if params is not None:
                request.params = params
                return methods
        message = f"there is no route {request.path[:200]!r}; /openapi.json lists the routes"
        raise Refused("NOT_FOUND", message)


def _segments(request: Request) -> tuple[str, ...]:
    """Split a path and decode its segments; without a raw path, split the decoded path of the scope."""
    raw: bytes = request.scope.get("raw_path") or b""
    if b"%" not in raw:
        return _without_last_slash(request.path.split("/", _MAX_SEGMENTS))
    segments = raw.decode("latin-1").split("/", _MAX_SEGMENTS)
    return _without_last_slash(unquote(each) for each in segments)


def _without_last_slash(segments: Iterable[str]) -> tuple[str, ...]:
    found = tuple(segments)
    return found[:-1] if not found[-1] else found


def _match(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    params: dict[str, str] = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith("{") and segment:
            params[expected[1:-1]] = segment
        elif expected != segment:
            return None
    return params


# --- Checks every request before routing: header limits, header syntax, Host and Origin allowlists ---

MAX_HEADER_BYTES = 32 << 10
MAX_REQUEST_HEADERS = 100
_UNIQUE_HEADERS = frozenset(
    {b"host", b"authorization", b"x-user-id", b"content-length", b"content-type", b"origin", b"cookie"}
)
_TRANSFER_ENCODING = b"transfer-encoding"
_MAX_CACHED_VALUES = 256
_COMMON_HEADERS = frozenset(
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
        self._known_names = set(_COMMON_HEADERS)
        self._known_hosts: set[bytes] = set()
        self._known_origins: set[tuple[bytes, bytes]] = set()

    def admit(self, request: Request) -> None:
        """Return if the request passes, else raise Refused."""
        pairs, headers = request.scope["headers"], request.headers
        count = len(pairs)
        if count != len(headers):
            headers = request.headers = _join_repeated(pairs)
        if not self._known_names.issuperset(headers):
            self._check_names(headers)
            _check_coding(request)
        if count > MAX_REQUEST_HEADERS or (
            not _is_surely_small(request) and _size(headers) > MAX_HEADER_BYTES
        ):
            limit = f"at most {MAX_REQUEST_HEADERS} headers of {MAX_HEADER_BYTES} bytes together"
            raise Refused("INVALID_REQUEST", f"the headers are too large; send {limit}", path="headers")
        host = headers.get(b"host")
        if host is None or host not in self._known_hosts:
            host = self._check_host(host)
        origin = headers.get(b"origin")
        if origin is not None and (origin, host) not in self._known_origins:
            self._check_origin(origin, host)

    def _check_names(self, headers: dict[bytes, bytes]) -> None:
        for name in headers:
            if b"_" in name:
                shown = name.decode("latin-1")[:100]
                # Some servers read `_` as `-`: an alias of X-User-Id must not bypass the checks.
                message = f"the header name {shown!r} has an underscore; use `-`"
                raise Refused("INVALID_REQUEST", message, path=shown)
        if len(self._known_names) < _MAX_CACHED_VALUES:
            self._known_names.update(headers)
            # Never cached: a message with Transfer-Encoding is checked each time.
            self._known_names.discard(_TRANSFER_ENCODING)

    def _check_host(self, value: bytes | None) -> bytes:
        if value is None:
            raise Refused("INVALID_REQUEST", "the Host header is missing", path="Host")
        host = split_host(value.decode("latin-1"))
        if host is None:
            message = "the Host header is not a host name with an optional port"
            raise Refused("INVALID_REQUEST", message, path="Host")
        if host not in self._hosts:
            shown = value.decode("latin-1")[:100]
            hint = "use another address, or ask the operator to add this one to server.allowed_hosts"
            raise Refused("HOST_REFUSED", f"the host {shown!r} is not allowed; {hint}", path="Host")
        if len(self._known_hosts) < _MAX_CACHED_VALUES:
            self._known_hosts.add(value)
        return value

    def _check_origin(self, origin: bytes, host: bytes) -> None:
        if not self.is_own(origin, host):
            shown = origin.decode("latin-1")[:100]
            message = (
                f"requests from pages of {shown!r} are refused; only the gateway's own page may send them"
            )
            raise Refused("ORIGIN_REFUSED", message, path="Origin")
        if len(self._known_origins) < _MAX_CACHED_VALUES:
            self._known_origins.add((origin, host))

    def is_own(self, origin: bytes, host: bytes) -> bool:
        """Return whether an Origin is this gateway, by the request's Host or by the configured public URL."""
        stated = origin.decode("latin-1").lower()
        scheme, _, name = stated.partition("://")
        same = scheme in {"http", "https"} and name == host.decode("latin-1").lower()
        return same or (stated == self._hosts.public_origin)


def _check_coding(request: Request) -> None:
    """Refuse ambiguous framing. The gateway's own server has checked it already; another may not have."""
    codings = [value for name, value in request.scope["headers"] if name == _TRANSFER_ENCODING]
    if codings:
        version = request.scope.get("http_version", "1.1")
        fault = coding_fault(codings, version, has_length=b"content-length" in request.headers)
        if fault is not None:
            raise Refused("INVALID_REQUEST", fault, path="Transfer-Encoding")


def _is_surely_small(request: Request) -> bool:
    return request.short is not None and request.short.head <= MAX_HEADER_BYTES


def _size(headers: dict[bytes, bytes]) -> int:
    return sum(map(len, headers)) + sum(map(len, headers.values()))


def _join_repeated(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Join repeated headers with a comma, as HTTP specifies; refuse those that must be unique."""
    joined: dict[bytes, bytes] = {}
    for name, value in pairs:
        if name not in joined:
            joined[name] = value
        elif name in _UNIQUE_HEADERS:
            shown = name.decode("latin-1")
            raise Refused("INVALID_REQUEST", f"the header {shown} is given twice; give it once", path=shown)
        else:
            joined[name] += b", " + value
    return joined
