"""Errors that repair themselves: the first suggested action is the corrected call, and it works."""

from collections.abc import AsyncGenerator
from typing import Any, Literal

import anyio
import pytest

from tests.gateways import InProcessGateway, Reply, open_gateway
from tests.servers.settings import PYTHON, config, stdio
from tests.texts import matches
from toolcrib import create_tool
from toolcrib.errors import ADVICE, BusinessRuleError, Failed
from toolcrib.hints import action, failed
from toolcrib.model import Deprecation, JsonObject
from toolcrib.testing import FakeSource, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E19")]

CONTEXTS = 'contexts: {default: {tools: ["*"]}, only_files: {tools: ["files:*"]}}'
DELETED: list[str] = []
SERVER_SCHEMA: Any = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "head": {"type": "integer"},
        "encoding": {"enum": ["utf-8", "latin-1"]},
        "api_key": {"type": "string"},
    },
    "required": ["path"],
}


@create_tool(category="query")
def find_cards(deck_id: str, limit: int = 10, order: Literal["Newest", "oldest"] = "oldest") -> JsonObject:
    """Find cards."""
    return {"deck": deck_id, "limit": limit, "order": order}


@create_tool(category="mutation")
def delete_card(card_id: str) -> JsonObject:
    """Delete a card."""
    DELETED.append(card_id)
    return {"deleted": card_id}


@create_tool(category="query")
def sign_in(user_name: str, password: str) -> JsonObject:
    """Sign in."""
    return {"user": user_name, "long": len(password)}


@create_tool(
    category="query",
    deprecated={
        "since": "1.0.0",
        "replacement": "find-cards",
        "announced": "2019-01-01",
        "removalDate": "2020-01-01",
    },
)
def list_cards(deckId: str) -> JsonObject:  # noqa: N803 - a name of the old kind
    """List cards."""
    return {"deck": deckId}


@create_tool(category="query")
def refuse_politely(reason: str) -> JsonObject:
    """Refuse, with hints of its own."""
    raise BusinessRuleError("NO", reason, hints=failed(reason, fix=action("ask-nicely", "high")))


@create_tool(category="query")
def refuse(reason: str) -> JsonObject:
    """Refuse, without hints."""
    raise Failed("TOOL_FAILED", reason)


@create_tool(category="query", rate_limit={"maxCalls": 1, "windowMs": 3_600_000})
def seldom(word: str) -> JsonObject:
    """Answer once an hour."""
    return {"word": word}


TOOLS = [find_cards, delete_card, sign_in, list_cards, refuse_politely, refuse, seldom]


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(CONTEXTS, tools=TOOLS) as opened:
        old = Deprecation(since="1.0.0", replacement="read-file", removal_date="2020-01-01")
        tools = [
            a_tool("files:read-file", family="mcp", input_schema=SERVER_SCHEMA, expose_as="read_file"),
            a_tool("files:cat", family="mcp", input_schema=SERVER_SCHEMA, deprecated=old, expose_as="cat"),
        ]
        opened.runtime.console.supervisor.add(FakeSource(tools))
        assert await opened.runtime.settled(10)
        DELETED.clear()
        yield opened


def first(reply: Reply) -> Any:
    """Return the first suggested action of a result."""
    return reply.json["agentHints"]["suggestedNextActions"][0]


async def followed(gateway: InProcessGateway, reply: Reply) -> Reply:
    data = first(reply)["data"]
    assert data["repair"] is True
    return await gateway.call(data["tool"], data["arguments"])


FAULTY: list[tuple[str, JsonObject, str, JsonObject]] = [
    ("find-cards", {"deckId": "d"}, "tools:find-cards", {"deck_id": "d"}),
    ("find-cards", {"dekc_id": "d"}, "tools:find-cards", {"deck_id": "d"}),
    (
        "find-cards",
        {"deck_id": "d", "order": "newest"},
        "tools:find-cards",
        {"deck_id": "d", "order": "Newest"},
    ),
    ("find-cards", {"deck_id": "d", "limit": "3"}, "tools:find-cards", {"deck_id": "d", "limit": 3}),
    ("find-cards", {"deck_id": "d", "zzz": 1}, "tools:find-cards", {"deck_id": "d"}),
    (
        "find-cards",
        {"deckid": "d", "limit": "3", "order": "OLDEST", "zzz": 1},
        "tools:find-cards",
        {"deck_id": "d", "limit": 3, "order": "oldest"},
    ),
    ("find_crads", {"deck_id": "d"}, "tools:find-cards", {"deck_id": "d"}),
    ("find_crads", {"deckId": "d"}, "tools:find-cards", {"deck_id": "d"}),
    ("list-cards", {"deckId": "d"}, "tools:find-cards", {"deck_id": "d"}),
    ("read-file", {"pth": "/a"}, "files:read-file", {"path": "/a"}),
    ("read-file", {"path": "/a", "head": "3"}, "files:read-file", {"path": "/a", "head": 3}),
    (
        "read-file",
        {"path": "/a", "encoding": "UTF8"},
        "files:read-file",
        {"path": "/a", "encoding": "utf-8"},
    ),
    ("files:raed-file", {"path": "/a"}, "files:read-file", {"path": "/a"}),
    ("cat", {"path": "/a"}, "files:read-file", {"path": "/a"}),
]


@pytest.mark.parametrize("name, arguments, tool, expected", FAULTY)
async def test_repair_comes_first_and_works(
    gateway: InProcessGateway, name: str, arguments: JsonObject, tool: str, expected: JsonObject
) -> None:
    reply = await gateway.call(name, arguments)
    assert reply.status in (400, 404, 410)
    suggestion = first(reply)
    assert suggestion["data"] == {"tool": tool, "arguments": expected, "repair": True}
    assert suggestion["category"] == "correction"
    second = reply.json["agentHints"]["suggestedNextActions"][1]
    assert second["action"] == ADVICE[str(reply.code)].action
    assert (await followed(gateway, reply)).status == 200


@pytest.mark.parametrize("name, arguments, tool, expected", FAULTY)
async def test_library_gives_the_same_repair(
    gateway: InProcessGateway, name: str, arguments: JsonObject, tool: str, expected: JsonObject
) -> None:
    result = await gateway.runtime.gateway.call(name, arguments, a_caller(permissions=frozenset({"*"})))
    assert result.hints is not None
    assert result.hints.suggested_next_actions[0].data == {
        "tool": tool,
        "arguments": expected,
        "repair": True,
    }


@pytest.mark.requirement("E20")
async def test_unknown_time_zone_argument_is_refused_not_utc(gateway: InProcessGateway) -> None:
    reply = await gateway.call("get_datetime", {"timezone": "Asia/Tokyo"})
    assert reply.code == "INVALID_ARGUMENTS"
    (fault,) = reply.json["error"]["details"]["faults"]
    assert (fault["path"], fault["near"]) == ("arguments.timezone", "time_zone")
    assert matches("errors", "unknown argument with a near name", reply.json["error"]["message"])
    assert (await followed(gateway, reply)).json["data"]["timezone"] == "Asia/Tokyo"


UNREPAIRED: list[tuple[str, JsonObject]] = [
    ("find-cards", {}),
    ("find-cards", {"deck_id": "d", "limit": "many"}),
    ("find-cards", {"deck_id": "d" * 5000, "limit": "3"}),
    ("sign-in", {"userName": "ada", "password": "a-secret"}),
    ("read-file", {"pth": "/a", "api_key": "a-secret"}),
    ("zzz", {}),
    ("read-card", {"card_id": "c"}),
    ("card", {"card_id": "c"}),
]


@pytest.mark.parametrize("name, arguments", UNREPAIRED)
async def test_undetermined_or_secret_is_not_repaired(
    gateway: InProcessGateway, name: str, arguments: JsonObject
) -> None:
    reply = await gateway.call(name, arguments)
    assert reply.code in ("INVALID_ARGUMENTS", "TOOL_NOT_FOUND")
    actions = reply.json["agentHints"]["suggestedNextActions"]
    assert [each["action"] for each in actions] == [ADVICE[str(reply.code)].action]
    assert all("arguments" not in each.get("data", {}) for each in actions)
    assert b"a-secret" not in reply.body


async def test_repaired_mutation_is_offered_and_never_marked_safe(gateway: InProcessGateway) -> None:
    for name, arguments in (("delete-card", {"cardId": "c"}), ("delete-crd", {"card_id": "c"})):
        suggestion = first(await gateway.call(name, arguments))
        assert suggestion["data"]["arguments"] == {"card_id": "c"}
        assert "reversible" not in suggestion
        assert matches("errors", f"repaired mutation {name}", suggestion["description"])
        assert "c" not in suggestion["description"].split()
    assert DELETED == []


async def test_each_call_gets_its_own_repair(gateway: InProcessGateway) -> None:
    for deck in ("one", "two"):
        suggestion = first(await gateway.call("find-cards", {"deckId": deck}))
        assert suggestion["data"]["arguments"] == {"deck_id": deck}
    without = first(await gateway.call("find-cards", {"deckId": 1.5e300}))
    assert without["action"] == ADVICE["INVALID_ARGUMENTS"].action


async def test_rate_limited_call_is_repeated_after_a_while(gateway: InProcessGateway) -> None:
    headers = {"idempotency-key": "key-1"}
    assert (await gateway.call("seldom", {"word": "a"})).status == 200
    for more in ({}, headers):
        reply = await gateway.call("seldom", {"word": "b"}, headers=more)
        assert reply.code == "RATE_LIMITED"
        data = first(reply)["data"]
        assert (data["tool"], data["arguments"]) == ("tools:seldom", {"word": "b"})
        assert data["after"] == reply.json["error"]["retryAfter"]
        assert data.get("idempotencyKey") == more.get("idempotency-key")
        names = [each["action"] for each in reply.json["agentHints"]["suggestedNextActions"]]
        assert names == [ADVICE["RATE_LIMITED"].action]


async def test_missing_session_is_begun_by_the_request(gateway: InProcessGateway) -> None:
    headers = {"x-user-id": "ada/1 b"}
    refused = await gateway.call("find-cards", {"deck_id": "d"}, headers=headers)
    assert refused.code == "NO_SESSION"
    request = first(refused)["data"]["request"]
    assert request == {"method": "PUT", "path": "/api/users/ada%2F1%20b/session", "body": {}}
    begun = await gateway.request(request["method"], request["path"], body=request["body"])
    assert begun.status == 200
    assert (await gateway.call("find-cards", {"deck_id": "d"}, headers=headers)).status == 200
    other = await gateway.call("find-cards", {"deck_id": "d"}, headers={"x-user-id": "bob"})
    assert first(other)["data"]["request"]["path"] == "/api/users/bob/session"


async def test_hidden_tools_are_in_no_repair(gateway: InProcessGateway) -> None:
    body = {"name": "find_crads", "arguments": {"deck_id": "d"}, "context": "only_files"}
    reply = await gateway.request("POST", "/api/tools/execute", body=body)
    assert reply.code == "TOOL_NOT_FOUND"
    assert first(reply)["action"] == ADVICE["TOOL_NOT_FOUND"].action
    assert b"find-cards" not in reply.body


async def test_hints_of_the_tool_itself_stay(gateway: InProcessGateway) -> None:
    own = await gateway.call("refuse-politely", {"reason": "no"})
    assert [each["action"] for each in own.json["agentHints"]["suggestedNextActions"]] == ["ask-nicely"]
    generic = await gateway.call("refuse", {"reason": "no"})
    assert first(generic)["action"] == ADVICE["TOOL_FAILED"].action


async def test_mcp_client_gets_the_repair(gateway: InProcessGateway) -> None:
    for name, arguments in (("find_cards", {"deckId": "d"}), ("find_crads", {"deck_id": "d"})):
        reply = await _mcp_call(gateway, name, arguments)
        meta = reply["result"]["_meta"] if "result" in reply else reply["error"]["data"]
        suggestion = meta["toolcrib/agentHints"]["suggestedNextActions"][0]
        assert suggestion["data"]["arguments"] == {"deck_id": "d"}


async def _mcp_call(gateway: InProcessGateway, name: str, arguments: JsonObject) -> Any:
    revision = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": revision,
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (await gateway.request("POST", "/mcp", body=body, headers=headers)).json


async def test_real_mcp_server_is_called_with_the_repair() -> None:
    servers = {"echo": stdio(*PYTHON, "tests.servers.echo")}
    async with open_gateway(config(servers)) as gateway:
        with anyio.fail_after(30):
            assert await gateway.runtime.settled(30)
        refused = await gateway.call("echo:echo", {"txt": "hello"})
        assert refused.code == "INVALID_ARGUMENTS"
        repaired = await followed(gateway, refused)
        assert repaired.json["data"] == {"text": "hello"}
