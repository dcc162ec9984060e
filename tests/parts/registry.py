"""The table of parts: what each is for, how it is found and fetched, and what a test does without it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pytest

from tests.parts import (
    browser,
    conformance,
    load,
    mentra,
    node,
    others,
    peers,
    postgres,
    proxies,
    reverse_proxies,
    sound,
)
from tests.parts.install import Missing, alone

__all__ = ["PARTS", "Missing", "Part", "may_skip", "require", "take"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A program from outside: `find` looks, `fetch` installs, and either gives the path to use."""

    purpose: str
    find: Callable[[], Path | None]
    fetch: Callable[[], Path]
    late: bool = False
    """Fetched on first use by the bench or `make mutants`; no test needs it."""


PARTS: dict[str, Part] = {
    "node": Part(purpose="runs the Node tools", find=node.find_node, fetch=node.fetch_node),
    "inspector": Part(
        purpose="MCP Inspector, as a client", find=node.find_inspector, fetch=node.fetch_inspector
    ),
    "postgres": Part(purpose="the other database", find=postgres.find, fetch=postgres.fetch),
    "chromium": Part(purpose="opens the web page", find=browser.find, fetch=browser.fetch),
    "fastmcp": Part(
        purpose="FastMCP, as a client and bench peer", find=peers.find_fastmcp, fetch=peers.fetch_fastmcp
    ),
    "pydantic_ai": Part(
        purpose="Pydantic AI's MCPToolset, as a client",
        find=peers.find_pydantic_ai,
        fetch=peers.fetch_pydantic_ai,
    ),
    "langchain": Part(
        purpose="LangChain's MCP adapters, as a client, and its tools behind us",
        find=partial(peers.find, "langchain"),
        fetch=partial(peers.fetch, "langchain"),
    ),
    "openai_agents": Part(
        purpose="OpenAI's agents SDK, as a client",
        find=partial(peers.find, "openai_agents"),
        fetch=partial(peers.fetch, "openai_agents"),
    ),
    "providers": Part(
        purpose="the SDKs of those whose formats we speak",
        find=partial(peers.find, "providers"),
        fetch=partial(peers.fetch, "providers"),
    ),
    "conformance": Part(purpose="the protocol's own suite", find=conformance.find, fetch=conformance.fetch),
    "npm_servers": Part(purpose="MCP servers of npm's", find=others.find_npm, fetch=others.fetch_npm),
    "modern_servers": Part(
        purpose="MCP servers of PyPI's, over mcp 2",
        find=partial(others.find_python, "modern"),
        fetch=partial(others.fetch_python, "modern"),
    ),
    "legacy_servers": Part(
        purpose="MCP servers of PyPI's, over mcp 1",
        find=partial(others.find_python, "legacy"),
        fetch=partial(others.fetch_python, "legacy"),
    ),
    "mentra": Part(purpose="the SDK of real glasses apps", find=mentra.find, fetch=mentra.fetch),
    "pulseaudio": Part(
        purpose="moves a volume, also through ALSA", find=sound.find_pulseaudio, fetch=sound.fetch_pulseaudio
    ),
    "pipewire": Part(
        purpose="moves a volume, the newer way", find=sound.find_pipewire, fetch=sound.fetch_pipewire
    ),
    "schemathesis": Part(
        purpose="asks every operation of our OpenAPI description",
        find=partial(peers.find, "schemathesis"),
        fetch=partial(peers.fetch, "schemathesis"),
    ),
    "mcp_proxy": Part(
        purpose="mcp-proxy of Python, beside our gateway",
        find=partial(peers.find, "mcp_proxy"),
        fetch=partial(peers.fetch, "mcp_proxy"),
        late=True,
    ),
    "proxies": Part(
        purpose="gateways on Node, beside ours", find=proxies.find, fetch=proxies.fetch, late=True
    ),
    "mutmut": Part(
        purpose="puts faults into the code, to see whether a test notices",
        find=partial(peers.find, "mutmut"),
        fetch=partial(peers.fetch, "mutmut"),
        late=True,
    ),
    "nginx": Part(
        purpose="a reverse proxy before the gateway",
        find=partial(reverse_proxies.find, "nginx"),
        fetch=partial(reverse_proxies.fetch, "nginx"),
    ),
    "haproxy": Part(
        purpose="another reverse proxy before the gateway",
        find=partial(reverse_proxies.find, "haproxy"),
        fetch=partial(reverse_proxies.fetch, "haproxy"),
    ),
    "wrk": Part(purpose="load for the bench", find=load.find, fetch=load.fetch),
}


def may_skip() -> bool:
    """Without a part a test is skipped by name; on the build machine it fails instead."""
    return os.environ.get("CI", "").lower() not in {"1", "true", "yes"}


@cache
def take(name: str) -> Path:
    """Path of a part, fetched if need be; raises `Missing` with the reason, the same one every time."""
    part = PARTS[name]
    found = part.find()
    if found is not None:
        return found
    if os.environ.get("TOOLCRIB_PARTS") == "present":
        raise Missing("not fetched yet (make test fetches it)")
    with alone(name):
        return part.find() or part.fetch()


def require(name: str) -> Path:
    """Path of a part for a running test, which ends here when the part is not to be had."""
    try:
        return take(name)
    except Missing as missing:
        if may_skip():
            pytest.skip(f"needs {name}: {missing}")
        pytest.fail(f"needs {name}, and CI=true allows no skip: {missing}")
