"""Builds an app's response to a tool call from the handler's return value or exception."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import orjson

from toolcrib.errors import ToolcribError
from toolcrib.model import Hints, JsonObject, Problem, Result
from toolcrib.sdk.handler_results import result_of, unfit
from toolcrib.sdk.threads import is_our_end

LONGEST_MESSAGE = 1_000
"""Maximum characters of an exception's message in a response."""

log = logging.getLogger(__name__)

_UNSENDABLE = "the answer holds what JSON cannot: half a character, or a number of more than 64 bits"


def told(outcome: object) -> JsonObject:
    """Return the response for a return value: a mapping with `success` as it is, else as content."""
    result = result_of(outcome)
    data = result.data
    if isinstance(outcome, Mapping) and isinstance(data, dict):
        ready = cast("JsonObject", data)
        if isinstance(ready.get("success"), bool):
            return ready
    return spelled(result)


def spelled(result: Result) -> JsonObject:
    """Return the response for a Result."""
    voice = result.voice
    extensions = {
        "suppressVoiceResponse": voice.suppress or None,
        "suggestedFollowUps": list(voice.follow_ups) or None,
    }
    said = {
        "message": result.message or None,
        "agentHints": None if result.hints is None else result.hints.as_json(),
        "mentraExtensions": _set(extensions) or None,
    }
    return {"success": True, "content": result.data, **_set(said)}


def failed(code: str, message: str, *, retryable: bool = False) -> dict[str, Any]:
    """Return the response for a failure."""
    return {"success": False, "error": {"code": code, "message": message, "retryable": retryable}}


async def answered(work: Callable[[], Awaitable[JsonObject]], name: str) -> bytes:
    """Execute a call and return the serialized response; handler exceptions become error responses."""
    try:
        return _written(await work())
    except ToolcribError as error:
        return _written(_of_error(unfit(error) or error))
    except BaseException as error:  # boundary to the app's own code, which must not end the server
        if is_our_end(error):
            raise
        log.warning("the tool %s raised an error", name, exc_info=error)
        return _written(failed("HANDLER_ERROR", _text_of(error)))


def _of_error(error: ToolcribError) -> JsonObject:
    problem: Problem = error.problem
    more = {"path": problem.path, "retryAfter": problem.retry_after}
    answer = failed(problem.tool_code or problem.code, problem.message, retryable=problem.retryable)
    answer["error"].update(_set(more))
    hints: Hints | None = error.hints
    return answer if hints is None else {**answer, "agentHints": hints.as_json()}


def _written(answer: JsonObject) -> bytes:
    try:
        return orjson.dumps(answer)
    except TypeError:
        return orjson.dumps(failed("CONTRACT_VIOLATION", _UNSENDABLE))


def _text_of(error: BaseException) -> str:
    """Return an exception's message, or its type; `str` of an exception may raise too."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - boundary to the app's own code, which may raise anything
        text = ""
    return (text or type(error).__name__)[:LONGEST_MESSAGE].encode(errors="replace").decode()


def _set(fields: JsonObject) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
