"""Gateways before the same raw server: ours and those of others, each by the quickest way it offers."""

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
PIPE, WEB = "pipe", "web"
_SERVER = [sys.executable, str(UPSTREAM)]
_HOME_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@dataclass(frozen=True)
class GatewaySetup:
    """A raw server that speaks HTTP, on the core of the load, and what starts its like behind a pipe."""

    servers: RunningServers
    tools: int
    url: str
    env: dict[str, str]

    def name(self, gateway: str) -> str:
        return gateway if self.tools == 1 else f"{gateway}-{self.tools}"


@dataclass(frozen=True, kw_only=True)
class RequestSet:
    """How a gateway is spoken to; a request may need the port, to open a session there."""

    ready_check: Request
    call: Callable[[int], Request]
    list: Callable[[int], Request]


_MODERN = RequestSet(ready_check=mcp_call(), call=lambda _: mcp_call(), list=lambda _: mcp_list())
_SESSION = RequestSet(
    ready_check=initialize_request(),
    call=lambda port: with_session(port, legacy_call()),
    list=lambda port: with_session(port, legacy_list()),
)
# Without a session, and so without a handshake: FastMCP's quickest way in.
_LEGACY = RequestSet(ready_check=legacy_call(), call=lambda _: legacy_call(), list=lambda _: legacy_list())
_HUB = RequestSet(ready_check=hub_call(WEB), call=lambda _: hub_call(WEB), list=lambda _: hub_list())


@dataclass(frozen=True, kw_only=True)
class OtherGateway:
    """One of somebody else's, before a server of one kind."""

    name: str
    kind: str
    requests: RequestSet
    command: Callable[[GatewaySetup], list[str]]
    max_connections: int = UNLIMITED
    seconds: float = 0.0


def _node_proxy(setup: GatewaySetup) -> list[str]:
    program = [str(take("node")), str(take("proxies") / "mcp-proxy")]
    return [*program, "--host", HOST, "--port", PORT, "--server", "stream", "--", *_SERVER]


def _python_proxy(setup: GatewaySetup) -> list[str]:
    program = str(take("mcp_proxy").parent / "mcp-proxy")
    # At its own level it writes a line for every call.
    options = ["--host", HOST, "--port", PORT, "--log-level", "WARNING", "--pass-environment"]
    return [program, *options, "--", *_SERVER]


def _hub(setup: GatewaySetup) -> list[str]:
    config = setup.servers.folder / f"{setup.name(HUB.name)}.json"
    config.write_text(json.dumps({"mcpServers": {WEB: {"url": setup.url}}}))
    return [str(take("node")), str(take("proxies") / "mcp-hub"), "--port", PORT, "--config", str(config)]


def _fastmcp(mode: str) -> Callable[[GatewaySetup], list[str]]:
    program = str(HERE / "servers/fastmcp_proxy.py")
    return lambda setup: [str(take("fastmcp")), program, PORT, PACKAGES, setup.url, mode]


NODE = OtherGateway(name="node-proxy", kind=PIPE, requests=_MODERN, command=_node_proxy)
PYTHON = OtherGateway(name="python-proxy", kind=PIPE, requests=_SESSION, command=_python_proxy)
# Its MCP is the older kind whose answers come on another connection, so that it is measured by its REST.
HUB = OtherGateway(name="hub", kind=WEB, requests=_HUB, command=_hub)
TUNED = OtherGateway(name="fastmcp-tuned", kind=WEB, requests=_LEGACY, command=_fastmcp("kept"))
TUNED_TO_LIST = replace(TUNED, command=_fastmcp("listing"))
# It makes a new client for every call: of 64 at once none would be answered within a round.
PLAIN = OtherGateway(
    name="fastmcp-proxy", kind=WEB, requests=_LEGACY, command=_fastmcp("plain"), max_connections=16, seconds=3
)


def calls(servers: RunningServers) -> None:
    """Call a tool through every gateway, and without one."""
    setup = _start_upstream(servers, 1)
    _start_direct(setup)
    servers.add_case(WEB, "direct", mcp_call())
    for kind in (PIPE, WEB):
        servers.add_case(
            kind, f"toolcrib-{kind}", mcp_call(f"{kind}:echo").with_key(_start_toolcrib(setup, kind))
        )
    session = legacy_call("pipe:echo").with_key(_start_toolcrib(setup, PIPE))
    servers.add_case(
        "session", "toolcrib-pipe", with_session(servers.processes["toolcrib-pipe"].port, session)
    )
    for gateway in (NODE, PYTHON, HUB, TUNED, PLAIN):
        with servers.optional(server_title(gateway.name)):
            request = gateway.requests.call(_start_gateway(setup, gateway))
            servers.add_case(gateway.kind, gateway.name, request, gateway.max_connections, gateway.seconds)


def lists(servers: RunningServers) -> None:
    """List a thousand tools through the gateways that can, and without one."""
    setup = _start_upstream(servers, 1000)
    _start_direct(setup)
    servers.add_case("tools", setup.name("direct"), mcp_list(), 1)
    servers.add_case("tools", setup.name("toolcrib-web"), mcp_list().with_key(_start_toolcrib(setup, WEB)), 1)
    for gateway in (NODE, PYTHON, HUB, TUNED_TO_LIST):
        with servers.optional(server_title(setup.name(gateway.name))):
            servers.add_case(
                "tools", setup.name(gateway.name), gateway.requests.list(_start_gateway(setup, gateway)), 1
            )


def _start_upstream(servers: RunningServers, tools: int) -> GatewaySetup:
    core = servers.cores.load
    # What the gateways keep at home they keep with the bench.
    home_env = dict.fromkeys(_HOME_VARIABLES, str(servers.folder))
    env = {"CORE": "" if core is None else str(core), "TOOLS": str(tools), **home_env}
    name = "upstream" if tools == 1 else f"upstream-{tools}"
    port = servers.start(name, [*_SERVER, PORT], mcp_call(), env)
    return GatewaySetup(servers, tools, f"http://{HOST}:{port}/mcp", env)


def _start_direct(setup: GatewaySetup) -> None:
    """Start the raw server where the gateways are."""
    setup.servers.start(
        setup.name("direct"), [*_SERVER, PORT], mcp_call(), {"TOOLS": str(setup.tools), "CORE": ""}
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
    """Say which versions of the others were measured."""
    npm = json.loads((proxies.RECIPE / "package.json").read_text())["dependencies"]
    pypi = {name: locked_versions(peers.RECIPES / f"{name}.lock") for name in ("fastmcp", "mcp_proxy")}
    known = {
        NODE.name: ("mcp-proxy of Node", npm["mcp-proxy"]),
        PYTHON.name: ("mcp-proxy of Python", pypi["mcp_proxy"]["mcp-proxy"]),
        HUB.name: ("mcp-hub", npm["mcp-hub"]),
        TUNED.name: ("FastMCP", pypi["fastmcp"]["fastmcp"]),
    }
    return dict(known[name] for name in started if name in known)
