"""What tool authors import: the decorators, the context, the result, the registry, ready-made schemas."""

from toolcrib.errors import BusinessRuleError
from toolcrib.sdk.checks import Finding, ToolDefinitionError
from toolcrib.sdk.context import ToolContext
from toolcrib.sdk.decorator import AnyTool, FunctionTool, create_tool, tool
from toolcrib.sdk.ids import BrandedId
from toolcrib.sdk.options import Options
from toolcrib.sdk.ready import (
    CardId,
    DateRange,
    DeckId,
    Pagination,
    RecordMetadata,
    SessionId,
    Sorting,
    UserId,
)
from toolcrib.sdk.registry import Registry
from toolcrib.sdk.result import ToolResult

__all__ = [
    "AnyTool",
    "BrandedId",
    "BusinessRuleError",
    "CardId",
    "DateRange",
    "DeckId",
    "Finding",
    "FunctionTool",
    "Options",
    "Pagination",
    "RecordMetadata",
    "Registry",
    "SessionId",
    "Sorting",
    "ToolContext",
    "ToolDefinitionError",
    "ToolResult",
    "UserId",
    "create_tool",
    "tool",
]
