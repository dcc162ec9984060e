"""Tool calls over REST: the result as one JSON response, or server-sent events while the call runs."""

from collections.abc import Awaitable
from functools import partial
from typing import Any, NamedTuple, cast

import anyio

from toolcrib.errors import Refused
from toolcrib.formats.rest import encode
from toolcrib.frontends.rest.fields import KEY, key_of, only, refused, text
from toolcrib.frontends.rest.streaming import KEEP_ALIVE, stream, wants_events
from toolcrib.gateway import Gateway, MultiRoundCalls, oversized
from toolcrib.http import HttpResponse, Request, patience, read, result_response
from toolcrib.http.response import EVENTS
from toolcrib.model import REPLAYED, Caller, Json, JsonObject, Report, Result

FIELDS = ("name", "arguments", "context", "idempotencyKey", "capabilities", "answers", "state")
FREE = frozenset({"arguments", "answers"})
"""Fields in which duplicate keys are allowed: upstreams get re-serialized JSON, without the duplicates."""
NOTHING: JsonObject = {}

_KNOWN = frozenset(FIELDS)
_USUAL = frozenset({"name", "arguments"})
_REPLAYED = (b"idempotency-replayed", b"true")


class _Asked(NamedTuple):
    """The parsed body of a call."""

    name: str
    arguments: JsonObject
    caller: Caller
    deadline: float | None
    capabilities: JsonObject = NOTHING
    answers: JsonObject = NOTHING
    state: str = ""
    key: str = ""


class ExecuteRoute:
    """Handler of `POST /api/tools/execute`."""

    def __init__(
        self,
        gateway: Gateway,
        conversations: MultiRoundCalls,
        *,
        body_bytes: int,
        keep_alive: float = KEEP_ALIVE,
    ) -> None:
        self._gateway, self._conversations = gateway, conversations
        self._body_bytes, self._keep_alive = body_bytes, keep_alive

    async def execute(self, request: Request) -> HttpResponse:
        """Call a tool."""
        asked = self._asked(request, await request.json(self._body_bytes, free=FREE))
        if wants_events(request):
            run = partial(self._encoded, request, asked)
            return HttpResponse(200, b"", EVENTS, partial(stream, request, run, self._keep_alive))
        result = await self._call(request, asked)
        answer = result_response(result)
        if REPLAYED in result.meta:
            answer = answer._replace(headers=(*answer.headers, _REPLAYED))
        return answer

    def _asked(self, request: Request, body: Json) -> _Asked:
        if not isinstance(body, dict) or not _KNOWN.issuperset(cast("dict[str, Any]", body)):
            body = only(body, *FIELDS)
        fields = cast("dict[str, Any]", body)
        name = fields.get("name")
        if not isinstance(name, str) or not name:
            raise Refused("INVALID_REQUEST", "name must be the name of a tool", path="name")
        given: Json = fields.get("arguments")
        arguments = cast("JsonObject", given) if isinstance(given, dict) else _arguments(given)
        _bound(request, arguments)
        wait = patience(request)
        deadline = None if wait is None else anyio.current_time() + wait
        header = request.headers.get(KEY)
        if header is None and _USUAL.issuperset(fields):
            return _Asked(name, arguments, request.caller, deadline)
        caller = self._gateway.enter(request.caller, text(fields, "context"))
        key = key_of(fields.get("idempotencyKey"), header)
        answers, state = _object(fields, "answers"), _state(fields)
        return _Asked(name, arguments, caller, deadline, _capabilities(fields), answers, state, key)

    async def _encoded(self, request: Request, asked: _Asked, report: Report) -> bytes:
        return encode(await self._call(request, asked, report))

    def _call(self, request: Request, asked: _Asked, report: Report | None = None) -> Awaitable[Result]:
        return self._conversations.converse(
            asked.name,
            asked.arguments,
            asked.caller,
            origin=request.origin,
            deadline=asked.deadline,
            capabilities=asked.capabilities,
            answers=asked.answers,
            state=asked.state,
            idempotency_key=asked.key,
            report=report,
        )


def _arguments(given: Json) -> JsonObject:
    """Convert arguments that are not an object: none, or an object as a JSON string, as some models send."""
    if given is None:
        return {}
    if isinstance(given, str):
        given = read(given, "INVALID_ARGUMENTS", "the text in arguments", "arguments")
    if not isinstance(given, dict):
        message = "arguments must be an object, or a JSON text of one"
        raise Refused("INVALID_ARGUMENTS", message, path="arguments")
    return cast("JsonObject", given)


def _bound(request: Request, arguments: JsonObject) -> None:
    """Refuse arguments over their own limit; not checked for a Content-Length below 1,000,000 bytes."""
    length = request.headers.get(b"content-length")
    if length is not None and len(length) < 7:
        return
    said = oversized(arguments)
    if said is not None:
        raise Refused("PAYLOAD_TOO_LARGE", said, path="arguments")


def _object(fields: JsonObject, name: str) -> JsonObject:
    given = fields.get(name)
    if given is not None and not isinstance(given, dict):
        raise refused(name, "must be an object")
    return cast("JsonObject", given or NOTHING)


def _capabilities(fields: JsonObject) -> JsonObject:
    """Return the client's capabilities (as in MCP); unknown ones are ignored."""
    given = _object(fields, "capabilities")
    for name in given:
        if not isinstance(given[name], dict):
            raise refused(f"capabilities.{name[:100]}", 'must be an object, such as {"elicitation": {}}')
    return given


def _state(fields: JsonObject) -> str:
    """Return the state of a multi-round call; its signature is verified when it is opened."""
    given = fields.get("state")
    if given is not None and not isinstance(given, str):
        raise refused("state", "must be text, as inputRequired gave it")
    return given or ""
