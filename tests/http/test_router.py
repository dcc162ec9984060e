"""The router finds its routes and lists alternatives for unknown ones."""

import pytest

from tests.http.requests import request
from toolcrib.errors import Refused
from toolcrib.http import HttpResponse, Request, Route, Router


async def nothing(request: Request) -> HttpResponse:
    del request
    return HttpResponse(200, b"")


def route(method: str, path: str, *, stays: bool = False) -> Route:
    return Route(method=method, path=path, handler=nothing, summary="", stays=stays)


ROUTER = Router(
    (
        route("GET", "/"),
        route("GET", "/keys"),
        route("POST", "/keys"),
        route("DELETE", "/keys/{name}"),
        route("POST", "/keys/{name}/rotate"),
        route("GET", "/in/{where}/{what}", stays=True),
    )
)


@pytest.mark.parametrize(
    "method, path, found, params",
    [
        ("GET", "/", "/", {}),
        ("HEAD", "/keys", "/keys", {}),
        ("POST", "/keys/", "/keys", {}),
        ("DELETE", "/keys/a", "/keys/{name}", {"name": "a"}),
        ("DELETE", "/keys/a/", "/keys/{name}", {"name": "a"}),
        ("POST", "/keys/ä b/rotate", "/keys/{name}/rotate", {"name": "ä b"}),
        ("GET", "/in/x/y", "/in/{where}/{what}", {"where": "x", "what": "y"}),
        ("DELETE", "/keys/a%2Fb", "/keys/{name}", {"name": "a/b"}),
        ("GET", "/in/%C3%A4%40b/%252F/", "/in/{where}/{what}", {"where": "ä@b", "what": "%2F"}),
    ],
)
def test_finds(method: str, path: str, found: str, params: dict[str, str]) -> None:
    asked = request(method, path)
    route = ROUTER.find(asked)
    assert (route.path, route.method, asked.params) == (found, method, params)


@pytest.mark.parametrize(
    "path", ["", "/nothing", "/keys//", "/keys//rotate", "/keys/a/b/c", "/KEYS", "/in/x", "/a" * 5000, "\0"]
)
def test_unknown_path_is_not_found(path: str) -> None:
    with pytest.raises(Refused) as refusal:
        ROUTER.find(request("GET", path))
    assert refusal.value.problem.code == "NOT_FOUND"
    assert len(refusal.value.problem.message) < 400


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "path", ["/%2f", "/keys%2fa", "/keys%2F", "/keys%5ca", "/in%2fx/y", "/in/x%2fy", "%2fkeys"]
)
def test_encoded_slash_is_never_a_separator(path: str) -> None:
    with pytest.raises(Refused) as refusal:
        ROUTER.find(request("GET", path))
    assert refusal.value.problem.code == "NOT_FOUND"


@pytest.mark.parametrize("path", ["/%6beys", "/%6Beys/", "/in/%78/y"])
def test_other_encoded_characters_are_decoded(path: str) -> None:
    assert ROUTER.find(request("GET", path)).path in {"/keys", "/in/{where}/{what}"}


def test_server_without_raw_path_is_routed_by_its_path() -> None:
    asked = request("GET", "/keys/")
    del asked.scope["raw_path"]
    assert ROUTER.find(asked).path == "/keys"


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("DELETE", "/keys", ["GET", "HEAD", "POST"]),
        ("OPTIONS", "/", ["GET", "HEAD"]),
        ("GET", "/keys/a", ["DELETE"]),
        ("HEAD", "/in/x/y", ["GET"]),
        ("X" * 1000, "/", ["GET", "HEAD"]),
    ],
)
def test_another_method_is_not_allowed(method: str, path: str, allowed: list[str]) -> None:
    with pytest.raises(Refused) as refusal:
        ROUTER.find(request(method, path))
    assert refusal.value.problem.code == "METHOD_NOT_ALLOWED"
    assert refusal.value.problem.details["allow"] == allowed
    assert len(refusal.value.problem.message) < 100


def test_a_route_stands_once_in_the_table() -> None:
    with pytest.raises(ValueError, match="two routes for GET /"):
        Router((route("GET", "/"), route("GET", "/")))
