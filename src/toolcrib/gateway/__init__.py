"""The callers' door: list the tools one may use, and call them."""

from toolcrib.gateway.call_options import ARGUMENT_BYTES, Run, Way, idempotency_key, oversized
from toolcrib.gateway.completion import Completion
from toolcrib.gateway.cooperative import unhurried
from toolcrib.gateway.declarations import Chosen, Declared, Declaring
from toolcrib.gateway.gateway import Gateway
from toolcrib.gateway.multi_round_calls import Conversations
from toolcrib.gateway.process_slots import ProcessSlots
from toolcrib.gateway.prompt_index import Prompts
from toolcrib.gateway.provider_turn import Answering, Turn, asked_of
from toolcrib.gateway.resource_index import Resources
from toolcrib.gateway.resources import LINK, Announced, Library
from toolcrib.gateway.signed_state import Seal, bound_to
from toolcrib.gateway.subscriptions import Follower
from toolcrib.gateway.suspended_calls import Places, Tell
from toolcrib.gateway.tool_selection import Cutting

__all__ = [
    "ARGUMENT_BYTES",
    "LINK",
    "Announced",
    "Answering",
    "Chosen",
    "Completion",
    "Conversations",
    "Cutting",
    "Declared",
    "Declaring",
    "Follower",
    "Gateway",
    "Library",
    "Places",
    "ProcessSlots",
    "Prompts",
    "Resources",
    "Run",
    "Seal",
    "Tell",
    "Turn",
    "Way",
    "asked_of",
    "bound_to",
    "idempotency_key",
    "oversized",
    "unhurried",
]
