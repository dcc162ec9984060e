"""The interface for frontends: list and search tools, call them, and access resources and prompts."""

from toolcrib.cooperative import map_cooperatively
from toolcrib.gateway.call_options import (
    MAX_ARGUMENT_BYTES,
    CallOptions,
    ProcessSlots,
    Run,
    idempotency_key,
    oversized,
)
from toolcrib.gateway.completion import Completion
from toolcrib.gateway.declarations import ChosenTools, Declarations, DeclaredTools, ToolSelection
from toolcrib.gateway.gateway import Gateway
from toolcrib.gateway.model_hints import ModelHints
from toolcrib.gateway.multi_round_calls import StateSigner, bound_to
from toolcrib.gateway.provider_turn import ProviderConnection, TurnResult, calls_of
from toolcrib.gateway.resource_index import PromptIndex, ResourceIndex
from toolcrib.gateway.resources import RESOURCE_LINK, AnnouncedLists, ResourceAccess, Subscriber
from toolcrib.gateway.suspended_calls import SendLog, SuspensionLimits

__all__ = [
    "MAX_ARGUMENT_BYTES",
    "RESOURCE_LINK",
    "AnnouncedLists",
    "CallOptions",
    "ChosenTools",
    "Completion",
    "Declarations",
    "DeclaredTools",
    "Gateway",
    "ModelHints",
    "ProcessSlots",
    "PromptIndex",
    "ProviderConnection",
    "ResourceAccess",
    "ResourceIndex",
    "Run",
    "SendLog",
    "StateSigner",
    "Subscriber",
    "SuspensionLimits",
    "ToolSelection",
    "TurnResult",
    "bound_to",
    "calls_of",
    "idempotency_key",
    "map_cooperatively",
    "oversized",
]
