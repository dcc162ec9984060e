"""A small MCP server on the official SDK (`pip install mcp`); `servers.yaml` connects it to a gateway."""

from mcp.server.mcpserver import MCPServer

NOTES = {"milk": "Buy two bottles.", "car": "The service is due in March."}

server = MCPServer("notes")


@server.tool()
def find_note(about: str) -> dict[str, str]:
    """Find the note about something and return its text. Use it when someone asks what was noted."""
    return {"about": about, "text": NOTES.get(about, f"There are notes about {' and '.join(NOTES)} only.")}


@server.tool()
def forget_note(about: str) -> dict[str, bool]:
    """Delete the note about something. This cannot be undone."""
    return {"forgotten": NOTES.pop(about, None) is not None}


if __name__ == "__main__":
    server.run()
