"""Routes about tools: list them, run one call, or run all calls of a provider message."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import anyio
import orjson

from toolcrib.apps.properties import phrases
from toolcrib.errors import Refused
from toolcrib.formats import FORMATS
from toolcrib.formats.rest import encode
from toolcrib.frontends.rest.fields import KEY, choice, count, key_of, only, refused, text
from toolcrib.gateway import (
    Declarations,
    Gateway,
    MultiRoundCalls,
    ProviderConnection,
    calls_of,
    map_cooperatively,
    oversized,
)
from toolcrib.http import HttpResponse, Request, Write, call_timeout, parse_json, result_response, sse_event
from toolcrib.http.response import EVENT_STREAM_HEADERS
from toolcrib.model import REPLAYED, Caller, Json, JsonObject, Progress, Report, Result, Tool

# --- Server-sent events of a running call: progress, keep-alive comments, and finally the result ---

KEEP_ALIVE = 15.0
Run = Callable[[Report], Awaitable[bytes]]


def wants_events(request: Request) -> bool:
    """Return whether the client accepts server-sent events."""
    return b"text/event-stream" in request.headers.get(b"accept", b"")


async def stream(request: Request, run: Run, keep_alive: float, write: Write) -> None:
    """Stream the progress of a run, then its result. A disconnect cancels the run."""

    async def report(progress: Progress) -> None:
        await write(_progress(progress))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stay_in_touch, write, keep_alive)
        tasks.start_soon(_notice_leaving, request, tasks.cancel_scope)
        await write(sse_event("result", await run(report)))
        tasks.cancel_scope.cancel()


async def _stay_in_touch(write: Write, seconds: float) -> None:
    while True:
        await anyio.sleep(seconds)
        await write(b": still running\n\n")


async def _notice_leaving(request: Request, scope: anyio.CancelScope) -> None:
    # The body has been read, so the next message is the disconnect.
    await request.receive()
    scope.cancel()


def _progress(progress: Progress) -> bytes:
    told = {"done": progress.done, "total": progress.total, "message": progress.message}
    known = {key: value for key, value in told.items() if value is not None}
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

    async def answer(self, request: Request) -> HttpResponse:
        """Run all calls of a message. With events, the message is validated before the stream starts."""
        asked = self._asked(
            request, only(await request.json(self._body_bytes, free=TURN_DUPLICATES_ALLOWED), *TURN_FIELDS)
        )
        if wants_events(request):
            calls_of(asked.message, asked.format)
            run = partial(self._made, request, asked)
            return HttpResponse(
                200, b"", EVENT_STREAM_HEADERS, partial(stream, request, run, self._keep_alive)
            )
        return HttpResponse(200, await self._made(request, asked))

    def _asked(self, request: Request, fields: dict[str, Any]) -> _TurnRequest:
        caller = self._gateway.enter(request.caller, text(fields, "context"))
        context = self._gateway.context(caller)
        spoken = text(fields, "format") or (None if context is None else context.provider)
        if spoken is None:
            raise refused("format", f"must be given: the context {caller.context} has no provider")
        wait = call_timeout(request)
        deadline = None if wait is None else anyio.current_time() + wait
        key = key_of(fields.get("idempotencyKey"), request.headers.get(KEY))
        return _TurnRequest(_message(fields.get("message")), spoken, caller, deadline, key)

    async def _made(self, request: Request, asked: _TurnRequest, report: Report | None = None) -> bytes:
        turn = await ProviderConnection(self._gateway, self._conversations).turn(
            asked.message,
            asked.format,
            asked.caller,
            origin=request.origin,
            deadline=asked.deadline,
            report=report,
            idempotency_key=asked.key,
        )
        said: JsonObject = {
            "messages": turn.messages,
            "suppressVoiceResponse": turn.silent,
            "suggestedFollowUps": turn.follow_ups,
        }
        return orjson.dumps(said)


def _message(given: Json) -> JsonObject:
    if not isinstance(given, dict):
        raise refused("message", "must be an object, as the provider sent it")
    return cast("JsonObject", given)


# --- Tool calls over REST: the result as one JSON response, or server-sent events while the call runs ---

FIELDS = ("name", "arguments", "context", "idempotencyKey", "capabilities", "answers", "state")
DUPLICATES_ALLOWED = frozenset({"arguments", "answers"})
"""Fields in which duplicate keys are allowed: upstreams get re-serialized JSON, without the duplicates."""
NOTHING: JsonObject = {}

_KNOWN = frozenset(FIELDS)
_USUAL = frozenset({"name", "arguments"})
_REPLAYED = (b"idempotency-replayed", b"true")


class _CallRequest(NamedTuple):
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
        asked = self._asked(request, await request.json(self._body_bytes, free=DUPLICATES_ALLOWED))
        if wants_events(request):
            run = partial(self._encoded, request, asked)
            return HttpResponse(
                200, b"", EVENT_STREAM_HEADERS, partial(stream, request, run, self._keep_alive)
            )
        result = await self._call(request, asked)
        answer = result_response(result)
        if REPLAYED in result.meta:
            answer = answer._replace(headers=(*answer.headers, _REPLAYED))
        return answer

    def _asked(self, request: Request, body: Json) -> _CallRequest:
        if not isinstance(body, dict) or not _KNOWN.issuperset(cast("dict[str, Any]", body)):
            body = only(body, *FIELDS)
        fields = cast("dict[str, Any]", body)
        name = fields.get("name")
        if not isinstance(name, str) or not name:
            raise Refused("INVALID_REQUEST", "name must be the name of a tool", path="name")
        given: Json = fields.get("arguments")
        arguments = cast("JsonObject", given) if isinstance(given, dict) else _arguments(given)
        _bound(request, arguments)
        wait = call_timeout(request)
        deadline = None if wait is None else anyio.current_time() + wait
        header = request.headers.get(KEY)
        if header is None and _USUAL.issuperset(fields):
            return _CallRequest(name, arguments, request.caller, deadline)
        caller = self._gateway.enter(request.caller, text(fields, "context"))
        key = key_of(fields.get("idempotencyKey"), header)
        answers, state = _object(fields, "answers"), _state(fields)
        return _CallRequest(name, arguments, caller, deadline, _capabilities(fields), answers, state, key)

    async def _encoded(self, request: Request, asked: _CallRequest, report: Report) -> bytes:
        return encode(await self._call(request, asked, report))

    def _call(self, request: Request, asked: _CallRequest, report: Report | None = None) -> Awaitable[Result]:
        return self._conversations.run(
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
        given = parse_json(given, "INVALID_ARGUMENTS", "the text in arguments", "arguments")
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


# --- Lists the tools a caller may use, from JSON cached per catalog version and audience ---

STYLES = ("qualified", "safe", "flat")
MOST = 10_000
UNVERIFIED = "no device is connected, so nobody knows whether it has what some of these apps need"
_MIN_LINES, _LINES_PER_TOOL = 256, 4
"""Capacity of the cache of serialized tools, per format: a minimum, and entries per listed tool."""
"""Several per tool, because old definitions and those of removed servers stay until the cache is cleared."""


class _Wanted(NamedTuple):
    """The format, naming style and caller of a list."""

    caller: Caller
    spelling: str
    style: str

    @property
    def kept(self) -> str:
        """The cache key of a list in this format."""
        return f"rest-{self.spelling}-{self.style}-{self.caller.language if self.spelling == 'rest' else ''}"


class RestToolList:
    """Handler of `GET /api/tools`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._declaring = gateway, Declarations(gateway)
        self._lines: dict[str, dict[tuple[str, bool, str, str], bytes]] = {each: {} for each in FORMATS}
        self._max_lines = _MIN_LINES

    async def tools(self, request: Request) -> HttpResponse:
        """List the tools, optionally searched, limited and reduced to the provider's limit."""
        query = request.query("context", "format", "style", "q", "limit", "text")
        caller = self._gateway.enter(request.caller, text(query, "context"))
        spelling = choice(query, "format", tuple(FORMATS), "rest")
        style = choice(query, "style", STYLES, "") if "style" in query else None
        wanted = _Wanted(caller, spelling, self._declaring.style(caller, spelling, style))
        limit = count(query, "limit", default=MOST, most=MOST)
        if "q" in query or limit != MOST:
            return HttpResponse(200, await self._chosen(wanted, query, limit))
        kept: bytes | None = self._gateway.cached_view(caller, wanted.kept)
        return HttpResponse(200, kept or await self._whole(wanted, query))

    async def _whole(self, wanted: _Wanted, query: Mapping[str, str]) -> bytes:
        """Return the complete list, cached unless it must be cut to the provider's limit."""
        caller, spelling = wanted.caller, wanted.spelling
        await self._declaring.ready(caller, spelling)
        most = self._declaring.selection.max_tools(caller, spelling)
        if most is not None and len(self._gateway.tools(caller)) > most:
            return await self._chosen(wanted, query, MOST)
        return await self._gateway.view_cooperatively(caller, wanted.kept, partial(self._spelled, wanted))

    async def _chosen(self, wanted: _Wanted, query: Mapping[str, str], limit: int) -> bytes:
        """Return a part of the list. Not cached: the ranking by usage changes all the time."""
        await self._declaring.ready(wanted.caller, wanted.spelling)
        if "q" in query or "text" in query:
            await self._gateway.read()
        asked = query.get("q", "")
        found = self._gateway.search(wanted.caller, asked)
        return await self._spelled(wanted, found, said=query.get("text", ""), ranked=bool(asked), limit=limit)

    async def _spelled(
        self,
        wanted: _Wanted,
        tools: Sequence[Tool],
        *,
        said: str = "",
        ranked: bool = False,
        limit: int = MOST,
    ) -> bytes:
        caller, spelling = wanted.caller, wanted.spelling
        chosen = self._declaring.choose(tools, caller, spelling, text=said, ranked=ranked)
        self._max_lines = max(self._max_lines, _MIN_LINES + _LINES_PER_TOOL * len(tools))
        lines = await map_cooperatively(chosen.tools[:limit], partial(self._line, wanted))
        if spelling != "rest":
            # Already serialized: the envelope embeds it as it is.
            declared = cast("list[JsonObject]", [orjson.Fragment(line) for line in lines])
            return orjson.dumps(chosen.declared(declared, spelling).as_json())
        cut = b',"cut":%d' % chosen.cut if chosen.cut else b""
        warnings = _warnings(caller, chosen.tools)
        return b'{"tools":[%s],"total":%d%s%s}' % (b",".join(lines), chosen.total, cut, warnings)

    def _line(self, wanted: _Wanted, tool: Tool) -> bytes:
        """Serialize a tool, cached for all callers that see the same; every list is joined from these."""
        name = self._declaring.name(tool, wanted.style, wanted.caller, wanted.spelling)
        lines = self._lines[wanted.spelling]
        key = (tool.fingerprint, tool.degraded, name, wanted.caller.language if tool.extensions else "")
        found = lines.get(key)
        if found is None:
            if len(lines) >= self._max_lines:
                lines.clear()
            found = lines[key] = orjson.dumps(_spelled(wanted, tool, name))
        return found


def _spelled(wanted: _Wanted, tool: Tool, name: str) -> JsonObject:
    spelled = FORMATS[wanted.spelling].tool(tool, name)
    if wanted.spelling != "rest" or not tool.extensions:
        return spelled
    return {**spelled, "activationPhrases": phrases(tool.extensions, wanted.caller.language)}


def _warnings(caller: Caller, tools: Sequence[Tool]) -> bytes:
    """Return a warning if apps need hardware and no device is connected to check it."""
    if not caller.session or caller.device is not None or not any(tool.hardware for tool in tools):
        return b""
    return b',"warnings":%s' % orjson.dumps([UNVERIFIED])
