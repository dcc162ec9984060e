"""What tool authors import: the decorator, the context, the result, the registry."""

from toolcrib.errors import BusinessRuleError
from toolcrib.sdk.checks import Finding, ToolDefinitionError
from toolcrib.sdk.context import ToolContext
from toolcrib.sdk.decorator import AnyTool, FunctionTool, tool
from toolcrib.sdk.options import Options
from toolcrib.sdk.registry import Registry
from toolcrib.sdk.result import ToolResult

__all__ = [
    "AnyTool",
    "BusinessRuleError",
    "Finding",
    "FunctionTool",
    "Options",
    "Registry",
    "ToolContext",
    "ToolDefinitionError",
    "ToolResult",
    "tool",
]
