"""A registry of tools by name: made with `@tool`, from definitions with an executor, or from LangChain."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack, cast

from toolcrib.model import Category, JsonObject, Tool
from toolcrib.sdk.checks import Finding, ToolDefinitionError, findings, refuse, unknown_replacements
from toolcrib.sdk.context import ToolContext
from toolcrib.sdk.decorator import AnyTool, FunctionTool
from toolcrib.sdk.langchain import LangChainTool, langchain_tool, list_options
from toolcrib.sdk.options import Options, fields_of
from toolcrib.sdk.signature import Signature, deep_copy

Executor = Callable[..., Any]
"""`(arguments)` or `(arguments, context)`, sync or async."""


class Registry:
    """Registry of tools with unique names."""

    def __init__(self) -> None:
        self._tools: dict[str, AnyTool] = {}

    def register(self, tool: AnyTool, *, replace: bool = False) -> AnyTool:
        """Register a tool; a duplicate name is refused unless `replace` is set.

        A contradictory definition is refused too, and a deprecated tool with an unknown replacement.
        """
        if tool.name in self._tools and not replace:
            fix = "rename this one, or use replace=True"
            raise ToolDefinitionError(f"a tool named {tool.name} is already registered: {fix}")
        refuse(tool.definition, self._unreplaced(tool))
        self._tools[tool.name] = tool
        return tool

    def register_tool(
        self, definition: JsonObject, executor: Executor, *, replace: bool = False, **options: Unpack[Options]
    ) -> AnyTool:
        """Register an OpenAI-style definition, nested under `function` or flat, with its executor.

        The executor gets the arguments as one object, a copy, and the context if it takes two.
        """
        return self.register(_tool_from_definition(definition, executor, options), replace=replace)

    def register_langchain_tool(
        self, tool: LangChainTool, *, replace: bool = False, **options: Unpack[Options]
    ) -> AnyTool:
        """Register a LangChain tool, under its `lc_name` if it has one, else its `name`."""
        return self.register(langchain_tool(tool, **options), replace=replace)

    def register_langchain_tools(
        self,
        tools: Iterable[LangChainTool],
        *,
        prefix: str = "",
        replace: bool = False,
        **options: Unpack[Options],
    ) -> tuple[AnyTool, ...]:
        """Register a list such as `await client.get_tools()`; `prefix="notes"` yields `notes_search`."""
        wrapped = [langchain_tool(tool, **list_options(tool, prefix, options)) for tool in tools]
        return tuple(self.register(each, replace=replace) for each in wrapped)

    def get(self, name: str) -> AnyTool | None:
        """Return the tool of this name."""
        return self._tools.get(name)

    def get_all(self) -> tuple[AnyTool, ...]:
        """Return every tool, in order of registration."""
        return tuple(self._tools.values())

    def get_by_category(self, category: Category) -> tuple[AnyTool, ...]:
        """Return the tools of one category."""
        return tuple(tool for tool in self._tools.values() if tool.definition.category == category)

    def get_by_tag(self, tag: str) -> tuple[AnyTool, ...]:
        """Return the tools with this tag."""
        return tuple(tool for tool in self._tools.values() if tag in tool.definition.tags)

    def validate(self, tool: AnyTool) -> list[Finding]:
        """Return the faults and shortfalls of a tool's definition."""
        contradictions = [*findings(tool.definition, "contradiction"), *self._unreplaced(tool)]
        return [*contradictions, *findings(tool.definition, "shortfall")]

    def _unreplaced(self, tool: AnyTool) -> list[Finding]:
        return unknown_replacements([tool.definition], (each.definition for each in self._tools.values()))


def _tool_from_definition(definition: JsonObject, executor: Executor, options: Options) -> AnyTool:
    nested = definition.get("function")
    function = cast("JsonObject", nested) if isinstance(nested, Mapping) else definition
    name = options.get("name") or function.get("name")
    if not isinstance(name, str):
        form = '{"name": …, "description": …, "parameters": {…}}'
        raise ToolDefinitionError(f"the definition has no name: {form}")
    schema: JsonObject = function.get("parameters") or {"type": "object", "properties": {}}
    tool = Tool(
        name=f":{name}",
        source="",
        description=options.get("description") or function.get("description") or "",
        input_schema=schema,
        **fields_of(options),
    )
    refuse(tool)
    first, second = _executor_parameters(executor)

    def convert(arguments: JsonObject) -> dict[str, Any]:
        return {first: deep_copy(dict(arguments))}

    signature = Signature(schema=tool.input_schema, convert=convert, context=second)
    return FunctionTool(tool, executor, signature)


def _executor_parameters(executor: Executor) -> tuple[str, str | None]:
    """Return the names of the parameters for the arguments and the context."""
    parameters = list(inspect.signature(executor, eval_str=True).parameters.values())
    context = next((each.name for each in parameters if each.annotation is ToolContext), None)
    others = [each for each in parameters if each.name != context]
    if not others or others[0].kind not in (others[0].POSITIONAL_OR_KEYWORD, others[0].KEYWORD_ONLY):
        example = "def run(arguments): …"
        raise ToolDefinitionError(f"the executor needs a named parameter for the arguments: {example}")
    required = [each.name for each in others[1:] if each.default is each.empty]
    if context is None and required:
        context = required.pop(0)
    if required:
        message = "the executor has a parameter besides arguments and context"
        raise ToolDefinitionError(f"{message}: {required[0]}")
    return others[0].name, context
