"""What an app keeps at its gateway: in the requests gateways know, with the app's own key."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from aiohttp import web

from tests.sdk.app.fake_gateway import KEY, PACKAGE
from tests.texts import matches
from toolcrib.sdk import StorageError
from toolcrib.sdk.app.connection import AppCredentials, SessionAddress
from toolcrib.sdk.app.session import MAX_STORED_CHARS, Storage

pytestmark = pytest.mark.anyio

USER = "ada/ä@example.com"


class Shelf:
    """The storage of a gateway for one app: values by user, and the recorded requests."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.trouble: web.Response | None = None

    async def answer(self, request: web.Request) -> web.Response:
        """Answer as gateways do."""
        self.asked.append(f"{request.method} {request.raw_path}")
        assert request.headers["Authorization"] == f"Bearer {PACKAGE}:{KEY}"
        if self.trouble is not None:
            return self.trouble
        of_user = self.kept.setdefault(request.match_info["user"], {})
        key = request.match_info.get("key")
        if request.method == "PUT":
            of_user.update((await request.json())["data"])
        elif request.method == "DELETE" and key is not None:
            return web.json_response({"success": of_user.pop(key, None) is not None})
        elif request.method == "DELETE":
            of_user.clear()
        return web.json_response({"success": True, "data": of_user})


@pytest.fixture
async def shelf() -> AsyncGenerator[tuple[Shelf, Storage]]:
    shelf = Shelf()
    app = web.Application()
    for path in ("/gate/api/sdk/simple-storage/{user}", "/gate/api/sdk/simple-storage/{user}/{key}"):
        app.router.add_route("*", path, shelf.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    place = SessionAddress(user=USER, session="s", url=f"ws://127.0.0.1:{port}/gate/app-ws")
    storage = Storage(place, AppCredentials(package=PACKAGE, key=KEY))
    yield shelf, storage
    await storage.close()
    await runner.cleanup()


async def test_kept_found_and_forgotten(shelf: tuple[Shelf, Storage]) -> None:
    gateway, storage = shelf
    assert await storage.all() == {}
    await storage.set("a/b", "1")
    await storage.set("c", "2")
    assert gateway.kept == {USER: {"a/b": "1", "c": "2"}}
    assert (await storage.get("a/b"), await storage.get("x")) == ("1", None)
    assert (await storage.delete("a/b"), await storage.delete("a/b")) == (True, False)
    assert await storage.all() == {"c": "2"}
    assert await storage.clear()
    assert await storage.all() == {}
    assert gateway.asked[0] == "GET /gate/api/sdk/simple-storage/ada%2F%C3%A4%40example.com"
    assert "DELETE /gate/api/sdk/simple-storage/ada%2F%C3%A4%40example.com/a%2Fb" in gateway.asked


async def test_invalid_values_are_not_stored(shelf: tuple[Shelf, Storage]) -> None:
    gateway, storage = shelf
    number: Any = 1
    with pytest.raises(TypeError, match="holds strings"):
        await storage.set("a", number)
    with pytest.raises(ValueError, match="at most 100,000"):
        await storage.set("a", "x" * (MAX_STORED_CHARS + 1))
    assert gateway.asked == []


async def test_a_gateway_that_refuses_or_talks_nonsense(shelf: tuple[Shelf, Storage]) -> None:
    gateway, storage = shelf
    gateway.trouble = web.json_response({"success": False, "error": {"message": "over 1 MB"}}, status=413)
    with pytest.raises(StorageError) as raised:
        await storage.set("a", "b")
    assert matches("library", "a gateway that refuses or talks nonsense", str(raised.value))
    gateway.trouble = web.Response(text="<html>", status=502)
    with pytest.raises(StorageError) as raised:
        await storage.all()
    assert matches("library", "a gateway that refuses or talks nonsense 2", str(raised.value))


async def test_a_gateway_that_is_not_there() -> None:
    place = SessionAddress(user="u", session="s", url="ws://127.0.0.1:9/app-ws")
    storage = Storage(place, AppCredentials(package=PACKAGE, key=KEY))
    with pytest.raises(StorageError) as raised:
        await storage.get("a")
    assert matches("library", "a gateway that is not there", str(raised.value))
    await storage.close()
