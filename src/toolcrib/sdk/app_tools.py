"""A tool of a mini-app: its definition as the gateway stores it, and the handler that carries it out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolcrib.model import JsonObject
from toolcrib.sdk.checks import ToolDefinitionError

if TYPE_CHECKING:
    from toolcrib.sdk.app.context import AppContext

AppCategory = Literal["productivity", "media", "communication", "utility", "other"]
"""What kind of app tool it is, for assistants to sort by; it says nothing about what the tool changes."""

Phrases = Sequence[str] | Mapping[str, Sequence[str]]
"""What users say when they mean the tool: a list, or a list for each language."""

ToolHandler = Callable[[dict[str, Any], "AppContext"], Any]
"""Gets the arguments and the context; async ones are awaited, others run in a thread."""


@dataclass(frozen=True, eq=False, repr=False)
class HandledTool:
    """What `create_tool(handler=…)` makes and `AppServer.register_tool` takes."""

    definition: JsonObject
    """`name`, `description`, `inputSchema`, `mentraExtensions`."""
    handler: ToolHandler

    def __repr__(self) -> str:
        return f"<HandledTool {self.name}>"

    @property
    def name(self) -> str:
        """The name without a package."""
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
    """Put a tool together; only what could never be called is refused here, the rest when it is published."""
    refuse_name(name)
    if not callable(handler):
        raise ToolDefinitionError(f"tool {name}: handler is a function of arguments and context")
    schema = {"type": "object", "properties": dict(parameters or {}), "required": list(required)}
    return HandledTool(defined(name, description, schema, extensions or {}), handler)


def defined(name: str, description: str, schema: JsonObject, extensions: JsonObject) -> dict[str, Any]:
    """Spell a definition as `POST /api/apps/{package}/tools` takes it."""
    said = {"name": name, "description": description, "inputSchema": schema}
    return {**said, "mentraExtensions": dict(extensions)} if extensions else said


def extensions_of(phrases: Phrases | None, category: AppCategory | None) -> dict[str, Any]:
    """Spell what is said to assistants; what is not said is left out."""
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
    """Refuse a name that cannot be told apart from its package, or is none."""
    if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - authors are not always typed
        raise ToolDefinitionError("a tool has a name: create_tool(name=…, handler=…)")
    if ":" in name:
        said = "a name holds no colon, which parts it from its package: use a dash or an underscore"
        raise ToolDefinitionError(f"tool {name}: {said}")
