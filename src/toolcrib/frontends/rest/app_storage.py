"""Key-value storage of apps per user, in the format of the apps' SDKs; an app authenticates by its key."""

from typing import Any, cast

from toolcrib.admin import AppAdmin
from toolcrib.admin.app_storage import AppStorage
from toolcrib.errors import Refused
from toolcrib.frontends.rest.fields import only, refused
from toolcrib.frontends.rest.schema_terms import gives, takes
from toolcrib.http import HttpResponse, Request, Route, json_response

_ALL, _ONE = "/api/sdk/simple-storage/{user}", "/api/sdk/simple-storage/{user}/{key}"
_HOW = "send the app's own key in the header `Authorization: Bearer PACKAGE:KEY`"


class StorageRoutes:
    """Handlers of the storage routes. Apps are not callers of tools, so they are authenticated here."""

    def __init__(self, desk: AppAdmin, storage: AppStorage) -> None:
        self._desk, self._storage = desk, storage

    async def all(self, request: Request) -> HttpResponse:
        """Return all stored values."""
        package, user = self._about(request)
        return json_response({"success": True, "data": await self._storage.all(package, user)})

    async def put(self, request: Request) -> HttpResponse:
        """Store values; other keys stay."""
        package, user = self._about(request)
        data = only(await request.json(), "data").get("data")
        if not isinstance(data, dict) or not all(isinstance(each, str) for each in _values(data)):
            raise refused("data", "must be an object of texts")
        await self._storage.put(package, user, cast("dict[str, str]", data))
        return json_response({"success": True})

    async def clear(self, request: Request) -> HttpResponse:
        """Delete all values."""
        package, user = self._about(request)
        await self._storage.drop(package, user)
        return json_response({"success": True})

    async def one(self, request: Request) -> HttpResponse:
        """Return the value of one key."""
        package, user = self._about(request)
        key = request.params["key"]
        kept = await self._storage.all(package, user)
        if key not in kept:
            raise Refused("NOT_FOUND", f"nothing is kept under {key[:200]}", path="key")
        return json_response({"success": True, "data": kept[key]})

    async def put_one(self, request: Request) -> HttpResponse:
        """Store the value of one key."""
        package, user = self._about(request)
        value = only(await request.json(), "value").get("value")
        if not isinstance(value, str):
            raise refused("value", "must be text")
        await self._storage.put(package, user, {request.params["key"]: value})
        return json_response({"success": True})

    async def drop_one(self, request: Request) -> HttpResponse:
        """Delete one key; the response reports whether it existed."""
        package, user = self._about(request)
        gone = await self._storage.drop(package, user, request.params["key"])
        return json_response({"success": gone > 0})

    def _about(self, request: Request) -> tuple[str, str]:
        """Authenticate the app; return its package and the user in the path."""
        request.query()
        scheme, _, shown = (request.header(b"authorization") or "").partition(" ")
        package, _, key = shown.strip().partition(":")
        if scheme.lower() != "bearer" or not key:
            raise Refused("UNAUTHENTICATED", _HOW)
        app = self._desk.holder(package, key)
        if app is None:
            raise Refused("UNAUTHENTICATED", f"this is no live key of an app; {_HOW}")
        return app.package, request.params["user"]

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of this class."""
        rows = (
            ("GET", _ALL, self.all, "Everything an app keeps for a user.", gives("Kept")),
            ("PUT", _ALL, self.put, "Adds to what an app keeps for a user.", _taking("Keep")),
            ("DELETE", _ALL, self.clear, "Forgets everything an app keeps for a user.", gives("Done")),
            ("GET", _ONE, self.one, "What an app keeps under one key.", gives("KeptValue")),
            ("PUT", _ONE, self.put_one, "Keeps a text under one key.", _taking("KeepValue")),
            ("DELETE", _ONE, self.drop_one, "Forgets one key.", gives("Done")),
        )
        return tuple(
            Route(method=method, path=path, handler=handler, summary=summary, access="app", document=document)
            for method, path, handler, summary, document in rows
        )


def _taking(shape: str) -> dict[str, Any]:
    return {**takes(shape), **gives("Done")}


def _values(data: Any) -> Any:
    return cast("dict[str, Any]", data).values()
