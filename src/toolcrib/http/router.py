"""The route table: method and path to handler, with the authentication and permission each route needs."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import unquote

from toolcrib.errors import Refused
from toolcrib.http.request import Request
from toolcrib.http.response import HttpResponse

Handler = Callable[[Request], Awaitable[HttpResponse | None]]
"""Handles a request; returns None if it has sent the response itself."""

Access = Literal["open", "loopback", "key", "app"]
"""`open`: no authentication. `loopback`: none on this machine, elsewhere a key. `key`: a credential.
`app`: the handler itself authenticates the app's key."""

_Methods = dict[str, "Route"]
_MOST_SEGMENTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path. `needs` names the permission that is required besides a credential."""

    method: str
    path: str
    handler: Handler
    summary: str
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
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The OpenAPI operation object, besides the summary."""

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
            self._enter(route)

    def _enter(self, route: Route) -> None:
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
            methods = self._search(request)
        route = methods.get(request.method)
        if route is None:
            allowed = sorted(methods)
            message = f"{request.method[:20]} is not allowed here; use {' or '.join(allowed)}"
            raise Refused("METHOD_NOT_ALLOWED", message, details={"allow": allowed})
        return route

    def _search(self, request: Request) -> _Methods:
        segments = _segments(request)
        methods = self._static.get(segments)
        if methods is not None:
            return methods
        for pattern, methods in self._patterns:
            params = _match(pattern, segments)
            if params is not None:
                request.params = params
                return methods
        message = f"there is nothing at {request.path[:200]!r}; /openapi.json lists what there is"
        raise Refused("NOT_FOUND", message)


def _segments(request: Request) -> tuple[str, ...]:
    """Split a path and decode its segments; without a raw path, split the decoded path of the scope."""
    raw: bytes = request.scope.get("raw_path") or b""
    if b"%" not in raw:
        return _without_last_slash(request.path.split("/", _MOST_SEGMENTS))
    segments = raw.decode("latin-1").split("/", _MOST_SEGMENTS)
    return _without_last_slash(unquote(each) for each in segments)


def _without_last_slash(segments: Iterable[str]) -> tuple[str, ...]:
    found = tuple(segments)
    return found[:-1] if not found[-1] else found


def _match(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    params: dict[str, str] = {}
    for expected, given in zip(pattern, segments, strict=True):
        if expected.startswith("{") and given:
            params[expected[1:-1]] = given
        elif expected != given:
            return None
    return params
