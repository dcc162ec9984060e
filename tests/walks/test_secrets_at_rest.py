"""What is given to a running gateway in confidence is on its disk only encrypted, and survives new keys."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from tests.gateway_process import ADMIN_KEY, GatewayProcess, gateway_process
from toolcrib.apps.signature import key_digest, signing_secret

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.check(16),
    pytest.mark.requirement("I2", "I5"),
]

PATIENCE = 120
NEW_KEY = "another-admin-key-of-a-test-and-nothing-else"
CONFIG = "{mcp: {allow_stdio: true}, allow_private: [127.0.0.0/8]}"
APP = "/api/apps/com.example.app"


def canary(slot: str) -> str:
    return f"canary-{slot}-7c1f09ab"


def web(way: str) -> dict[str, Any]:
    return {
        "server_id": f"web_{way}",
        "url": f"http://127.0.0.1:1/{canary('path')}0123456789abcdef/mcp?key={canary('query')}",
        "headers": {"Authorization": f"Bearer {canary('bearer')}", "X-Thing": canary("header")},
    }


def program(way: str) -> dict[str, Any]:
    flags = ["--api-key", canary("flag"), f"--token={canary('word')}"]
    env = {"TOKEN": canary("env"), "PLAIN": canary("plain")}
    return {"server_id": f"program_{way}", "command": ["/nowhere/at-all", *flags], "env": env}


async def ask(
    gateway: GatewayProcess, method: str, target: str, body: Any = None, key: str = ADMIN_KEY
) -> Any:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.request(method, f"{gateway.url}{target}", json=body) as answer,
    ):
        assert answer.status in (200, 201), await answer.text()
        return await answer.json()


async def run(home: Path, *words: str, **env: str) -> tuple[int, str]:
    """Run a command in its own process, on the state in this folder."""
    command = [sys.executable, "-m", "toolcrib", *words, "-c", str(home / "toolcrib.yaml")]
    kept = {**os.environ, "TOOLCRIB_HOME": str(home), "TOOLCRIB_ADMIN_KEY": ADMIN_KEY, **env}
    done = await anyio.run_process(command, check=False, env=kept)
    return done.returncode, (done.stdout + done.stderr).decode()


def found(home: Path, *more: str) -> list[str]:
    """Name the files with a secret in them."""
    files = [path for path in home.rglob("*") if path.is_file()]
    assert {"toolcrib.db"} <= {path.name for path in files}
    wanted = [each.encode() for each in ("canary-", *more)]
    return [path.name for path in files if any(each in path.read_bytes() for each in wanted)]


async def give(gateway: GatewayProcess, home: Path) -> list[str]:
    """Give a secret to every slot there is, in every way there is; return what is made from keys of apps."""
    for server in (web("rest"), program("rest")):
        await ask(gateway, "POST", "/api/tools/execute", {"name": "mcp_add_server", "arguments": server})
    for server in (web("cli"), program("cli")):
        code, said = await run(home, "call", "crib:mcp_add_server", json.dumps(server))
        assert code == 0, said
    first = await ask(gateway, "PUT", APP, {"name": "App", "publicUrl": "https://app.example"})
    second = await ask(gateway, "POST", f"{APP}/key/rotate")
    keys = [first["apiKey"], second["apiKey"]]
    return [each(key) for key in keys for each in (str, key_digest, signing_secret)]


async def names(gateway: GatewayProcess, key: str = ADMIN_KEY) -> set[str]:
    return set((await ask(gateway, "GET", "/mcp/status", key=key))["servers"])


async def test_no_run_time_secret_is_on_the_disk_in_clear(tmp_path: Path) -> None:
    home, log = tmp_path / "home", tmp_path / "log"
    home.mkdir()
    new = {"TOOLCRIB_ADMIN_KEY": NEW_KEY}
    with anyio.fail_after(PATIENCE):
        async with gateway_process(home, CONFIG, demo=False, log=log) as gateway:
            of_apps = await give(gateway, home)
            assert found(home, *of_apps) == []
        assert found(tmp_path, *of_apps) == []
        code, said = await run(home, "serve", "--port", "0", **new)
        assert code == 2
        assert "TOOLCRIB_ADMIN_KEY_OLD" in said
        both = {**new, "TOOLCRIB_ADMIN_KEY_OLD": ADMIN_KEY}
        async with gateway_process(home, CONFIG, env=both, demo=False, log=log) as gateway:
            added = await names(gateway, NEW_KEY)
        assert added == {"web_rest", "program_rest", "web_cli", "program_cli"}
        # The same as JSON, where the new key opens it alone.
        code, exported = await run(home, "config", "export", "--json", **new)
        assert (code, set(json.loads(exported)["mcp"]["servers"])) == (0, added)
        assert "canary-" not in exported
        assert (await run(home, "secrets", "rotate", "--json", **new))[0] == 0
        assert (await run(home, "config", "export", **new))[0] == 0
    assert found(tmp_path, *of_apps) == []
