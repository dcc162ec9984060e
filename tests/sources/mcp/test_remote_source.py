"""Servers with a URL: which failures mean that a server is away."""

import socket

import pytest
from yarl import URL

from tests.sources.mcp.rehearsed import Linked, Scripted, legacy, listed
from toolcrib.egress import Egress
from toolcrib.egress.probe import Probe
from toolcrib.interfaces import Reachable, ServerUnreachable
from toolcrib.sources.mcp.errors import Cut, Fault, Refusal, Status, Unsent
from toolcrib.sources.mcp.remote_source import RemoteMcpSource
from toolcrib.sources.mcp.server_settings import McpSettings
from toolcrib.sources.mcp.source import McpSource

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("C2")]


def remote(port: int = 9, **script: object) -> RemoteMcpSource:
    server = Scripted(**{"initialize": legacy(), "tools__list": listed("read"), **script})
    settings = McpSettings(id="web", transport="http")
    return RemoteMcpSource(
        settings, server.dial, Probe(URL(f"http://127.0.0.1:{port}"), Egress(guarded=False))
    )


def test_only_servers_with_a_url_are_probed() -> None:
    assert isinstance(remote(), Reachable)
    assert not isinstance(McpSource(McpSettings(id="files"), Scripted().dial), Reachable)


async def test_a_probe_finds_out_whether_a_server_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        await remote(port).reach(5.0)
    with pytest.raises(ServerUnreachable, match="cannot be reached"):
        await remote(port).reach(5.0)


@pytest.mark.parametrize(
    "fault, away",
    [
        (Cut("the connection was closed"), True),
        (Status(502, "bad gateway"), True),
        (Status(503, "unavailable"), True),
        (Status(504, "timeout"), True),
        (Status(500, "broken"), False),
        (Status(401, "no credentials"), False),
        (Refusal(-32000, "no"), False),
        (Unsent("no TLS connection could be made"), False),
    ],
)
async def test_a_handshake_that_fails_is_an_outage_or_an_error(fault: Fault, away: bool) -> None:
    with pytest.raises(ConnectionError) as failed:
        await remote(tools__list=fault).run(Linked())
    assert isinstance(failed.value, ServerUnreachable) is away
