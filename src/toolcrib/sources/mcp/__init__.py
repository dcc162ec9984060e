"""MCP servers as a source of tools, over stdio, streamable HTTP and HTTP+SSE, in both eras."""
