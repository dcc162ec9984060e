"""A server on the official SDK with an instant and a slow tool: `paced.py stdio`, or `paced.py PORT`."""

import sys

import anyio
from mcp.server.mcpserver import MCPServer

server = MCPServer("paced", log_level="CRITICAL")


@server.tool()
async def instant() -> bool:
    """Answer at once."""
    return True


@server.tool()
async def slow(seconds: float) -> bool:
    """Answer after a while."""
    await anyio.sleep(seconds)
    return True


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[1]))
