"""Routes about apps: registration, tools, settings and stored data."""

from collections.abc import Callable
from typing import Any, cast

from toolcrib.admin import AppAdmin
from toolcrib.admin.app_admin import APPS, AppStorage, spell_app
from toolcrib.errors import Refused
from toolcrib.frontends.rest.fields import COUNT, count, gives, only, query, refused, takes, text
from toolcrib.http import HttpResponse, Request, Route, json_response
from toolcrib.interfaces import AppRecord
from toolcrib.model import Caller, JsonObject

# --- REST routes of apps and their tools: managing them as a developer, and reading them as a user ---

USERS = "crib:users"
"""Permission for the data of all users."""

MOST = 1000


class AppRoutes:
    """Handlers of the app routes."""

    def __init__(self, desk: AppAdmin, confined: Callable[[AppRecord, Caller], AppRecord]) -> None:
        self._desk, self._confined = desk, confined

    async def list(self, request: Request) -> HttpResponse:
        """List the apps: the caller's own in full, others as users see them."""
        asked = request.query("after", "limit")
        check_reader(request.caller)
        limit = count(asked, "limit", default=100, most=MOST)
        found = self._desk.page(after=text(asked, "after") or "", limit=limit)
        return json_response({"apps": [self._spelled(app, request.caller) for app in found]})

    async def get(self, request: Request) -> HttpResponse:
        """Return one app."""
        return json_response(self._spelled(await self._seen(request), request.caller))

    async def put(self, request: Request) -> HttpResponse:
        """Store an app; a new one is returned with its API key."""
        request.query()
        app, key = await self._desk.put(request.params["package"], await request.json(), request.actor)
        spelled = spell_app(app, request.caller)
        return json_response(spelled) if key is None else json_response({**spelled, "apiKey": key}, 201)

    async def drop(self, request: Request) -> HttpResponse:
        """Remove an app."""
        request.query()
        package = request.params["package"]
        await self._desk.drop(package, request.actor)
        return json_response({"packageName": package, "removed": True})

    async def rotate(self, request: Request) -> HttpResponse:
        """Rotate an app's API key."""
        request.query()
        package = request.params["package"]
        key = await self._desk.rotate(package, request.actor)
        return json_response({"packageName": package, "apiKey": key})

    async def define(self, request: Request) -> HttpResponse:
        """Replace an app's tools."""
        request.query()
        fields = only(await request.json(), "tools")
        stored = await self._desk.define(request.params["package"], fields.get("tools"), request.actor)
        return json_response(stored)

    async def tools(self, request: Request) -> HttpResponse:
        """Return the definitions of an app's tools."""
        app = self._confined(await self._seen(request), request.caller)
        told: JsonObject = {"packageName": app.package, "version": app.version}
        return json_response({**told, "tools": [each.definition for each in app.tools]})

    def _spelled(self, app: AppRecord, caller: Caller) -> JsonObject:
        return spell_app(self._confined(app, caller), caller)

    async def _seen(self, request: Request) -> AppRecord:
        request.query()
        check_reader(request.caller)
        return await self._desk.get(request.params["package"])

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of this class."""
        return (*self._reading(), *self._writing(), *self._defining())

    def _reading(self) -> tuple[Route, ...]:
        page = [
            query("after", "from the first app after this package on"),
            query("limit", "the most apps to list", {**COUNT, "minimum": 1, "maximum": MOST}),
        ]
        return (
            Route(
                method="GET",
                path="/api/apps",
                handler=self.list,
                summary="The apps there are; of one's own, all there is to know.",
                document={"parameters": page, **gives("Apps")},
            ),
            Route(
                method="GET",
                path="/api/apps/{package}",
                handler=self.get,
                summary="One app; its owner sees more of it.",
                document=gives("App"),
            ),
            Route(
                method="GET",
                path="/api/apps/{package}/tools",
                handler=self.tools,
                summary="An app's tools, as they were defined.",
                document=gives("AppTools"),
            ),
        )

    def _writing(self) -> tuple[Route, ...]:
        return (
            Route(
                method="PUT",
                path="/api/apps/{package}",
                handler=self.put,
                summary="Stores an app; the API key of a new one is shown this once.",
                action="apps.update",
                needs=APPS,
                fresh=True,
                document={**takes("NewApp"), **gives("App", "200", "201")},
            ),
            Route(
                method="DELETE",
                path="/api/apps/{package}",
                handler=self.drop,
                summary="Removes an app, for everybody.",
                action="apps.remove",
                needs=APPS,
                document=gives("Removed"),
            ),
            Route(
                method="POST",
                path="/api/apps/{package}/key/rotate",
                handler=self.rotate,
                summary="Puts another API key in place of an app's, which ends at once.",
                action="apps.rotate_key",
                needs=APPS,
                fresh=True,
                document=gives("AppKey"),
            ),
        )

    def _defining(self) -> tuple[Route, ...]:
        return (
            Route(
                method="POST",
                path="/api/apps/{package}/tools",
                handler=self.define,
                summary="Stores all of an app's tools, or, where one has a fault, none of them.",
                action="apps.define_tools",
                needs=APPS,
                fresh=True,
                document={**takes("NewTools"), **gives("StoredTools")},
            ),
        )


def check_reader(caller: Caller) -> None:
    """Refuse callers that may not read apps: all but users, developers and managers of users."""
    if caller.user is None and not (caller.may(APPS) or caller.may(USERS)):
        message = f"this needs a user's own key, or the permission {APPS} or {USERS}"
        raise Refused("SCOPE_DENIED", message)


# --- Key-value storage of apps per user, in the format of the apps' SDKs; an app authenticates by its key
# ---

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
