"""The requests that the fault sweep sends: together they await everything a request can await."""

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from tests.gateways import InProcessGateway, Reply, open_gateway
from tests.servers.settings import config, ledger
from toolcrib import create_tool
from toolcrib.errors import BusinessRuleError
from toolcrib.interfaces import ChangeSignal
from toolcrib.server import GatewayApp

DEADLINE_SECONDS = 0.5
APP, SPARE = "com.example.swept", "com.example.spare"
MCP = {"accept": "application/json, text/event-stream"}
LEGACY = "2025-06-18"
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "sweep", "version": "1"}}
QUOTA = {"keys_per_principal": 1, "bytes_per_principal": 2_000}
"""Each request with an idempotency key has an API key of its own, which is full after the request."""
SETTINGS: dict[str, Any] = {
    "contexts": {"paced": {"max_energy_cost": 100}},
    "energy": {"start": 1_000_000},
    "idempotency": QUOTA,
}
WAITS = {"x-timeout-ms": str(int(DEADLINE_SECONDS * 1000))}


@create_tool(category="query", timeout=DEADLINE_SECONDS)
async def look() -> int:
    """Look at something."""
    return 1


@create_tool(category="query", cache_ttl=600)
async def remember(text: str) -> str:
    """Look at something that stays as it is."""
    return text


@create_tool(category="mutation", idempotent=True)
async def pay(amount: int = 1) -> int:
    """Pay."""
    return amount


@create_tool(category="mutation")
async def decline() -> int:
    """Decline, so that the caller may try again under the same idempotency key."""
    code = "DECLINED"
    raise BusinessRuleError(code, "declined for now", retryable=True)


@create_tool(category="mutation")
async def report() -> str:
    """Return more than the stored answers of one principal may have."""
    return "x" * 4_000


TOOLS = (look, remember, pay, decline, report)


@dataclass
class Swept:
    """A gateway with users, apps and keys, and a second server over it, which acts as a replica."""

    gateway: InProcessGateway
    replica: InProcessGateway
    app_key: str = ""
    full_key: str = ""
    made: dict[str, str] = field(default_factory=dict[str, str])
    """What preparing a request returned, by the request's own name: a key, or an MCP session."""
    sessions: list[str] = field(default_factory=list[str])
    """Every MCP session that was opened."""
    keyed: list[Callable[[], Awaitable[Reply]]] = field(default_factory=list[Callable[[], Awaitable[Reply]]])
    """Every call with an idempotency key, to be made again under the same key."""

    async def must(self, method: str, target: str, body: Any = None, **more: Any) -> Reply:
        """Send a request that must succeed."""
        reply = await self.gateway.request(method, target, body=body, **more)
        assert reply.status < 300, (method, target, reply.status, reply.body)
        return reply

    async def open_session(self, gateway: InProcessGateway) -> str:
        """Open an MCP session of the handshake era."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        reply = await gateway.request("POST", "/mcp", body=body, headers=MCP)
        assert reply.status == 200, reply.body
        self.sessions.append(reply.headers["mcp-session-id"])
        return self.sessions[-1]

    async def clean_up(self) -> None:
        """Remove the MCP servers that were added, and end every MCP session on both servers."""
        for name, server in (await self.must("GET", "/mcp/status")).json["servers"].items():
            if server["added"]:
                await self.must("DELETE", f"/mcp/servers/{name}")
        for session, gateway in itertools.product(self.sessions, (self.gateway, self.replica)):
            ended = await gateway.request("DELETE", "/mcp", headers=of_session(session))
            assert ended.status in {200, 404}, ended.body


Send = Callable[[Swept, str], Awaitable[Reply]]
Prepare = Callable[[Swept, str], Awaitable[object]]


@dataclass(frozen=True)
class Request:
    """One kind of request; it is sent with a name that nothing has had before."""

    send: Send
    setup: Prepare | None = None
    """Runs before, without a fault."""
    is_call: bool = False
    """Whether it calls a tool and has a deadline, which bounds every await."""
    seconds: float = DEADLINE_SECONDS
    """How long it may take, with some grace."""

    async def prepare(self, swept: Swept, new: str) -> str:
        """Prepare the request and return its new name; what is kept of users in memory is read again."""
        if self.setup is not None:
            await self.setup(swept, new)
        swept.gateway.runtime.console.shared.publish(ChangeSignal("users"))
        return new


def of_session(session: str) -> dict[str, str]:
    return {**MCP, "mcp-session-id": session, "mcp-protocol-version": LEGACY}


def filled(value: Any, new: str) -> Any:
    """Put the new name in the place of NEW."""
    if isinstance(value, dict):
        return {key: filled(each, new) for key, each in cast("dict[str, Any]", value).items()}
    return value.replace("NEW", new) if isinstance(value, str) else value


def ask(
    method: str,
    target: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    prepare: Prepare | None = None,
    **more: Any,
) -> Request:
    """Send a request as the operator."""

    async def send(swept: Swept, new: str) -> Reply:
        given = filled(dict(headers or {}), new)
        return await swept.gateway.request(
            method, filled(target, new), body=filled(body, new), headers=given, **more
        )

    return Request(send, prepare)


def call(name: str, arguments: Any = None, headers: Mapping[str, str] | None = None, **body: Any) -> Request:
    """Call a tool as the operator, within a deadline."""
    body = {"name": name, "arguments": arguments, **body}
    made = ask("POST", "/api/tools/execute", body, {**WAITS, **(headers or {})})
    return Request(made.send, is_call=True)


def keyed(name: str, arguments: Any = None) -> Request:
    """Call a tool under a new idempotency key, with an API key that has stored nothing yet."""

    async def send(swept: Swept, new: str) -> Reply:
        headers = {**WAITS, "idempotency-key": new}
        again = partial(swept.gateway.call, name, arguments, headers=headers, key=swept.made[new])
        swept.keyed.append(again)
        return await again()

    return Request(send, make_key, is_call=True)


def stored(method: str, body: Any = None, prepare: Prepare | None = None) -> Request:
    """Send a request of an app about what it keeps for a user."""

    async def send(swept: Swept, new: str) -> Reply:
        target = f"/api/sdk/simple-storage/ann/{new}"
        return await swept.gateway.request(method, target, key=f"{APP}:{swept.app_key}", body=body)

    return Request(send, prepare)


def in_session(method: str, body: Any = None, *, elsewhere: bool = False) -> Request:
    """Send a request in an MCP session, which was opened here or on the replica."""

    async def send(swept: Swept, new: str) -> Reply:
        headers = of_session(swept.made[new])
        return await swept.gateway.request(method, "/mcp", body=body, headers=headers)

    async def prepare(swept: Swept, new: str) -> None:
        swept.made[new] = await swept.open_session(swept.replica if elsewhere else swept.gateway)

    return Request(send, prepare)


async def make_key(swept: Swept, new: str) -> None:
    swept.made[new] = await swept.gateway.key(new)


def must(method: str, target: str, body: Any = None) -> Prepare:
    """Prepare with a request that must succeed."""

    async def prepare(swept: Swept, new: str) -> None:
        await swept.must(method, filled(target, new), filled(body, new))

    return prepare


async def keep_text(swept: Swept, new: str) -> None:
    reply = await stored("PUT", {"value": "kept"}).send(swept, new)
    assert reply.status == 200, reply.body


async def add_server(swept: Swept, new: str) -> None:
    reply = await swept.gateway.call("crib:mcp_add_server", {**SERVER, "server_id": new})
    assert reply.status == 200, reply.body


async def refused_key(swept: Swept, new: str) -> Reply:
    """Call under an idempotency key for which the quota has no room."""
    headers = {**WAITS, "idempotency-key": new}
    return await swept.gateway.call("pay", headers=headers, key=swept.full_key)


SERVER = {"url": "http://127.0.0.1:9/mcp", "start": "lazy"}
MCP_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "look"}}
ANN, SESSION, INSTALLED = "/api/users/ann", "/api/users/NEW/session", f"/api/users/ann/apps/{SPARE}"
FOR_ANN = {"x-user-id": "ann"}
CALLS: dict[str, Request] = {
    "query": call("look"),
    "cached": call("remember", {"text": "NEW"}),
    "mutation": call("pay"),
    "mutation_with_key": keyed("pay", {"amount": 2}),
    "failing_with_key": keyed("decline"),
    "large_with_key": keyed("report"),
    "over_quota": Request(refused_key, is_call=True),
    "paced": call("look", context="paced"),
    "for_a_user": call("look", headers=FOR_ANN),
    "events": call("look", headers={"accept": "text/event-stream"}),
    "server": call("books:append", {"op_id": "NEW"}),
    "add_server": call("crib:mcp_add_server", {**SERVER, "server_id": "NEW"}),
}
MCP_REQUESTS: dict[str, Request] = {
    "mcp": ask("POST", "/mcp", MCP_CALL, MCP),
    "mcp_session": in_session("POST", MCP_CALL),
    "mcp_session_elsewhere": in_session("POST", MCP_CALL, elsewhere=True),
    "mcp_end": in_session("DELETE"),
    "mcp_end_elsewhere": in_session("DELETE", elsewhere=True),
}
OPERATOR_REQUESTS: dict[str, Request] = {
    "keys": ask("GET", "/api/keys?limit=2"),
    "keys_after": ask("GET", "/api/keys?limit=2&after=kept"),
    "key": ask("POST", "/api/keys", {"name": "NEW"}),
    "rotate": ask("POST", "/api/keys/kept/rotate"),
    "revoke": ask("DELETE", "/api/keys/NEW", prepare=make_key),
    "remove_server": ask("DELETE", "/mcp/servers/NEW", prepare=add_server),
    "test_server": ask("POST", "/mcp/test/books"),
    "reload": ask("POST", "/reload"),
    "approve": ask("POST", "/api/pins", {"name": "books:append"}),
    "calls": ask("GET", "/api/calls"),
    "usage": ask("GET", "/api/usage"),
    "audit": ask("GET", "/api/audit"),
    "ready": ask("GET", "/ready"),
}
USER_REQUESTS: dict[str, Request] = {
    "users": ask("GET", "/api/users"),
    "user_read": ask("GET", ANN),
    "user": ask("PUT", "/api/users/NEW", {"language": "de"}),
    "user_drop": ask("DELETE", "/api/users/NEW", prepare=must("PUT", "/api/users/NEW", {})),
    "session": ask("PUT", f"{ANN}/session", {}),
    "session_end": ask("DELETE", SESSION, prepare=must("PUT", SESSION, {})),
    "install": ask("PUT", f"{ANN}/apps/{APP}"),
    "uninstall": ask("DELETE", INSTALLED, prepare=must("PUT", INSTALLED)),
    "start_app": ask("POST", f"{ANN}/apps/{APP}/start"),
    "switch_off": ask("PUT", f"{ANN}/tools/look/disabled"),
    "switch_on": ask("DELETE", f"{ANN}/tools/look/disabled"),
    "transcription": ask("POST", f"{ANN}/transcription", {"text": "hello"}),
    "device_events": ask("GET", f"{ANN}/events", headers={"accept": "text/event-stream"}, leaves=True),
    "lists": ask("GET", "/api/tools", headers=FOR_ANN),
}
APP_REQUESTS: dict[str, Request] = {
    "app": ask("PUT", f"/api/apps/{APP}", {"name": "Swept"}),
    "app_new": ask("PUT", "/api/apps/com.example.NEW", {"name": "New"}),
    "app_read": ask("GET", f"/api/apps/{APP}"),
    "app_tools": ask("POST", f"/api/apps/{APP}/tools", {"tools": []}),
    "app_rotate": ask("POST", f"/api/apps/{SPARE}/key/rotate"),
    "app_drop": ask(
        "DELETE",
        "/api/apps/com.example.NEW",
        prepare=must("PUT", "/api/apps/com.example.NEW", {"name": "New"}),
    ),
    "stored_all": Request(
        lambda swept, _: swept.gateway.request(
            "GET", "/api/sdk/simple-storage/ann", key=f"{APP}:{swept.app_key}"
        )
    ),
    "stored_put": stored("PUT", {"value": "kept"}),
    "stored_drop": stored("DELETE", prepare=keep_text),
}
REQUESTS: dict[str, Request] = {**CALLS, **MCP_REQUESTS, **OPERATOR_REQUESTS, **USER_REQUESTS, **APP_REQUESTS}


def app_calls(package: str) -> dict[str, Request]:
    """Call a tool of an app, which connects to the gateway first where it does not run yet."""
    headers = {**FOR_ANN, "x-timeout-ms": "1500"}

    async def send(swept: Swept, new: str) -> Reply:
        return await swept.gateway.call(f"{package}:note", {"text": new}, headers=headers)

    async def start(swept: Swept, new: str) -> None:
        assert (await send(swept, new)).status == 200

    stop = must("POST", f"{ANN}/apps/{package}/stop")
    return {"running": Request(send, start, True, 1.5), "stopped": Request(send, stop, True, 1.5)}


@asynccontextmanager
async def swept_gateway(folder: Path) -> AsyncGenerator[Swept]:
    """Run a gateway with a server, a user, two apps, and two API keys, one of them over its quota."""
    text = config({"books": ledger(folder / "books")}, **SETTINGS)
    async with open_gateway(text, tools=TOOLS) as gateway:
        other = GatewayApp(gateway.runtime)
        async with other.running():
            swept = Swept(gateway, InProcessGateway(gateway.runtime, other))
            await gateway.begin("ann")
            await gateway.key("kept")
            swept.full_key = await gateway.key("full")
            filling = {"idempotency-key": "the-only-one"}
            paid = await gateway.call("pay", headers=filling, key=swept.full_key)
            assert paid.status == 200, paid.body
            swept.app_key = (await swept.must("PUT", f"/api/apps/{APP}", {"name": "Swept"})).json["apiKey"]
            await swept.must("PUT", f"/api/apps/{SPARE}", {"name": "Spare"})
            await swept.must("PUT", f"{ANN}/apps/{APP}")
            assert (await swept.must("POST", "/mcp/test/books")).json["ok"]
            yield swept
