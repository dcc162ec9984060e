"""Converts HTTP responses of apps, and transport errors, to results or errors that state the outcome.

Two response shapes are accepted: `{success, content, ...}`, and the older `{status, reply}`.
"""

from collections.abc import Mapping
from typing import cast

import orjson

from toolcrib import hints
from toolcrib.apps.error_text import complaint, part, words
from toolcrib.egress.json_post import PostResponse, PostResponseTooLarge, UrlForbidden
from toolcrib.egress.response import NoConnection
from toolcrib.errors import Broken, Lost, ToolcribError, Unavailable, problem
from toolcrib.model import Hints, Json, JsonObject, Problem, Result, Tool, Voice
from toolcrib.schemas.json_parsing import InvalidJson, parse

# Suggested follow-ups of one result; further ones are dropped.
MOST_FOLLOW_UPS = 32

_IN_CHARGE = frozenset({"GIVE_APP_CONTROL_OF_TOOL_RESPONSE", "GIVE_APP_CONTROL_OF_TOOL_REPONSE"})
"""Replies of older apps that answer the user directly; early apps misspell it."""
_IT_ANSWERS = "The app answers the user itself."
_SILENT = "the app says that it failed, but not why"
_UNSAFE = "it may have taken effect, so check before trying again"
_SAFE = "it is safe to try again"
_BLANK = Result()


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
        return Lost("NETWORK_ERROR", f"{tool.source} broke off during the call; {_SAFE}")
    return Lost("OUTCOME_UNKNOWN", f"{tool.source} broke off during the call; {_UNSAFE}")


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
    content, data, message = said.get("content"), said.get("data"), words(said.get("message"))
    blank = _BLANK.replace(message=message, voice=_voice(said), hints=_hints(said))
    if content is None:
        content, data = (data, None) if data is not None else (message, None)
    if data is None or data == content:
        return blank.replace(data=content, structured=type(content) is not str)
    text = content if isinstance(content, str) else orjson.dumps(content).decode()
    return blank.replace(data=data, content=({"type": "text", "text": text},) if text else ())


def _replied(reply: Json) -> Result:
    if isinstance(reply, str) and reply in _IN_CHARGE:
        return _BLANK.replace(data=_IT_ANSWERS, structured=False, voice=Voice(suppress=True))
    if reply is None:
        return _BLANK.replace(data="", structured=False)
    return _BLANK.replace(data=reply, structured=type(reply) is not str)


def _failed(said: JsonObject) -> Result:
    return _BLANK.replace(problem=_problem(said), voice=_voice(said), hints=_hints(said))


def _problem(said: JsonObject) -> Problem:
    why, code = complaint(said)
    retryable = part(said, "error").get("retryable") is True
    if code == "HANDLER_ERROR":
        return problem("HANDLER_ERROR", why or _SILENT, retryable=retryable)
    return problem("TOOL_FAILED", why or _SILENT, tool_code=code, retryable=retryable)


# Optional parts: invalid values are ignored, so that they cannot fail a successful call


def _voice(said: JsonObject) -> Voice:
    wishes = part(said, "mentraExtensions")
    asked = wishes.get("suggestedFollowUps")
    texts = map(words, cast("list[Json]", asked)[:MOST_FOLLOW_UPS]) if isinstance(asked, list) else ()
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
    why, code = complaint(cast("JsonObject", value)) if type(value) is dict else ("", None)
    message = f"{tool.source}: {why or 'the app did not answer properly'} (HTTP {status})"
    if status < 500:
        return Unavailable("HTTP_ERROR", message, retryable=False, tool_code=code)
    advice = _SAFE if _is_safe(tool) else _UNSAFE
    return Lost("HTTP_ERROR", f"{message}; {advice}", retryable=True, tool_code=code)


def _is_safe(tool: Tool) -> bool:
    return tool.read_only or tool.idempotent


def _broken(tool: Tool, how: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", f"the answer of {tool.name} cannot be used: {how}")
