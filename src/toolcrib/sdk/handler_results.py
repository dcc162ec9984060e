"""Converts a handler's return value to a Result, and its exception to an error."""

import errno
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Generator, Mapping
from functools import lru_cache
from socket import EAI_AGAIN, gaierror
from typing import Any, cast

import orjson
from pydantic_core import to_jsonable_python

from toolcrib.errors import Broken, Failed, ToolcribError, problem_json
from toolcrib.hints import HintsError, read
from toolcrib.hints.rules import rules_of
from toolcrib.model import Hints, Json, Result, Tool, Voice
from toolcrib.sdk.context import ToolResult

MAX_MESSAGE_CHARS = 4_000
"""Maximum characters of a message to speak or of an error message."""
MAX_FOLLOW_UPS = 32

_EMPTY_RESULT = Result()
_IMMUTABLE_TYPES = frozenset({str, int, bool, type(None)})
_COMPLETE_TYPES = frozenset({dict, list, tuple, float})
_MAX_CAUSES = 8
_TRANSIENT_ERRNOS = frozenset(
    {
        errno.EAGAIN,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.EPIPE,
        errno.ETIMEDOUT,
    }
)

_RAISED = "the tool raised an exception; the details are in the log"
_UNREACHABLE = "the tool could not reach a service it needs; try again, and tell the operator if it persists"
_NOT_JSON = (
    "the result is not JSON; a tool may return text, numbers, lists, objects, models and dataclasses, "
    "at most 250 levels deep"
)
_INCOMPLETE = "the result is incomplete: await it, or return the list of what it yields"
_NESTED = "the data is itself a ToolResult: return only one of them"
_INVALID_HINTS = "hints must be built with toolcrib.hints, or be a mapping in their JSON form"
_INVALID_ERROR = "an error must have a code and a message as text and a boolean retryable, all valid JSON"


def result_of(outcome: object) -> Result:
    """Return a handler's return value as a Result; raises `Broken` with the violated rule."""
    if isinstance(outcome, Result):
        return outcome
    if not isinstance(outcome, ToolResult):
        return _EMPTY_RESULT.replace(data=_as_json(outcome))
    returned = cast("ToolResult[Any]", outcome)
    message = returned.message
    if not _is_valid_text(message):
        raise _violation(f"message must be a text of at most {MAX_MESSAGE_CHARS:,} characters")
    data, hints = _as_json(returned.data), _hints(returned.hints)
    return Result(data=data, message=message, hints=hints, voice=_voice(returned))


def handler_error(error: BaseException, tool: Tool) -> Failed:
    """Return the error for a handler's exception: no details, only whether a retry may succeed."""
    if tool.repeatable and _is_transient(error):
        return Failed("HANDLER_ERROR", _UNREACHABLE, retryable=True)
    return Failed("HANDLER_ERROR", _RAISED)


def error_violation(error: ToolcribError) -> Broken | None:
    """Return the rule violated by an error that a handler raised; parses hints given as a mapping."""
    try:
        problem = error.problem
        texts = (problem.message, "" if problem.tool_code is None else problem.tool_code)
        if not all(map(_is_valid_text, texts)) or type(problem.retryable) is not bool:
            return _violation(_INVALID_ERROR)
        orjson.dumps(problem_json(problem))
        error.hints = _hints(error.hints)
    except (AttributeError, TypeError, ValueError):  # a field is missing or cannot be serialized
        return _violation(_INVALID_ERROR)
    except Broken as broken:
        return broken
    return None


def _hints(value: object) -> Hints | None:
    if value is None or isinstance(value, Hints):
        return value
    if not isinstance(value, Mapping):
        raise _violation(_INVALID_HINTS)
    try:
        return read(cast("Mapping[str, Any]", value))
    except HintsError as error:
        raise _violation("; ".join(rules_of(error.faults[:3]))) from error


def _voice(result: ToolResult[Any]) -> Voice:
    follow_ups = cast("object", result.follow_ups)
    if type(result.suppress_voice) is not bool:
        raise _violation("suppress_voice must be true or false")
    if not isinstance(follow_ups, tuple | list):
        raise _violation("follow_ups must be a tuple of texts")
    texts = tuple(cast("tuple[object, ...]", follow_ups))
    if len(texts) > MAX_FOLLOW_UPS or not all(map(_is_valid_text, texts)):
        raise _violation(f"follow_ups must be at most {MAX_FOLLOW_UPS} texts")
    return Voice(suppress=result.suppress_voice, follow_ups=cast("tuple[str, ...]", texts))


def _as_json(value: object) -> Json:
    """Convert a return value to JSON: a copy, as the function may modify its own while ours is cached."""
    kind = type(value)
    if kind in _IMMUTABLE_TYPES:
        return value
    if kind not in _COMPLETE_TYPES and not _is_complete(kind):
        if isinstance(value, Coroutine):
            value.close()  # else Python warns later that it was never awaited, without context
        raise _violation(_NESTED if isinstance(value, ToolResult) else _INCOMPLETE)
    try:
        return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="null")
    except ValueError as error:
        raise _violation(_NOT_JSON) from error


@lru_cache(maxsize=256)
def _is_complete(kind: type) -> bool:
    """Whether values of a type are complete results; cached, as abstract base class checks are slow."""
    return not issubclass(kind, (ToolResult, Awaitable, Generator, AsyncGenerator))


def _is_valid_text(value: object) -> bool:
    """Whether a value is a text that can be sent: bounded, and without lone surrogates."""
    if not isinstance(value, str) or len(value) > MAX_MESSAGE_CHARS:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_transient(error: BaseException) -> bool:
    """Whether an exception is a transient network error, so that a retry may succeed."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if isinstance(cause, BaseExceptionGroup):
            return all(map(_is_transient, cast("BaseExceptionGroup[BaseException]", cause).exceptions))
        if isinstance(cause, ConnectionError | TimeoutError | InterruptedError):
            return True
        if isinstance(cause, gaierror):
            return cause.errno == EAI_AGAIN
        if isinstance(cause, OSError) and cause.errno in _TRANSIENT_ERRNOS:
            return True
        cause = cause.__cause__ if cause is not None else None
    return False


def _violation(rule: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", rule)
