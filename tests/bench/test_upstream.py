"""The MCP server behind the gateways supports both eras; the load client reads all response framings."""

import json
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bench.cores import Cores
from bench.load_client import Connection, run_load
from bench.requests import (
    TEXT,
    UnexpectedResponse,
    initialize_request,
    legacy_list,
    mcp_call,
    mcp_list,
    send,
    with_session,
)
from bench.running_servers import PORT, RunningServers
from bench.server_process import UPSTREAM
from bench.servers.upstream import Server


def result_of(server: Server, body: bytes) -> dict[str, Any]:
    reply = server.answer(json.loads(body))
    assert reply is not None
    return json.loads(reply)["result"]


def test_upstream_answers_in_the_requested_era() -> None:
    server = Server(3)
    modern, legacy = result_of(server, mcp_list().body), result_of(server, legacy_list().body)
    assert [tool["name"] for tool in modern["tools"]] == ["echo", "look_up_0000", "look_up_0001"]
    assert (modern["resultType"], legacy) == ("complete", {"tools": modern["tools"]})
    assert result_of(server, mcp_call().body)["content"] == [{"type": "text", "text": TEXT}]
    assert result_of(server, initialize_request().body)["protocolVersion"] == "2025-11-25"
    assert server.answer({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None


def test_upstream_is_started_and_measured(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = RunningServers(stack, tmp_path, Cores())
        port = servers.start("direct", [sys.executable, str(UPSTREAM), PORT], mcp_call())
        servers.add_case("web", "direct", mcp_call())
        found = run_load(port, 2, 0.05, mcp_call().encode(port))
        with pytest.raises(UnexpectedResponse, match="returned no session id"):
            with_session(port, legacy_list())
        with servers.optional("missing peer"):
            send(port, mcp_list())
    assert found["calls"] > 0
    assert found["failures"] == 0
    assert servers.notes == ["missing peer is left out: it could not be installed or started"]


@pytest.mark.parametrize(
    "response",
    [b"Content-Length: 3\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"],
)
def test_load_client_detects_the_end_of_a_response(response: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(listener.getsockname()[1], b"GET / HTTP/1.1\r\n\r\n")
        with connection.socket, listener.accept()[0] as peer:
            peer.sendall(b"HTTP/1.1 200 OK\r\n" + response[:-3])
            assert not connection.read_response()
            peer.sendall(response[-3:])
            assert connection.read_response()
            assert connection.status == 200
