"""Suggested calls, followed blindly: over REST, with flashcards, an MCP server and an app."""

import gc
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from time import thread_time
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web

from tests.gateways import InProcessGateway, open_gateway
from tests.runtime.servers import ROOT
from tests.walks.app_host import host_with_apps
from tests.walks.fake_app import FakeApp
from toolcrib.demo import tools as demo_tools
from toolcrib.demo.flashcards import flashcards
from toolcrib.gateway.next_actions import NextActions
from toolcrib.model import Result
from toolcrib.sdk import create_tool
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = [pytest.mark.anyio]

NOTES = f"""
mcp:
  servers:
    notes:
      transport: stdio
      command: [{sys.executable}, -ES, -m, tests.servers.notes]
      cwd: {ROOT}
limits: {{per_user: null}}
"""


def calls(reply: Any) -> list[tuple[str, Any]]:
    """The complete calls among the suggested actions, as tool and arguments."""
    found: list[Any] = [each.get("data") or {} for each in reply.json["agentHints"]["suggestedNextActions"]]
    return [(each["tool"], each["arguments"]) for each in found if "arguments" in each]


@pytest.fixture
async def cards(tmp_path: Path) -> AsyncGenerator[InProcessGateway]:
    tools = flashcards(tmp_path / "cards.db").get_all()
    async with open_gateway("limits: {per_user: null}", tools=tools) as gateway:
        yield gateway


@pytest.mark.requirement("E18")
async def test_flashcards_lead_from_page_to_page_and_to_a_card(cards: InProcessGateway) -> None:
    reply = await cards.call("search-decks", {"limit": 2})
    (following,) = [each for each in calls(reply) if each[0].endswith(":search-decks")]
    assert following[1] == {"limit": 2, "cursor": "2"}
    last = await cards.call(*following)
    assert last.json["content"]["nextCursor"] is None
    assert "tools:search-decks" not in dict(calls(last))

    question = await cards.call("review-next-card", {"deckId": "deck_http"})
    get = dict(calls(question))["tools:get-card"]
    assert get == {"cardId": question.json["content"]["card"]["id"]}
    assert (await cards.call("tools:get-card", get)).status == 200


@pytest.mark.requirement("E18")
@pytest.mark.slow
async def test_mcp_server_leads_from_list_to_note() -> None:
    async with open_gateway(NOTES) as gateway:
        assert await gateway.runtime.settled(30)
        reply = await gateway.call("notes:list-notes", {})
        assert calls(reply) == [
            ("notes:get-note", {"noteId": "note_1"}),
            ("notes:list-notes", {"cursor": "2"}),
        ]
        for call in calls(reply):
            assert (await gateway.call(*call)).status == 200
        removed = await gateway.call("notes:remove-note", {"noteId": "note_1"})
        assert (removed.status, calls(removed)) == (200, [])


@pytest.mark.requirement("E18")
@pytest.mark.slow
async def test_app_leads_to_what_its_own_caller_does_next() -> None:
    package = "com.example.recipes"
    text = {"type": "string", "description": "which recipe"}
    tools = [
        {
            "name": name,
            "description": f"It does what {name} says, for the recipes of the user.",
            "inputSchema": {"type": "object", "properties": {"recipe_id": text}, "required": required},
        }
        for name, required in (("find", list[str]()), ("cook", ["recipe_id"]), ("remove", ["recipe_id"]))
    ]

    async def answers(app: FakeApp, call: dict[str, Any], _: web.Request) -> web.StreamResponse:
        del app
        found = {"recipes": [{"id": "recipe_1"}]} if call["toolId"] == "find" else {"id": "recipe_6"}
        return web.json_response({"success": True, "content": found})

    async with host_with_apps(package, tools=tools) as (host, (app,)):
        app.tool = answers
        find, cook, remove = (f"{package}:{name}" for name in ("find", "cook", "remove"))
        assert calls(await host.call(find, {})) == [], "apps declare mutations unless they say otherwise"
        for _ in range(2):
            await host.call(find, {})
            await host.call(cook, {"recipe_id": "recipe_1"})
        host.gateway.runtime.console.journal.drain()
        assert calls(await host.call(find, {})) == [(cook, {"recipe_id": "recipe_1"})]
        assert calls(await host.call(remove, {"recipe_id": "recipe_6"})) == []


@pytest.mark.requirement("E18")
async def test_demo_tools_have_nothing_to_suggest() -> None:
    tools = [demo_tools.add_numbers, demo_tools.convert_units, demo_tools.count_words]
    async with open_gateway(tools=tools) as gateway:
        converted = await gateway.call("convert-units", {"value": 3, "unit": "mi", "to": "km"})
        counted = await gateway.call("count-words", {"text": "to be"})
        now = await gateway.call("get_datetime", {})
        for reply in (converted, counted, now):
            assert reply.status == 200
            assert reply.json["agentHints"]["suggestedNextActions"] == []


@pytest.mark.requirement("E18")
async def test_values_of_one_caller_never_reach_another() -> None:
    secret = "ann-4711-private"

    @create_tool(category="query")
    async def find(words: str) -> dict[str, Any]:
        """Find."""
        return {"found": [{"label": f"{words}-label"}]}

    @create_tool(category="query")
    async def look(odd_one: str) -> dict[str, Any]:
        """Look."""
        return {"seen": odd_one}

    @create_tool(category="mutation")
    async def keep(odd_one: str) -> dict[str, Any]:
        """Keep."""
        return {"kept": odd_one}

    async with open_gateway("limits: {per_user: null}", tools=[find, look, keep]) as gateway:
        ann, bob = [await gateway.key(name, permissions=["*"]) for name in ("ann", "bob")]
        for _ in range(3):
            for name in ("look", "keep"):
                await gateway.call("find", {"words": secret}, key=ann)
                await gateway.call(name, {"odd_one": f"{secret}-label"}, key=ann)
        gateway.runtime.console.journal.drain()
        bobs = await gateway.call("find", {"words": "mine"}, key=bob)
        anns = await gateway.call("find", {"words": "hers"}, key=ann)
    assert secret.encode() not in bobs.body + anns.body
    assert calls(bobs) == [("tools:look", {"odd_one": "mine-label"})]
    assert dict(calls(anns)).keys() == {"tools:look", "tools:keep"}
    assert all(arguments == {"odd_one": "hers-label"} for _, arguments in calls(anns))


@pytest.fixture
def no_collection() -> Generator[None]:
    """A full garbage collection of the test process takes longer than a time slice."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.requirement("E18")
@pytest.mark.slow
@pytest.mark.usefixtures("no_collection")
async def test_ten_thousand_tools_are_prepared_without_blocking() -> None:
    text = {"type": "string"}
    tools = {
        tool.name: tool
        for number in range(10_000)
        for tool in [
            a_tool(
                f"s{number % 50}:get-thing-{number}",
                category="query",
                input_schema={
                    "type": "object",
                    "properties": {"thing_id": text, f"part_{number}_id": text, "words": text},
                    "required": ["thing_id"],
                },
            )
        ]
    }
    made = NextActions(lambda _tool, _caller: True, lambda _tool, _caller: ())
    made.adopt(tools)
    call = a_call(tools["s7:get-thing-7"], caller=a_caller())
    result = Result(data={"things": [{"id": "t1"}]})
    assert made.after(call, result) == (), "the first call does not wait"
    longest, turn = 0.0, thread_time()
    async with anyio.create_task_group() as tasks:
        ready = anyio.Event()

        async def wait() -> None:
            await made.prepared()
            ready.set()

        tasks.start_soon(wait)
        while not ready.is_set():
            await anyio.lowlevel.checkpoint()
            longest, turn = max(longest, thread_time() - turn), thread_time()
    assert longest < 0.1
    begun = thread_time()
    assert len(made.after(call, result)) == 3
    assert thread_time() - begun < 0.1, "a plan compares few tools"
    made.close()
