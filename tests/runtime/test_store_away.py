"""With the store locked or away: answers within the deadline, no unrecorded mutation, and a way back."""

import resource
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import asyncpg
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.gateway_process import gateway_process
from tests.gateways import ADMIN, InProcessGateway, Reply, listening, open_gateway
from tests.store.sql.tcp_proxy import TcpProxy, proxy_to
from tests.waiting import until
from toolcrib import Crib
from toolcrib.config import parse
from toolcrib.identity.keys import MAX_UNCHECKED_SECONDS
from toolcrib.sdk import AnyTool, create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("C4", "I5")]

DEADLINE_SECONDS = 3.0
AT_ONCE = 5


@create_tool(category="mutation")
async def pay(amount: int = 1) -> int:
    """Pay, which its author calls a mutation."""
    return amount


@create_tool()
async def poke() -> int:
    """A tool without a category."""
    return 1


@create_tool(category="query")
async def look() -> int:
    """Look at something."""
    return 1


TOOLS: list[AnyTool] = [pay, poke, look]


class LockHolder:
    """Another connection that holds SQLite's write lock."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=0)

    async def lock(self) -> None:
        # Without blocking the loop: the gateway may be in the middle of a write, which must go on and end.
        await until(self._is_locked)

    def _is_locked(self) -> bool:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True

    def release(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toolcrib.db"


@asynccontextmanager
async def locked(path: Path) -> AsyncGenerator[tuple[InProcessGateway, LockHolder]]:
    async with open_gateway(tools=TOOLS, store=f"sqlite:///{path}") as gateway:
        with closing(LockHolder(path)) as lock_holder:
            await lock_holder.lock()
            yield gateway, lock_holder


async def keyed(gateway: InProcessGateway, key: str, **headers: str) -> Reply:
    return await gateway.call("pay", {"amount": 1}, headers={"idempotency-key": key, **headers})


async def seconds_of(ask: Callable[[], Coroutine[Any, Any, Any]], times: int = 1) -> float:
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for _ in range(times):
            tasks.start_soon(ask)
    return anyio.current_time() - began


async def known_to_be_away(gateway: InProcessGateway) -> None:
    await until(lambda: bool(gateway.runtime.console.store.refused))


async def eventually(ask: Callable[[], Awaitable[int]], expected: int) -> None:
    with anyio.fail_after(20):
        found = await ask()
        while found != expected:
            await anyio.sleep(0.05)
            found = await ask()


# --- a locked SQLite ---


@pytest.mark.check(28)
async def test_locked_store_answers_rest_within_the_deadline(path: Path) -> None:
    found: list[tuple[int, str, bool]] = []
    async with locked(path) as (gateway, lock_holder):

        async def ask() -> None:
            reply = await keyed(gateway, f"key-{len(found)}", prefer=f"wait={DEADLINE_SECONDS:.0f}")
            found.append((reply.status, reply.json["error"]["code"], "retry-after" in reply.headers))

        took = await seconds_of(ask, AT_ONCE)
        print(f"{AT_ONCE} REST calls with a deadline of {DEADLINE_SECONDS} s: {took:.2f} s")
        assert took < DEADLINE_SECONDS
        assert found == [(503, "OVERLOADED", True)] * AT_ONCE
        lock_holder.release()
        await until(lambda: not gateway.runtime.console.store.refused)
        assert (await keyed(gateway, "key-0")).status == 200


async def test_locked_store_answers_the_library_within_the_deadline(path: Path) -> None:
    document = parse(f"store: sqlite:///{path}", "toolcrib.yaml", {})
    async with Crib(document=document, tools=TOOLS) as crib:
        with closing(LockHolder(path)) as lock_holder:
            await lock_holder.lock()
            codes: list[str] = []

            async def ask() -> None:
                result = await crib.call("pay", timeout=DEADLINE_SECONDS, idempotency_key=f"k{len(codes)}")
                codes.append(result.problem.code if result.problem else "")

            took = await seconds_of(ask, AT_ONCE)
            print(f"{AT_ONCE} library calls with a deadline of {DEADLINE_SECONDS} s: {took:.2f} s")
            assert took < DEADLINE_SECONDS
            assert codes == ["OVERLOADED"] * AT_ONCE
            lock_holder.release()


async def test_locked_store_answers_mcp_within_its_own_limit(path: Path) -> None:
    headers = {"authorization": f"Bearer {ADMIN}"}
    async with (
        locked(path) as (gateway, lock_holder),
        listening(gateway.server) as url,
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        began = anyio.current_time()
        result = await client.call_tool("pay", meta={"toolcrib/idempotencyKey": "k"})
        took = anyio.current_time() - began
        print(f"an MCP call, which has no deadline: {took:.2f} s")
        assert result.is_error
        assert took < 6.0
        lock_holder.release()


async def test_locked_store_bounds_operators_and_readiness(path: Path) -> None:
    async with locked(path) as (gateway, lock_holder):
        began = anyio.current_time()
        reply = await gateway.request("POST", "/api/keys", body={"name": "new"})
        print(f"creating a key: {anyio.current_time() - began:.2f} s")
        assert anyio.current_time() - began < 10.0
        assert (reply.status, reply.json["error"]["code"]) == (503, "SOURCE_DOWN")
        assert "retry-after" in reply.headers
        ready = await gateway.request("GET", "/ready", key=None)
        assert (ready.status, "locked" in ready.json["error"]["message"]) == (503, True)
        assert (await gateway.request("GET", "/health", key=None)).status == 200
        assert (await gateway.request("GET", "/api/keys")).status == 200
        lock_holder.release()
        await until(lambda: not gateway.runtime.console.store.refused)
        assert (await gateway.request("GET", "/ready", key=None)).status == 200
        assert (await gateway.request("POST", "/api/keys", body={"name": "new"})).status == 201


@pytest.mark.check(28)
async def test_store_outage_refuses_only_store_requests(path: Path) -> None:
    override = 'overrides: {"*:poke": {category: mutation}}'
    async with open_gateway(tools=TOOLS, store=f"sqlite:///{path}") as gateway:
        with closing(LockHolder(path)) as lock_holder:
            await lock_holder.lock()
            await known_to_be_away(gateway)
            refused = await gateway.call("pay")
            assert (refused.status, refused.json["error"]["code"]) == (503, "OVERLOADED")
            assert "retry-after" in refused.headers
            assert (await gateway.call("poke")).status == 200
            assert (await gateway.call("look")).status == 200
            assert (await gateway.call("look", headers={"idempotency-key": "k"})).status == 200
            assert (await gateway.call("poke", headers={"idempotency-key": "k"})).status == 503
            lock_holder.release()
    async with open_gateway(override, tools=TOOLS, store=f"sqlite:///{path}") as gateway:
        with closing(LockHolder(path)) as lock_holder:
            await lock_holder.lock()
            await known_to_be_away(gateway)
            assert (await gateway.call("poke")).status == 503
            lock_holder.release()


# --- a store that refuses writes for other reasons ---


@pytest.mark.check(28)
async def test_ready_reports_full_disk(tmp_path: Path) -> None:
    async with (
        gateway_process(tmp_path) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=30) as http,
    ):

        async def status(path: str) -> int:
            return (await http.get(path)).status_code

        assert await status("/ready") == 200
        # No file of that process may grow any more.
        _, hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (1, hard))
        await eventually(lambda: status("/ready"), 503)
        refused = await http.get("/ready")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "SOURCE_DOWN")
        assert await status("/health") == 200
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        await eventually(lambda: status("/ready"), 200)


@pytest.fixture
async def postgres(fresh_database: str) -> AsyncGenerator[Any]:
    """Another client of the same Postgres."""
    connection = cast("Any", await asyncpg.connect(fresh_database))  # pyright: ignore[reportUnknownMemberType]
    yield connection
    await connection.close()


@asynccontextmanager
async def wired(url: str) -> AsyncGenerator[tuple[InProcessGateway, TcpProxy]]:
    """A gateway whose Postgres is behind a connection that a test can cut or silence."""
    async with proxy_to(urlsplit(url).port or 0) as proxy:
        store = f"postgresql://postgres@127.0.0.1:{proxy.port}{urlsplit(url).path}"
        async with open_gateway(tools=TOOLS, store=store) as gateway:
            yield gateway, proxy
            proxy.restore()
            proxy.flow.set()


@pytest.mark.check(27)
async def test_locked_postgres_answers_within_the_deadline(fresh_database: str, postgres: Any) -> None:
    async with open_gateway(tools=TOOLS, store=fresh_database) as gateway:
        lock = postgres.transaction()
        await lock.start()
        await postgres.execute("LOCK TABLE toolcrib_replays IN ACCESS EXCLUSIVE MODE")
        took = await seconds_of(lambda: keyed(gateway, "k", prefer="wait=3"))
        print(f"Postgres with a locked table, deadline of 3 s: {took:.2f} s")
        assert took < DEADLINE_SECONDS
        await lock.rollback()
        await until(lambda: not gateway.runtime.console.store.refused)
        assert (await keyed(gateway, "k")).status == 200


@pytest.mark.check(27)
async def test_silent_postgres_answers_within_the_deadline(fresh_database: str) -> None:
    async with wired(fresh_database) as (gateway, proxy):
        assert (await keyed(gateway, "before")).status == 200
        proxy.mute()
        codes: list[str | None] = []

        async def ask() -> None:
            codes.append((await keyed(gateway, f"k{len(codes)}", prefer="wait=3")).code)

        took = await seconds_of(ask, AT_ONCE)
        print(f"{AT_ONCE} calls to a silent Postgres, deadline of 3 s: {took:.2f} s")
        assert took < DEADLINE_SECONDS
        assert codes == ["OVERLOADED"] * AT_ONCE
        assert (await gateway.request("GET", "/ready", key=None)).status == 503


@pytest.mark.check(27)
async def test_ready_reports_read_only_postgres(fresh_database: str, postgres: Any) -> None:
    name = urlsplit(fresh_database).path[1:]
    async with open_gateway(tools=TOOLS, store=fresh_database) as gateway:
        store = gateway.runtime.console.store
        assert (await gateway.request("GET", "/ready", key=None)).status == 200
        for mode in ("on", "off"):
            await postgres.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {mode}')
            # Sessions that exist keep what they began with.
            await postgres.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'toolcrib' "
                "AND datname = $1",
                name,
            )
            await until(lambda: bool(store.refused) is (mode == "on"))  # noqa: B023 - waited for at once
            expected = 503 if mode == "on" else 200
            assert (await gateway.request("GET", "/ready", key=None)).status == expected


@pytest.mark.requirement("I1")
async def test_keys_are_refused_when_the_store_is_away_too_long(
    fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with wired(fresh_database) as (gateway, proxy):
        key = await gateway.key("worker")
        now = 0.0
        monkeypatch.setattr(gateway.runtime.identity.ring, "_clock", lambda: now)
        gateway.runtime.identity.ring.load(await gateway.runtime.console.store.keys.all())
        proxy.cut()
        await known_to_be_away(gateway)
        now = MAX_UNCHECKED_SECONDS - 1
        gateway.runtime.identity.ring.expire()
        assert (await gateway.call("look", key=key)).status == 200
        now = MAX_UNCHECKED_SECONDS
        gateway.runtime.identity.ring.expire()
        refused = await gateway.call("look", key=key)
        assert (refused.status, refused.code) == (503, "SOURCE_DOWN")
        assert "retry-after" in refused.headers
        assert (await gateway.call("look")).status == 200  # the admin key is not kept in the store
        proxy.restore()

        async def status() -> int:
            return (await gateway.call("look", key=key)).status

        await eventually(status, 200)
