"""Routes about users: installs, sessions, devices and events."""

from collections.abc import AsyncIterator
from functools import partial
from typing import cast

import anyio
import orjson

from toolcrib.admin import UserAdmin
from toolcrib.admin.user_admin import SETTINGS_BYTES
from toolcrib.errors import Refused
from toolcrib.frontends.rest.app_payload_schemas import LONGEST_SAID
from toolcrib.frontends.rest.app_routes import USERS
from toolcrib.frontends.rest.fields import COUNT, TEXT, count, flag, gives, only, query, refused, takes, text
from toolcrib.http import HttpResponse, Request, Route, Write, json_response, send_response, sse_event
from toolcrib.http.response import EVENT_STREAM_HEADERS
from toolcrib.identity import require_whole
from toolcrib.model import JsonObject
from toolcrib.sessions import UserEvent

# --- REST handlers of users: installed apps, disabled tools, sessions and transcription ---

MOST_LISTED = 1000


class UserRoutes:
    """Handlers of the user routes, for the user's own key, one that acts for the user, or `crib:users`."""

    def __init__(self, desk: UserAdmin) -> None:
        self._desk = desk

    async def list(self, request: Request) -> HttpResponse:
        """List the users."""
        asked = request.query("after", "limit")
        limit = count(asked, "limit", default=100, most=MOST_LISTED)
        return json_response({"users": await self._desk.page(after=text(asked, "after") or "", limit=limit)})

    async def get(self, request: Request) -> HttpResponse:
        """Return one user in full."""
        return json_response(await self._desk.get(managed(request)))

    async def put(self, request: Request) -> HttpResponse:
        """Store a user."""
        user, fields = managed(request), only(await _body(request), "language", "timeZone")
        language, zone = text(fields, "language"), text(fields, "timeZone")
        put = self._desk.put(user, language=language, time_zone=zone, actor=request.actor)
        return json_response(await put)

    async def drop(self, request: Request) -> HttpResponse:
        """Remove a user."""
        user = managed(request)
        await self._desk.drop(user, actor=request.actor)
        return json_response({"id": user, "removed": True})

    # --- apps ---

    async def install(self, request: Request) -> HttpResponse:
        """Install an app, or change its settings."""
        user, package = managed(request), request.params["package"]
        settings = only(await _body(request, SETTINGS_BYTES), "settings").get("settings")
        if settings is not None and not isinstance(settings, dict):
            raise refused("settings", "must be an object")
        chosen = cast("JsonObject | None", settings)
        app, new = await self._desk.install(user, package, chosen, actor=request.actor)
        return json_response(app, 201 if new else 200)

    async def uninstall(self, request: Request) -> HttpResponse:
        """Uninstall an app."""
        user, package = managed(request), request.params["package"]
        await self._desk.uninstall(user, package, actor=request.actor)
        return json_response({"packageName": package, "removed": True})

    async def start(self, request: Request) -> HttpResponse:
        """Start an app."""
        user, package = managed(request), request.params["package"]
        return json_response(await self._desk.start(user, package, actor=request.actor))

    async def stop(self, request: Request) -> HttpResponse:
        """Stop an app."""
        user, package = managed(request), request.params["package"]
        return json_response(await self._desk.stop(user, package, actor=request.actor))

    # --- disabled tools and apps ---

    async def disable(self, request: Request) -> HttpResponse:
        """Disable a tool or an app."""
        name = await self._desk.disable(managed(request), request.params["name"], request.actor)
        return json_response({"name": name, "disabled": True})

    async def enable(self, request: Request) -> HttpResponse:
        """Enable a tool or an app again."""
        name = await self._desk.enable(managed(request), request.params["name"], request.actor)
        return json_response({"name": name, "disabled": False})

    # --- the session ---

    async def begin(self, request: Request) -> HttpResponse:
        """Start a session, or change it."""
        user, fields = managed(request), only(await _body(request), "device", "language", "timeZone")
        language, zone = text(fields, "language"), text(fields, "timeZone")
        begun = await self._desk.begin(
            user, worn=fields.get("device"), language=language, time_zone=zone, actor=request.actor
        )
        return json_response(begun)

    async def session(self, request: Request) -> HttpResponse:
        """Return the session."""
        return json_response(await self._desk.session(managed(request)))

    async def end(self, request: Request) -> HttpResponse:
        """End the session."""
        ended = await self._desk.end(managed(request), actor=request.actor)
        return json_response({"sessionId": ended, "ended": True})

    async def transcribe(self, request: Request) -> HttpResponse:
        """Forward transcribed speech of the user to listening apps."""
        user, fields = managed(request), only(await request.json(), "text", "isFinal", "language")
        said = fields.get("text")
        if not isinstance(said, str) or len(said) > LONGEST_SAID:
            raise refused("text", f"must be text of at most {LONGEST_SAID:,} characters")
        final, language = flag(fields, "isFinal"), text(fields, "language")
        delivered = await self._desk.transcribe(user, said, final=final, language=language)
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
    if request.headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in request.headers:
        return {}
    return cast("JsonObject", await (request.json() if limit is None else request.json(limit)))


# --- Server-sent events for a user's device: what apps display and speak ---

KEEP_ALIVE = 15.0


class UserEventStream:
    """Handler of `GET /api/users/{id}/events`; streams until the client disconnects or `end` is called."""

    def __init__(self, desk: UserAdmin, *, keep_alive: float = KEEP_ALIVE) -> None:
        self._desk, self._keep_alive = desk, keep_alive
        self._streams: dict[anyio.CancelScope, str] = {}

    async def listen(self, request: Request) -> None:
        """Stream all events from now on, until the device disconnects or the stream is ended."""
        user = managed(request)
        async with self._desk.listen(user, request.caller.principal) as events:
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
                tasks.start_soon(self._stay_in_touch, write)
                tasks.start_soon(_notice_leaving, request, tasks.cancel_scope)
                async for each in events:
                    await write(sse_event(each.kind, orjson.dumps(dict(each.data))))
            finally:
                del self._streams[tasks.cancel_scope]

    async def _stay_in_touch(self, write: Write) -> None:
        while True:
            await anyio.sleep(self._keep_alive)
            await write(b": still here\n\n")


async def _notice_leaving(request: Request, scope: anyio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass  # the rest of a body, which is ignored
    scope.cancel()


# --- The route table of users ---


def user_routes(users: UserRoutes, outward: UserEventStream) -> tuple[Route, ...]:
    """Return every route of users."""
    return (*_themselves(users), *_apps(users), *_switches(users), *_session(users), *_words(users, outward))


def _themselves(users: UserRoutes) -> tuple[Route, ...]:
    page = [
        query("after", "from the first user after this id on"),
        query("limit", "the most users to list", {**COUNT, "minimum": 1, "maximum": MOST_LISTED}),
    ]
    return (
        Route(
            method="GET",
            path="/api/users",
            handler=users.list,
            summary="The users there are.",
            needs=USERS,
            whole=True,
            document={"parameters": page, **gives("Users")},
        ),
        Route(
            method="GET",
            path="/api/users/{id}",
            handler=users.get,
            summary="A user: their apps, whether these fit the device and run, and their session.",
            document=gives("User"),
        ),
        Route(
            method="PUT",
            path="/api/users/{id}",
            handler=users.put,
            summary="Stores a user's language and time zone.",
            action="users.update",
            document={**takes("NewUser", required=False), **gives("User")},
        ),
        Route(
            method="DELETE",
            path="/api/users/{id}",
            handler=users.drop,
            summary="Removes a user and everything of theirs.",
            action="users.remove",
            document=gives("Removed"),
        ),
    )


def _apps(users: UserRoutes) -> tuple[Route, ...]:
    return (
        Route(
            method="PUT",
            path="/api/users/{id}/apps/{package}",
            handler=users.install,
            summary="Installs an app for a user, or changes what they have set there.",
            action="users.install",
            document={**takes("NewInstall", required=False), **gives("Installed", "200", "201")},
        ),
        Route(
            method="DELETE",
            path="/api/users/{id}/apps/{package}",
            handler=users.uninstall,
            summary="Stops an app of a user and takes it away.",
            action="users.uninstall",
            document=gives("Removed"),
        ),
        Route(
            method="POST",
            path="/api/users/{id}/apps/{package}/start",
            handler=users.start,
            summary="Starts an app for a user, and waits until it runs.",
            action="users.start_app",
            calls=True,
            document=gives("Started"),
        ),
        Route(
            method="POST",
            path="/api/users/{id}/apps/{package}/stop",
            handler=users.stop,
            summary="Stops an app of a user.",
            action="users.stop_app",
            document=gives("Started"),
        ),
    )


def _switches(users: UserRoutes) -> tuple[Route, ...]:
    return (
        Route(
            method="PUT",
            path="/api/users/{id}/tools/{name}/disabled",
            handler=users.disable,
            summary="Switches a tool, or a whole app by its package, off for a user.",
            action="users.disable",
            document=gives("Switched"),
        ),
        Route(
            method="DELETE",
            path="/api/users/{id}/tools/{name}/disabled",
            handler=users.enable,
            summary="Switches a tool or an app on again for a user.",
            action="users.enable",
            document=gives("Switched"),
        ),
    )


def _session(users: UserRoutes) -> tuple[Route, ...]:
    return (
        Route(
            method="GET",
            path="/api/users/{id}/session",
            handler=users.session,
            summary="A user's session.",
            document=gives("Session"),
        ),
        Route(
            method="PUT",
            path="/api/users/{id}/session",
            handler=users.begin,
            summary="Begins a user's session, or changes its device, language and time zone.",
            action="users.begin_session",
            document={**takes("NewSession", required=False), **gives("Session")},
        ),
        Route(
            method="DELETE",
            path="/api/users/{id}/session",
            handler=users.end,
            summary="Ends a user's session, and every app that runs in it.",
            action="users.end_session",
            document=gives("Ended"),
        ),
    )


def _words(users: UserRoutes, outward: UserEventStream) -> tuple[Route, ...]:
    events = {"200": {"description": "events", "content": {"text/event-stream": {"schema": TEXT}}}}
    return (
        Route(
            method="POST",
            path="/api/users/{id}/transcription",
            handler=users.transcribe,
            summary="Passes on what a user says to the apps that listen.",
            document={**takes("Transcription"), **gives("Delivered")},
        ),
        Route(
            method="GET",
            path="/api/users/{id}/events",
            handler=outward.listen,
            summary="Streams what apps show and say: events display, speak, tool, app.",
            # No cookie: the page does not use this stream, and a session that ends must leave none open.
            cookie=False,
            stays=True,
            document={"responses": events},
        ),
    )
