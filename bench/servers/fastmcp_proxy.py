"""FastMCP proxy in front of a server, default or tuned; runs in the virtual environment of FastMCP."""

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


async def run_default(port: int, url: str) -> None:
    """Run with default settings: every call creates a client with a new connection."""
    proxy: Any = import_module("fastmcp.server").create_proxy(url)
    await proxy.run_http_async(port=port, **SERVING)


async def run_persistent(port: int, url: str, *, cached: bool = False) -> None:
    """Run with one client that stays connected for all calls."""
    async with import_module("fastmcp").Client(url) as client:
        proxy: Any = import_module("fastmcp.server").create_proxy(client)
        if cached:
            caching: Any = import_module("fastmcp.server.middleware.caching")
            proxy.add_middleware(caching.ResponseCachingMiddleware(call_tool_settings={"enabled": False}))
        await proxy.run_http_async(port=port, **SERVING)


async def run_cached_lists(port: int, url: str) -> None:
    """Run the same with cached lists, which makes lists faster and calls slower."""
    await run_persistent(port, url, cached=True)


def main(port: str, packages: str, url: str, mode: str) -> None:
    # FastMCP's environment lacks uvloop and httptools; at the end of the path our packages shadow none.
    sys.path.append(packages)
    loop: Any = import_module("uvloop").new_event_loop
    modes = {"default": run_default, "persistent": run_persistent, "cached-lists": run_cached_lists}
    anyio.run(modes[mode], int(port), url, backend_options={"loop_factory": loop})


if __name__ == "__main__":
    main(*sys.argv[1:])
