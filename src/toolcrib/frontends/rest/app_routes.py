"""Routes about apps: registration, tools, settings and stored data."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from toolcrib.admin import AppAdmin
from toolcrib.admin.app_admin import APPS, AppStorage, spell_app
from toolcrib.errors import Refused
from toolcrib.frontends.rest.fields import count, known_fields, limit_of, operation, query, refused, text
from toolcrib.http import HttpResponse, Request, Route, json_response
from toolcrib.interfaces import AppRecord
from toolcrib.model import Caller, JsonObject

# --- REST routes of apps and their tools: managing them as a developer, and reading them as a user ---

USERS = "crib:users"
"""Permission for the data of all users."""

MAX_LISTED_APPS = 1000


class AppRoutes:
    """Handlers of the app routes."""

    def __init__(self, apps: AppAdmin, confined: Callable[[AppRecord, Caller], AppRecord]) -> None:
        self._apps, self._confined = apps, confined

    async def list(self, request: Request) -> HttpResponse:
        """Lists the apps; the caller's own with all fields."""
        parameters = request.query("after", "limit")
        check_reader(request.caller)
        limit = count(parameters, "limit", default=100, maximum=MAX_LISTED_APPS)
        found = self._apps.page(after=text(parameters, "after") or "", limit=limit)
        return json_response({"apps": [self._as_json(app, request.caller) for app in found]})

    async def get(self, request: Request) -> HttpResponse:
        """Returns one app; its owner gets all fields."""
        return json_response(self._as_json(await self._readable(request), request.caller))

    async def put(self, request: Request) -> HttpResponse:
        """Creates or updates an app; the API key of a new app is returned only once."""
        request.query()
        app, key = await self._apps.put(request.params["package"], await request.json(), request.actor)
        stored = spell_app(app, request.caller)
        return json_response(stored) if key is None else json_response({**stored, "apiKey": key}, 201)

    async def drop(self, request: Request) -> HttpResponse:
        """Removes an app for all users."""
        request.query()
        package = request.params["package"]
        await self._apps.drop(package, request.actor)
        return json_response({"packageName": package, "removed": True})

    async def rotate(self, request: Request) -> HttpResponse:
        """Replaces an app's API key; the old one is invalid at once."""
        request.query()
        package = request.params["package"]
        key = await self._apps.rotate(package, request.actor)
        return json_response({"packageName": package, "apiKey": key})

    async def define(self, request: Request) -> HttpResponse:
        """Replaces all tools of an app; none is stored if one is invalid."""
        request.query()
        fields = known_fields(await request.json(), "tools")
        stored = await self._apps.define(request.params["package"], fields.get("tools"), request.actor)
        return json_response(stored)

    async def tools(self, request: Request) -> HttpResponse:
        """Returns the tool definitions of an app."""
        app = self._confined(await self._readable(request), request.caller)
        fields: JsonObject = {"packageName": app.package, "version": app.version}
        return json_response({**fields, "tools": [each.definition for each in app.tools]})

    def _as_json(self, app: AppRecord, caller: Caller) -> JsonObject:
        return spell_app(self._confined(app, caller), caller)

    async def _readable(self, request: Request) -> AppRecord:
        request.query()
        check_reader(request.caller)
        return await self._apps.get(request.params["package"])

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of this class."""
        path, tools = "/api/apps/{package}", "/api/apps/{package}/tools"
        page = [
            query("after", "packages after this one, in alphabetical order"),
            limit_of("apps", MAX_LISTED_APPS),
        ]
        change = partial(Route, needs=APPS)
        stored = operation("App", "200", "201", body="NewApp")
        key, defined = operation("AppKey"), operation("StoredTools", body="NewTools")
        return (
            Route("GET", "/api/apps", self.list, operation("Apps", parameters=page)),
            Route("GET", path, self.get, operation("App")),
            Route("GET", tools, self.tools, operation("AppTools")),
            change("PUT", path, self.put, stored, action="apps.update", fresh=True),
            change("DELETE", path, self.drop, operation("Removed"), action="apps.remove"),
            change("POST", f"{path}/key/rotate", self.rotate, key, action="apps.rotate_key", fresh=True),
            change("POST", tools, self.define, defined, action="apps.define_tools", fresh=True),
        )


def check_reader(caller: Caller) -> None:
    """Refuse callers that may not read apps: all but users, developers and managers of users."""
    if caller.user is None and not (caller.may(APPS) or caller.may(USERS)):
        message = f"this needs a user's own key, or the permission {APPS} or {USERS}"
        raise Refused("SCOPE_DENIED", message)


# --- Key-value storage of apps per user, in the format of the apps' SDKs; apps authenticate by their key ---

_AUTHENTICATION_HINT = "send the app's own key in the header `Authorization: Bearer PACKAGE:KEY`"


class StorageRoutes:
    """Handlers of the storage routes. Apps are not callers of tools, so they are authenticated here."""

    def __init__(self, apps: AppAdmin, storage: AppStorage) -> None:
        self._apps, self._storage = apps, storage

    async def all(self, request: Request) -> HttpResponse:
        """Returns all values an app stores for a user."""
        package, user = self._app_and_user(request)
        return json_response({"success": True, "data": await self._storage.all(package, user)})

    async def put(self, request: Request) -> HttpResponse:
        """Stores values of an app for a user."""
        package, user = self._app_and_user(request)
        data = known_fields(await request.json(), "data").get("data")
        if not isinstance(data, dict) or not all(isinstance(each, str) for each in _values(data)):
            raise refused("data", "must be an object whose values are strings")
        await self._storage.put(package, user, cast("dict[str, str]", data))
        return json_response({"success": True})

    async def clear(self, request: Request) -> HttpResponse:
        """Deletes all values an app stores for a user."""
        package, user = self._app_and_user(request)
        await self._storage.drop(package, user)
        return json_response({"success": True})

    async def one(self, request: Request) -> HttpResponse:
        """Returns the value of one key."""
        package, user = self._app_and_user(request)
        key = request.params["key"]
        values = await self._storage.all(package, user)
        if key not in values:
            raise Refused("NOT_FOUND", f"there is no value for the key {key[:200]}", path="key")
        return json_response({"success": True, "data": values[key]})

    async def put_one(self, request: Request) -> HttpResponse:
        """Stores the value of one key."""
        package, user = self._app_and_user(request)
        value = known_fields(await request.json(), "value").get("value")
        if not isinstance(value, str):
            raise refused("value", "must be a string")
        await self._storage.put(package, user, {request.params["key"]: value})
        return json_response({"success": True})

    async def drop_one(self, request: Request) -> HttpResponse:
        """Deletes one key."""
        package, user = self._app_and_user(request)
        removed = await self._storage.drop(package, user, request.params["key"])
        return json_response({"success": removed > 0})

    def _app_and_user(self, request: Request) -> tuple[str, str]:
        """Authenticate the app; return its package and the user in the path."""
        request.query()
        scheme, _, credentials = (request.header(b"authorization") or "").partition(" ")
        package, _, key = credentials.strip().partition(":")
        if scheme.lower() != "bearer" or not key:
            raise Refused("UNAUTHENTICATED", _AUTHENTICATION_HINT)
        app = self._apps.holder(package, key)
        if app is None:
            raise Refused("UNAUTHENTICATED", f"this is not a valid API key of an app; {_AUTHENTICATION_HINT}")
        return app.package, request.params["user"]

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of this class."""
        values, value = "/api/sdk/simple-storage/{user}", "/api/sdk/simple-storage/{user}/{key}"
        route, done = partial(Route, access="app"), operation("Done")
        return (
            route("GET", values, self.all, operation("Kept")),
            route("PUT", values, self.put, operation("Done", body="Keep")),
            route("DELETE", values, self.clear, done),
            route("GET", value, self.one, operation("KeptValue")),
            route("PUT", value, self.put_one, operation("Done", body="KeepValue")),
            route("DELETE", value, self.drop_one, done),
        )


def _values(data: Any) -> Any:
    return cast("dict[str, Any]", data).values()
