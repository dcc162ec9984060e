"""The gateway as an MCP server, over HTTP and over stdio, for clients of both protocol eras."""

from toolcrib.frontends.mcp.http import McpFace
from toolcrib.frontends.mcp.stdio import serve_stdio

__all__ = ["McpFace", "serve_stdio"]
