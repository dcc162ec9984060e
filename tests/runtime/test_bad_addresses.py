"""An address that can never be connected to is refused, and one that is stored stops no start."""

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.servers import call, ledger, running, write
from toolcrib.config import ConfigError, load
from toolcrib.errors import Refused
from toolcrib.store import open_store

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("C1")]

HOSTS = ["a..b", f"{'a' * 64}.example"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toolcrib.yaml"


def web(host: str) -> dict[str, Any]:
    return {"transport": "http", "url": f"http://{host}/mcp"}


@pytest.mark.parametrize("host", HOSTS)
async def test_a_stored_host_that_no_lookup_takes_stops_no_start(path: Path, host: str) -> None:
    home = path.parent / "home"
    home.mkdir()
    store = await open_store(f"sqlite:///{home}/toolcrib.db")
    stored = {"mcp": {"servers": {"bad": web(host)}}, "url_givers": {"bad": "other"}}
    await store.overlay.save(stored, expected=0)
    await store.close()
    write(path, {"books": ledger(path.parent)})
    async with running(path) as runtime:
        bad = runtime.console.servers.status()["servers"]["bad"]
        assert (bad["state"], "its host" in bad["last_error"]) == ("stopped", True)
        assert (await call(runtime, "books:append", op_id="one")).data is not None
        assert (await runtime.console.servers.remove("bad"))["removed"] == ()


@pytest.mark.parametrize("host", HOSTS)
async def test_a_host_that_no_lookup_takes_is_not_added(path: Path, host: str) -> None:
    write(path, {})
    async with running(path) as runtime:
        with pytest.raises(Refused, match="its host") as refused:
            await runtime.console.servers.add("bad", web(host))
        assert refused.value.problem.path == "mcp.servers.bad.url"
        assert runtime.console.servers.status()["servers"] == {}


@pytest.mark.parametrize("host", HOSTS)
def test_a_file_with_such_a_host_is_refused(path: Path, host: str) -> None:
    write(path, {"bad": web(host)})
    with pytest.raises(ConfigError, match="its host"):
        load(path, env={})
