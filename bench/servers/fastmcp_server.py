"""FastMCP server with the same echo tool; runs in the virtual environment of FastMCP."""

import sys
from importlib import import_module
from typing import Any


async def echo(text: str) -> str:
    """Return the text."""
    return text


def main(port: str, packages: str) -> None:
    # FastMCP's environment lacks uvloop and httptools; at the end of the path our packages shadow none.
    sys.path.append(packages)
    fastmcp: Any = import_module("fastmcp")
    server = fastmcp.FastMCP("bench")
    server.tool(echo)
    server.run(
        transport="http",
        host="127.0.0.1",
        port=int(port),
        show_banner=False,
        log_level="warning",
        stateless_http=True,
        uvicorn_config={"loop": "uvloop", "http": "httptools", "access_log": False, "server_header": False},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
