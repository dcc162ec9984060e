"""Routes about tools: list them, run one call, or run all calls of a provider message."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import anyio
import orjson

from toolcrib.apps.properties import phrases
from toolcrib.errors import Refused
from toolcrib.formats import FORMATS
from toolcrib.formats.rest import encode, encode_brief
from toolcrib.frontends.rest.fields import (
    DETAILS,
    IDEMPOTENCY_HEADER,
    MINIMAL_APPLIED,
    PREFER_HEADER,
    choice,
    count,
    known_fields,
    refused,
    request_idempotency_key,
    text,
    wants_minimal,
)
from toolcrib.gateway import Declarations, Gateway, ProviderConnection, calls_of, map_cooperatively, oversized
from toolcrib.http import HttpResponse, Request, Write, call_timeout, parse_json, result_response, sse_event
from toolcrib.http.response import EVENT_STREAM_HEADERS, Header
from toolcrib.model import REPLAYED, Caller, Json, JsonObject, Progress, Report, Result, Tool

# --- Server-sent events of a running call: progress, keep-alive comments, and finally the result ---

KEEP_ALIVE_SECONDS = 15.0
ReportingRun = Callable[[Report], Awaitable[bytes]]


def wants_events(request: Request) -> bool:
    """Return whether the client accepts server-sent events."""
    return b"text/event-stream" in request.headers.get(b"accept", b"")


async def stream(request: Request, run: ReportingRun, keep_alive: float, write: Write) -> None:
    """Stream the progress of a run, then its result. A disconnect cancels the run."""

    async def report(progress: Progress) -> None:
        await write(_progress_event(progress))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write_keep_alives, write, keep_alive, b": still running\n\n")
        tasks.start_soon(cancel_on_disconnect, request, tasks.cancel_scope)
        await write(sse_event("result", await run(report)))
        tasks.cancel_scope.cancel()


async def write_keep_alives(write: Write, seconds: float, comment: bytes) -> None:
    """Write a comment periodically, so that proxies do not close an idle stream."""
    while True:
        await anyio.sleep(seconds)
        await write(comment)


async def cancel_on_disconnect(request: Request, scope: anyio.CancelScope) -> None:
    """Cancel a scope once the client disconnects; the rest of a body is ignored."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _progress_event(progress: Progress) -> bytes:
    fields = {"done": progress.done, "total": progress.total, "message": progress.message}
    known = {name: value for name, value in fields.items() if value is not None}
    return sse_event(progress.kind, orjson.dumps(known))


# --- Runs all calls of a provider message and returns the reply messages in the provider's format ---

TURN_FIELDS = ("format", "message", "context", "idempotencyKey")
TURN_DUPLICATES_ALLOWED = frozenset({"arguments", "args", "input", "parameters"})
"""The argument fields in provider messages; duplicate keys are allowed in them, as in `execute`."""


class _TurnRequest(NamedTuple):
    """The parsed body of a turn."""

    message: JsonObject
    format: str
    caller: Caller
    deadline: float | None
    key: str


class AnswerRoute:
    """Handler of `POST /api/tools/answer`. A disconnect cancels the running calls."""

    def __init__(self, gateway: Gateway, *, body_bytes: int, keep_alive: float = KEEP_ALIVE_SECONDS) -> None:
        self._gateway, self._body_bytes, self._keep_alive = gateway, body_bytes, keep_alive

    async def answer(self, request: Request) -> HttpResponse:
        """Runs all calls of a provider message, returns the reply messages; events as for a call."""
        body = await request.json(self._body_bytes, free=TURN_DUPLICATES_ALLOWED)
        parsed = self._parsed(request, known_fields(body, *TURN_FIELDS))
        if wants_events(request):
            # A malformed message is refused with its own status, before the stream starts.
            calls_of(parsed.message, parsed.format)
            run = partial(self._run_turn, request, parsed)
            events = partial(stream, request, run, self._keep_alive)
            return HttpResponse(200, b"", EVENT_STREAM_HEADERS, events)
        return HttpResponse(200, await self._run_turn(request, parsed))

    def _parsed(self, request: Request, fields: dict[str, Any]) -> _TurnRequest:
        caller = self._gateway.enter(request.caller, text(fields, "context"))
        context = self._gateway.context(caller)
        provider_format = text(fields, "format") or (None if context is None else context.provider)
        if provider_format is None:
            raise refused("format", f"is required: the context {caller.context} has no provider")
        wait = call_timeout(request)
        deadline = None if wait is None else anyio.current_time() + wait
        key = request_idempotency_key(fields.get("idempotencyKey"), request.headers.get(IDEMPOTENCY_HEADER))
        return _TurnRequest(_provider_message(fields.get("message")), provider_format, caller, deadline, key)

    async def _run_turn(self, request: Request, parsed: _TurnRequest, report: Report | None = None) -> bytes:
        turn = await ProviderConnection(self._gateway).turn(
            parsed.message,
            parsed.format,
            parsed.caller,
            origin=request.origin,
            deadline=parsed.deadline,
            report=report,
            idempotency_key=parsed.key,
        )
        reply: JsonObject = {
            "messages": turn.messages,
            "suppressVoiceResponse": turn.silent,
            "suggestedFollowUps": turn.follow_ups,
        }
        return orjson.dumps(reply)


def _provider_message(message: Json) -> JsonObject:
    if not isinstance(message, dict):
        raise refused("message", "must be the message object of the provider")
    return cast("JsonObject", message)


# --- Tool calls over REST: the result as one JSON response, or server-sent events while the call runs ---

CALL_FIELDS = (
    "name",
    "arguments",
    "context",
    "idempotencyKey",
    "capabilities",
    "answers",
    "state",
    "detail",
)
DUPLICATES_ALLOWED = frozenset({"arguments", "answers"})
"""Fields in which duplicate keys are allowed: upstreams get re-serialized JSON, without the duplicates."""
EMPTY_OBJECT: JsonObject = {}

_KNOWN_FIELDS = frozenset(CALL_FIELDS)
_COMMON_FIELDS = frozenset({"name", "arguments"})
_REPLAYED = (b"idempotency-replayed", b"true")


class _CallRequest(NamedTuple):
    """The parsed body of a call."""

    name: str
    arguments: JsonObject
    caller: Caller
    deadline: float | None
    capabilities: JsonObject = EMPTY_OBJECT
    answers: JsonObject = EMPTY_OBJECT
    state: str = ""
    key: str = ""
    encoder: Callable[[Result], bytes] = encode


class ExecuteRoute:
    """Handler of `POST /api/tools/execute`."""

    def __init__(self, gateway: Gateway, *, body_bytes: int, keep_alive: float = KEEP_ALIVE_SECONDS) -> None:
        self._gateway, self._body_bytes, self._keep_alive = gateway, body_bytes, keep_alive

    async def execute(self, request: Request) -> HttpResponse:
        """Calls a tool; `Accept: text/event-stream` streams events progress, waiting, result."""
        parsed = self._parsed(request, await request.json(self._body_bytes, free=DUPLICATES_ALLOWED))
        if wants_events(request):
            run = partial(self._run, request, parsed)
            events = partial(stream, request, run, self._keep_alive)
            headers = (*EVENT_STREAM_HEADERS, *_applied(request, parsed))
            return HttpResponse(200, b"", headers, events)
        result = await self._call(request, parsed)
        answer = result_response(result, parsed.encoder)
        more = _applied(request, parsed)
        if REPLAYED in result.meta:
            more = (*more, _REPLAYED)
        return answer._replace(headers=(*answer.headers, *more)) if more else answer

    def _parsed(self, request: Request, body: Json) -> _CallRequest:
        if not isinstance(body, dict) or not _KNOWN_FIELDS.issuperset(cast("dict[str, Any]", body)):
            body = known_fields(body, *CALL_FIELDS)
        fields = cast("dict[str, Any]", body)
        name = fields.get("name")
        if not isinstance(name, str) or not name:
            raise Refused("INVALID_REQUEST", "name must be the name of a tool", path="name")
        value: Json = fields.get("arguments")
        arguments = cast("JsonObject", value) if isinstance(value, dict) else _arguments(value)
        _check_size(request, arguments)
        wait = call_timeout(request)
        deadline = None if wait is None else anyio.current_time() + wait
        header, prefer = request.headers.get(IDEMPOTENCY_HEADER), request.headers.get(PREFER_HEADER)
        if header is None and prefer is None and _COMMON_FIELDS.issuperset(fields):
            return _CallRequest(name, arguments, request.caller, deadline)
        caller = self._gateway.enter(request.caller, text(fields, "context"))
        key = request_idempotency_key(fields.get("idempotencyKey"), header)
        answers, state, encoder = _object(fields, "answers"), _state(fields), _encoder(fields, prefer)
        capabilities = _capabilities(fields)
        return _CallRequest(name, arguments, caller, deadline, capabilities, answers, state, key, encoder)

    async def _run(self, request: Request, parsed: _CallRequest, report: Report) -> bytes:
        return parsed.encoder(await self._call(request, parsed, report))

    def _call(
        self, request: Request, parsed: _CallRequest, report: Report | None = None
    ) -> Awaitable[Result]:
        return self._gateway.call_with_questions(
            parsed.name,
            parsed.arguments,
            parsed.caller,
            origin=request.origin,
            deadline=parsed.deadline,
            capabilities=parsed.capabilities,
            answers=parsed.answers,
            state=parsed.state,
            idempotency_key=parsed.key,
            report=report,
        )


def _encoder(fields: JsonObject, prefer: bytes | None) -> Callable[[Result], bytes]:
    """Return the encoder for the detail that is wanted; the field of the body precedes the header."""
    detail = fields.get("detail")
    if detail is None:
        detail = "brief" if wants_minimal(prefer) else "full"
    if not isinstance(detail, str):
        raise refused("detail", f"must be one of {', '.join(DETAILS)}")
    return encode_brief if choice({"detail": detail}, "detail", DETAILS, "full") == "brief" else encode


def _applied(request: Request, parsed: _CallRequest) -> tuple[Header, ...]:
    """Return the header that tells a client that its preference was followed."""
    brief = parsed.encoder is encode_brief
    return (MINIMAL_APPLIED,) if brief and wants_minimal(request.headers.get(PREFER_HEADER)) else ()


def _arguments(value: Json) -> JsonObject:
    """Convert arguments that are not an object: none, or an object as a JSON string, as some models send."""
    if value is None:
        return {}
    if isinstance(value, str):
        value = parse_json(value, "INVALID_ARGUMENTS", "the string in arguments", "arguments")
    if not isinstance(value, dict):
        message = "arguments must be an object, or a JSON string of one"
        raise Refused("INVALID_ARGUMENTS", message, path="arguments")
    return cast("JsonObject", value)


def _check_size(request: Request, arguments: JsonObject) -> None:
    """Refuse arguments over their own limit; not checked for a Content-Length below 1,000,000 bytes."""
    length = request.headers.get(b"content-length")
    if length is not None and len(length) < 7:
        return
    fault = oversized(arguments)
    if fault is not None:
        raise Refused("PAYLOAD_TOO_LARGE", fault, path="arguments")


def _object(fields: JsonObject, name: str) -> JsonObject:
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise refused(name, "must be an object")
    return cast("JsonObject", value or EMPTY_OBJECT)


def _capabilities(fields: JsonObject) -> JsonObject:
    """Return the client's capabilities (as in MCP); unknown ones are ignored."""
    capabilities = _object(fields, "capabilities")
    for name in capabilities:
        if not isinstance(capabilities[name], dict):
            raise refused(f"capabilities.{name[:100]}", 'must be an object, such as {"elicitation": {}}')
    return capabilities


def _state(fields: JsonObject) -> str:
    """Return the state of a multi-round call; its signature is verified when it is opened."""
    state = fields.get("state")
    if state is not None and not isinstance(state, str):
        raise refused("state", "must be the string from inputRequired")
    return state or ""


# --- Lists the tools a caller may use, from JSON cached per catalog version and audience ---

STYLES = ("qualified", "safe", "flat")
MAX_LISTED_TOOLS = 10_000
UNVERIFIED_HARDWARE = (
    "no device is connected, so it is unknown whether the hardware some of these apps need is there"
)
_MIN_CACHED_LINES, _CACHED_LINES_PER_TOOL = 256, 4
"""Capacity of the cache of serialized tools, per format: a minimum, and entries per listed tool."""
"""Several per tool, because old definitions and those of removed servers stay until the cache is cleared."""


class _ListRequest(NamedTuple):
    """The format, naming style and caller of a list."""

    caller: Caller
    format: str
    style: str

    @property
    def cache_key(self) -> str:
        """The cache key of a list in this format."""
        return f"rest-{self.format}-{self.style}-{self.caller.language if self.format == 'rest' else ''}"


class RestToolList:
    """Handler of `GET /api/tools`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._declarations = gateway, Declarations(gateway)
        self._lines: dict[str, dict[tuple[str, bool, str, str], bytes]] = {name: {} for name in FORMATS}
        self._max_lines = _MIN_CACHED_LINES

    async def tools(self, request: Request) -> HttpResponse:
        """Lists the tools the caller may use."""
        query = request.query("context", "format", "style", "q", "limit", "text")
        caller = self._gateway.enter(request.caller, text(query, "context"))
        format_name = choice(query, "format", tuple(FORMATS), "rest")
        style = choice(query, "style", STYLES, "") if "style" in query else None
        listed = _ListRequest(caller, format_name, self._declarations.style(caller, format_name, style))
        limit = count(query, "limit", default=MAX_LISTED_TOOLS, maximum=MAX_LISTED_TOOLS)
        if "q" in query or limit != MAX_LISTED_TOOLS:
            return HttpResponse(200, await self._partial_list(listed, query, limit))
        cached: bytes | None = self._gateway.cached_view(caller, listed.cache_key)
        return HttpResponse(200, cached or await self._complete_list(listed, query))

    async def _complete_list(self, listed: _ListRequest, query: Mapping[str, str]) -> bytes:
        """Return the complete list, cached unless it must be cut to the provider's limit."""
        caller, format_name = listed.caller, listed.format
        await self._declarations.ready(caller, format_name)
        max_tools = self._declarations.selection.max_tools(caller, format_name)
        if max_tools is not None and len(self._gateway.tools(caller)) > max_tools:
            return await self._partial_list(listed, query, MAX_LISTED_TOOLS)
        return await self._gateway.view_cooperatively(
            caller, listed.cache_key, partial(self._rendered, listed)
        )

    async def _partial_list(self, listed: _ListRequest, query: Mapping[str, str], limit: int) -> bytes:
        """Return a part of the list. Not cached: the ranking by usage changes all the time."""
        await self._declarations.ready(listed.caller, listed.format)
        if "q" in query or "text" in query:
            await self._gateway.read()
        words = query.get("q", "")
        found = self._gateway.search(listed.caller, words)
        return await self._rendered(
            listed, found, user_text=query.get("text", ""), ranked=bool(words), limit=limit
        )

    async def _rendered(
        self,
        listed: _ListRequest,
        tools: Sequence[Tool],
        *,
        user_text: str = "",
        ranked: bool = False,
        limit: int = MAX_LISTED_TOOLS,
    ) -> bytes:
        caller, format_name = listed.caller, listed.format
        chosen = self._declarations.choose(tools, caller, format_name, text=user_text, ranked=ranked)
        self._max_lines = max(self._max_lines, _MIN_CACHED_LINES + _CACHED_LINES_PER_TOOL * len(tools))
        lines = await map_cooperatively(chosen.tools[:limit], partial(self._line, listed))
        if format_name != "rest":
            # Already serialized: the envelope embeds it as it is.
            declared = cast("list[JsonObject]", [orjson.Fragment(line) for line in lines])
            return orjson.dumps(chosen.declared(declared, format_name).as_json())
        cut = b',"cut":%d' % chosen.cut if chosen.cut else b""
        warnings = _warnings(caller, chosen.tools)
        return b'{"tools":[%s],"total":%d%s%s}' % (b",".join(lines), chosen.total, cut, warnings)

    def _line(self, listed: _ListRequest, tool: Tool) -> bytes:
        """Serialize a tool, cached for all callers that see the same; every list is joined from these."""
        name = self._declarations.name(tool, listed.style, listed.caller, listed.format)
        lines = self._lines[listed.format]
        key = (tool.fingerprint, tool.degraded, name, listed.caller.language if tool.extensions else "")
        found = lines.get(key)
        if found is None:
            if len(lines) >= self._max_lines:
                lines.clear()
            found = lines[key] = orjson.dumps(_declaration(listed, tool, name))
        return found


def _declaration(listed: _ListRequest, tool: Tool, name: str) -> JsonObject:
    declared = FORMATS[listed.format].tool(tool, name)
    if listed.format != "rest" or not tool.extensions:
        return declared
    return {**declared, "activationPhrases": phrases(tool.extensions, listed.caller.language)}


def _warnings(caller: Caller, tools: Sequence[Tool]) -> bytes:
    """Return a warning if apps need hardware and no device is connected to check it."""
    if not caller.session or caller.device is not None or not any(tool.hardware for tool in tools):
        return b""
    return b',"warnings":%s' % orjson.dumps([UNVERIFIED_HARDWARE])
