"""A Caller makes a Call to a Tool from a Source; Steps turn it into a Result."""

from importlib import import_module
from typing import TYPE_CHECKING

from toolcrib import version

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.errors import BusinessRuleError
    from toolcrib.sdk import Registry, ToolContext, tool

__all__ = ["BusinessRuleError", "Crib", "Registry", "ToolContext", "__version__", "tool"]

__version__ = version.VERSION

# Loaded on first use, so that `import toolcrib` costs nothing and never pulls in a framework.
_HOMES = {
    "BusinessRuleError": "toolcrib.errors",
    "Crib": "toolcrib.crib",
    "Registry": "toolcrib.sdk",
    "ToolContext": "toolcrib.sdk",
    "tool": "toolcrib.sdk",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module 'toolcrib' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)
