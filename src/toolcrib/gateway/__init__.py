"""The callers' door: list the tools one may use, and call them."""

from toolcrib.gateway.complete import Completion
from toolcrib.gateway.door import Gateway

__all__ = ["Completion", "Gateway"]
