"""The parts of the bench: which servers each sets on the stage, and what it asks of them."""

import sys
from collections.abc import Callable

from bench.gateways import PACKAGES, calls, lists
from bench.many_users import users
from bench.requests import Request, for_echo_server, mcp_call, rest_call, rest_list, rest_search, send
from bench.running_servers import HERE, PORT, UNLIMITED, RunningServers
from tests.parts.registry import take

_FOUR_TOOLS = ("toolcrib", "small.yaml", rest_call())
_TEN_THOUSAND_TOOLS = ("toolcrib-10000", "large.yaml", rest_call())


def rest(servers: RunningServers) -> None:
    """A function of ours over REST, beside the bare sending of such an answer."""
    _add_with_echo(
        servers,
        "rest",
        rest_call().with_key(servers.start_toolcrib(*_FOUR_TOOLS)),
        toolcrib="toolcrib",
        echo="echo",
    )


def mcp(servers: RunningServers) -> None:
    """The same function over MCP, beside the bare echo and the servers of others."""
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


def listing(servers: RunningServers) -> None:
    """Half of ten thousand tools over REST, beside the bare sending of their bytes."""
    request = rest_list().with_key(servers.start_toolcrib(*_TEN_THOUSAND_TOOLS))
    _add_with_echo(servers, "list", request, toolcrib="toolcrib-10000", echo="echo-list", max_connections=16)


def lookup(servers: RunningServers) -> None:
    """One call among ten thousand tools, and one among a few."""
    for config in (_FOUR_TOOLS, _TEN_THOUSAND_TOOLS):
        servers.add_case("rest", config[0], rest_call().with_key(servers.start_toolcrib(*config)))


def search(servers: RunningServers) -> None:
    """A search among ten thousand tools."""
    servers.add_case(
        "search",
        _TEN_THOUSAND_TOOLS[0],
        rest_search().with_key(servers.start_toolcrib(*_TEN_THOUSAND_TOOLS)),
        16,
    )


def contract(servers: RunningServers) -> None:
    """The same function by a gateway without the tool contract, and one that gives its own hints."""
    bare = servers.start_toolcrib(
        "toolcrib-bare", *_FOUR_TOOLS[1:], program=(str(HERE / "servers/no_contract.py"),)
    )
    servers.add_case("rest", "toolcrib-bare", rest_call().with_key(bare))
    key = servers.start_toolcrib(*_FOUR_TOOLS)
    servers.add_case("rest", "toolcrib", rest_call().with_key(key))
    servers.add_case("hinted", "toolcrib", rest_call("hinted_echo").with_key(key))
    servers.add_case("hinted", "toolcrib-bare", rest_call("hinted_echo").with_key(bare))


PARTS: dict[str, Callable[[RunningServers], None]] = {
    "rest": rest,
    "mcp": mcp,
    "list": listing,
    "lookup": lookup,
    "search": search,
    "contract": contract,
    "users": users,
    "gateways": calls,
    "tools": lists,
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
    """Measure a request of ours beside the bare sending of an answer of the same size."""
    # The first answers are longer than the later ones: they tell of no earlier calls.
    size = len([send(servers.processes[toolcrib].port, request) for _ in range(3)][-1])
    bare = for_echo_server(request)
    servers.start(echo, [sys.executable, str(HERE / "servers/echo_server.py"), PORT, str(size)], bare)
    servers.add_case(kind, echo, bare, max_connections)
    servers.add_case(kind, toolcrib, request, max_connections)
