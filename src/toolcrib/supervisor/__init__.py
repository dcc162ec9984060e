"""Keeps sources alive: runs them, shows what they offer, runs them again when they die, replaces them."""

from toolcrib.supervisor.supervisor import Supervisor
from toolcrib.supervisor.tool_sink import ToolSink

__all__ = ["Supervisor", "ToolSink"]
