"""A fault at every await on the store, on shared state and on sources: each request ends, nothing leaks."""

import asyncio
import gc
import itertools
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.doors import Doors, Reply, doors
from tests.figures import figure
from tests.servers.settings import config, ledger
from tests.waiting import until
from tests.walks.checks.fault_points import KINDS, POINTS, Faults, counting, faults
from tests.walks.checks.starvation import starved_seconds
from toolcrib import create_tool
from toolcrib.errors import CODES
from toolcrib.slots import Slots

__all__ = ["faults"]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.check(23),
    pytest.mark.requirement("C4", "I5"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

DEADLINE_SECONDS = 0.3
GRACE_SECONDS = 1.0
STRIDE = figure(3, 1)
"""Every so many faults of the enumerated ones are tried."""
APP = "com.example.swept"
MCP = {"accept": "application/json, text/event-stream"}
Ask = Callable[[Doors, str], Any]


@create_tool(category="query")
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


def call(name: str, arguments: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> Ask:
    given = {"x-timeout-ms": str(int(DEADLINE_SECONDS * 1000)), **(headers or {})}

    def ask(crib: Doors, new: str) -> Any:
        filled = {key: value.replace("NEW", new) for key, value in given.items()}
        spelled = {key: new if value == "NEW" else value for key, value in (arguments or {}).items()}
        return crib.call(name, spelled, headers=filled)

    return ask


def ask(method: str, target: str, body: Any = None, **headers: str) -> Ask:
    def send(crib: Doors, new: str) -> Any:
        filled = None if body is None else {**body, **({"name": new} if body.get("name") == "NEW" else {})}
        return crib.ask(method, target.replace("NEW", new), body=filled, headers=headers)

    return send


MCP_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "look"}}
REQUESTS: dict[str, Ask] = {
    "query": call("look"),
    "cached": call("remember", {"text": "NEW"}),
    "mutation": call("pay"),
    "mutation_with_key": call("pay", {"amount": 2}, headers={"idempotency-key": "NEW"}),
    "for_a_user": call("look", headers={"x-user-id": "ann"}),
    "events": call("look", headers={"accept": "text/event-stream"}),
    "server": call("books:append", {"op_id": "NEW"}),
    "mcp": ask("POST", "/mcp", MCP_CALL, **MCP),
    "key": ask("POST", "/api/keys", {"name": "NEW"}),
    "rotate": ask("POST", "/api/keys/kept/rotate"),
    "revoke": ask("DELETE", "/api/keys/NEW"),
    "user": ask("PUT", "/api/users/NEW", {"language": "de"}),
    "user_away": ask("DELETE", "/api/users/NEW"),
    "session": ask("PUT", "/api/users/ann/session", {}),
    "install": ask("PUT", f"/api/users/ann/apps/{APP}"),
    "switch_off": ask("PUT", "/api/users/ann/tools/look/disabled"),
    "switch_on": ask("DELETE", "/api/users/ann/tools/look/disabled"),
    "app": ask("PUT", f"/api/apps/{APP}", {"name": "Swept"}),
    "app_tools": ask("POST", f"/api/apps/{APP}/tools", {"tools": []}),
    "test_server": ask("POST", "/mcp/test/books"),
    "reload": ask("POST", "/reload"),
    "approve": ask("POST", "/api/pins", {"name": "books:append"}),
    "lists": ask("GET", "/api/tools", **{"x-user-id": "ann"}),
    "users": ask("GET", "/api/users"),
    "calls": ask("GET", "/api/calls"),
    "usage": ask("GET", "/api/usage"),
    "audit": ask("GET", "/api/audit"),
    "ready": ask("GET", "/ready"),
}


def children() -> int:
    """How many processes this one has started that have not been waited for."""
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def held() -> int:
    """How many slots of any kind are taken."""
    return sum(each.used for each in gc.get_objects() if isinstance(each, Slots))


@asynccontextmanager
async def gateway(tmp_path: Path) -> AsyncGenerator[Doors]:
    text = config({"books": ledger(tmp_path / "books")}, limits={"per_user": None})
    async with doors(text, tools=[look, remember, pay]) as crib:
        await crib.begin("ann")
        await crib.key("kept")
        assert (await crib.ask("PUT", f"/api/apps/{APP}", body={"name": "Swept"})).status == 201
        assert (await crib.ask("POST", "/mcp/test/books")).json["ok"]
        yield crib


def judge(reply: Reply, what: str, took: float) -> None:
    """Whatever came back is a result, or an error with a code of the table; and it came in time."""
    assert took < DEADLINE_SECONDS + GRACE_SECONDS, (what, took)
    if reply.headers.get("content-type", "").startswith("text/event-stream"):
        assert b"event: result" in reply.body, what
    elif reply.status >= 400 and "jsonrpc" not in reply.json:
        assert CODES[str(reply.code)].status == reply.status, (what, reply.body)
    else:
        assert reply.status < 600


async def send(crib: Doors, request: Ask, what: str, new: str) -> Reply:
    token = counting.set(True)
    began, starved = anyio.current_time(), starved_seconds()
    try:
        with anyio.fail_after(30):
            reply = await request(crib, new)
    finally:
        counting.reset(token)
    judge(reply, what, anyio.current_time() - began - (starved_seconds() - starved))
    return reply


async def settled(crib: Doors, tasks: int) -> None:
    """Nothing is left of the requests that failed."""
    await until(lambda: len(asyncio.all_tasks()) <= tasks and crib.server.active == 0, within=20)


async def test_fault_at_every_await_of_a_request(faults: Faults, tmp_path: Path) -> None:
    numbers = itertools.count()
    tried = awaits = 0
    async with gateway(tmp_path) as crib:
        tasks, processes = len(asyncio.all_tasks()), children()
        for name, request in REQUESTS.items():
            faults.arm(None)
            await send(crib, request, name, f"n{next(numbers)}")
            count = len(faults.seen)
            awaits += count
            for at, kind in itertools.islice(
                itertools.product(range(count), KINDS), tried % STRIDE, None, STRIDE
            ):
                faults.arm(at, kind)
                await send(crib, request, f"{name}: await {at} {kind}", f"n{next(numbers)}")
                tried += 1
            faults.arm(None)
        await settled(crib, tasks)
        crib.house.console.servers.breaker.forget("books")
        assert (await crib.call("pay", headers={"idempotency-key": "last"})).status == 200
        assert children() == processes
        assert held() == 0
    print(f"{len(REQUESTS)} kinds of requests, {awaits} awaits, {tried} faults: all ended, nothing leaked")
    assert awaits > 60


async def test_fault_at_every_await_of_one_method(faults: Faults, tmp_path: Path) -> None:
    numbers = itertools.count()
    calls = ("query", "cached", "mutation_with_key", "for_a_user", "server", "mcp")
    async with gateway(tmp_path) as crib:
        tasks, processes = len(asyncio.all_tasks()), children()
        for point in sorted(POINTS - {"store.close", "shared.close", "store.watch"}):
            faults.method = point
            for name in calls:
                await send(crib, REQUESTS[name], f"{name} without {point}", f"m{next(numbers)}")
            faults.method = ""
        await settled(crib, tasks)
        assert children() == processes
        assert held() == 0
    print(f"{len(POINTS)} methods, each out of order while {len(calls)} kinds of calls were made")
