"""The gateway's own tools, for agents that operate it: they knock at the operators' door."""

from toolcrib.core.servers import core_tools

__all__ = ["core_tools"]
