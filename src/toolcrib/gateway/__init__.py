"""The callers' door: list the tools one may use, and call them."""

from toolcrib.gateway.answering import Answering, Turn, asked_of
from toolcrib.gateway.complete import Completion
from toolcrib.gateway.conversations import Conversations
from toolcrib.gateway.cutting import Cutting
from toolcrib.gateway.declaring import Chosen, Declared, Declaring
from toolcrib.gateway.door import Gateway
from toolcrib.gateway.following import Follower
from toolcrib.gateway.library import LINK, Announced, Library
from toolcrib.gateway.pace import unhurried
from toolcrib.gateway.process import ProcessSlots
from toolcrib.gateway.prompts import Prompts
from toolcrib.gateway.resources import Resources
from toolcrib.gateway.seal import Seal, bound_to
from toolcrib.gateway.talk import Places, Tell
from toolcrib.gateway.ways import ARGUMENT_BYTES, Run, Way, idempotency_key, oversized

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
