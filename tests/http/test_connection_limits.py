"""Connections and unfinished bodies are shared by principal; the operator is always served."""

import json
import resource
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from tests.frontends.rest.tools import add
from tests.gateways import ADMIN, InProcessGateway, listening, open_gateway
from tests.http.requests import request
from tests.http.test_protocol import everything
from tests.waiting import until
from toolcrib.errors import Refused
from toolcrib.http import ClientAddresses, connection_limits
from toolcrib.http.connection_limits import ClientConnection, ConnectionLimits, bounded_by_descriptors
from toolcrib.http.memory import BLOCK_BYTES, EXEMPT
from toolcrib.identity import ADMIN as OPERATOR
from toolcrib.model import TRUST_HEADER, Caller

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I10")]

LIMITS = "limits: {connections: 8, unfinished_bodies: 4, unfinished_bytes: 262144}\n"
PROXIED = "server: {trusted_proxies: [127.0.0.1]}\n"
CALL = json.dumps({"name": "add", "arguments": {"a": 1, "b": 2}}).encode()


class LimitedGateway:
    """A gateway with small limits, and connections to it."""

    def __init__(self, crib: InProcessGateway, url: str, stack: AsyncExitStack) -> None:
        self.crib, self._stack = crib, stack
        self.host, port = url.removeprefix("http://").split(":")
        self.port = int(port)

    async def connect(self, local: str | None = None) -> SocketStream:
        stream = await anyio.connect_tcp(self.host, self.port, local_host=local)
        return await self._stack.enter_async_context(stream)

    async def ask(self, stream: SocketStream, key: str | None, path: str = "/api/tools", **more: str) -> int:
        """Send a request and return the status of its answer."""
        await stream.send(head("GET", path, key, **more) + b"\r\n")
        with anyio.fail_after(10):
            return int((await stream.receive()).split()[1])

    def held(self, principal: str) -> int:
        return self.crib.server.intake.connections.by_principal.get(principal, 0)


def head(method: str, path: str, key: str | None, **more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {more[name]}" for name in more)]
    lines += [] if key is None else [f"Authorization: Bearer {key}"]
    return "\r\n".join((*lines, "")).encode()


@asynccontextmanager
async def limited_gateway(config: str = LIMITS) -> AsyncGenerator[LimitedGateway]:
    async with (
        open_gateway(config, tools=[add]) as crib,
        listening(crib.server) as url,
        AsyncExitStack() as stack,
    ):
        yield LimitedGateway(crib, url, stack)


ADDRESS = "address 127.0.0.1"


@pytest.mark.slow
async def test_idle_connections_of_one_address_leave_the_rest() -> None:
    async with limited_gateway() as gateway:
        key = await gateway.crib.key("k")
        for _ in range(8):
            await gateway.connect()
        await until(lambda: gateway.held(ADDRESS) == 6)
        assert await gateway.ask(await gateway.connect(), key) == 200
        assert await gateway.ask(await gateway.connect(), ADMIN) == 200
        stranger = await gateway.connect()
        await stranger.send(head("GET", "/health", None) + b"\r\n")
        answer = await everything(stranger)
        assert b" 503 " in answer.split(b"\r\n")[0]
        assert b"retry-after: " in answer
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "OVERLOADED"


@pytest.mark.slow
async def test_connections_of_one_key_are_bounded_by_its_share() -> None:
    async with limited_gateway() as gateway:
        keys = [await gateway.crib.key(name) for name in ("one", "two")]
        statuses = [await gateway.ask(await gateway.connect(), keys[0]) for _ in range(8)]
        assert statuses == [200] * 6 + [503] * 2
        assert gateway.held("one") == 6
        assert [await gateway.ask(await gateway.connect(), keys[1]) for _ in range(3)] == [200, 200, 503]
        assert [await gateway.ask(await gateway.connect(), ADMIN) for _ in range(5)] == [200] * 5


@pytest.mark.slow
async def test_connection_follows_the_credential_and_is_given_back() -> None:
    async with limited_gateway() as gateway:
        keys = [await gateway.crib.key(name) for name in ("one", "two")]
        stream = await gateway.connect()
        await until(lambda: gateway.held(ADDRESS) == 1)
        for name, key in zip(("one", "two", EXEMPT), (*keys, ADMIN), strict=True):
            assert await gateway.ask(stream, key) == 200
            held = {
                each: gateway.held(each) for each in ("one", "two", EXEMPT, ADDRESS) if gateway.held(each)
            }
            assert held == ({} if name == EXEMPT else {name: 1})
        assert await gateway.ask(stream, keys[0]) == 200
        await stream.aclose()
        await until(lambda: gateway.crib.server.intake.connections.used == 0)


@pytest.mark.slow
async def test_surplus_connections_are_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "SURPLUS_SECONDS", 0.05)
    async with limited_gateway() as gateway:
        for _ in range(6):
            await gateway.connect()
        await until(lambda: gateway.held(ADDRESS) == 6)
        assert await everything(await gateway.connect()) == b""


@pytest.mark.slow
async def test_oldest_surplus_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "MAX_SURPLUS", 2)
    async with limited_gateway() as gateway:
        for _ in range(6):
            await gateway.connect()
        await until(lambda: gateway.held(ADDRESS) == 6)
        first = await gateway.connect()
        others = [await gateway.connect() for _ in range(2)]
        assert await everything(first) == b""
        assert await gateway.ask(others[1], ADMIN) == 200


@pytest.mark.slow
async def test_connections_of_a_trusted_proxy_count_for_its_clients() -> None:
    async with limited_gateway(LIMITS + PROXIED) as gateway:
        streams = [await gateway.connect() for _ in range(9)]
        forwarded = {"X-Forwarded-For": "192.0.2.7"}
        statuses = [await gateway.ask(each, None, "/health", **forwarded) for each in streams[:7]]
        assert statuses == [200] * 6 + [503]
        assert gateway.held("address 192.0.2.7") == 6
        assert gateway.held(ADDRESS) == 0
        other = {"X-Forwarded-For": "192.0.2.8"}
        assert await gateway.ask(streams[7], None, "/health", **other) == 200
        assert await gateway.ask(streams[0], None, "/health", **other) == 200
        assert gateway.held("address 192.0.2.8") == 2


async def unfinished(gateway: LimitedGateway, key: str, body: bytes = b"{") -> SocketStream:
    stream = await gateway.connect()
    more = {"Content-Length": "1000000", "Expect": "100-continue"}
    await stream.send(head("POST", "/api/tools/execute", key, **more) + b"\r\n")
    assert (await stream.receive()).startswith(b"HTTP/1.1 100 ")
    await stream.send(body)
    return stream


@pytest.mark.slow
async def test_unfinished_bodies_of_one_key_leave_the_rest() -> None:
    async with limited_gateway() as gateway:
        keys = [await gateway.crib.key(name) for name in ("one", "two")]
        first = await unfinished(gateway, keys[0])
        for _ in range(2):
            await unfinished(gateway, keys[0])
        bodies = gateway.crib.server.intake.bodies
        assert bodies.by_principal == {"one": 3}
        refused = await gateway.connect()
        await refused.send(head("POST", "/api/tools/execute", keys[0], **{"Content-Length": "10"}) + b"\r\n{")
        assert b" 503 " in await refused.receive()
        for key in (keys[1], ADMIN, ADMIN):
            await unfinished(gateway, key)
        whole = head("POST", "/api/tools/execute", keys[0], **{"Content-Length": str(len(CALL))})
        await refused.send(b"         " + whole + b"\r\n" + CALL)
        assert b" 200 " in await refused.receive()
        await first.aclose()
        await until(lambda: bodies.by_principal == {"one": 2, "two": 1})


@pytest.mark.slow
async def test_bytes_of_unfinished_bodies_are_shared() -> None:
    async with limited_gateway() as gateway:
        key = await gateway.crib.key("one")
        stream = await unfinished(gateway, key, b" " * (BLOCK_BYTES * 3))
        blocks = gateway.crib.server.intake.blocks
        await until(lambda: blocks.used == 3)
        await stream.send(b" " * BLOCK_BYTES)
        assert b" 503 " in await stream.receive()
        await until(lambda: blocks.used == 0)
        operator = await unfinished(gateway, ADMIN, b" " * (BLOCK_BYTES * 8))
        await operator.send(b" ")
        assert blocks.used == 0


class Transport:
    """Notes whether it was aborted."""

    aborted = False

    def abort(self) -> None:
        self.aborted = True


async def test_giving_back_twice_changes_nothing() -> None:
    shared = ConnectionLimits(connections=4)
    transport: Any = Transport()
    connection = shared.opened(transport, "192.0.2.1")
    for _ in range(2):
        shared.closed(connection)
    assert shared.connections.used == 0
    shared.opened(transport, "192.0.2.1")
    assert not transport.aborted


async def test_request_without_a_credential_stays_with_its_address() -> None:
    shared = ConnectionLimits(connections=4)
    transport: Any = Transport()
    connection = shared.opened(transport, "127.0.0.1")
    shared.assign(connection, request())
    assert shared.connections.by_principal == {ADDRESS: 1}
    *_, surplus = [shared.opened(transport, "127.0.0.1") for _ in range(3)]
    with pytest.raises(Refused):
        shared.assign(surplus, request())
    shared.closed(surplus)


class Unread(Transport):
    """A connection whose client does not read."""


def _opened(shared: ConnectionLimits, number: int) -> tuple[list[Any], list[ClientConnection]]:
    transports: list[Any] = [Unread() for _ in range(number)]
    return transports, [shared.opened(each, "192.0.2.1") for each in transports]


async def test_longest_unread_answer_is_dropped_first() -> None:
    shared = ConnectionLimits(unread_bytes=8 * BLOCK_BYTES)
    transports, connections = _opened(shared, 4)
    for each in connections:
        each.hold_unread(2 * BLOCK_BYTES)
    assert [each.aborted for each in transports] == [True, False, False, False]
    assert shared.unread_blocks.by_principal == {"address 192.0.2.1": 6}
    connections[1].hold_unread(0)
    connections[0].hold_unread(2 * BLOCK_BYTES)
    assert [each.aborted for each in transports] == [True, False, False, False]
    for each in connections:
        shared.ended(each)
    assert shared.unread_blocks.used == 0


async def test_unread_answers_of_the_largest_holder_go_first() -> None:
    shared = ConnectionLimits(unread_bytes=8 * BLOCK_BYTES)
    transports, connections = _opened(shared, 5)
    for number, each in enumerate(connections):
        each.principal = "small" if number in {0, 4} else "large"
        each.hold_unread(2 * BLOCK_BYTES)
    assert [each.aborted for each in transports] == [False, True, False, False, False]
    assert shared.unread_dropped == 1
    connections[0].hold_unread(9 * BLOCK_BYTES)
    assert transports[0].aborted
    connections[2].principal = EXEMPT
    connections[2].hold_unread(100 * BLOCK_BYTES)
    assert not transports[2].aborted


async def test_connection_with_a_spare_descriptor_is_the_operators() -> None:
    shared = ConnectionLimits()
    transport: Any = Transport()
    connection = shared.opened(transport, "192.0.2.1", is_spare=True)
    asked = request()
    for caller in (Caller(id="k", key="k"), asked.caller):
        asked.caller = caller
        with pytest.raises(Refused):
            shared.assign(connection, asked)
    asked.caller = OPERATOR
    shared.assign(connection, asked)
    assert (connection.principal, connection.timer) == (EXEMPT, None)


async def test_users_a_proxy_names_are_counted_each_on_its_own() -> None:
    shared = ConnectionLimits(connections=4)
    transport: Any = Transport()
    for name in ("anna", "bert"):
        asked = request()
        asked.caller = Caller(id=name, key=TRUST_HEADER)
        connection = shared.opened(transport, "127.0.0.1")
        shared.assign(connection, asked)
        shared.begin_body(asked)
    assert shared.connections.by_principal == {"anna": 1, "bert": 1}
    assert shared.bodies.by_principal == {"anna": 1, "bert": 1}


def test_the_operator_is_the_one_that_is_exempt() -> None:
    assert OPERATOR.key == EXEMPT


@pytest.mark.parametrize("soft, expected", [(1024, 768), (64, 32), (100_000, 2000), (-1, 2000)])
def test_connections_leave_descriptors_for_others(
    monkeypatch: pytest.MonkeyPatch, soft: int, expected: int
) -> None:
    def limits(_: int) -> tuple[int, int]:
        return soft, soft

    monkeypatch.setattr(resource, "getrlimit", limits)
    assert bounded_by_descriptors(2000) == expected


@pytest.mark.parametrize(
    "peer, forwarded, address",
    [
        ("192.0.2.1", "10.0.0.1", "192.0.2.1"),
        ("127.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "10.0.0.1, 127.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "nonsense", "127.0.0.1"),
        (None, "10.0.0.1", ""),
    ],
)
def test_address_of_a_client(peer: str | None, forwarded: str, address: str) -> None:
    asked = request(headers={"x-forwarded-for": forwarded}, client=peer)
    assert ClientAddresses(["127.0.0.1"]).address(asked) == address
