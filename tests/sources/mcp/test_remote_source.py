"""Servers with a URL: which failures mean that a server is away."""

import socket

import pytest
from yarl import URL

from tests.sources.mcp.scripted_connection import RecordingLink, ScriptedConnection, legacy, listed
from toolcrib.egress import Egress
from toolcrib.egress.client import Probe
from toolcrib.interfaces import ReachableSource, ServerUnreachable
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    HttpStatusError,
    JsonRpcError,
    McpSettings,
    NotSent,
    ServerError,
)
from toolcrib.sources.mcp.source import McpSource, RemoteMcpSource

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("C2")]


def remote(port: int = 9, **script: object) -> RemoteMcpSource:
    server = ScriptedConnection(**{"initialize": legacy(), "tools__list": listed("read"), **script})
    settings = McpSettings(id="web", transport="http")
    return RemoteMcpSource(
        settings, server.dial, Probe(URL(f"http://127.0.0.1:{port}"), Egress(guarded=False))
    )


def test_only_servers_with_a_url_are_probed() -> None:
    assert isinstance(remote(), ReachableSource)
    assert not isinstance(McpSource(McpSettings(id="files"), ScriptedConnection().dial), ReachableSource)


async def test_a_probe_finds_out_whether_a_server_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        await remote(port).reach(5.0)
    with pytest.raises(ServerUnreachable, match="cannot be reached"):
        await remote(port).reach(5.0)


@pytest.mark.parametrize(
    "fault, away",
    [
        (ConnectionLost("the connection was closed"), True),
        (HttpStatusError(502, "bad gateway"), True),
        (HttpStatusError(503, "unavailable"), True),
        (HttpStatusError(504, "timeout"), True),
        (HttpStatusError(500, "broken"), False),
        (HttpStatusError(401, "no credentials"), False),
        (JsonRpcError(-32000, "no"), False),
        (NotSent("no TLS connection could be made"), False),
    ],
)
async def test_a_handshake_that_fails_is_an_outage_or_an_error(fault: ServerError, away: bool) -> None:
    with pytest.raises(ConnectionError) as failed:
        await remote(tools__list=fault).run(RecordingLink())
    assert isinstance(failed.value, ServerUnreachable) is away
