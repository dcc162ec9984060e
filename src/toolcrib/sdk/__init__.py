"""Public API for tool authors: decorators, context, result, registry, ready-made schemas."""

from importlib import import_module
from typing import TYPE_CHECKING

from toolcrib.errors import BusinessRuleError
from toolcrib.sdk.checks import Finding, ToolDefinitionError
from toolcrib.sdk.context import ToolContext, ToolResult
from toolcrib.sdk.decorator import AnyTool, FunctionTool, HandledTool, create_tool, tool
from toolcrib.sdk.options import Options
from toolcrib.sdk.registry import Registry
from toolcrib.sdk.shared_schemas import (
    BrandedId,
    CardId,
    DateRange,
    DeckId,
    Pagination,
    RecordMetadata,
    SessionId,
    Sorting,
    UserId,
)

if TYPE_CHECKING:
    from toolcrib.sdk.app import (
        AppContext,
        AppServer,
        AppSession,
        SessionEnded,
        Spoken,
        StorageError,
        Transcription,
    )

__all__ = [
    "AnyTool",
    "AppContext",
    "AppServer",
    "AppSession",
    "BrandedId",
    "BusinessRuleError",
    "CardId",
    "DateRange",
    "DeckId",
    "Finding",
    "FunctionTool",
    "HandledTool",
    "Options",
    "Pagination",
    "RecordMetadata",
    "Registry",
    "SessionEnded",
    "SessionId",
    "Sorting",
    "Spoken",
    "StorageError",
    "ToolContext",
    "ToolDefinitionError",
    "ToolResult",
    "Transcription",
    "UserId",
    "create_tool",
    "tool",
]

# Imported on first use: an author without apps does not pay for their import.
_OF_APPS = frozenset(
    {"AppContext", "AppServer", "AppSession", "SessionEnded", "Spoken", "StorageError", "Transcription"}
)


def __getattr__(name: str) -> object:
    if name not in _OF_APPS:
        message = f"module 'toolcrib.sdk' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module("toolcrib.sdk.app"), name)
