"""Whatever callers send, metrics get no new label; without a key, nothing that runs here is named."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.figures import figure
from tests.gateways import InProcessGateway, Reply, open_gateway
from toolcrib import create_tool

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.check(44),
    pytest.mark.requirement("I3", "I5"),
]

VALUES = figure(250, 100_000)
"""How many users, arguments, tools and so on are named that nobody has named before."""
STORED_EVERY = 10
"""So many users are named for each that is stored, which writes to the store twice."""
CONFIG = """
limits: {per_user: null}
contexts: {secret_context: {tools: []}}
mcp: {servers: {secret_server: {transport: http, url: "http://127.0.0.1:9/mcp", start: lazy}}}
"""
NAMES = (
    "secret-tool",
    "secret_tool",
    "secret_context",
    "secret_server",
    "secret-key",
    "secret-user",
    "toolcrib_tool",
)
AWAY = "198.51.100.7"
SAMPLE = re.compile(r"^(\w+)(\{.*\})? \S+$")


@create_tool(category="query")
async def secret_tool(text: str = "") -> str:
    """Give back what it is given."""
    return text


async def labels(gateway: InProcessGateway) -> set[str]:
    """Every series there is, by name and labels."""
    lines = (await gateway.request("GET", "/metrics")).body.decode().splitlines()
    found = [SAMPLE.match(line) for line in lines if not line.startswith("#")]
    return {f"{each[1]}{each[2] or ''}" for each in found if each is not None}


def rpc(method: str, params: Any) -> Any:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def requests_of(number: int) -> tuple[tuple[str, str, dict[str, Any]], ...]:
    """Return one request of each kind, with a value nobody has sent before."""
    new = f"new-{number}"
    call = "/api/tools/execute"
    agent = {"x-agent-id": new, "x-agent-version": new, "x-session-id": new, "x-correlation-id": new}
    mcp = {"accept": "application/json, text/event-stream"}
    stored: tuple[str, str, dict[str, Any]] = ("PUT", f"/api/users/{new}", {"body": {}})
    return (
        *([] if number % STORED_EVERY else [stored]),
        ("POST", call, {"body": {"name": "secret_tool", "arguments": {"text": new}}, "headers": agent}),
        ("POST", call, {"body": {"name": "secret_tool", "arguments": {new: new}}}),
        ("POST", call, {"body": {"name": new}}),
        ("POST", call, {"body": {"name": f"{new}:secret_tool"}}),
        ("POST", call, {"body": {"name": "secret_tool", "context": new}}),
        ("POST", call, {"body": {"name": "secret_tool"}, "headers": {"x-user-id": new}}),
        ("POST", call, {"body": {"name": "secret_tool"}, "key": new}),
        ("GET", f"/{new}", {}),
        ("POST", "/mcp", {"body": rpc(new, {}), "headers": mcp}),
        ("POST", "/mcp", {"body": rpc("tools/call", {"name": new}), "headers": mcp}),
    )


async def test_no_request_adds_a_label_value() -> None:
    async with open_gateway(CONFIG, tools=[secret_tool]) as gateway:
        for method, target, more in requests_of(0):
            await gateway.request(method, target, **more)
        before, sent = await labels(gateway), 0
        for number in range(1, VALUES + 1):
            for method, target, more in requests_of(number):
                assert (await gateway.request(method, target, **more)).status < 500
                sent += 1
        added = await labels(gateway) - before
        print(f"{sent} requests with {VALUES} values of each kind added {len(added)} label values")
        assert added == set()


async def named(gateway: InProcessGateway, ask: Callable[[str], Any]) -> list[tuple[str, str]]:
    """Which names the open routes give away."""
    found: list[tuple[str, str]] = []
    for path in ("/health", "/ready", "/metrics", "/openapi.json"):
        reply: Reply = await ask(path)
        said = f"{reply.headers} {reply.body.decode()}"
        found += [(path, name) for name in NAMES if name in said]
    return found


async def test_nothing_is_named_without_a_key() -> None:
    async with open_gateway(CONFIG, tools=[secret_tool]) as gateway:
        await gateway.key("secret-key")
        assert (await gateway.request("PUT", "/api/users/secret-user", body={})).status == 200
        assert (await gateway.call("secret_tool")).status == 200
        assert "secret-tool" in (await gateway.request("GET", "/metrics", client=AWAY)).body.decode()
        for key in (None, "wrong"):
            assert (
                await named(gateway, lambda path, key=key: gateway.request("GET", path, key=key, client=AWAY))
                == []
            )
            for path in ("/metrics", "/openapi.json"):
                assert (await gateway.request("GET", path, key=key, client=AWAY)).status == 401
        for path in ("/health", "/ready"):
            alone = await gateway.request("GET", path, key=None)
            assert len(alone.body) < 100
            assert not any(name in alone.body.decode() for name in NAMES)
