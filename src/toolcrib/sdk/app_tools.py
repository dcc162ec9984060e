"""Tools of mini-apps: the definition as the gateway stores it, and its handler."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolcrib.model import JsonObject
from toolcrib.sdk.checks import ToolDefinitionError

if TYPE_CHECKING:
    from toolcrib.sdk.app.context import AppContext

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
    refuse_name(name)
    if not callable(handler):
        raise ToolDefinitionError(f"tool {name}: handler is a function of arguments and context")
    schema = {"type": "object", "properties": dict(parameters or {}), "required": list(required)}
    return HandledTool(defined(name, description, schema, extensions or {}), handler)


def defined(name: str, description: str, schema: JsonObject, extensions: JsonObject) -> dict[str, Any]:
    """Return a definition in the format of `POST /api/apps/{package}/tools`."""
    said = {"name": name, "description": description, "inputSchema": schema}
    return {**said, "mentraExtensions": dict(extensions)} if extensions else said


def extensions_of(phrases: Phrases | None, category: AppCategory | None) -> dict[str, Any]:
    """Return the extensions for assistants, without the missing ones."""
    said: dict[str, Any] = {}
    if phrases:
        by_language = isinstance(phrases, Mapping)
        said["activationPhrases"] = (
            {tag: list(each) for tag, each in phrases.items()} if by_language else list(phrases)
        )
    if category is not None:
        said["category"] = category
    return said


def refuse_name(name: str) -> None:
    """Refuse an empty name, or one with a colon, which separates the package."""
    if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - authors are not always typed
        raise ToolDefinitionError("a tool has a name: create_tool(name=…, handler=…)")
    if ":" in name:
        said = "a name holds no colon, which parts it from its package: use a dash or an underscore"
        raise ToolDefinitionError(f"tool {name}: {said}")
