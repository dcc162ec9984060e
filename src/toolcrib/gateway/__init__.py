"""The callers' door: list the tools one may use, and call them."""

from toolcrib.gateway.complete import Completion
from toolcrib.gateway.conversations import Conversations
from toolcrib.gateway.door import Gateway
from toolcrib.gateway.following import Follower
from toolcrib.gateway.library import LINK, Announced, Library
from toolcrib.gateway.prompts import Prompts
from toolcrib.gateway.resources import Resources
from toolcrib.gateway.seal import Seal, bound_to
from toolcrib.gateway.talk import Places, Tell
from toolcrib.gateway.ways import Run, Way, idempotency_key

__all__ = [
    "LINK",
    "Announced",
    "Completion",
    "Conversations",
    "Follower",
    "Gateway",
    "Library",
    "Places",
    "Prompts",
    "Resources",
    "Run",
    "Seal",
    "Tell",
    "Way",
    "bound_to",
    "idempotency_key",
]
