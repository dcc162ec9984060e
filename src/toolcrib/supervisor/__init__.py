"""Supervises sources: runs them, publishes their tools, restarts them after failures, replaces them live."""

from toolcrib.supervisor.runner_environment import ToolSink
from toolcrib.supervisor.supervisor import Supervisor

__all__ = ["Supervisor", "ToolSink"]
