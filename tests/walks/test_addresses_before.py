"""Addresses stored before givers were recorded keep working as they did, and the operator hears of them."""

from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from tests.cli.conftest import Shell, shell
from tests.walks.address_givers import Callers, callers, canary, names
from tests.walks.app_host import TOOL
from toolcrib.apps.signature import key_digest, signing_secret
from toolcrib.interfaces import AppRecord, AppTool
from toolcrib.store import open_store

__all__ = ["names", "shell"]
pytestmark = [pytest.mark.requirement("I5", "I2"), pytest.mark.slow]

NOTES, MAIL, SHOP = "com.example.notes", "com.example.mail", "com.example.shop"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'toolcrib.db'}"


async def fill(store: str, apps: Mapping[str, str], servers: Mapping[str, str]) -> None:
    """Store apps and servers as the version before did: without who gave their addresses."""
    opened = await open_store(store)
    for package, url in apps.items():
        record = AppRecord(
            package=package,
            name="App",
            owner="key-2",
            public_url=url,
            digest=key_digest("key"),
            signing=signing_secret("key"),
            tools=(AppTool(definition=TOOL),),
        )
        assert await opened.apps.add(record)
    added = {name: {"transport": "http", "url": url} for name, url in servers.items()}
    assert await opened.overlay.save({"mcp": {"servers": added}}, expected=0) == 1
    await opened.close()


def remarks(gateway: Callers) -> set[str]:
    """Name what the status warns of."""
    return {each.partition(": ")[0] for each in gateway.gateway.runtime.console.status()["warnings"]}


@pytest.mark.anyio
async def test_stored_addresses_keep_working(store: str) -> None:
    # Two listeners: the gateway goes on connecting to a server that does not answer as one.
    async with canary() as app, canary() as server:
        app_url, server_url = (each.at("http://127.0.0.1:{port}") for each in (app, server))
        await fill(store, {NOTES: app_url, SHOP: "https://shop.example.org"}, {"web": f"{server_url}/mcp"})
        async with callers(store=store) as gateway:
            assert await gateway.gateway.runtime.settled(10.0)
            assert server.connections > 0, "the server is not connected to"
            assert app.connections == 0
            await gateway.use(NOTES)
            assert app.connections == 1
            assert remarks(gateway) == {f"apps.{NOTES}", "mcp.servers.web"}


@pytest.mark.anyio
async def test_a_kept_address_is_nobodys_to_change(store: str) -> None:
    async with canary() as trap:
        url = trap.at("http://127.0.0.1:{port}")
        await fill(store, {NOTES: url}, {})
        async with callers(store=store) as gateway:
            # Its developer deploys again with the same address, which stays; another one is judged.
            assert (await gateway.put("developer key", url, NOTES)).status == 200
            assert remarks(gateway) == {f"apps.{NOTES}"}
            assert (await gateway.put("developer key", f"{url}1", NOTES)).code == "INVALID_REQUEST"
            # The operator saves it: now it is the operator's, on every bind address.
            assert (await gateway.put("admin key", url, NOTES)).status == 200
            assert remarks(gateway) == set()
        async with callers("server: {host: 0.0.0.0}", store=store) as gateway:
            await gateway.use(NOTES)
            assert (trap.connections, remarks(gateway)) == (1, set())


@pytest.mark.anyio
@pytest.mark.parametrize("config", ["server: {host: 0.0.0.0}", "allow_private: [10.0.0.0/8]"])
async def test_formerly_refused_address_stays_refused(store: str, config: str) -> None:
    async with canary() as trap:
        url = trap.at("http://127.0.0.1:{port}")
        await fill(store, {NOTES: url}, {"web": f"{url}/mcp"})
        async with callers(config, store=store) as gateway:
            assert (await gateway.use(NOTES)).code == "APP_NOT_AVAILABLE"
            assert remarks(gateway) == {f"apps.{NOTES}", "mcp.servers.web"}
        assert trap.connections == 0


@pytest.mark.anyio
@pytest.mark.usefixtures("names")
async def test_giver_of_server_is_stored_and_removed_with_it(store: str) -> None:
    async with canary() as trap:
        url = trap.at("http://127.0.0.1:{port}/mcp")
        async with callers(store=store) as gateway:
            assert (await gateway.add("admin key", url)).status == 200
            assert (await gateway.add("developer key", "http://private.example/mcp", "far")).status == 200
            console = gateway.gateway.runtime.console
            _, overlay = await console.store.overlay.load()
            assert overlay["url_givers"] == {"web": "operator", "far": "other"}
        connected = trap.connections
        async with callers("server: {host: 0.0.0.0}", store=store) as gateway:
            console = gateway.gateway.runtime.console
            assert await gateway.gateway.runtime.settled(10.0)
            assert trap.connections > connected
            await console.servers.remove("web")
            _, overlay = await console.store.overlay.load()
            assert overlay["url_givers"] == {"far": "other"}
            assert (await gateway.add("developer key", url)).code == "PERMISSION_DENIED"


def test_check_lists_stored_addresses(shell: Shell, tmp_path: Path, store: str) -> None:
    apps = {NOTES: "http://127.0.0.1:9", MAIL: "http://10.1.2.3", SHOP: "https://shop.example.org"}
    anyio.run(fill, store, apps, {"near": "http://localhost:9/mcp", "far": "https://x.example.org/mcp"})
    config = tmp_path / "toolcrib.yaml"
    config.write_text(f"store: {store}\nmcp: {{enabled: false}}\n")
    done = shell("check", "--json")
    assert done.code == 0, done.out
    found = {each["where"]: each for each in done.json["findings"]}
    assert {where for where in found if where.startswith("apps.")} == {f"apps.{NOTES}", f"apps.{MAIL}"}
    assert {each["level"] for each in found.values()} == {"warning"}
    assert "allow_private: [127.0.0.0/8]" in found[f"apps.{NOTES}"]["message"]
    assert "is not connected to" in found[f"apps.{MAIL}"]["message"]
    servers = [each["message"] for each in found.values() if "mcp.servers." in each["message"]]
    assert [each.partition(":")[0] for each in servers] == ["mcp.servers.near"]
    assert "9" not in found[f"apps.{NOTES}"]["message"], "where an app is shows to its owner alone"
    config.write_text(f"store: {store}\nmcp: {{enabled: false}}\nallow_private: [127.0.0.0/8, 10.0.0.0/8]\n")
    assert shell("check", "--json").json["findings"] == []
