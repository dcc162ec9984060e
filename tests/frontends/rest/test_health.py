"""Liveness, readiness and metrics; unauthenticated clients get no details."""

import pytest

from tests.gateways import InProcessGateway
from toolcrib.errors import Unavailable

pytestmark = pytest.mark.anyio


async def test_alive_and_ready(gateway: InProcessGateway) -> None:
    assert (await gateway.request("GET", "/health", key=None)).json == {"status": "ok"}
    assert (await gateway.request("GET", "/ready", key=None)).json == {"ready": True}


async def test_not_ready_while_stopping(gateway: InProcessGateway) -> None:
    gateway.server.drain()
    reply = await gateway.request("GET", "/ready", key=None)
    assert (reply.status, reply.code) == (503, "OVERLOADED")
    assert (await gateway.request("GET", "/health", key=None)).status == 200


@pytest.mark.parametrize(
    "error", [ConnectionError("sqlite:///secret/path is gone"), Unavailable("SOURCE_DOWN", "it is asleep")]
)
async def test_not_ready_without_its_database(
    gateway: InProcessGateway, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def broken(_: object) -> None:
        raise error

    monkeypatch.setattr(type(gateway.runtime.console.store), "check", broken)
    reply = await gateway.request("GET", "/ready", key=None)
    assert (reply.status, reply.code) == (503, "SOURCE_DOWN")
    assert b"secret/path" not in reply.body


async def test_metrics(gateway: InProcessGateway) -> None:
    await gateway.call("add", {"a": 1})
    reply = await gateway.request("GET", "/metrics", key=None)
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"toolcrib_" in reply.body
    elsewhere = await gateway.request("GET", "/metrics", key=None, client="10.0.0.1")
    assert (elsewhere.status, elsewhere.code) == (401, "UNAUTHENTICATED")
    assert (await gateway.request("GET", "/metrics", client="10.0.0.1")).status == 200
