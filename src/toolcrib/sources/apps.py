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
from toolcrib.egress.json_post import JsonPoster, PostResponse, PostResponseTooLarge, UrlForbidden
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp
from toolcrib.errors import Broken, Lost, Refused, ToolcribError, Unavailable, problem
from toolcrib.formats.traceparent import traceparent
from toolcrib.interfaces import AppRecord, Offer, SourceLink, Withheld
from toolcrib.interfaces.apps import AppTool
from toolcrib.model import APPS, Call, Family, Hints, Json, JsonObject, Problem, Result, Tool, Voice
from toolcrib.schemas.json_parsing import InvalidJson, parse

# --- Request to an app: a JSON body that old and new apps understand, and signed headers ---


def body_of(call: Call, now: float) -> bytes:
    """Serialize a call. The fields of the older protocol are sent beside those of the newer one."""
    caller, local = call.caller, call.tool.local
    try:
        arguments = orjson.Fragment(orjson.dumps(call.arguments))
    except TypeError as error:
        message = f"the arguments cannot be written as JSON: {error}"
        raise Refused("INVALID_ARGUMENTS", message, path="arguments") from error
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
    if (trace := traceparent(call)) is not None:
        headers["traceparent"] = trace
    return headers


# --- Converts HTTP responses of apps, and transport errors, to results or errors that state the outcome ---
#
# Two response shapes are accepted: `{success, content, ...}`, and the older `{status, reply}`.

MAX_FOLLOW_UPS = 32
"""Suggested follow-ups of one result; further ones are dropped."""

_DIRECT_REPLIES = frozenset({"GIVE_APP_CONTROL_OF_TOOL_RESPONSE", "GIVE_APP_CONTROL_OF_TOOL_REPONSE"})
"""Replies of older apps that answer the user directly; early apps misspell it."""
_DIRECT_REPLY_DATA = "The app answers the user itself."
_NO_REASON = "the app says that it failed, but not why"
_UNSAFE_TO_RETRY = "it may have taken effect, so check before trying again"
_SAFE_TO_RETRY = "it is safe to try again"
_EMPTY_RESULT = Result()


def result_of(response: PostResponse, tool: Tool) -> Result:
    """Parse the response to a call; raise if it is an HTTP error or not a valid result."""
    if response.status >= 300:
        raise _http_error(response, tool)
    body = _parsed_object(response, tool)
    success, status = body.get("success"), body.get("status")
    if type(success) is bool:
        return _success_result(body) if success else _failure_result(body)
    if status == "success":
        return _legacy_result(body.get("reply"))
    if status == "error":
        return _failure_result(body)
    shapes = '`success`, which is true or false, nor `status`, which is "success" or "error"'
    raise _contract_violation(tool, f"it has neither {shapes}")


def error_of(error: Exception, tool: Tool) -> ToolcribError:
    """Convert a transport error to an error with the outcome: not sent, safe to retry, or unknown."""
    if isinstance(error, UrlForbidden):
        why = "is registered at an address that may not be used; it needs another publicUrl"
        message = f"{tool.source} {why}"
        return Unavailable("APP_NOT_AVAILABLE", message, stage="webhook", retryable=False)
    if isinstance(error, NoConnection):
        return Unavailable("NETWORK_ERROR", f"{tool.source} cannot be reached: {error}; nothing was sent")
    if isinstance(error, PostResponseTooLarge):
        return Broken("RESULT_TOO_LARGE", f"{tool.name}: {error}; ask for less")
    if tool.read_only or tool.idempotent:
        return Lost("NETWORK_ERROR", f"{tool.source} broke off during the call; {_SAFE_TO_RETRY}")
    return Lost("OUTCOME_UNKNOWN", f"{tool.source} broke off during the call; {_UNSAFE_TO_RETRY}")


# Result bodies


def _parsed_object(response: PostResponse, tool: Tool) -> JsonObject:
    if not response.body.strip():
        raise _contract_violation(tool, "it is empty")
    try:
        value = parse(response.body)
    except InvalidJson as fault:
        is_page = response.content_type == "text/html" or response.body.lstrip().startswith(b"<")
        why = "it is a page of HTML, not JSON" if is_page else f"it {fault}"
        raise _contract_violation(tool, why) from None
    if type(value) is not dict:
        raise _contract_violation(tool, "it is JSON, but not an object")
    return cast("JsonObject", value)


def _success_result(body: JsonObject) -> Result:
    """`data` is for programs, `content` for models; most apps send only one of them."""
    content, data, message = body.get("content"), body.get("data"), one_line(body.get("message"))
    result = _EMPTY_RESULT.replace(message=message, voice=_voice(body), hints=_hints(body))
    if content is None:
        content, data = (data, None) if data is not None else (message, None)
    if data is None or data == content:
        return result.replace(data=content, structured=type(content) is not str)
    text = content if isinstance(content, str) else orjson.dumps(content).decode()
    return result.replace(data=data, content=({"type": "text", "text": text},) if text else ())


def _legacy_result(reply: Json) -> Result:
    if isinstance(reply, str) and reply in _DIRECT_REPLIES:
        return _EMPTY_RESULT.replace(data=_DIRECT_REPLY_DATA, structured=False, voice=Voice(suppress=True))
    data = "" if reply is None else reply
    return _EMPTY_RESULT.replace(data=data, structured=type(data) is not str)


def _failure_result(body: JsonObject) -> Result:
    return _EMPTY_RESULT.replace(problem=_problem(body), voice=_voice(body), hints=_hints(body))


def _problem(body: JsonObject) -> Problem:
    why, code = app_error(body)
    retryable = object_member(body, "error").get("retryable") is True
    if code == "HANDLER_ERROR":
        return problem("HANDLER_ERROR", why or _NO_REASON, retryable=retryable)
    return problem("TOOL_FAILED", why or _NO_REASON, tool_code=code, retryable=retryable)


# Optional parts: invalid values are ignored, so that they cannot fail a successful call


def _voice(body: JsonObject) -> Voice:
    extensions = object_member(body, "mentraExtensions")
    requested = extensions.get("suggestedFollowUps")
    listed = cast("list[Json]", requested) if isinstance(requested, list) else []
    follow_ups = tuple(line for each in listed[:MAX_FOLLOW_UPS] if (line := one_line(each)))
    return Voice(suppress=extensions.get("suppressVoiceResponse") is True, follow_ups=follow_ups)


def _hints(body: JsonObject) -> Hints | None:
    value = body.get("agentHints")
    if not isinstance(value, Mapping):
        return None
    try:
        return hints.read(cast("JsonObject", value))
    except hints.HintsError:
        return None


# HTTP errors


def _http_error(response: PostResponse, tool: Tool) -> ToolcribError:
    status = response.status
    if status < 400:
        why = "it redirects elsewhere, and redirects are not followed; its publicUrl must be where it is"
        return Unavailable("HTTP_ERROR", f"{tool.source}: {why} (HTTP {status})", retryable=False)
    try:
        value = parse(response.body)
    except InvalidJson:
        value = None
    why, code = app_error(cast("JsonObject", value)) if type(value) is dict else ("", None)
    message = f"{tool.source}: {why or 'the app did not answer properly'} (HTTP {status})"
    if status < 500:
        return Unavailable("HTTP_ERROR", message, retryable=False, tool_code=code)
    advice = _SAFE_TO_RETRY if tool.read_only or tool.idempotent else _UNSAFE_TO_RETRY
    return Lost("HTTP_ERROR", f"{message}; {advice}", retryable=True, tool_code=code)


def _contract_violation(tool: Tool, why: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", f"the answer of {tool.name} cannot be used: {why}")


# --- All mini-apps as one source: tools come from the store, calls are posted to each app's public URL ---

_MAX_RESPONSE_BYTES = 8 << 20
_SINGLE_TOOL_PATH = "tools[0]"
"""The path of a definition that is validated alone; replaced by its index in the list."""
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
        self._lock = anyio.Lock()
        self._requested = self._covered = 0
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
        self._requested += 1
        request = self._requested
        async with self._lock:
            if self._covered >= request:
                return
            requested = self._requested
            self._publish(await self._read())
            self._covered = requested

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
            raise _unavailable(call.tool, registered=app is not None)
        now = self._clock()
        body = body_of(call, now)
        headers = headers_of(call, body, app.record, now)
        with self._sessions.following(call):
            try:
                response = await self._post.send(
                    app.url, body, headers, most_bytes=self._most_bytes, giver=app.record.url_giver
                )
            except (NoConnection, ConnectionClosed, NotHttp, PostResponseTooLarge) as error:
                raise error_of(error, call.tool) from error
        return result_of(_without_digest(response, app.record.digest), call.tool)

    async def check(self) -> None:
        """Reload the apps from the store."""
        await self.refresh()

    def details(self) -> Mapping[str, Any]:
        """Return the number of apps."""
        return {"apps": len(self._apps)}

    def _publish(self, records: Sequence[AppRecord]) -> None:
        ordered = sorted(records, key=lambda record: (record.created, record.package))
        self._apps = {record.package: _app(record, self._apps.get(record.package)) for record in ordered}
        if self._link is not None:
            tools = [tool for app in self._apps.values() for tool in app.tools]
            withheld = [each for app in self._apps.values() for each in app.withheld]
            self._link.up(Offer(tools=tools, withheld=withheld))


def _app(record: AppRecord, previous: _App | None) -> _App:
    """Build one app; an unchanged version reuses its Tool objects, so that per-tool caches stay valid."""
    url = f"{record.public_url.rstrip('/')}/tool" if record.public_url else None
    if previous is not None and _version_key(previous.record) == _version_key(record):
        return _App(record, url, previous.tools, previous.withheld)
    built = [_tool_or_withheld(record, tool, index) for index, tool in enumerate(record.tools)]
    tools = tuple(each for each in built if isinstance(each, Tool))
    return _App(record, url, tools, tuple(each for each in built if isinstance(each, Withheld)))


def _version_key(record: AppRecord) -> tuple[int, float]:
    """Return what identifies a version of an app; a recreated app counts from version 1 again."""
    return record.version, record.created


def _tool_or_withheld(record: AppRecord, tool: AppTool, index: int) -> Tool | Withheld:
    try:
        checked = tool_of(record, tool)
        # Only the types that the store does not guarantee; the catalog validates the rest.
        fields: tuple[object, ...] = checked.description, checked.input_schema, checked.extensions
        if all(map(isinstance, fields, (str, dict, dict))):
            return checked
    except (AttributeError, KeyError, TypeError, ValueError):  # stored by hand, or under earlier rules
        pass
    name = tool.definition.get("name") or tool.definition.get("id") or f"tools[{index}]"
    # The full validation runs only here: it takes twenty times as long as building the tool.
    fault = next(iter(tool_faults([tool.definition])), "its definition is not one")
    reason = str(fault).replace(_SINGLE_TOOL_PATH, f"tools[{index}]")
    return Withheld(f"{record.package}:{name}", record.package, reason)


def _without_digest(response: PostResponse, digest: str | None) -> PostResponse:
    """Mask the app's key digest in a response: with it, anyone could call the app on behalf of any user."""
    if digest is None or (secret := digest.encode()) not in response.body:
        return response
    return replace(response, body=response.body.replace(secret, _MASK))


def _unavailable(tool: Tool, *, registered: bool) -> Unavailable:
    why = "has no publicUrl, so its tools cannot be called" if registered else "is no longer there"
    message = f"{tool.source} {why}; nothing was done"
    return Unavailable("APP_NOT_AVAILABLE", message, stage="webhook", retryable=False)
