"""What callers of a gateway do all day, each as one round that leaves nothing behind."""

import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio

from tests.gateway_process import GatewayProcess
from tests.servers.settings import config, ledger
from tests.soak.callers import HELLO, LEGACY, Caller, Tally, caller, modern_message
from tests.walks.app_host import TOOL
from tests.walks.fake_app import FakeApp

SUM = {"numbers": [1, 2]}
EVENT_STREAM = {"Accept": "text/event-stream"}
RESTART = {"enabled": True, "max_restarts": 1000, "backoff_ms": 100}
IDEMPOTENCY = {"keys_per_principal": 90_000}
"""One key does the work of many here, and in half an hour it uses more idempotency keys than one may."""
OPENED_SECONDS = 0.05
"""How long a stream is listened to before it is left."""
BAD_BODIES = (b"{", b"[]", b'{"name": 1}', b'{"name": "demo:add-numbers", "arguments": {"numbers": "x"}}')


@dataclass(frozen=True)
class LoadTarget:
    """Where the load is put: the gateway, what stands behind it, and the tally."""

    gateway: GatewayProcess
    folder: Path
    web_url: str
    fake_app: FakeApp
    tally: Tally
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def next(self, what: str) -> str:
        """Return a name that was not used before."""
        return f"{what}-{next(self.numbers)}"


Round = Callable[[LoadTarget, Caller], Awaitable[None]]


def settings(folder: Path, *, more: bool = False) -> str:
    """Return the config: a server that stays, one that crashes, and with `more` one that comes and goes."""
    servers = {
        "books": ledger(folder / "books", restart=RESTART),
        "crashing": ledger(folder / "crashing", restart=RESTART),
        **({"extra": ledger(folder / "extra")} if more else {}),
    }
    contexts = {"few": {"tools": ["demo:*", "books:*", *(["extra:*"] if more else [])]}}
    return config(servers, contexts=contexts, idempotency=IDEMPOTENCY)


async def rest_call(target: LoadTarget, operator: Caller) -> None:
    await operator.call("demo:add-numbers", SUM)


async def rest_stream(target: LoadTarget, operator: Caller) -> None:
    body = {"name": "demo:add-numbers", "arguments": SUM}
    await operator.ask("POST", "/api/tools/execute", body, headers=EVENT_STREAM)


async def keyed_mutation(target: LoadTarget, operator: Caller) -> None:
    """Make a change twice under one key: it is made once, and the answer is the same."""
    operation = target.next("operation")
    both = [await operator.call("books:append", {"op_id": operation}, idempotencyKey=operation) for _ in "ab"]
    if both[0].get("data") != both[1].get("data"):
        target.tally.error(f"{operation}: two answers for one key: {both}")


async def legacy_session(target: LoadTarget, operator: Caller) -> None:
    """Start a session, list, call, read its stream for a moment, end it."""
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    _, headers = await operator.ask("POST", "/mcp", first)
    session = {"Mcp-Session-Id": headers.get("Mcp-Session-Id", ""), "MCP-Protocol-Version": LEGACY}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await operator.ask("POST", "/mcp", ready, headers=session, expect=(202,))
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    await operator.ask("POST", "/mcp", listing, headers=session)
    call = {"name": "add_numbers", "arguments": SUM}
    message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}
    answer, _ = await operator.ask("POST", "/mcp", message, headers=session)
    _went_well(target, answer)
    async with operator.stream("GET", "/mcp", headers=session):
        await anyio.sleep(OPENED_SECONDS)
    await operator.ask("DELETE", "/mcp", headers=session, expect=(200, 204))


async def abandoned_session(target: LoadTarget, operator: Caller) -> None:
    """Begin a session and leave it open."""
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    await operator.ask("POST", "/mcp", first)


async def modern_calls(target: LoadTarget, operator: Caller) -> None:
    """List and call without a session, and listen for a moment."""
    await operator.modern("tools/list", {})
    _went_well(target, await operator.modern("tools/call", {"name": "add_numbers", "arguments": SUM}))
    wanted = {"notifications": {"toolsListChanged": True}}
    message, headers = modern_message("subscriptions/listen", wanted)
    async with operator.stream("POST", "/mcp", message, headers):
        await anyio.sleep(OPENED_SECONDS)


def _went_well(target: LoadTarget, answer: Any) -> None:
    if "result" not in answer or answer["result"].get("isError"):
        target.tally.error(f"tools/call: {answer}")


async def key_life(target: LoadTarget, operator: Caller) -> None:
    """Make a key, use it, end it, and see it refused."""
    name = target.next("key")
    made, _ = await operator.ask("POST", "/api/keys", {"name": name}, expect=(201,))
    async with caller(target.gateway, target.tally, made["key"]) as owner:
        await owner.call("demo:add-numbers", SUM)
        await operator.ask("DELETE", f"/api/keys/{name}")
        await owner.call("demo:add-numbers", SUM, expect=(401, 429))


async def user_life(target: LoadTarget, operator: Caller) -> None:
    """Start a user's session, act for them, read their events for a moment, remove them."""
    user = target.next("user")
    await operator.ask("PUT", f"/api/users/{user}/session", {"device": "Even Realities G1"})
    await operator.call("demo:add-numbers", SUM, user=user)
    async with operator.stream("GET", f"/api/users/{user}/events"):
        await anyio.sleep(OPENED_SECONDS)
    await operator.ask("DELETE", f"/api/users/{user}/session")
    await operator.ask("DELETE", f"/api/users/{user}")


async def app_life(target: LoadTarget, operator: Caller) -> None:
    """Register an app, install it, call it for a user, remove it and the user."""
    package, user, fake_app = target.fake_app.package, target.next("wearer"), target.fake_app
    body = {"name": package, "publicUrl": fake_app.address, "appType": "background"}
    made, _ = await operator.ask("PUT", f"/api/apps/{package}", body, expect=(201,))
    fake_app.key = made["apiKey"]
    await operator.ask("POST", f"/api/apps/{package}/tools", {"tools": [TOOL]})
    await operator.ask("PUT", f"/api/users/{user}/session", {"device": "Even Realities G1"})
    await operator.ask("PUT", f"/api/users/{user}/apps/{package}", expect=(200, 201))
    await operator.call(f"{package}:note", {"text": "x"}, user=user)
    await operator.ask("DELETE", f"/api/apps/{package}")
    await operator.ask("DELETE", f"/api/users/{user}/session")
    await operator.ask("DELETE", f"/api/users/{user}")
    for kept in (fake_app.webhooks, fake_app.calls, fake_app.headers, fake_app.heard):
        kept.clear()
    while fake_app.sockets:
        await fake_app.sockets.pop().close()


async def server_life(target: LoadTarget, operator: Caller) -> None:
    """Add a server, test it, call it, remove it."""
    server = target.next("web")
    await operator.call("crib:mcp_add_server", {"server_id": server, "url": target.web_url})
    await operator.ask("POST", f"/mcp/test/{server}")
    await operator.call(f"{server}:echo", {"text": "x"})
    await operator.ask("DELETE", f"/mcp/servers/{server}")


async def reloads(target: LoadTarget, operator: Caller) -> None:
    """Bring a server by the config file, and take it away again."""
    for more in (True, False):
        path = anyio.Path(target.folder / "toolcrib.yaml")
        await path.write_text(settings(target.folder, more=more))
        await operator.ask("POST", "/reload")
        await anyio.sleep(0.3)


async def crash(target: LoadTarget, operator: Caller) -> None:
    """Have a server end in the middle of a call."""
    await operator.call("crashing:crash", {}, expect=(502, 503, 504))


async def wrong_key(target: LoadTarget, operator: Caller) -> None:
    async with caller(target.gateway, target.tally, target.next("wrong")) as stranger:
        await stranger.call("demo:add-numbers", SUM, expect=(401, 429))


async def bad_requests(target: LoadTarget, operator: Caller) -> None:
    """Send what is no request, on REST and on MCP, and half a request."""
    for body in BAD_BODIES:
        await operator.ask("POST", "/api/tools/execute", body, expect=(400, 422))
    await operator.ask("POST", "/mcp", b"{", expect=(400,))
    await operator.call(target.next("nothing"), {}, expect=(404,))
    place_url = urlsplit(target.gateway.url)
    async with await anyio.connect_tcp(str(place_url.hostname), place_url.port or 0) as stream:
        await stream.send(
            b"POST /api/tools/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90\r\n\r\n{"
        )


async def looks(target: LoadTarget, operator: Caller) -> None:
    """Read what operators read."""
    for path in ("/api/tools", "/api/status", "/mcp/status", "/api/usage", "/api/audit", "/api/calls"):
        await operator.ask("GET", path)


ACTIVITIES: Mapping[Round, tuple[int, float]] = {
    rest_call: (4, 0.02),
    rest_stream: (1, 0.05),
    keyed_mutation: (1, 0.1),
    legacy_session: (2, 0.1),
    abandoned_session: (1, 0.5),
    modern_calls: (2, 0.1),
    key_life: (1, 0.3),
    user_life: (1, 0.3),
    app_life: (1, 0.5),
    server_life: (1, 1.0),
    reloads: (1, 2.0),
    crash: (1, 3.0),
    wrong_key: (1, 0.5),
    bad_requests: (1, 0.2),
    looks: (1, 2.0),
}
"""How many at a time do it, and how many seconds each rests between two rounds."""
