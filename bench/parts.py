"""Parts of the benchmark: each starts its servers and adds the cases to measure."""

import logging
import sys
from collections.abc import Callable

import anyio

from bench.gateways import PACKAGES, add_calls, add_lists
from bench.hints.run import run_robot
from bench.many_users import add_users
from bench.requests import Request, for_echo_server, mcp_call, rest_call, rest_list, rest_search, send
from bench.running_servers import HERE, PORT, UNLIMITED, RunningServers
from tests.parts.registry import take

_FOUR_TOOLS = ("toolcrib", "small.yaml", rest_call())
_TEN_THOUSAND_TOOLS = ("toolcrib-10000", "large.yaml", rest_call())


def add_rest(servers: RunningServers) -> None:
    """Add REST calls of a Python function, compared with an echo of as many bytes."""
    _add_with_echo(
        servers,
        "rest",
        rest_call().with_key(servers.start_toolcrib(*_FOUR_TOOLS)),
        toolcrib="toolcrib",
        echo="echo",
    )


def add_mcp(servers: RunningServers) -> None:
    """Add MCP calls of the same function, compared with the echo, the MCP SDK and FastMCP."""
    request = mcp_call()
    _add_with_echo(
        servers,
        "mcp",
        request.with_key(servers.start_toolcrib(*_FOUR_TOOLS)),
        toolcrib="toolcrib",
        echo="echo-mcp",
    )
    servers.start("sdk", [sys.executable, str(HERE / "servers/sdk_server.py"), PORT], request)
    servers.add_case("mcp", "sdk", request)
    with servers.optional("FastMCP's server"):
        servers.start(
            "fastmcp",
            [str(take("fastmcp")), str(HERE / "servers/fastmcp_server.py"), PORT, PACKAGES],
            request,
        )
        servers.add_case("mcp", "fastmcp", request)


def add_list(servers: RunningServers) -> None:
    """Add a filtered list of 5,000 of 10,000 tools, compared with sending the same bytes."""
    request = rest_list().with_key(servers.start_toolcrib(*_TEN_THOUSAND_TOOLS))
    _add_with_echo(servers, "list", request, toolcrib="toolcrib-10000", echo="echo-list", max_connections=16)


def add_lookup(servers: RunningServers) -> None:
    """Add a call in a gateway with 10,000 tools and one in a gateway with four."""
    for config in (_FOUR_TOOLS, _TEN_THOUSAND_TOOLS):
        servers.add_case("rest", config[0], rest_call().with_key(servers.start_toolcrib(*config)))


def add_search(servers: RunningServers) -> None:
    """Add a search in 10,000 tools."""
    servers.add_case(
        "search",
        _TEN_THOUSAND_TOOLS[0],
        rest_search().with_key(servers.start_toolcrib(*_TEN_THOUSAND_TOOLS)),
        16,
    )


def add_contract(servers: RunningServers) -> None:
    """Add calls with and without the tool contract, of tools with generated and with their own hints."""
    no_contract_key = servers.start_toolcrib(
        "toolcrib-bare", *_FOUR_TOOLS[1:], program=(str(HERE / "servers/no_contract.py"),)
    )
    servers.add_case("rest", "toolcrib-bare", rest_call().with_key(no_contract_key))
    key = servers.start_toolcrib(*_FOUR_TOOLS)
    servers.add_case("rest", "toolcrib", rest_call().with_key(key))
    servers.add_case("hinted", "toolcrib", rest_call("hinted_echo").with_key(key))
    servers.add_case("hinted", "toolcrib-bare", rest_call("hinted_echo").with_key(no_contract_key))


def add_hints(servers: RunningServers) -> None:
    """Run the robot that follows the hints of a gateway in this process; it measures no time."""
    logging.getLogger("toolcrib").setLevel(logging.ERROR)
    servers.findings = anyio.run(run_robot, servers.folder)
    servers.notes += servers.findings.notes


PARTS: dict[str, Callable[[RunningServers], None]] = {
    "rest": add_rest,
    "mcp": add_mcp,
    "list": add_list,
    "lookup": add_lookup,
    "search": add_search,
    "contract": add_contract,
    "users": add_users,
    "gateways": add_calls,
    "tools": add_lists,
    "hints": add_hints,
}


def _add_with_echo(
    servers: RunningServers,
    kind: str,
    request: Request,
    *,
    toolcrib: str,
    echo: str,
    max_connections: int = UNLIMITED,
) -> None:
    """Add a request, and an echo server that returns a response of the same size."""
    # The size of the third response counts: the first ones differ, as there are no earlier calls to report.
    size = len([send(servers.processes[toolcrib].port, request) for _ in range(3)][-1])
    echo_request = for_echo_server(request)
    servers.start(echo, [sys.executable, str(HERE / "servers/echo_server.py"), PORT, str(size)], echo_request)
    servers.add_case(kind, echo, echo_request, max_connections)
    servers.add_case(kind, toolcrib, request, max_connections)
