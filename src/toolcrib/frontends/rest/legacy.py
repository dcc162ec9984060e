"""Deprecated routes for app tools in their old formats; calls run through the same pipeline. Optional."""

from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from typing import Any, cast
from urllib.parse import quote

import anyio
import orjson

from toolcrib.admin import Admin
from toolcrib.apps.definition import tool_of
from toolcrib.apps.properties import phrases
from toolcrib.errors import Refused, ToolcribError
from toolcrib.formats.rest import as_json
from toolcrib.frontends.rest.app_routes import check_reader
from toolcrib.frontends.rest.fields import operation, refused, required_text, text
from toolcrib.gateway import Gateway
from toolcrib.http import HttpResponse, Request, Route, call_timeout, json_response, result_response
from toolcrib.http.response import Header
from toolcrib.identity import Identity
from toolcrib.model import Caller, Json, JsonObject, Result, Tool

SILENT_REPLY = "GIVE_APP_CONTROL_OF_TOOL_RESPONSE"
"""The reply with which an app requested that the assistant stays silent."""
_DEPRECATED_SINCE = b"@1794787200"
"""16 November 2026, in the format of RFC 9745 (Deprecation header)."""
_LEGACY_TYPES = {"integer": "number"}
_Handler = Callable[[Request], Awaitable[HttpResponse]]


class LegacyRoutes:
    """Handlers of the deprecated routes; every response has a Deprecation header."""

    def __init__(self, gateway: Gateway, identity: Identity, console: Admin) -> None:
        self._gateway, self._identity, self._console = gateway, identity, console

    async def app_tools(self, request: Request) -> HttpResponse:
        """Lists an app's tools in the old format; use `GET /api/apps/{package}/tools`."""
        request.query()
        check_reader(request.caller)
        found = await self._console.apps.get(request.params["package"])
        app = self._console.confined_app(found, request.caller)
        language = request.caller.language
        return json_response([_legacy_tool(tool_of(app, each), language) for each in app.tools])

    async def user_tools(self, request: Request) -> HttpResponse:
        """Lists the tools of a user's apps in the old format; use `GET /api/tools`."""
        request.query()
        caller = await self._present(request.caller, request.params["user"])
        tools = [tool for tool in self._gateway.tools(caller) if tool.family == "app"]
        return json_response(
            [{**_legacy_tool(tool, caller.language), "appPackageName": tool.source} for tool in tools]
        )

    async def call(self, request: Request) -> HttpResponse:
        """Calls a tool of an app in the old format; use `POST /api/tools/execute`."""
        request.query()
        fields = _object(await request.json(free=frozenset({"toolParameters"})))
        arguments = cast("JsonObject | None", fields.get("toolParameters"))
        if arguments is not None and not isinstance(arguments, dict):
            raise refused("toolParameters", "must be an object")
        name = f"{request.params['package']}:{required_text(fields, 'toolId')}"
        caller = await self._present(request.caller, text(fields, "userId"))
        wait = call_timeout(request)
        deadline = None if wait is None else anyio.current_time() + wait
        result = await self._gateway.call(name, arguments, caller, origin=request.origin, deadline=deadline)
        return legacy_response(result)

    async def _present(self, caller: Caller, user: str | None) -> Caller:
        """Return the caller acting for a user; refuse if the user has no session."""
        acting = caller if user is None else self._identity.acting_for(caller, user)
        if acting.user is None:
            raise refused("userId", "must be the user the tool is called for")
        return await self._identity.people.here(acting)

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of this class."""
        app, user = "/api/tools/apps/{package}", "/api/tools/users/{user}"
        app_tools = self._deprecated(self.app_tools, "/api/apps/{package}/tools")
        user_tools = self._deprecated(self.user_tools, "/api/tools")
        call = self._deprecated(self.call, "/api/tools/execute")
        tools: JsonObject = {"deprecated": True, **operation("OldTools")}
        answer: JsonObject = {"deprecated": True, **operation("OldAnswer", body="OldCall")}
        return (
            Route("GET", f"{app}/tools", app_tools, tools),
            Route("GET", f"{user}/tools", user_tools, tools),
            Route("POST", f"{app}/tool", call, answer, calls=True),
        )

    def _deprecated(self, handler: _Handler, successor: str) -> _Handler:
        """Wrap a handler: add the Deprecation header and a link to the successor to every response."""

        @wraps(handler)
        async def wrapped(request: Request) -> HttpResponse:
            try:
                response = await handler(request)
            except ToolcribError as error:
                response = legacy_response(self._gateway.refusal(error.problem, request.origin))
            package = quote(request.params.get("package", ""), safe="")
            link = f'<{successor.replace("{package}", package)}>; rel="successor-version"'
            marks: tuple[Header, ...] = ((b"deprecation", _DEPRECATED_SINCE), (b"link", link.encode()))
            return response._replace(headers=(*response.headers, *marks))

        return wrapped


def legacy_response(result: Result) -> HttpResponse:
    """Convert a result into a response in the old format."""
    problem, plain = result.problem, result_response(result)
    if problem is not None:
        body: Json = {**as_json(result), "message": problem.message}
    elif result.ask is not None:
        body = {"status": "error", "message": "the tool requires input, which this route cannot forward"}
    else:
        body = {
            "status": "success",
            "reply": SILENT_REPLY if result.voice.suppress else as_json(result)["content"],
        }
    return plain._replace(body=orjson.dumps(body))


def _legacy_tool(tool: Tool, language: str) -> dict[str, Any]:
    """Convert a tool definition into the old format, as far as that can express it."""
    schema = tool.input_schema
    required: Iterable[str] = schema.get("required", ())
    activation_phrases = list(phrases(tool.extensions, language))
    properties: dict[str, JsonObject] = schema.get("properties", {})
    parameters = {
        name: _legacy_parameter(each, required=name in required) for name, each in properties.items()
    }
    converted: dict[str, Any] = {"id": tool.local, "description": tool.description, "parameters": parameters}
    return {**converted, "activationPhrases": activation_phrases} if activation_phrases else converted


def _legacy_parameter(schema: JsonObject, *, required: bool) -> JsonObject:
    kind = schema.get("type", "string")
    converted: JsonObject = {
        "type": _LEGACY_TYPES.get(kind, kind) if isinstance(kind, str) else "string",
        "description": schema.get("description", ""),
        "required": required,
    }
    return {**converted, "enum": schema["enum"]} if "enum" in schema else converted


def _object(body: Json) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Refused("INVALID_REQUEST", "the body must be a JSON object with toolId, toolParameters, userId")
    return cast("dict[str, Any]", body)
