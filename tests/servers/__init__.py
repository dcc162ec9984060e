"""MCP servers tests connect to: other people's, and tiny ones of our own that keep books or misbehave."""
