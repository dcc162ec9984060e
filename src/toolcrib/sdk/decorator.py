"""The decorators `@tool` and `create_tool`: define a tool by a typed Python function."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast, overload

from toolcrib.model import Family, JsonObject, Tool
from toolcrib.names import snake
from toolcrib.sdk.app_tools import (
    AppCategory,
    HandledTool,
    Phrases,
    ToolHandler,
    extensions_of,
    handled_tool,
)
from toolcrib.sdk.checks import Finding, ToolDefinitionError, refuse
from toolcrib.sdk.docstring import read_docstring
from toolcrib.sdk.options import Options, read_options
from toolcrib.sdk.signature import UNREADABLE, Signature, read_signature

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, eq=False, repr=False)
class FunctionTool(Generic[P, R]):
    """A function with its definition. Calling it calls the function, so that authors can test it as one."""

    definition: Tool
    """The definition without a source, which is empty until the tool is bound to one."""
    function: Callable[P, R]
    signature: Signature

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<FunctionTool {self.name}>"

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """The function, for `help` and `inspect`."""
        return self.function

    @property
    def name(self) -> str:
        """The name without a source, such as `get-card`."""
        return self.definition.local

    @property
    def is_async(self) -> bool:
        """Whether the function is awaited; others run in a thread."""
        function = self.function
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

    def bind(self, source: str, family: Family = "function") -> Tool:
        """Return the tool as this source offers it."""
        known = self.definition.family
        family = family if known == "function" else known
        return replace(self.definition, name=f"{source}:{self.name}", source=source, family=family)


AnyTool = FunctionTool[..., Any]


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[Options]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[P, R] | None = None, /, **options: Unpack[Options]) -> Any:
    """Make a tool of a function: `@tool(category="query", …)` with any of `Options`.

    It requires a good definition, and reports all faults at once: kebab-case verb-noun name, a
    description that names a use, tags, examples, every parameter described and bounded, ids branded.
    """
    make = partial(_define, options=options, strict=True)
    return make if function is None else make(function)


@overload
def create_tool(function: Callable[P, R], /, **options: Unpack[Options]) -> FunctionTool[P, R]: ...
@overload
def create_tool(**options: Unpack[Options]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
@overload
def create_tool(
    *,
    name: str,
    handler: ToolHandler,
    description: str = "",
    parameters: JsonObject | None = None,
    required: Sequence[str] = (),
    activation_phrases: Phrases | None = None,
    category: AppCategory | None = None,
) -> HandledTool: ...
def create_tool(function: Callable[P, R] | None = None, /, **options: Any) -> Any:
    """Make a tool as `tool` does, by decorating or by calling, and refuse only contradictions.

    For generated, third-party or experimental code; `toolcrib check` reports what it lacks.
    With `handler=` it makes a tool of a mini-app from a definition written by hand: `parameters` are the
    properties of its JSON Schema, the handler takes the arguments as one object, and the context.
    """
    if "handler" in options:
        phrases, category = options.pop("activation_phrases", None), options.pop("category", None)
        return handled_tool(**options, extensions=extensions_of(phrases, category))
    make = partial(_define, options=cast("Options", options), strict=False)
    return make if function is None else make(function)


def _define(function: Callable[P, R], *, options: Options, strict: bool) -> FunctionTool[P, R]:
    name = options.get("name") or _name_of(function)
    said = read_docstring(inspect.getdoc(function) or "")
    fields, found = read_options(options)
    try:
        signature = read_signature(function, said.parameters)
    except ToolDefinitionError as error:
        found.append(Finding("signature", str(error)))
        signature = UNREADABLE
    definition = Tool(
        name=f":{name}",
        source="",
        description=options.get("description") or said.description,
        input_schema=signature.schema,
        output_schema=signature.output,
        **fields,
    )
    refuse(definition, found, strict=strict)
    return FunctionTool(definition, function, signature)


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ToolDefinitionError(f'{function!r} has no name to go by: give one, tool(name="get-card")(…)')
    return snake(name).replace("_", "-")
