"""Tools of an app server: definitions, lookup and responses."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

import orjson

from toolcrib.errors import ToolcribError
from toolcrib.model import Hints, JsonObject, Problem, Result
from toolcrib.sdk.app.connection import awaited
from toolcrib.sdk.app.session import AppContext
from toolcrib.sdk.checks import ToolDefinitionError
from toolcrib.sdk.decorator import AnyTool, HandledTool, app_tool_definition, check_app_tool_name
from toolcrib.sdk.handler_results import error_violation, result_of
from toolcrib.sdk.threads import MAX_THREADS, Threads, is_own_cancellation

# --- Definitions of typed functions in the format of app tools: no `$ref`, one type per value ---

_REF = "#/$defs/"
_SUBSCHEMA_KEYWORDS = ("items", "additionalProperties")


def definition_of(tool: AnyTool, extensions: JsonObject) -> dict[str, Any]:
    """Return a tool's definition in the app format; unsupported keywords are left to the gateway's check."""
    definition = tool.definition
    try:
        schema = _inlined(definition.input_schema, _definitions(definition.input_schema), ())
    except RecursionError as error:
        fault = f"its parameters are recursive ({error}), which app tools do not support"
        raise ToolDefinitionError(f"tool {tool.name}: {fault}: use a flat structure") from error
    schema.pop("$defs", None)
    schema.setdefault("properties", {})
    return app_tool_definition(tool.name, definition.description, schema, extensions)


def _definitions(schema: JsonObject) -> JsonObject:
    return cast("JsonObject", schema.get("$defs", {}))


def _inlined(schema: JsonObject, known: JsonObject, above: tuple[str, ...]) -> dict[str, Any]:
    """Inline references, and remove null alternatives."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_REF):
        name = reference.removeprefix(_REF)
        if name in above:
            raise RecursionError(name)
        rest = {key: each for key, each in schema.items() if key != "$ref"}
        return _inlined({**known.get(name, {}), **rest}, known, (*above, name))
    only = _single_alternative(schema)
    if only is not None:
        return _inlined(only, known, above)
    plain = dict(schema)
    for key in _SUBSCHEMA_KEYWORDS:
        if isinstance(plain.get(key), Mapping):
            plain[key] = _inlined(plain[key], known, above)
    if isinstance(plain.get("properties"), Mapping):
        properties: JsonObject = plain["properties"]
        plain["properties"] = {name: _inlined(each, known, above) for name, each in properties.items()}
    return plain


def _single_alternative(schema: JsonObject) -> dict[str, Any] | None:
    """Return the only alternative besides null, or None if there are more or no union."""
    for choice in ("anyOf", "oneOf", "allOf"):
        alternatives = schema.get(choice)
        if not isinstance(alternatives, list):
            continue
        members = [each for each in cast("list[JsonObject]", alternatives) if each != {"type": "null"}]
        if len(members) == 1:
            rest = {key: each for key, each in schema.items() if key != choice}
            if rest.get("default", ...) is None:
                del rest["default"]
            return {**members[0], **rest}
    return None


# --- Responses to tool calls ---

MAX_EXCEPTION_CHARS = 1_000
"""Maximum characters of an exception's message in a response."""

log = logging.getLogger(__name__)

_UNSENDABLE = "the result is not valid JSON: it has a lone surrogate, or an integer of more than 64 bits"


def handler_response(outcome: object) -> JsonObject:
    """Return the response for a return value: a mapping with `success` as it is, else as content."""
    result = result_of(outcome)
    data = result.data
    if isinstance(outcome, Mapping) and isinstance(data, dict):
        ready = cast("JsonObject", data)
        if isinstance(ready.get("success"), bool):
            return ready
    return result_response(result)


def result_response(result: Result) -> JsonObject:
    """Return the response for a Result."""
    voice = result.voice
    extensions = {
        "suppressVoiceResponse": voice.suppress or None,
        "suggestedFollowUps": list(voice.follow_ups) or None,
    }
    fields = {
        "message": result.message or None,
        "agentHints": None if result.hints is None else result.hints.as_json(),
        "mentraExtensions": _without_none(extensions) or None,
    }
    return {"success": True, "content": result.data, **_without_none(fields)}


def error_response(code: str, message: str, *, retryable: bool = False) -> dict[str, Any]:
    """Return the response for a failure."""
    return {"success": False, "error": {"code": code, "message": message, "retryable": retryable}}


async def call_response(work: Callable[[], Awaitable[JsonObject]], name: str) -> bytes:
    """Execute a call and return the serialized response; handler exceptions become error responses."""
    try:
        return _serialized(await work())
    except ToolcribError as error:
        return _serialized(_error_json(error_violation(error) or error))
    except BaseException as error:  # boundary to the app's own code, which must not end the server
        if is_own_cancellation(error):
            raise
        log.warning("the tool %s raised an error", name, exc_info=error)
        return _serialized(error_response("HANDLER_ERROR", _exception_text(error)))


def _error_json(error: ToolcribError) -> JsonObject:
    problem: Problem = error.problem
    more = {"path": problem.path, "retryAfter": problem.retry_after}
    answer = error_response(problem.tool_code or problem.code, problem.message, retryable=problem.retryable)
    answer["error"].update(_without_none(more))
    hints: Hints | None = error.hints
    return answer if hints is None else {**answer, "agentHints": hints.as_json()}


def _serialized(answer: JsonObject) -> bytes:
    try:
        return orjson.dumps(answer)
    except TypeError:
        return orjson.dumps(error_response("CONTRACT_VIOLATION", _UNSENDABLE))


def _exception_text(error: BaseException) -> str:
    """Return an exception's message, or its type; `str` of an exception may raise too."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - boundary to the app's own code, which may raise anything
        text = ""
    return (text or type(error).__name__)[:MAX_EXCEPTION_CHARS].encode(errors="replace").decode()


def _without_none(fields: JsonObject) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# --- The registry ---

ToolExecutor = Callable[[dict[str, Any], AppContext], Awaitable[JsonObject]]
"""Executes a call and returns its response."""
_PRINCIPAL = "gateway"
"""The only principal: an app's threads are not divided among users."""


class ToolTable:
    """Registry of tools with unique names."""

    def __init__(self) -> None:
        self._threads = Threads(MAX_THREADS)
        self._definitions: dict[str, JsonObject] = {}
        self._works: dict[str, ToolExecutor] = {}

    def add(self, tool: HandledTool | AnyTool, extensions: JsonObject) -> None:
        """Register a tool; `extensions` override those of its definition."""
        check_app_tool_name(tool.name)
        if tool.name in self._works:
            raise ToolDefinitionError(f"a tool named {tool.name} is already registered: rename this one")
        if isinstance(tool, HandledTool):
            definition, work = (
                _with_extensions(tool.definition, extensions),
                _handler_executor(tool, self._threads),
            )
        else:
            definition, work = definition_of(tool, extensions), _function_executor(tool, self._threads)
        self._definitions[tool.name], self._works[tool.name] = definition, work

    def definitions(self) -> list[JsonObject]:
        """Return every definition, in order of registration."""
        return list(self._definitions.values())

    def get(self, name: str) -> ToolExecutor | None:
        """Return the executor of a tool, or None."""
        return self._works.get(name)


def _with_extensions(definition: JsonObject, extensions: JsonObject) -> JsonObject:
    stored = definition.get("mentraExtensions")
    known: JsonObject = {**stored, **extensions} if isinstance(stored, Mapping) else extensions
    return {**definition, "mentraExtensions": dict(known)} if known else definition


def _handler_executor(tool: HandledTool, threads: Threads) -> ToolExecutor:
    handler = tool.handler
    is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)

    async def work(arguments: dict[str, Any], context: AppContext) -> JsonObject:
        if is_async:
            return handler_response(await awaited(handler(arguments, context)))
        return handler_response(await threads.run(_PRINCIPAL, partial(handler, arguments, context)))

    return work


def _function_executor(tool: AnyTool, threads: Threads) -> ToolExecutor:
    convert, context_name = tool.signature.convert, tool.signature.context
    start = tool.function if tool.is_async else partial(threads.run, _PRINCIPAL, tool.function)

    async def work(arguments: dict[str, Any], context: AppContext) -> JsonObject:
        values = convert(arguments)
        if context_name is not None:
            values[context_name] = context
        return result_response(result_of(await start(**values)))

    return work
