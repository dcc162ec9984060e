"""The table of routes: what may be asked, by whom, and who answers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import unquote

from toolcrib.errors import Refused
from toolcrib.http.request import Request
from toolcrib.http.response import HttpResponse

Handler = Callable[[Request], Awaitable[HttpResponse | None]]
"""Answers a request; None where it has sent everything itself."""

Access = Literal["open", "loopback", "key", "app"]
"""Open to all; open to this machine and to keys elsewhere; for those who show who they are; for apps,
which the handler itself asks for their key."""

_Methods = dict[str, "Route"]
_MOST_SEGMENTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path. `needs` names the permission of ours it asks for, beside a credential."""

    method: str
    path: str
    handler: Handler
    summary: str
    access: Access = "key"
    needs: str | None = None
    cookie: bool = True
    """Whether the web page's session counts as a credential here."""
    fresh: bool = False
    """Whether the web page's session must have signed in a short while ago: it hands out power."""
    whole: bool = False
    """Whether it is about the gateway as a whole, and so refused to callers that are confined to contexts."""
    calls: bool = False
    """Whether it runs tools, and so is refused while the gateway stops."""
    present: bool = False
    """Whether a user that is acted for must be here: in a session."""
    face: str = "rest"
    """Whose requests they are, in the record of calls."""
    action: str | None = None
    """The administrative action it performs, as the audit names it; None where it performs none."""
    stays: bool = False
    """Whether its answer stays open, so that nobody waits for its end."""
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What its description says beside the summary, as OpenAPI spells an operation."""

    @property
    def is_small(self) -> bool:
        """Whether it costs next to nothing, and so is served while memory is short: health and metrics."""
        return self.access in {"open", "loopback"} and self.method in {"GET", "HEAD"} and not self.stays


class Router:
    """Finds a plain path in one lookup, any other by its segments.

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
        """Return the route of a request and give the request its parameters."""
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
    """Split a path and decode its segments; without the raw path, as the server has decoded it."""
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
