"""The raw server behind the gateways answers in both eras, and our own client reads every kind of answer."""

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


def answered(server: Server, body: bytes) -> dict[str, Any]:
    said = server.answer(json.loads(body))
    assert said is not None
    return json.loads(said)["result"]


def test_upstream_answers_in_the_requested_era() -> None:
    server = Server(3)
    modern, legacy = answered(server, mcp_list().body), answered(server, legacy_list().body)
    assert [tool["name"] for tool in modern["tools"]] == ["echo", "look_up_0000", "look_up_0001"]
    assert (modern["resultType"], legacy) == ("complete", {"tools": modern["tools"]})
    assert answered(server, mcp_call().body)["content"] == [{"type": "text", "text": TEXT}]
    assert answered(server, initialize_request().body)["protocolVersion"] == "2025-11-25"
    assert server.answer({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None


def test_it_is_measured_as_any_server(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = RunningServers(stack, tmp_path, Cores())
        port = servers.start("direct", [sys.executable, str(UPSTREAM), PORT], mcp_call())
        servers.add_case("web", "direct", mcp_call())
        found = run_load(port, 2, 0.05, mcp_call().encode(port))
        with pytest.raises(UnexpectedResponse, match="opened no session"):
            with_session(port, legacy_list())
        with servers.optional("nobody"):
            send(port, mcp_list())
    assert found["calls"] > 0
    assert found["failures"] == 0
    assert servers.notes == ["nobody is left out: it could not be had or started here"]


@pytest.mark.parametrize(
    "answer",
    [b"Content-Length: 3\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"],
)
def test_our_client_knows_where_an_answer_ends(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = Connection(listener.getsockname()[1], b"GET / HTTP/1.1\r\n\r\n")
        with line.socket, listener.accept()[0] as other:
            other.sendall(b"HTTP/1.1 200 OK\r\n" + answer[:-3])
            assert not line.read_response()
            other.sendall(answer[-3:])
            assert line.read_response()
            assert line.status == 200
