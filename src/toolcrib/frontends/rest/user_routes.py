"""Routes about users: installs, sessions, devices and events."""

from collections.abc import AsyncIterator
from functools import partial
from typing import cast

import anyio
import orjson

from toolcrib.admin import UserAdmin
from toolcrib.admin.user_admin import MAX_SETTINGS_BYTES
from toolcrib.errors import Refused
from toolcrib.frontends.rest.app_payload_schemas import MAX_UTTERANCE_CHARACTERS
from toolcrib.frontends.rest.app_routes import USERS
from toolcrib.frontends.rest.fields import (
    EVENT_STREAM,
    count,
    flag,
    known_fields,
    limit_of,
    operation,
    query,
    refused,
    text,
)
from toolcrib.frontends.rest.tool_routes import KEEP_ALIVE_SECONDS, cancel_on_disconnect, write_keep_alives
from toolcrib.http import HttpResponse, Request, Route, Write, json_response, send_response, sse_event
from toolcrib.http.response import EVENT_STREAM_HEADERS
from toolcrib.identity import require_whole
from toolcrib.model import JsonObject
from toolcrib.sessions import UserEvent

# --- REST handlers of users: installed apps, disabled tools, sessions and transcription ---

MAX_LISTED_USERS = 1000


class UserRoutes:
    """Handlers of the user routes, for the user's own key, one that acts for the user, or `crib:users`."""

    def __init__(self, users: UserAdmin) -> None:
        self._users = users

    async def list(self, request: Request) -> HttpResponse:
        """Lists the users."""
        query_parameters = request.query("after", "limit")
        limit = count(query_parameters, "limit", default=100, maximum=MAX_LISTED_USERS)
        return json_response(
            {"users": await self._users.page(after=text(query_parameters, "after") or "", limit=limit)}
        )

    async def get(self, request: Request) -> HttpResponse:
        """Returns a user with installed apps, their compatibility and state, and the session."""
        return json_response(await self._users.get(managed(request)))

    async def put(self, request: Request) -> HttpResponse:
        """Stores a user's language and time zone."""
        user, fields = managed(request), known_fields(await _body(request), "language", "timeZone")
        language, zone = text(fields, "language"), text(fields, "timeZone")
        put = self._users.put(user, language=language, time_zone=zone, actor=request.actor)
        return json_response(await put)

    async def drop(self, request: Request) -> HttpResponse:
        """Removes a user and all of the user's data."""
        user = managed(request)
        await self._users.drop(user, actor=request.actor)
        return json_response({"id": user, "removed": True})

    # --- apps ---

    async def install(self, request: Request) -> HttpResponse:
        """Installs an app for a user, or changes its settings."""
        user, package = managed(request), request.params["package"]
        settings = known_fields(await _body(request, MAX_SETTINGS_BYTES), "settings").get("settings")
        if settings is not None and not isinstance(settings, dict):
            raise refused("settings", "must be an object")
        chosen = cast("JsonObject | None", settings)
        app, new = await self._users.install(user, package, chosen, actor=request.actor)
        return json_response(app, 201 if new else 200)

    async def uninstall(self, request: Request) -> HttpResponse:
        """Stops and uninstalls an app of a user."""
        user, package = managed(request), request.params["package"]
        await self._users.uninstall(user, package, actor=request.actor)
        return json_response({"packageName": package, "removed": True})

    async def start(self, request: Request) -> HttpResponse:
        """Starts an app for a user and waits until it is running."""
        user, package = managed(request), request.params["package"]
        return json_response(await self._users.start(user, package, actor=request.actor))

    async def stop(self, request: Request) -> HttpResponse:
        """Stops an app of a user."""
        user, package = managed(request), request.params["package"]
        return json_response(await self._users.stop(user, package, actor=request.actor))

    # --- disabled tools and apps ---

    async def disable(self, request: Request) -> HttpResponse:
        """Disables a tool, or an app by its package, for a user."""
        name = await self._users.disable(managed(request), request.params["name"], request.actor)
        return json_response({"name": name, "disabled": True})

    async def enable(self, request: Request) -> HttpResponse:
        """Enables a tool or an app again for a user."""
        name = await self._users.enable(managed(request), request.params["name"], request.actor)
        return json_response({"name": name, "disabled": False})

    # --- the session ---

    async def begin(self, request: Request) -> HttpResponse:
        """Starts a user's session, or changes its device, language and time zone."""
        user, fields = managed(request), known_fields(await _body(request), "device", "language", "timeZone")
        language, zone = text(fields, "language"), text(fields, "timeZone")
        begun = await self._users.begin(
            user, worn=fields.get("device"), language=language, time_zone=zone, actor=request.actor
        )
        return json_response(begun)

    async def session(self, request: Request) -> HttpResponse:
        """Returns a user's session."""
        return json_response(await self._users.session(managed(request)))

    async def end(self, request: Request) -> HttpResponse:
        """Ends a user's session and stops its apps."""
        ended = await self._users.end(managed(request), actor=request.actor)
        return json_response({"sessionId": ended, "ended": True})

    async def transcribe(self, request: Request) -> HttpResponse:
        """Forwards a user's transcribed speech to the listening apps."""
        user, fields = managed(request), known_fields(await request.json(), "text", "isFinal", "language")
        utterance = fields.get("text")
        if not isinstance(utterance, str) or len(utterance) > MAX_UTTERANCE_CHARACTERS:
            raise refused("text", f"must be a string of at most {MAX_UTTERANCE_CHARACTERS:,} characters")
        final, language = flag(fields, "isFinal"), text(fields, "language")
        delivered = await self._users.transcribe(user, utterance, final=final, language=language)
        return json_response({"delivered": delivered})


def managed(request: Request) -> str:
    """Return the user in the path; refuse callers that may not act for that user."""
    request.query()
    user, caller = request.params["id"], request.caller
    if caller.user == user:
        return user
    if not caller.may(USERS):
        message = f"this needs a key of this user, one that acts for them, or the permission {USERS}"
        raise Refused("SCOPE_DENIED", message, path="id")
    # Users belong to no context, so a caller confined to contexts may not manage others.
    require_whole(caller)
    return user


async def _body(request: Request, limit: int | None = None) -> JsonObject:
    """Return an optional body; an empty object if it is missing."""
    if not request.has_body:
        return {}
    return cast("JsonObject", await (request.json() if limit is None else request.json(limit)))


# --- Server-sent events for a user's device: what apps display and speak ---


class UserEventStream:
    """Handler of `GET /api/users/{id}/events`; streams until the client disconnects or `end` is called."""

    def __init__(self, users: UserAdmin, *, keep_alive: float = KEEP_ALIVE_SECONDS) -> None:
        self._users, self._keep_alive = users, keep_alive
        self._streams: dict[anyio.CancelScope, str] = {}

    async def listen(self, request: Request) -> None:
        """Streams the output of apps as events: display, speak, tool, app."""
        user = managed(request)
        async with self._users.listen(user, request.caller.principal) as events:
            stream = partial(self._stream, request, events)
            await send_response(request, HttpResponse(200, b"", EVENT_STREAM_HEADERS, stream))

    def end(self, key: str | None = None) -> None:
        """End the streams of a revoked key; without a key, all streams."""
        for stream, owner in tuple(self._streams.items()):
            if key is None or key == owner:
                stream.cancel()

    async def _stream(self, request: Request, events: AsyncIterator[UserEvent], write: Write) -> None:
        async with anyio.create_task_group() as tasks:
            self._streams[tasks.cancel_scope] = request.caller.key
            try:
                await write(b": listening\n\n")
                tasks.start_soon(write_keep_alives, write, self._keep_alive, b": still here\n\n")
                tasks.start_soon(cancel_on_disconnect, request, tasks.cancel_scope)
                async for each in events:
                    await write(sse_event(each.kind, orjson.dumps(dict(each.data))))
            finally:
                del self._streams[tasks.cancel_scope]


# --- The route table of users ---

_USER, _APP = "/api/users/{id}", "/api/users/{id}/apps/{package}"
_DISABLED, _SESSION = "/api/users/{id}/tools/{name}/disabled", "/api/users/{id}/session"


def user_routes(users: UserRoutes, stream: UserEventStream) -> tuple[Route, ...]:
    """Return every route of users."""
    page = [query("after", "ids after this one, in alphabetical order"), limit_of("users", MAX_LISTED_USERS)]
    speech = operation("Delivered", body="Transcription")
    events = {"responses": {"200": {"description": "events", "content": EVENT_STREAM}}}
    stored, begun = (
        operation("User", optional_body="NewUser"),
        operation("Session", optional_body="NewSession"),
    )
    installed = operation("Installed", "200", "201", optional_body="NewInstall")
    return (
        Route("GET", "/api/users", users.list, operation("Users", parameters=page), needs=USERS, whole=True),
        Route("GET", _USER, users.get, operation("User")),
        Route("PUT", _USER, users.put, stored, action="users.update"),
        Route("DELETE", _USER, users.drop, operation("Removed"), action="users.remove"),
        Route("PUT", _APP, users.install, installed, action="users.install"),
        Route("DELETE", _APP, users.uninstall, operation("Removed"), action="users.uninstall"),
        Route(
            "POST", f"{_APP}/start", users.start, operation("Started"), action="users.start_app", calls=True
        ),
        Route("POST", f"{_APP}/stop", users.stop, operation("Started"), action="users.stop_app"),
        Route("PUT", _DISABLED, users.disable, operation("Switched"), action="users.disable"),
        Route("DELETE", _DISABLED, users.enable, operation("Switched"), action="users.enable"),
        Route("GET", _SESSION, users.session, operation("Session")),
        Route("PUT", _SESSION, users.begin, begun, action="users.begin_session"),
        Route("DELETE", _SESSION, users.end, operation("Ended"), action="users.end_session"),
        Route("POST", f"{_USER}/transcription", users.transcribe, speech),
        # No cookie: the page does not use this stream, and a session that ends must leave none open.
        Route("GET", f"{_USER}/events", stream.listen, events, cookie=False, stays=True),
    )
