"""Gateways before the same raw server: ours and those of others, each by the quickest way it offers."""

import json
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from bench.asking import (
    HOST,
    Ask,
    hub_call,
    hub_list,
    in_session,
    legacy_call,
    legacy_list,
    mcp_call,
    mcp_list,
    opening,
)
from bench.process import UPSTREAM
from bench.report import title
from bench.stage import HERE, MANY, PORT, Stage
from tests.gates.locks import versions as locked
from tests.parts import peers, proxies
from tests.parts.registry import take

PACKAGES = sysconfig.get_path("platlib")
PIPE, WEB = "pipe", "web"
_SERVER = [sys.executable, str(UPSTREAM)]
_HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@dataclass(frozen=True)
class Scene:
    """A raw server that speaks HTTP, on the core of the load, and what starts its like behind a pipe."""

    stage: Stage
    tools: int
    url: str
    env: dict[str, str]

    def name(self, gateway: str) -> str:
        return gateway if self.tools == 1 else f"{gateway}-{self.tools}"


@dataclass(frozen=True, kw_only=True)
class Wire:
    """How a gateway is spoken to; a request may need the port, to open a session there."""

    first: Ask
    call: Callable[[int], Ask]
    list: Callable[[int], Ask]


_MODERN = Wire(first=mcp_call(), call=lambda _: mcp_call(), list=lambda _: mcp_list())
_SESSION = Wire(
    first=opening(),
    call=lambda port: in_session(port, legacy_call()),
    list=lambda port: in_session(port, legacy_list()),
)
# Without a session, and so without a handshake: FastMCP's quickest way in.
_LEGACY = Wire(first=legacy_call(), call=lambda _: legacy_call(), list=lambda _: legacy_list())
_HUB = Wire(first=hub_call(WEB), call=lambda _: hub_call(WEB), list=lambda _: hub_list())


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """One of somebody else's, before a server of one kind."""

    name: str
    kind: str
    wire: Wire
    command: Callable[[Scene], list[str]]
    most: int = MANY
    seconds: float = 0.0


def _node_proxy(scene: Scene) -> list[str]:
    program = [str(take("node")), str(take("proxies") / "mcp-proxy")]
    return [*program, "--host", HOST, "--port", PORT, "--server", "stream", "--", *_SERVER]


def _python_proxy(scene: Scene) -> list[str]:
    program = str(take("mcp_proxy").parent / "mcp-proxy")
    # At its own level it writes a line for every call.
    options = ["--host", HOST, "--port", PORT, "--log-level", "WARNING", "--pass-environment"]
    return [program, *options, "--", *_SERVER]


def _hub(scene: Scene) -> list[str]:
    config = scene.stage.folder / f"{scene.name(HUB.name)}.json"
    config.write_text(json.dumps({"mcpServers": {WEB: {"url": scene.url}}}))
    return [str(take("node")), str(take("proxies") / "mcp-hub"), "--port", PORT, "--config", str(config)]


def _fastmcp(how: str) -> Callable[[Scene], list[str]]:
    program = str(HERE / "servers/fast_proxy.py")
    return lambda scene: [str(take("fastmcp")), program, PORT, PACKAGES, scene.url, how]


NODE = Gateway(name="node-proxy", kind=PIPE, wire=_MODERN, command=_node_proxy)
PYTHON = Gateway(name="python-proxy", kind=PIPE, wire=_SESSION, command=_python_proxy)
# Its MCP is the older kind whose answers come on another connection, so that it is measured by its REST.
HUB = Gateway(name="hub", kind=WEB, wire=_HUB, command=_hub)
TUNED = Gateway(name="fastmcp-tuned", kind=WEB, wire=_LEGACY, command=_fastmcp("kept"))
TUNED_TO_LIST = replace(TUNED, command=_fastmcp("listing"))
# It makes a new client for every call: of 64 at once none would be answered within a round.
PLAIN = Gateway(name="fastmcp-proxy", kind=WEB, wire=_LEGACY, command=_fastmcp("plain"), most=16, seconds=3)


def calls(stage: Stage) -> None:
    """Call a tool through every gateway, and without one."""
    scene = _scene(stage, 1)
    _direct(scene)
    stage.add(WEB, "direct", mcp_call())
    for kind in (PIPE, WEB):
        stage.add(kind, f"toolcrib-{kind}", mcp_call(f"{kind}:echo").signed(_crib(scene, kind)))
    session = legacy_call("pipe:echo").signed(_crib(scene, PIPE))
    stage.add("session", "toolcrib-pipe", in_session(stage.peers["toolcrib-pipe"].port, session))
    for other in (NODE, PYTHON, HUB, TUNED, PLAIN):
        with stage.optional(title(other.name)):
            request = other.wire.call(_start(scene, other))
            stage.add(other.kind, other.name, request, other.most, other.seconds)


def lists(stage: Stage) -> None:
    """List a thousand tools through the gateways that can, and without one."""
    scene = _scene(stage, 1000)
    _direct(scene)
    stage.add("tools", scene.name("direct"), mcp_list(), 1)
    stage.add("tools", scene.name("toolcrib-web"), mcp_list().signed(_crib(scene, WEB)), 1)
    for other in (NODE, PYTHON, HUB, TUNED_TO_LIST):
        with stage.optional(title(scene.name(other.name))):
            stage.add("tools", scene.name(other.name), other.wire.list(_start(scene, other)), 1)


def _scene(stage: Stage, tools: int) -> Scene:
    core = stage.cores.load
    # What the gateways keep at home they keep with the bench.
    homes = dict.fromkeys(_HOMES, str(stage.folder))
    env = {"CORE": "" if core is None else str(core), "TOOLS": str(tools), **homes}
    name = "upstream" if tools == 1 else f"upstream-{tools}"
    port = stage.start(name, [*_SERVER, PORT], mcp_call(), env)
    return Scene(stage, tools, f"http://{HOST}:{port}/mcp", env)


def _direct(scene: Scene) -> None:
    """Start the raw server where the gateways are."""
    scene.stage.start(
        scene.name("direct"), [*_SERVER, PORT], mcp_call(), {"TOOLS": str(scene.tools), "CORE": ""}
    )


def _crib(scene: Scene, kind: str) -> str:
    env = {**scene.env, "PYTHON": sys.executable, "UPSTREAM": str(UPSTREAM), "URL": scene.url}
    return scene.stage.crib(scene.name(f"toolcrib-{kind}"), f"{kind}.yaml", mcp_call(f"{kind}:echo"), env)


def _start(scene: Scene, other: Gateway) -> int:
    return scene.stage.start(scene.name(other.name), other.command(scene), other.wire.first, scene.env)


def versions(started: Iterable[str]) -> dict[str, str]:
    """Say which versions of the others were measured."""
    npm = json.loads((proxies.RECIPE / "package.json").read_text())["dependencies"]
    pypi = {name: locked(peers.RECIPES / f"{name}.lock") for name in ("fastmcp", "mcp_proxy")}
    known = {
        NODE.name: ("mcp-proxy of Node", npm["mcp-proxy"]),
        PYTHON.name: ("mcp-proxy of Python", pypi["mcp_proxy"]["mcp-proxy"]),
        HUB.name: ("mcp-hub", npm["mcp-hub"]),
        TUNED.name: ("FastMCP", pypi["fastmcp"]["fastmcp"]),
    }
    return dict(known[name] for name in started if name in known)
