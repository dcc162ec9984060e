"""MCP servers as sources of tools, over stdio, streamable HTTP and HTTP+SSE, in both protocol eras."""
