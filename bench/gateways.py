"""Parts `gateways` and `tools`: MCP gateways in front of the same server, each in its fastest setup."""

import json
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from bench.report import server_title
from bench.requests import (
    HOST,
    Request,
    hub_call,
    hub_list,
    initialize_request,
    legacy_call,
    legacy_list,
    mcp_call,
    mcp_list,
    with_session,
)
from bench.running_servers import HERE, PORT, UNLIMITED, RunningServers
from bench.server_process import UPSTREAM
from tests.gates.locks import versions as locked_versions
from tests.parts import peers, proxies
from tests.parts.registry import take

PACKAGES = sysconfig.get_path("platlib")
STDIO, HTTP = "pipe", "web"
_UPSTREAM_COMMAND = [sys.executable, str(UPSTREAM)]
_HOME_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@dataclass(frozen=True)
class GatewaySetup:
    """The MCP server over HTTP on the load's core, and the environment to start the same over stdio."""

    servers: RunningServers
    tools: int
    url: str
    env: dict[str, str]

    def name(self, gateway: str) -> str:
        return gateway if self.tools == 1 else f"{gateway}-{self.tools}"


@dataclass(frozen=True, kw_only=True)
class RequestSet:
    """Requests to a gateway; those that need a session are made for the port on which to open it."""

    ready_check: Request
    call: Callable[[int], Request]
    list: Callable[[int], Request]


_MODERN = RequestSet(ready_check=mcp_call(), call=lambda _: mcp_call(), list=lambda _: mcp_list())
_SESSION = RequestSet(
    ready_check=initialize_request(),
    call=lambda port: with_session(port, legacy_call()),
    list=lambda port: with_session(port, legacy_list()),
)
# Without a session and its handshake, which is the fastest way to call FastMCP.
_LEGACY = RequestSet(ready_check=legacy_call(), call=lambda _: legacy_call(), list=lambda _: legacy_list())
_HUB = RequestSet(ready_check=hub_call(HTTP), call=lambda _: hub_call(HTTP), list=lambda _: hub_list())


@dataclass(frozen=True, kw_only=True)
class OtherGateway:
    """A gateway other than Toolcrib, in front of a stdio or HTTP server."""

    name: str
    kind: str
    requests: RequestSet
    command: Callable[[GatewaySetup], list[str]]
    max_connections: int = UNLIMITED
    seconds: float = 0.0


def _node_proxy(setup: GatewaySetup) -> list[str]:
    program = [str(take("node")), str(take("proxies") / "mcp-proxy")]
    return [*program, "--host", HOST, "--port", PORT, "--server", "stream", "--", *_UPSTREAM_COMMAND]


def _python_proxy(setup: GatewaySetup) -> list[str]:
    program = str(take("mcp_proxy").parent / "mcp-proxy")
    # Its default level logs every call.
    options = ["--host", HOST, "--port", PORT, "--log-level", "WARNING", "--pass-environment"]
    return [program, *options, "--", *_UPSTREAM_COMMAND]


def _hub(setup: GatewaySetup) -> list[str]:
    config = setup.servers.folder / f"{setup.name(HUB.name)}.json"
    config.write_text(json.dumps({"mcpServers": {HTTP: {"url": setup.url}}}))
    return [str(take("node")), str(take("proxies") / "mcp-hub"), "--port", PORT, "--config", str(config)]


def _fastmcp(mode: str) -> Callable[[GatewaySetup], list[str]]:
    program = str(HERE / "servers/fastmcp_proxy.py")
    return lambda setup: [str(take("fastmcp")), program, PORT, PACKAGES, setup.url, mode]


NODE_PROXY = OtherGateway(name="node-proxy", kind=STDIO, requests=_MODERN, command=_node_proxy)
PYTHON_PROXY = OtherGateway(name="python-proxy", kind=STDIO, requests=_SESSION, command=_python_proxy)
# Measured over REST: its MCP transport is the older one, whose responses use another connection.
HUB = OtherGateway(name="hub", kind=HTTP, requests=_HUB, command=_hub)
FASTMCP_TUNED = OtherGateway(
    name="fastmcp-tuned", kind=HTTP, requests=_LEGACY, command=_fastmcp("persistent")
)
FASTMCP_CACHED_LISTS = replace(FASTMCP_TUNED, command=_fastmcp("cached-lists"))
# It creates a client per call: with 64 connections no call would complete within a round.
FASTMCP = OtherGateway(
    name="fastmcp-proxy",
    kind=HTTP,
    requests=_LEGACY,
    command=_fastmcp("default"),
    max_connections=16,
    seconds=3,
)


def add_calls(servers: RunningServers) -> None:
    """Add calls of a tool through every gateway and without one."""
    setup = _start_upstream(servers, 1)
    _start_direct(setup)
    servers.add_case(HTTP, "direct", mcp_call())
    for kind in (STDIO, HTTP):
        servers.add_case(
            kind, f"toolcrib-{kind}", mcp_call(f"{kind}:echo").with_key(_start_toolcrib(setup, kind))
        )
    session = legacy_call("pipe:echo").with_key(_start_toolcrib(setup, STDIO))
    servers.add_case(
        "session", "toolcrib-pipe", with_session(servers.processes["toolcrib-pipe"].port, session)
    )
    for gateway in (NODE_PROXY, PYTHON_PROXY, HUB, FASTMCP_TUNED, FASTMCP):
        with servers.optional(server_title(gateway.name)):
            request = gateway.requests.call(_start_gateway(setup, gateway))
            servers.add_case(gateway.kind, gateway.name, request, gateway.max_connections, gateway.seconds)


def add_lists(servers: RunningServers) -> None:
    """Add lists of 1,000 tools through the gateways that support it, and without one."""
    setup = _start_upstream(servers, 1000)
    _start_direct(setup)
    servers.add_case("tools", setup.name("direct"), mcp_list(), 1)
    servers.add_case(
        "tools", setup.name("toolcrib-web"), mcp_list().with_key(_start_toolcrib(setup, HTTP)), 1
    )
    for gateway in (NODE_PROXY, PYTHON_PROXY, HUB, FASTMCP_CACHED_LISTS):
        with servers.optional(server_title(setup.name(gateway.name))):
            servers.add_case(
                "tools", setup.name(gateway.name), gateway.requests.list(_start_gateway(setup, gateway)), 1
            )


def _start_upstream(servers: RunningServers, tools: int) -> GatewaySetup:
    core = servers.cores.load
    # Gateways write their files to the temporary folder instead of the home directory.
    home_env = dict.fromkeys(_HOME_VARIABLES, str(servers.folder))
    env = {"CORE": "" if core is None else str(core), "TOOLS": str(tools), **home_env}
    name = "upstream" if tools == 1 else f"upstream-{tools}"
    port = servers.start(name, [*_UPSTREAM_COMMAND, PORT], mcp_call(), env)
    return GatewaySetup(servers, tools, f"http://{HOST}:{port}/mcp", env)


def _start_direct(setup: GatewaySetup) -> None:
    """Start the MCP server on the gateways' core, to measure it without a gateway."""
    setup.servers.start(
        setup.name("direct"), [*_UPSTREAM_COMMAND, PORT], mcp_call(), {"TOOLS": str(setup.tools), "CORE": ""}
    )


def _start_toolcrib(setup: GatewaySetup, kind: str) -> str:
    env = {**setup.env, "PYTHON": sys.executable, "UPSTREAM": str(UPSTREAM), "URL": setup.url}
    return setup.servers.start_toolcrib(
        setup.name(f"toolcrib-{kind}"), f"{kind}.yaml", mcp_call(f"{kind}:echo"), env
    )


def _start_gateway(setup: GatewaySetup, gateway: OtherGateway) -> int:
    return setup.servers.start(
        setup.name(gateway.name), gateway.command(setup), gateway.requests.ready_check, setup.env
    )


def versions(started: Iterable[str]) -> dict[str, str]:
    """Return the versions of the other gateways that were measured, by name."""
    npm = json.loads((proxies.RECIPE / "package.json").read_text())["dependencies"]
    pypi = {name: locked_versions(peers.RECIPES / f"{name}.lock") for name in ("fastmcp", "mcp_proxy")}
    measured = {
        NODE_PROXY.name: ("mcp-proxy of Node", npm["mcp-proxy"]),
        PYTHON_PROXY.name: ("mcp-proxy of Python", pypi["mcp_proxy"]["mcp-proxy"]),
        HUB.name: ("mcp-hub", npm["mcp-hub"]),
        FASTMCP_TUNED.name: ("FastMCP", pypi["fastmcp"]["fastmcp"]),
    }
    return dict(measured[name] for name in started if name in measured)
