"""A config, a store and sessions of an earlier version work unchanged, and so do documented imports.

`old_store/` was written by the commit before the source was renamed: `store.sql` is a dump of its SQLite
database, `expected.json` the keys and ids it gave to clients. It is never written again.
"""

import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.gateways import InProcessGateway, open_gateway

pytestmark = pytest.mark.anyio

OLD = Path(__file__).parent / "old_store"
EXPECTED: dict[str, Any] = json.loads((OLD / "expected.json").read_text())
PACKAGE = "com.example.notes"
HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-session-id": EXPECTED["mcp_session"],
    "mcp-protocol-version": "2025-06-18",
}
SECRET = "secret-of-the-old-version"
ARGUMENTS = {
    "server_id": "files",
    "command": ["/nowhere/server", f"--token={SECRET}"],
    "env": {"TOKEN": SECRET},
    "start": "lazy",
}
"""The arguments of the call that added the server."""
PUBLIC = {
    "toolcrib": "BrandedId BusinessRuleError Crib Registry ToolContext ToolResult create_tool hints tool",
    "toolcrib.sdk": (
        "AnyTool AppContext AppServer AppSession BrandedId BusinessRuleError CardId DateRange DeckId Finding"
        " FunctionTool HandledTool Options Pagination RecordMetadata Registry SessionEnded SessionId Sorting"
        " Spoken StorageError ToolContext ToolDefinitionError ToolResult Transcription UserId create_tool"
    ),
    "toolcrib.testing": "FakeSource a_caller a_call a_tool",
    "toolcrib.testing.plugin": "pytest_addoption",
}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[InProcessGateway]:
    file = tmp_path / "toolcrib.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript((OLD / "store.sql").read_text())
    async with open_gateway((OLD / "toolcrib.yaml").read_text(), store=f"sqlite:///{file}") as opened:
        yield opened


async def test_old_keys_and_mcp_sessions_are_accepted(gateway: InProcessGateway) -> None:
    listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    answer = await gateway.request("POST", "/mcp", key=EXPECTED["key"], headers=HEADERS, body=listed)
    assert answer.status == 200
    assert b"local_get_datetime" in answer.body or b"get_datetime" in answer.body
    stranger = await gateway.request("POST", "/mcp", headers=HEADERS, body=listed)
    assert stranger.status == 404
    named = (await gateway.request("GET", "/api/keys", key=EXPECTED["operator"])).json["keys"]
    assert {each["name"] for each in named} == {"agent", "operator"}


async def test_old_app_has_its_tools_user_and_data(gateway: InProcessGateway) -> None:
    app = (await gateway.request("GET", f"/api/apps/{PACKAGE}")).json
    assert (app["tools"], app["version"]) == (["find_note"], 2)
    user = (await gateway.request("GET", "/api/users/ann")).json
    assert (user["language"], [each["packageName"] for each in user["apps"]]) == ("de", [PACKAGE])
    session = (await gateway.request("GET", "/api/users/ann/session")).json
    assert session["sessionId"] == EXPECTED["user_session"]["sessionId"]
    own = {"authorization": f"Bearer {PACKAGE}:{EXPECTED['app_key']}"}
    stored = await gateway.request("GET", "/api/sdk/simple-storage/ann/color", key=None, headers=own)
    assert (stored.status, stored.json["data"]) == (200, "green")


async def test_old_server_has_its_settings_and_secrets(gateway: InProcessGateway) -> None:
    assert set((await gateway.request("GET", "/mcp/status")).json["servers"]) == {"files"}
    server = gateway.runtime.document.mcp.servers["files"]
    assert list(server.command) == ARGUMENTS["command"]
    assert server.env == ARGUMENTS["env"]


async def test_old_idempotency_key_returns_its_result(gateway: InProcessGateway) -> None:
    body = {"name": "mcp_add_server", "arguments": ARGUMENTS, "idempotencyKey": "once"}
    again = await gateway.request("POST", "/api/tools/execute", body=body)
    assert (again.status, again.json["data"]) == (200, EXPECTED["answer"])
    assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize("module", PUBLIC)
def test_documented_imports_work(module: str) -> None:
    loaded = import_module(module)
    assert [name for name in PUBLIC[module].split() if not hasattr(loaded, name)] == []
