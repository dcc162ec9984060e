"""REST handlers of users: installed apps, disabled tools, sessions and transcription."""

from typing import cast

from toolcrib.admin import UserAdmin
from toolcrib.admin.user_admin import SETTINGS_BYTES
from toolcrib.errors import Refused
from toolcrib.frontends.rest.app_payload_schemas import LONGEST_SAID
from toolcrib.frontends.rest.app_routes import USERS
from toolcrib.frontends.rest.fields import count, flag, only, refused, text
from toolcrib.http import HttpResponse, Request, json_response
from toolcrib.identity import require_whole
from toolcrib.model import JsonObject

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
