"""Registry of an app's tools: definitions for the gateway, and executors."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from toolcrib.model import JsonObject
from toolcrib.sdk.app.context import AppContext
from toolcrib.sdk.app.handler_queue import finished
from toolcrib.sdk.app.tool_definitions import definition_of
from toolcrib.sdk.app.tool_responses import spelled, told
from toolcrib.sdk.app_tools import HandledTool, refuse_name
from toolcrib.sdk.checks import ToolDefinitionError
from toolcrib.sdk.decorator import AnyTool
from toolcrib.sdk.handler_results import result_of
from toolcrib.sdk.threads import MOST_THREADS, Threads

Work = Callable[[dict[str, Any], AppContext], Awaitable[JsonObject]]
"""Executes a call and returns its response."""
_PRINCIPAL = "gateway"
"""The only principal: an app's threads are not divided among users."""


class ToolTable:
    """Registry of tools with unique names."""

    def __init__(self) -> None:
        self._threads = Threads(MOST_THREADS)
        self._definitions: dict[str, JsonObject] = {}
        self._works: dict[str, Work] = {}

    def add(self, tool: HandledTool | AnyTool, extensions: JsonObject) -> None:
        """Register a tool; `extensions` override those of its definition."""
        refuse_name(tool.name)
        if tool.name in self._works:
            raise ToolDefinitionError(f"there is a tool {tool.name} already: rename this one")
        if isinstance(tool, HandledTool):
            definition, work = _extended(tool.definition, extensions), _handled(tool, self._threads)
        else:
            definition, work = definition_of(tool, extensions), _function(tool, self._threads)
        self._definitions[tool.name], self._works[tool.name] = definition, work

    def definitions(self) -> list[JsonObject]:
        """Return every definition, in order of registration."""
        return list(self._definitions.values())

    def get(self, name: str) -> Work | None:
        """Return the executor of a tool, or None."""
        return self._works.get(name)


def _extended(definition: JsonObject, extensions: JsonObject) -> JsonObject:
    said = definition.get("mentraExtensions")
    known: JsonObject = {**said, **extensions} if isinstance(said, Mapping) else extensions
    return {**definition, "mentraExtensions": dict(known)} if known else definition


def _handled(tool: HandledTool, threads: Threads) -> Work:
    handler = tool.handler
    is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)

    async def work(arguments: dict[str, Any], context: AppContext) -> JsonObject:
        if is_async:
            return told(await finished(handler(arguments, context)))
        return told(await threads.run(_PRINCIPAL, partial(handler, arguments, context)))

    return work


def _function(tool: AnyTool, threads: Threads) -> Work:
    convert, context_name = tool.signature.convert, tool.signature.context
    start = tool.function if tool.is_async else partial(threads.run, _PRINCIPAL, tool.function)

    async def work(arguments: dict[str, Any], context: AppContext) -> JsonObject:
        given = convert(arguments)
        if context_name is not None:
            given[context_name] = context
        return spelled(result_of(await start(**given)))

    return work
