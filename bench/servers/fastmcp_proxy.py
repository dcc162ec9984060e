"""FastMCP's proxy before a server, as it comes or tuned, run by the Python of its own environment."""

import sys
from importlib import import_module
from typing import Any

import anyio

SERVING: dict[str, Any] = {
    "show_banner": False,
    "host": "127.0.0.1",
    "log_level": "warning",
    "stateless_http": True,
    "json_response": True,
    "uvicorn_config": {"loop": "uvloop", "http": "httptools", "access_log": False, "server_header": False},
}


async def plain(port: int, url: str) -> None:
    """As it comes: a new client, with a connection of its own, for every call."""
    proxy: Any = import_module("fastmcp.server").create_proxy(url)
    await proxy.run_http_async(port=port, **SERVING)


async def kept(port: int, url: str, *, cached: bool = False) -> None:
    """One client that stays connected, for all calls."""
    async with import_module("fastmcp").Client(url) as client:
        proxy: Any = import_module("fastmcp.server").create_proxy(client)
        if cached:
            caching: Any = import_module("fastmcp.server.middleware.caching")
            proxy.add_middleware(caching.ResponseCachingMiddleware(call_tool_settings={"enabled": False}))
        await proxy.run_http_async(port=port, **SERVING)


async def listing(port: int, url: str) -> None:
    """The same with its lists from memory, which quickens them and slows calls down."""
    await kept(port, url, cached=True)


def main(port: str, packages: str, url: str, how: str) -> None:
    # Its environment has neither uvloop nor httptools: last in the path they are found and hide nothing.
    sys.path.append(packages)
    loop: Any = import_module("uvloop").new_event_loop
    way = {"plain": plain, "kept": kept, "listing": listing}[how]
    anyio.run(way, int(port), url, backend_options={"loop_factory": loop})


if __name__ == "__main__":
    main(*sys.argv[1:])
