"""The `@tool` decorator and `create_tool`, and tools with handlers of apps."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, Unpack, cast, overload

from toolcrib.model import Family, JsonObject, Tool
from toolcrib.names import snake_case
from toolcrib.sdk.checks import Finding, ToolDefinitionError, refuse
from toolcrib.sdk.options import Options, read_options
from toolcrib.sdk.signature import PLACEHOLDER_SIGNATURE, Signature, read_signature

if TYPE_CHECKING:
    from toolcrib.sdk.app.session import AppContext

# --- Docstrings in Google or Sphinx style ---

_SECTION = re.compile(r"(Args|Arguments|Parameters|Raises|Yields):|(Returns?):.*")
_ENTRY = re.compile(r"(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_FIELD = re.compile(r":(\w+)(?:\s+([^:]*))?:\s*(.*)")
_ARGS = frozenset({"Args", "Arguments", "Parameters", "param", "parameter", "arg", "argument"})
_RETURNS = frozenset({"Return", "Returns", "return", "returns"})


@dataclass(frozen=True, slots=True)
class Docstring:
    """A parsed docstring: description, and text per parameter."""

    description: str
    parameters: Mapping[str, str]


@dataclass(slots=True)
class _DocstringParser:
    """Line parser: appends each line to the current section, `into`."""

    text: list[str] = field(default_factory=list[str])
    returns: list[str] = field(default_factory=list[str])
    parameters: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    into: list[str] = field(default_factory=list[str])
    listing: bool = False
    """Whether the current section lists parameters."""
    depth: int = 0
    """Indentation of its entries; 0 before the first."""

    def take(self, line: str) -> None:
        """Parse the next line."""
        indent = len(line) - len(line.lstrip())
        entry = _ENTRY.fullmatch(line.strip()) if self.listing else None
        if line and not indent:
            self.open(line)
        elif entry is not None and self.depth in (0, indent):
            self.depth = indent
            self.into = self.parameters.setdefault(entry[1], [])
            self.into.append(entry[2])
        else:
            self.into.append(line)

    def open(self, line: str) -> None:
        """Parse a line without indentation: it starts a section, or continues the text."""
        mark, section = _FIELD.fullmatch(line), _SECTION.fullmatch(line)
        self.listing, self.depth = False, 0
        if mark is not None:
            keyword, name, text = mark.groups()
            self.into = self._lines_of(keyword, (name or "").split(" ")[-1])
            self.into.append(text)
        elif section is not None:
            keyword, _, text = line.partition(":")
            self.into, self.listing = self._lines_of(keyword), keyword in _ARGS
            self.into.append(text)
        else:
            self.into = self.text
            self.into.append(line)

    def _lines_of(self, keyword: str, name: str = "") -> list[str]:
        if keyword in _RETURNS:
            return self.returns
        return self.parameters.setdefault(name, []) if keyword in _ARGS and name else []


def read_docstring(text: str) -> Docstring:
    """Parse a docstring with cleaned indentation, in Google or Sphinx style.

    The return value stays in the description, as agents need it.
    """
    reader = _DocstringParser()
    for line in text.splitlines():
        reader.take(line)
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(reader.text).strip())
    returns = _one_line(reader.returns)
    if returns:
        description = f"{description}\n\nReturns: {returns}".strip()
    texts = {name: _one_line(lines) for name, lines in reader.parameters.items()}
    return Docstring(description, {name: text for name, text in texts.items() if text})


def _one_line(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


# --- Tools of mini-apps ---

AppCategory = Literal["productivity", "media", "communication", "utility", "other"]
"""Category of an app tool, for sorting by assistants; unrelated to whether the tool is a mutation."""

Phrases = Sequence[str] | Mapping[str, Sequence[str]]
"""Activation phrases of users: a list, or a list per language."""

ToolHandler = Callable[[dict[str, Any], "AppContext"], Any]
"""Takes the arguments and the context; async handlers are awaited, others run in a thread."""


@dataclass(frozen=True, eq=False, repr=False)
class HandledTool:
    """A definition with its handler: returned by `create_tool(handler=…)`, for `AppServer.register_tool`."""

    definition: JsonObject
    """`name`, `description`, `inputSchema`, `mentraExtensions`."""
    handler: ToolHandler

    def __repr__(self) -> str:
        return f"<HandledTool {self.name}>"

    @property
    def name(self) -> str:
        """The name without the package."""
        return str(self.definition["name"])


def handled_tool(
    *,
    name: str,
    handler: ToolHandler,
    description: str = "",
    parameters: JsonObject | None = None,
    required: Sequence[str] = (),
    extensions: JsonObject | None = None,
) -> HandledTool:
    """Create a tool; refuses only what could never be called, the rest is checked on publishing."""
    check_app_tool_name(name)
    if not callable(handler):
        raise ToolDefinitionError(f"tool {name}: handler must be a function that takes arguments and context")
    schema = {"type": "object", "properties": dict(parameters or {}), "required": list(required)}
    return HandledTool(app_tool_definition(name, description, schema, extensions or {}), handler)


def app_tool_definition(
    name: str, description: str, schema: JsonObject, extensions: JsonObject
) -> dict[str, Any]:
    """Return a definition in the format of `POST /api/apps/{package}/tools`."""
    definition = {"name": name, "description": description, "inputSchema": schema}
    return {**definition, "mentraExtensions": dict(extensions)} if extensions else definition


def extensions_of(phrases: Phrases | None, category: AppCategory | None) -> dict[str, Any]:
    """Return the extensions for assistants, without the missing ones."""
    extensions: dict[str, Any] = {}
    if phrases:
        by_language = isinstance(phrases, Mapping)
        extensions["activationPhrases"] = (
            {tag: list(each) for tag, each in phrases.items()} if by_language else list(phrases)
        )
    if category is not None:
        extensions["category"] = category
    return extensions


def check_app_tool_name(name: str) -> None:
    """Refuse an empty name, or one with a colon, which separates the package."""
    if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - authors are not always typed
        raise ToolDefinitionError("a tool needs a name: create_tool(name=…, handler=…)")
    if ":" in name:
        raise ToolDefinitionError(f"tool {name}: remove the colon, which separates a package from its tool")


# --- `@tool` and `create_tool` ---

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
        defined = self.definition.family
        family = family if defined == "function" else defined
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
    docstring = read_docstring(inspect.getdoc(function) or "")
    fields, findings = read_options(options)
    try:
        signature = read_signature(function, docstring.parameters)
    except ToolDefinitionError as error:
        findings.append(Finding("signature", str(error)))
        signature = PLACEHOLDER_SIGNATURE
    definition = Tool(
        name=f":{name}",
        source="",
        description=options.get("description") or docstring.description,
        input_schema=signature.schema,
        output_schema=signature.output,
        **fields,
    )
    refuse(definition, findings, strict=strict)
    return FunctionTool(definition, function, signature)


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ToolDefinitionError(f'{function!r} has no usable name: set one, tool(name="get-card")(…)')
    return snake_case(name).replace("_", "-")
