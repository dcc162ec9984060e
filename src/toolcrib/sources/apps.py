"""Tools of mini-apps, called over HTTP."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import anyio
import orjson

from toolcrib import hints
from toolcrib.apps.definition import tool_faults, tool_of
from toolcrib.apps.errors import app_error, object_member, one_line
from toolcrib.apps.messages import rfc3339
from toolcrib.apps.signature import authentication_headers
from toolcrib.egress.http_connection import ConnectionClosed, NoConnection, NotHttp
from toolcrib.egress.json_post import JsonPoster, PostResponse, PostResponseTooLarge, UrlForbidden
from toolcrib.errors import Broken, Lost, Refused, ToolcribError, Unavailable, problem
from toolcrib.formats.traceparent import traceparent
from toolcrib.interfaces import AppRecord, Offer, SourceLink, Withheld
from toolcrib.interfaces.apps import AppTool
from toolcrib.model import APPS, Call, Family, Hints, Json, JsonObject, Problem, Result, Tool, Voice
from toolcrib.schemas.json_parsing import InvalidJson, parse

# --- Request to an app: a JSON body that old and new apps understand, and signed headers ---

_TRACE = "traceparent"


def body_of(call: Call, now: float) -> bytes:
    """Serialize a call. The fields of the older protocol are sent beside those of the newer one."""
    caller, local = call.caller, call.tool.local
    arguments = orjson.Fragment(_encoded(call.arguments))
    user, moment = caller.user or "", rfc3339(now)
    return orjson.dumps(
        {
            "name": local,
            "arguments": arguments,
            "context": {
                "userId": user,
                "timestamp": moment,
                "activatedForTool": call.activated,
                "callId": call.id,
                "sessionId": caller.session,
                "language": caller.language,
            },
            "toolId": local,
            "toolParameters": arguments,
            "userId": user,
            "timestamp": moment,
            "callId": call.id,
            "sessionId": caller.session,
        }
    )


def headers_of(call: Call, body: bytes, app: AppRecord, now: float) -> dict[str, str]:
    """Return the headers that authenticate the gateway, sign the body, and propagate the trace."""
    user, tool = call.caller.user or "", call.tool.local
    headers = authentication_headers(app.digest, app.signing, user=user, tool=tool, body=body, now=now)
    trace = traceparent(call)
    if trace is not None:
        headers[_TRACE] = trace
    return headers


def _encoded(arguments: JsonObject) -> bytes:
    try:
        return orjson.dumps(arguments)
    except TypeError as error:
        message = f"the arguments cannot be written as JSON: {error}"
        raise Refused("INVALID_ARGUMENTS", message, path="arguments") from error


# --- Converts HTTP responses of apps, and transport errors, to results or errors that state the outcome ---
#
# Two response shapes are accepted: `{success, content, ...}`, and the older `{status, reply}`.

# Suggested follow-ups of one result; further ones are dropped.
MAX_FOLLOW_UPS = 32

_DIRECT_REPLIES = frozenset({"GIVE_APP_CONTROL_OF_TOOL_RESPONSE", "GIVE_APP_CONTROL_OF_TOOL_REPONSE"})
"""Replies of older apps that answer the user directly; early apps misspell it."""
_DIRECT_REPLY_DATA = "The app answers the user itself."
_NO_REASON = "the app says that it failed, but not why"
_UNSAFE_TO_RETRY = "it may have taken effect, so check before trying again"
_SAFE_TO_RETRY = "it is safe to try again"
_EMPTY_RESULT = Result()


def result_of(reply: PostResponse, tool: Tool) -> Result:
    """Parse the response to a call; raise if it is an HTTP error or not a valid result."""
    if reply.status >= 300:
        raise _status(reply, tool)
    said = _object(reply, tool)
    success, status = said.get("success"), said.get("status")
    if type(success) is bool:
        return _succeeded(said) if success else _failed(said)
    if status == "success":
        return _replied(said.get("reply"))
    if status == "error":
        return _failed(said)
    shapes = '`success`, which is true or false, nor `status`, which is "success" or "error"'
    raise _broken(tool, f"it has neither {shapes}")


def error_of(error: Exception, tool: Tool) -> ToolcribError:
    """Convert a transport error to an error with the outcome: not sent, safe to retry, or unknown."""
    if isinstance(error, UrlForbidden):
        message = (
            f"{tool.source} is registered at an address that may not be used; it needs another publicUrl"
        )
        return Unavailable("APP_NOT_AVAILABLE", message, stage="webhook", retryable=False)
    if isinstance(error, NoConnection):
        return Unavailable("NETWORK_ERROR", f"{tool.source} cannot be reached: {error}; nothing was sent")
    if isinstance(error, PostResponseTooLarge):
        return Broken("RESULT_TOO_LARGE", f"{tool.name}: {error}; ask for less")
    if _is_safe(tool):
        return Lost("NETWORK_ERROR", f"{tool.source} broke off during the call; {_SAFE_TO_RETRY}")
    return Lost("OUTCOME_UNKNOWN", f"{tool.source} broke off during the call; {_UNSAFE_TO_RETRY}")


# Result bodies


def _object(reply: PostResponse, tool: Tool) -> JsonObject:
    if not reply.body.strip():
        raise _broken(tool, "it is empty")
    try:
        value = parse(reply.body)
    except InvalidJson as fault:
        is_page = reply.content_type == "text/html" or reply.body.lstrip().startswith(b"<")
        raise _broken(tool, "it is a page of HTML, not JSON" if is_page else f"it {fault}") from None
    if type(value) is not dict:
        raise _broken(tool, "it is JSON, but not an object")
    return cast("JsonObject", value)


def _succeeded(said: JsonObject) -> Result:
    """`data` is for programs, `content` for models; most apps send only one of them."""
    content, data, message = said.get("content"), said.get("data"), one_line(said.get("message"))
    blank = _EMPTY_RESULT.replace(message=message, voice=_voice(said), hints=_hints(said))
    if content is None:
        content, data = (data, None) if data is not None else (message, None)
    if data is None or data == content:
        return blank.replace(data=content, structured=type(content) is not str)
    text = content if isinstance(content, str) else orjson.dumps(content).decode()
    return blank.replace(data=data, content=({"type": "text", "text": text},) if text else ())


def _replied(reply: Json) -> Result:
    if isinstance(reply, str) and reply in _DIRECT_REPLIES:
        return _EMPTY_RESULT.replace(data=_DIRECT_REPLY_DATA, structured=False, voice=Voice(suppress=True))
    if reply is None:
        return _EMPTY_RESULT.replace(data="", structured=False)
    return _EMPTY_RESULT.replace(data=reply, structured=type(reply) is not str)


def _failed(said: JsonObject) -> Result:
    return _EMPTY_RESULT.replace(problem=_problem(said), voice=_voice(said), hints=_hints(said))


def _problem(said: JsonObject) -> Problem:
    why, code = app_error(said)
    retryable = object_member(said, "error").get("retryable") is True
    if code == "HANDLER_ERROR":
        return problem("HANDLER_ERROR", why or _NO_REASON, retryable=retryable)
    return problem("TOOL_FAILED", why or _NO_REASON, tool_code=code, retryable=retryable)


# Optional parts: invalid values are ignored, so that they cannot fail a successful call


def _voice(said: JsonObject) -> Voice:
    wishes = object_member(said, "mentraExtensions")
    asked = wishes.get("suggestedFollowUps")
    texts = map(one_line, cast("list[Json]", asked)[:MAX_FOLLOW_UPS]) if isinstance(asked, list) else ()
    return Voice(suppress=wishes.get("suppressVoiceResponse") is True, follow_ups=tuple(filter(None, texts)))


def _hints(said: JsonObject) -> Hints | None:
    given = said.get("agentHints")
    if not isinstance(given, Mapping):
        return None
    try:
        return hints.read(cast("JsonObject", given))
    except hints.HintsError:
        return None


# HTTP errors


def _status(reply: PostResponse, tool: Tool) -> ToolcribError:
    status = reply.status
    if status < 400:
        why = "it redirects elsewhere, and redirects are not followed; its publicUrl must be where it is"
        return Unavailable("HTTP_ERROR", f"{tool.source}: {why} (HTTP {status})", retryable=False)
    try:
        value = parse(reply.body)
    except InvalidJson:
        value = None
    why, code = app_error(cast("JsonObject", value)) if type(value) is dict else ("", None)
    message = f"{tool.source}: {why or 'the app did not answer properly'} (HTTP {status})"
    if status < 500:
        return Unavailable("HTTP_ERROR", message, retryable=False, tool_code=code)
    advice = _SAFE_TO_RETRY if _is_safe(tool) else _UNSAFE_TO_RETRY
    return Lost("HTTP_ERROR", f"{message}; {advice}", retryable=True, tool_code=code)


def _is_safe(tool: Tool) -> bool:
    return tool.read_only or tool.idempotent


def _broken(tool: Tool, how: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", f"the answer of {tool.name} cannot be used: {how}")


# --- All mini-apps as one source: tools come from the store, calls are posted to each app's public URL ---

# Bytes of one response body.
_MAX_RESPONSE_BYTES = 8 << 20
# The path of a definition that is validated alone; replaced by its index in the list.
_SINGLE_TOOL_PATH = "tools[0]"
_MASK = b"[redacted]"


class ProgressRelay(Protocol):
    """Receives the progress that apps report over their WebSockets."""

    def following(self, call: Call) -> AbstractContextManager[object]:
        """Relay the app's progress for this call while the context is open."""
        ...


@dataclass(frozen=True, slots=True)
class _App:
    """One app: its call URL, its callable tools, and those withheld for faults."""

    record: AppRecord
    url: str | None
    tools: tuple[Tool, ...]
    withheld: tuple[Withheld, ...]


class AppSource:
    """A source with the tools of all apps. A single app can be unreachable; this source never is."""

    mortal = False
    id = APPS
    family: Family = "app"

    def __init__(
        self,
        read: Callable[[], Awaitable[Sequence[AppRecord]]],
        sessions: ProgressRelay,
        post: JsonPoster,
        *,
        timeout: float = 30.0,
        most_bytes: int = _MAX_RESPONSE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.timeout = timeout
        self._read, self._sessions, self._post = read, sessions, post
        self._most_bytes, self._clock = most_bytes, clock
        self._apps: dict[str, _App] = {}
        self._link: SourceLink | None = None
        self._turn = anyio.Lock()
        self._asked = self._served = 0
        """Number of requested refreshes, and the last request that a finished refresh covers."""

    async def run(self, link: SourceLink) -> None:
        """Publish the tools of all apps, then wait until cancelled."""
        self._link = link
        try:
            await self.refresh()
            await anyio.sleep_forever()
        finally:
            self._link = None

    async def refresh(self) -> None:
        """Reload the apps and publish their tools; callers that arrive during a read share the next one."""
        self._asked += 1
        mine = self._asked
        async with self._turn:
            if self._served >= mine:
                return
            asked = self._asked
            self._take(await self._read())
            self._served = asked

    def find(self, package: str) -> AppRecord | None:
        """Return an app from the last snapshot."""
        app = self._apps.get(package)
        return None if app is None else app.record

    def apps(self) -> Sequence[AppRecord]:
        """Return all apps from the last snapshot."""
        return [app.record for app in self._apps.values()]

    async def call(self, call: Call) -> Result:
        """Post the call to its app and parse the response. Retries are up to the caller."""
        app = self._apps.get(call.tool.source)
        if app is None or app.url is None:
            raise _nowhere(call.tool, known=app is not None)
        now = self._clock()
        body = body_of(call, now)
        headers = headers_of(call, body, app.record, now)
        with self._sessions.following(call):
            try:
                reply = await self._post.send(
                    app.url, body, headers, most_bytes=self._most_bytes, giver=app.record.url_giver
                )
            except (NoConnection, ConnectionClosed, NotHttp, PostResponseTooLarge) as error:
                raise error_of(error, call.tool) from error
        return result_of(_discreet(reply, app.record.digest), call.tool)

    async def check(self) -> None:
        """Reload the apps from the store."""
        await self.refresh()

    def details(self) -> Mapping[str, Any]:
        """Return the number of apps."""
        return {"apps": len(self._apps)}

    def _take(self, records: Sequence[AppRecord]) -> None:
        ordered = sorted(records, key=lambda record: (record.created, record.package))
        self._apps = {record.package: _app(record, self._apps.get(record.package)) for record in ordered}
        if self._link is not None:
            tools = [tool for app in self._apps.values() for tool in app.tools]
            withheld = [each for app in self._apps.values() for each in app.withheld]
            self._link.up(Offer(tools=tools, withheld=withheld))


def _app(record: AppRecord, before: _App | None) -> _App:
    """Build one app; an unchanged version reuses its Tool objects, so that per-tool caches stay valid."""
    url = f"{record.public_url.rstrip('/')}/tool" if record.public_url else None
    if before is not None and _edition(before.record) == _edition(record):
        return _App(record, url, before.tools, before.withheld)
    made = [_made(record, tool, place) for place, tool in enumerate(record.tools)]
    tools = tuple(each for each in made if isinstance(each, Tool))
    return _App(record, url, tools, tuple(each for each in made if isinstance(each, Withheld)))


def _edition(record: AppRecord) -> tuple[int, float]:
    """Return what identifies a version of an app; a recreated app counts from version 1 again."""
    return record.version, record.created


def _made(record: AppRecord, tool: AppTool, place: int) -> Tool | Withheld:
    try:
        made = tool_of(record, tool)
        if _is_sound(made):
            return made
    except (AttributeError, KeyError, TypeError, ValueError):  # stored by hand, or under earlier rules
        pass
    said = tool.definition.get("name") or tool.definition.get("id") or f"tools[{place}]"
    # The full validation runs only here: it takes twenty times as long as building the tool.
    fault = next(iter(tool_faults([tool.definition])), "its definition is not one")
    return Withheld(
        f"{record.package}:{said}", record.package, str(fault).replace(_SINGLE_TOOL_PATH, f"tools[{place}]")
    )


def _is_sound(tool: Tool) -> bool:
    """Whether the stored fields have their declared types; the catalog validates the rest."""
    given: tuple[tuple[object, type], ...] = (
        (tool.description, str),
        (tool.input_schema, dict),
        (tool.extensions, dict),
    )
    return all(isinstance(value, kind) for value, kind in given)


def _discreet(reply: PostResponse, digest: str | None) -> PostResponse:
    """Mask the app's key digest in a response: with it, anyone could call the app on behalf of any user."""
    if digest is None or (shown := digest.encode()) not in reply.body:
        return reply
    return replace(reply, body=reply.body.replace(shown, _MASK))


def _nowhere(tool: Tool, *, known: bool) -> Unavailable:
    why = "has no publicUrl, so its tools cannot be called" if known else "is no longer there"
    return Unavailable(
        "APP_NOT_AVAILABLE", f"{tool.source} {why}; nothing was done", stage="webhook", retryable=False
    )
