"""The gateway as an MCP server, over HTTP and over stdio, for clients of both protocol eras."""

from toolcrib.faces.mcp.http import McpFace
from toolcrib.faces.mcp.stdio import serve_stdio

__all__ = ["McpFace", "serve_stdio"]
