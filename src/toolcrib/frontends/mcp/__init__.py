"""The gateway as an MCP server over Streamable HTTP and stdio, for clients of both protocol eras."""

from toolcrib.frontends.mcp.stdio import serve_stdio
from toolcrib.frontends.mcp.streamable_http import StreamableHttpFrontend

__all__ = ["StreamableHttpFrontend", "serve_stdio"]
