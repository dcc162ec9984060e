"""The operators' door: what runs, what happened, why a tool is or is not there, and who holds keys."""

from toolcrib.console.console import Console
from toolcrib.console.servers import Servers

__all__ = ["Console", "Servers"]
