"""Which apps get a socket of the gateway, and the answer to an app that fails authentication."""

import json
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.gateways import listening, open_gateway
from tests.http.sockets import handshake, head_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def at(url: str) -> str:
    return url.replace("http", "ws", 1) + "/app-ws"


@pytest.mark.requirement("I1")
@pytest.mark.parametrize(
    "line, status, code",
    [
        ("Host: evil.example", 421, "HOST_REFUSED"),
        ("Origin: http://evil.example", 403, "ORIGIN_REFUSED"),
        ("Host: localhost@evil.example", 400, "INVALID_REQUEST"),
        ("X_User_Id: eve", 400, "INVALID_REQUEST"),
    ],
)
async def test_the_guard_stands_before_sockets_too(line: str, status: int, code: str) -> None:
    words = handshake(line, without="Host" if line.startswith("Host") else "")
    async with open_gateway() as gateway, listening(gateway.server) as url:
        host, port = url.removeprefix("http://").split(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(words)
            head, body = await head_of(stream)
    assert int(head.split()[1]) == status
    assert json.loads(body)["error"]["code"] == code


async def test_request_without_handshake_is_refused() -> None:
    async with open_gateway() as gateway:
        plain = await gateway.request("GET", "/app-ws", key=None)
        assert (plain.status, plain.code) == (400, "INVALID_REQUEST")
        assert "WebSocket" in plain.json["error"]["message"]
        other = await gateway.request("POST", "/app-ws", key=None, body={})
        assert (other.status, other.headers["allow"]) == (405, "GET")


async def test_elsewhere_no_socket_is_given() -> None:
    async with open_gateway() as gateway, listening(gateway.server) as url:
        for path, status in (("/health", 200), ("/mcp", 401), ("/app-ws/more", 404)):
            with pytest.raises(InvalidStatus) as refused:
                await connect(url.replace("http", "ws", 1) + path)
            assert refused.value.response.status_code == status


@pytest.mark.parametrize(
    "first",
    [
        "no JSON",
        b"\x00\x01",
        "[" * 5000,
        {"type": "display_event"},
        {"type": "tpa_connection_init", "packageName": "org.example.none", "sessionId": "u-org.example.none"},
        {
            "type": "tpa_connection_init",
            "packageName": "org.example.none",
            "sessionId": "u-org.example.none",
            "apiKey": "guessed",
        },
    ],
)
async def test_unauthenticated_app_is_disconnected(first: Any) -> None:
    async with open_gateway() as gateway, listening(gateway.server) as url, connect(at(url)) as app:
        await app.send(json.dumps(first) if isinstance(first, dict) else first)
        with anyio.fail_after(20):
            await app.wait_closed()
        assert app.close_code == 1008
        assert (await gateway.request("GET", "/health")).status == 200


async def test_a_gateway_with_open_sockets_stops_at_once() -> None:
    async with open_gateway() as gateway, listening(gateway.server) as url, connect(at(url)) as app:
        gateway.server.drain()
        with anyio.fail_after(5):
            await gateway.server.idle()
        await app.ping()
