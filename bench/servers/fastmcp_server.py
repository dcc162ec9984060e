"""FastMCP's own server with the same echo tool, run by the Python of its own environment."""

import sys
from importlib import import_module
from typing import Any


async def echo(text: str) -> str:
    """Say the text again."""
    return text


def main(port: str, packages: str) -> None:
    # Its environment has neither uvloop nor httptools: last in the path they are found and hide nothing.
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
