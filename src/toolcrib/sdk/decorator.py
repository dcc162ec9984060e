"""The `@tool` decorator: a typed Python function becomes a tool, and stays a function."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, overload

from toolcrib.model import Family, Tool
from toolcrib.names import snake
from toolcrib.sdk.checks import ToolDefinitionError, kebab, refuse
from toolcrib.sdk.options import Options, fields_of
from toolcrib.sdk.signature import Signature, read_signature

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, eq=False, repr=False)
class FunctionTool(Generic[P, R]):
    """A function with its definition. Calling it calls the function, so that authors can test it as one."""

    definition: Tool
    """All but the source, which is empty until the tool is bound to one."""
    function: Callable[P, R]
    signature: Signature

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<FunctionTool {self.name}>"

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """Where `help` and `inspect` look."""
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
        return replace(self.definition, name=f"{source}:{self.name}", source=source, family=family)


AnyTool = FunctionTool[..., Any]


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[Options]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[P, R] | None = None, /, **options: Unpack[Options]) -> Any:
    """Make a tool of a function: `@tool`, or `@tool(category="query", …)` with any of `Options`."""
    if function is not None:
        return _define(function, options)

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        return _define(function, options)

    return decorate


def _define(function: Callable[P, R], options: Options) -> FunctionTool[P, R]:
    name = options.get("name") or _name_of(function)
    try:
        signature = read_signature(function)
        fields = fields_of(options)
    except ToolDefinitionError as error:
        raise ToolDefinitionError(f"tool {name}: {error}") from error.__cause__
    definition = Tool(
        name=f":{name}",
        source="",
        description=options.get("description") or inspect.getdoc(function) or "",
        input_schema=signature.schema,
        output_schema=signature.output,
        **fields,
    )
    refuse(definition, kebab(name))
    return FunctionTool(definition, function, signature)


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ToolDefinitionError(f'{function!r} has no name to go by: give one, tool(name="get-card")(…)')
    return snake(name).replace("_", "-")
