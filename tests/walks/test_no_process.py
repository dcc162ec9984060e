"""Every way that could start a program needs the same permission, and a program the operator's leave."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateways import ADMIN, InProcessGateway, Reply, at_once
from tests.runtime.servers import ROOT, put
from tests.waiting import until
from toolcrib.config import load
from toolcrib.runtime import build
from toolcrib.server import GatewayApp

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("B8", "I1")]

MCP = {"accept": "application/json, text/event-stream"}
PERMISSIONS = ["crib:status", "crib:calls", "crib:explain", "crib:keys", "other:write"]


class ConfigFolder:
    """A folder with a config whose programs leave a line when they are started."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self.starts = folder, folder / "toolcrib.yaml", folder / "starts"
        self.starts.touch()

    def program(self, then: str = "exec cat") -> list[str]:
        return ["/bin/sh", "-c", f'echo started >> "{self.starts}"; {then}']

    def server(self, then: str = "exec cat", **more: Any) -> dict[str, Any]:
        return {"transport": "stdio", "command": self.program(then), "cwd": str(ROOT), **more}

    def ledger(self) -> str:
        return f'exec "{sys.executable}" -ES -m tests.servers.ledger "{self.folder}"'

    def write(self, **more: Any) -> None:
        """The operator's servers: one asleep, one that is dead for good, one that is switched off."""
        servers = {
            "sleeper": self.server(self.ledger(), start="lazy"),
            "dead": self.server("exit 1", restart={"enabled": False}),
            "off": self.server(enabled=False),
            **more,
        }
        overrides = {"sleeper:*": {"permissions": ["books:write"]}}
        contexts = {"few": {"tools": ["local:*"]}}
        put(
            self.path,
            json.dumps(
                {
                    "mcp": {"servers": servers},
                    "overrides": overrides,
                    "contexts": contexts,
                    "allow_private": ["127.0.0.0/8"],
                }
            ),
        )

    def count(self) -> int:
        return len(self.starts.read_text().splitlines())

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[InProcessGateway]:
        """Run the gateway, once everything rests."""
        env = {"TOOLCRIB_HOME": str(self.folder / "home"), "TOOLCRIB_ADMIN_KEY": ADMIN}
        async with build(load(self.path, env=env), env=env) as runtime:
            server = GatewayApp(runtime)
            runtime.failed_logins.sleep = at_once
            async with server.running():
                client = InProcessGateway(runtime, server)
                await until(lambda: _resting(client))
                yield client


def _resting(client: InProcessGateway) -> bool:
    states = {each.id: each.state for each in client.runtime.console.supervisor.states()}
    return (states["sleeper"], states["dead"]) == ("asleep", "stopped")


@pytest.fixture
def config_folder(tmp_path: Path) -> ConfigFolder:
    made = ConfigFolder(tmp_path)
    made.write()
    return made


def execute(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    body = {"name": name, "arguments": arguments, **more}
    return {"method": "POST", "target": "/api/tools/execute", "body": body}


def spoken(name: str, arguments: Any, target: str = "/mcp") -> dict[str, Any]:
    """The same by MCP, in the revision that needs no session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        **MCP,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return {"method": "POST", "target": target, "body": body, "headers": headers}


def post(target: str, body: Any = None, **more: Any) -> dict[str, Any]:
    return {"method": "POST", "target": target, "body": body, **more}


def ways(config_folder: ConfigFolder) -> dict[str, dict[str, Any]]:
    """What somebody without the permission may try."""
    command, more = (
        {"server_id": "x", "command": config_folder.program()},
        {"headers": {"x-user-id": "someone"}},
    )
    made = {"name": "made", "permissions": ["crib:servers"]}
    return {
        "add": execute("crib:mcp_add_server", command),
        "add by its safe name": execute("mcp_add_server", command),
        "add as another user": {**execute("mcp_add_server", command), **more},
        "add in another context": execute("mcp_add_server", command, context="few"),
        "add with another transport": execute("mcp_add_server", {**command, "transport": "http"}),
        "add by MCP": spoken("mcp_add_server", command),
        "add by MCP in a context": spoken("mcp_add_server", command, "/contexts/few/mcp"),
        "test a dead one": post("/mcp/test/dead"),
        "test one that sleeps": post("/mcp/test/sleeper"),
        "test one that is off": post("/mcp/test/off"),
        "test as another user": post("/mcp/test/dead", **more),
        "reload": post("/reload"),
        "reload with a word for it": post("/reload?dry_run=false"),
        "plan a reload": post("/reload?dry_run=true"),
        "remove, which reads the file": {"method": "DELETE", "target": "/mcp/servers/sleeper"},
        "approve, which reads the file": post("/api/pins", {"name": "sleeper:append"}),
        "update": {"method": "PUT", "target": "/mcp/servers/off", "body": config_folder.server()},
        "reload by another verb": {"method": "GET", "target": "/reload"},
        "call one that sleeps": execute("sleeper:append", {"op_id": "one"}),
        "call one that sleeps by MCP": spoken("mcp_sleeper_append", {"op_id": "one"}),
        "make a key that may": post("/api/keys", made),
        "make a key that may all": post("/api/keys", {**made, "permissions": ["crib:*"]}),
        "make a key of an operator": post("/api/keys", {**made, "permissions": ["crib:admin"]}),
        "take over a key that may": post("/api/keys/strong/rotate"),
    }


def refused(reply: Reply) -> bool:
    """Whether it was turned away; MCP says so in an answer of its own."""
    said = reply.json
    wrong = said.get("error") is not None or said.get("result", {}).get("isError") is True
    return wrong and reply.status in {200, 400, 401, 403, 404, 405, 409}


@pytest.mark.check(5)
async def test_without_permission_no_program_starts(config_folder: ConfigFolder) -> None:
    async with config_folder.open() as client:
        await client.key("strong", permissions=["crib:servers"])
        callers = {
            "many permissions": await client.key("many", permissions=PERMISSIONS, actAs=True),
            "one context": await client.key("one", permissions=PERMISSIONS, contexts=["few"], home="few"),
            "none": await client.key("none"),
            "revoked": await client.key("revoked", permissions=["crib:servers"]),
            "nobody": None,
        }
        await client.request("DELETE", "/api/keys/revoked")
        rest = config_folder.count()
        # Whatever reads the file anew would start this one.
        config_folder.write(planted=config_folder.server())
        for who, key in callers.items():
            for way, request in ways(config_folder).items():
                reply = await client.request(**request, key=key)
                assert refused(reply), (who, way, reply.status, reply.body)
        for target in ("/mcp/status", "/api/tools", "/api/status", "/api/explain?name=sleeper:append"):
            assert (await client.request("GET", target, key=callers["many permissions"])).status == 200
        assert config_folder.count() == rest
        assert _resting(client)
        # The same permission is enough for all of them, and then they do start programs.
        strong = await client.key("able", permissions=["crib:servers"])
        heard = await client.request(**spoken("mcp_list_servers", {}))
        assert heard.json["result"]["structuredContent"]["servers"]
        assert (await client.request("POST", "/reload", key=strong)).json["added"] == ["planted"]
        await until(lambda: config_folder.count() > rest)


def programs(config_folder: ConfigFolder) -> dict[str, dict[str, Any]]:
    """What somebody who may add servers, but no programs, may try."""
    command = config_folder.program()
    return {
        "a list": {"command": command},
        "a word and arguments": {"command": command[0], "args": command[1:]},
        "said to be stdio": {"transport": "stdio", "command": command},
        "said to be http": {"transport": "http", "command": command},
        "said to be sse": {"transport": "sse", "command": command},
        "an address and a command": {"url": "https://x.example/mcp", "command": command},
        "said to be both": {"transport": "stdio", "url": "https://x.example", "command": command},
        "lazy": {"command": command, "start": "lazy"},
        "a file": {"url": f"file://{command[0]}"},
        "a scheme": {"url": f"stdio:{command[0]}"},
        "arguments alone": {"transport": "stdio", "args": command},
        "in place of one of the file": {"server_id": "off", "command": command},
        "in place of one that was added": {"server_id": "web", "command": command},
        "of another spelling": {"server_id": "o.f.f", "command": command},
    }


@pytest.mark.check(5)
async def test_no_program_is_added_unless_the_operator_allows_it(config_folder: ConfigFolder) -> None:
    async with config_folder.open() as client:
        key, rest = (
            await client.key("agent", permissions=["crib:servers", "crib:status"]),
            config_folder.count(),
        )
        web = {"server_id": "web", "url": "http://127.0.0.1:9/mcp", "start": "lazy"}
        assert (await client.call("mcp_add_server", web, key=key)).status == 200
        for way, arguments in programs(config_folder).items():
            given = {"server_id": "x", **arguments}
            for request in (execute("mcp_add_server", given), spoken("mcp_add_server", given)):
                reply = await client.request(**request, key=key)
                assert refused(reply), (way, reply.status, reply.body)
        _, overlay = await client.runtime.console.store.overlay.load()
        assert list(overlay["mcp"]["servers"]) == ["web"]
        assert config_folder.count() == rest


@pytest.mark.parametrize(
    "name, more",
    [("planted", {}), ("planted", {"start": "lazy"}), ("off", {"enabled": True}), ("Off", {"enabled": True})],
)
@pytest.mark.check(5)
async def test_restored_store_starts_no_program(
    config_folder: ConfigFolder, name: str, more: dict[str, Any]
) -> None:
    async with config_folder.open() as client:
        store, rest = client.runtime.console.store, config_folder.count()
        await store.overlay.save({"mcp": {"servers": {name: config_folder.server(**more)}}}, expected=0)
        # The dead one is the file's, and a reload starts it again.
        answer = await client.request("POST", "/reload")
        assert answer.status == 200, answer.body
        await until(lambda: config_folder.count() == rest + 1 and _resting(client))
        for each in ("planted", "off"):
            assert (await client.request("POST", f"/mcp/test/{each}")).json.get("ok") is not True
        rest = config_folder.count()
    async with config_folder.open() as client:
        # The dead one is tried once more with the gateway; the sleeper is known and sleeps on.
        assert config_folder.count() == rest + 1
        for each in ("planted", "off"):
            assert (await client.request("POST", f"/mcp/test/{each}")).json.get("ok") is not True
        assert config_folder.count() == rest + 1
