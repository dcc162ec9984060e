"""A Caller makes a Call to a Tool from a Source; Steps turn it into a Result."""

from importlib import import_module
from typing import TYPE_CHECKING

from toolcrib import version

if TYPE_CHECKING:
    from toolcrib import hints
    from toolcrib.crib import Crib
    from toolcrib.errors import BusinessRuleError
    from toolcrib.sdk import BrandedId, Registry, ToolContext, ToolResult, create_tool, tool

__all__ = [
    "BrandedId",
    "BusinessRuleError",
    "Crib",
    "Registry",
    "ToolContext",
    "ToolResult",
    "__version__",
    "create_tool",
    "hints",
    "tool",
]

__version__ = version.VERSION

# Loaded on first use, so that `import toolcrib` costs nothing and never pulls in a framework.
_HOMES = {
    "BusinessRuleError": "toolcrib.errors",
    "Crib": "toolcrib.crib",
    **dict.fromkeys(
        ("BrandedId", "Registry", "ToolContext", "ToolResult", "create_tool", "tool"), "toolcrib.sdk"
    ),
}


def __getattr__(name: str) -> object:
    if name == "hints":
        return import_module("toolcrib.hints")
    if name not in _HOMES:
        message = f"module 'toolcrib' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)
