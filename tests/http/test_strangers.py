"""A client with a credential gets a connection although unauthenticated ones hold all of them."""

from typing import Any

import pytest

from tests.http.requests import request
from tests.http.test_connection_limits import ADDRESS, Transport, limited_gateway
from tests.http.test_protocol import everything
from tests.waiting import until
from toolcrib.errors import Refused
from toolcrib.http import ClientAddresses, Request
from toolcrib.http.connection_limits import ClientConnection, ConnectionLimits
from toolcrib.model import Caller

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I10")]


def of_key(name: str) -> Request:
    asked = request()
    asked.caller = Caller(id=name, key=name)
    return asked


def opened(shared: ConnectionLimits, *peers: str) -> tuple[list[Any], list[ClientConnection]]:
    transports: list[Any] = [Transport() for _ in peers]
    pairs = zip(transports, peers, strict=True)
    return transports, [shared.opened(transport, peer) for transport, peer in pairs]


def close(shared: ConnectionLimits, connections: list[ClientConnection]) -> None:
    for each in connections:
        shared.ended(each)
    assert shared.connections.used == 0
    assert shared.connections.by_principal == {}


async def test_addresses_of_one_ipv6_network_share_one_part() -> None:
    shared = ConnectionLimits(connections=8)
    _, connections = opened(shared, *(f"2001:db8:1:2::{number:x}" for number in range(8)))
    assert shared.connections.by_principal == {"address 2001:db8:1:2::/64": 6}
    _, others = opened(shared, "2001:db8:1:3::1", "::ffff:192.0.2.1")
    assert shared.connections.by_principal["address 192.0.2.1"] == 1
    assert all(each.is_counted for each in others)
    close(shared, connections + others)


async def test_oldest_unauthenticated_connection_is_evicted() -> None:
    shared = ConnectionLimits(connections=4)
    transports, connections = opened(shared, *["192.0.2.1"] * 3, "192.0.2.2")
    for name in ("one", "two"):
        more, others = opened(shared, "192.0.2.3")
        shared.assign(others[0], of_key(name))
        transports += more
        connections += others
    assert [each.aborted for each in transports] == [True, True, False, False, False, False]
    assert shared.connections.by_principal == {
        "address 192.0.2.1": 1,
        "address 192.0.2.2": 1,
        "one": 1,
        "two": 1,
    }
    close(shared, connections)


async def test_authenticated_connections_are_never_evicted() -> None:
    shared = ConnectionLimits(connections=4)
    transports, connections = opened(shared, *["192.0.2.1"] * 3, "192.0.2.2", "192.0.2.3")
    for number, name in enumerate(("one", "one", "two", "two")):
        shared.assign(connections[number], of_key(name))
    with pytest.raises(Refused) as refused:
        shared.assign(connections[4], of_key("three"))
    assert refused.value.problem.code == "OVERLOADED"
    assert not any(each.aborted for each in transports)
    close(shared, connections)


async def test_no_eviction_for_client_at_its_share() -> None:
    shared = ConnectionLimits(connections=4)
    transports, connections = opened(shared, *["192.0.2.1"] * 3)
    for each in connections:
        shared.assign(each, of_key("one"))
    more, others = opened(shared, "192.0.2.2", "192.0.2.3")
    with pytest.raises(Refused) as refused:
        shared.assign(others[1], of_key("one"))
    assert refused.value.problem.code == "OVERLOADED"
    assert not any(each.aborted for each in transports + more)
    close(shared, connections + others)


async def test_proxied_clients_are_evicted_but_evict_nobody() -> None:
    shared = ConnectionLimits(ClientAddresses(["127.0.0.1"]), connections=4)
    transports, connections = opened(shared, *["127.0.0.1"] * 6)
    for number, each in enumerate(connections[:4]):
        shared.assign(each, request(headers={"x-forwarded-for": f"192.0.2.{number}"}))
    with pytest.raises(Refused):
        shared.assign(connections[4], request(headers={"x-forwarded-for": "192.0.2.9"}))
    assert not any(each.aborted for each in transports)
    shared.assign(connections[5], of_key("one"))
    assert [each.aborted for each in transports] == [True, *[False] * 5]
    close(shared, connections)


async def test_request_that_outlives_its_connection_takes_no_place() -> None:
    shared = ConnectionLimits(connections=4)
    _, connections = opened(shared, "192.0.2.1")
    shared.ended(connections[0])
    shared.assign(connections[0], of_key("one"))
    assert shared.connections.used == 0


@pytest.mark.slow
async def test_key_is_served_while_two_addresses_hold_all() -> None:
    async with limited_gateway() as gateway:
        key = await gateway.crib.key("k")
        streams = [await gateway.connect() for _ in range(6)]
        await until(lambda: gateway.held(ADDRESS) == 6)
        for _ in range(2):
            await gateway.connect("127.0.0.2")
        await until(lambda: gateway.crib.server.intake.connections.used == 8)
        assert await gateway.ask(await gateway.connect(), key) == 200
        assert (gateway.held("k"), gateway.held(ADDRESS)) == (1, 5)
        assert await everything(streams[0]) == b""
        assert await gateway.ask(streams[1], None, "/health") == 200
