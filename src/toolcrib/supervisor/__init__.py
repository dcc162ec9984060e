"""Supervises sources: runs them, publishes their tools, restarts them after failures, replaces them live."""

from toolcrib.supervisor.supervisor import Supervisor
from toolcrib.supervisor.tool_sink import ToolSink

__all__ = ["Supervisor", "ToolSink"]
